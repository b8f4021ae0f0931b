"""The interaction_f1 metric inside `evaluate`: loading, batches, several processes, and its documents."""

from __future__ import annotations

import doctest
import sys
import threading
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "metrics"))
from interaction_f1 import interaction_f1  # noqa: E402

CUP = {"hand_boxes": [[0.5, 0, 4, 4]], "object_box": [3, 3, 9, 9], "hand_type": "left"}
LID = {"hand_boxes": [[20, 0, 24, 4], [30, 0, 34, 4]], "object_box": [22, 3, 28, 9.125], "hand_type": "both"}
FAR = {"hand_boxes": [], "object_box": [80, 80, 86, 86], "hand_type": "right"}

PREDICTIONS = [None, [CUP, FAR], [], [LID, LID]]
REFERENCES = [[CUP], [CUP], [], [LID]]


@pytest.fixture(scope="module")
def metric_class(tmp_path_factory):
    """InteractionF1 as evaluate.load finds it: copied, with its siblings, into evaluate's folder of modules."""
    evaluate = pytest.importorskip("evaluate")
    patch = pytest.MonkeyPatch()
    modules = tmp_path_factory.mktemp("modules")
    patch.setattr(evaluate.config, "HF_MODULES_CACHE", modules)
    patch.setattr(evaluate.config, "HF_METRICS_CACHE", modules / "data")
    patch.setattr(sys, "path", [*sys.path])
    patch.chdir(REPO)
    metric = evaluate.load("metrics/interaction_f1", cache_dir=str(modules / "data"))
    yield type(metric)
    patch.undo()


def test_evaluate_copies_the_script_and_its_siblings(metric_class):
    copied = Path(sys.modules[metric_class.__module__].__file__).parent
    assert {"inputs.py", "scoring.py", "interaction_f1.py"} <= {path.name for path in copied.iterdir()}
    assert REPO not in copied.parents


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_compute_add_and_add_batch_equal_the_function(metric_class, tmp_path, keep_in_memory):
    want = interaction_f1(PREDICTIONS, REFERENCES)
    options = {"cache_dir": str(tmp_path), "keep_in_memory": keep_in_memory}
    at_once = metric_class(**options).compute(predictions=PREDICTIONS, references=REFERENCES)
    one_by_one, batches = metric_class(**options), metric_class(**options)
    for prediction, reference in zip(PREDICTIONS, REFERENCES, strict=True):
        one_by_one.add(prediction=prediction, reference=reference)
    for start in (0, 1):
        batches.add_batch(predictions=PREDICTIONS[start::2], references=REFERENCES[start::2])
    assert at_once == want
    assert one_by_one.compute() == want
    assert batches.compute() == want


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_splitting_into_batches_changes_nothing(metric_class, cut):
    metric = metric_class(keep_in_memory=True)
    for part in (slice(None, cut), slice(cut, None)):
        metric.add_batch(predictions=PREDICTIONS[part], references=REFERENCES[part])
    assert metric.compute() == interaction_f1(PREDICTIONS, REFERENCES)


def test_combine_reports_the_metric_beside_others(metric_class, tmp_path):
    import evaluate

    both = evaluate.combine([metric_class(cache_dir=str(tmp_path)), metric_class(cache_dir=str(tmp_path))])
    both.add(prediction=None, reference=[CUP])
    both.add_batch(predictions=[[CUP]], references=[[CUP]])
    result = both.compute()
    assert result["interaction_f1_0_recall"] == result["interaction_f1_1_recall"] == 0.5


def test_two_processes_pool_their_examples(metric_class, tmp_path):
    def member(rank):
        metric = metric_class(cache_dir=str(tmp_path), num_process=2, process_id=rank, experiment_id="two", timeout=30)
        metric.add_batch(predictions=PREDICTIONS[rank::2], references=REFERENCES[rank::2])
        results[rank] = metric.compute()

    results = {}
    threads = [threading.Thread(target=member, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert results[0] == interaction_f1(PREDICTIONS, REFERENCES)
    assert results[1] is None


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ({"predictions": [], "references": []}, ValueError, "nothing to score"),
        ({"references": [[CUP]]}, TypeError, "predictions: is of type NoneType"),
        ({"predictions": [[CUP | {"hand_type": 3}]], "references": [[CUP]]}, TypeError, "hand_type is 3"),
        ({"predictions": [[CUP]], "references": [[CUP]], "matching": "best"}, ValueError, "matching is 'best'"),
        ({"predictions": [[CUP]], "references": [[CUP]], "weight": 2}, TypeError, "weight"),
    ],
)
def test_evaluate_passes_on_the_clear_errors(metric_class, inputs, error, message):
    with pytest.raises(error, match=message):
        metric_class(keep_in_memory=True).compute(**inputs)


def test_the_matching_can_be_chosen_when_computing(metric_class):
    result = metric_class(keep_in_memory=True).compute(
        predictions=PREDICTIONS, references=REFERENCES, matching="optimal"
    )
    assert result == interaction_f1(PREDICTIONS, REFERENCES, matching="optimal")
    assert result["greedy_cost"] == 0


def test_a_column_of_a_dataset_is_accepted(metric_class):
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_dict({"p": PREDICTIONS, "r": REFERENCES})
    result = metric_class(keep_in_memory=True).compute(predictions=table["p"], references=table["r"])
    assert result == interaction_f1(PREDICTIONS, REFERENCES)


def test_the_example_of_the_readme_runs(metric_class, monkeypatch):
    monkeypatch.chdir(REPO)
    outcome = doctest.testfile(str(REPO / "metrics/interaction_f1/README.md"), module_relative=False)
    assert outcome.attempted >= 8
    assert outcome.failed == 0


def test_the_examples_in_the_docstrings_run(metric_class):
    from interaction_f1 import inputs, scoring

    assert doctest.testmod(inputs).failed == doctest.testmod(scoring).failed == 0
    assert doctest.testmod(sys.modules[metric_class.__module__]).failed == 0


def test_the_readme_is_a_space_card():
    import yaml

    head = yaml.safe_load((REPO / "metrics/interaction_f1/README.md").read_text().split("---")[1])
    assert head["sdk"] == "gradio"
    assert head["tags"] == ["evaluate", "metric"]
    assert (REPO / "metrics/interaction_f1" / head["app_file"]).is_file()
