"""The choice_accuracy metric inside `evaluate`: loading, batches, several processes, and its documents."""

from __future__ import annotations

import doctest
import sys
import threading
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "metrics"))
from choice_accuracy import choice_accuracy, multi_answer  # noqa: E402

VERBS = {"A": "open", "B": "open", "C": "close"}
PREDICTIONS = [None, "A", "B", 3]
REFERENCES = ["A", "A", "A", "3"]
# Whatever may be left out is left out somewhere, and is None in the first question.
EXTRAS = {
    "classes": [None, "open lid", "open lid", 7],
    "verbs": [None, "open", None, "turn"],
    "choices": [None, VERBS, VERBS, [3, 4]],
}
OPTIONS = ["cup", "lid", "spoon"]
MULTI = {
    "predictions": [None, ["cup"], []],
    "references": [["cup"], ["cup", "lid"], ["spoon"]],
    "choices": [OPTIONS, OPTIONS, OPTIONS],
}


@pytest.fixture(scope="module")
def metric_class(tmp_path_factory):
    """ChoiceAccuracy as evaluate.load finds it: copied, with its siblings, into evaluate's folder of modules."""
    evaluate = pytest.importorskip("evaluate")
    patch = pytest.MonkeyPatch()
    modules = tmp_path_factory.mktemp("modules")
    patch.setattr(evaluate.config, "HF_MODULES_CACHE", modules)
    patch.setattr(evaluate.config, "HF_METRICS_CACHE", modules / "data")
    patch.setattr(sys, "path", [*sys.path])
    patch.chdir(REPO)
    metric = evaluate.load("metrics/choice_accuracy", cache_dir=str(modules / "data"))
    yield type(metric)
    patch.undo()


def test_evaluate_copies_the_script_and_its_siblings(metric_class):
    copied = Path(sys.modules[metric_class.__module__].__file__).parent
    assert {"inputs.py", "multiple.py", "scoring.py", "choice_accuracy.py"} <= {path.name for path in copied.iterdir()}
    assert REPO not in copied.parents


def part_of(columns, selection):
    return {name: column[selection] for name, column in columns.items()}


ALL = {"predictions": PREDICTIONS, "references": REFERENCES, **EXTRAS}


@pytest.mark.parametrize("columns", [{"predictions": PREDICTIONS, "references": REFERENCES}, ALL])
@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_compute_add_and_add_batch_equal_the_function(metric_class, tmp_path, keep_in_memory, columns):
    want = choice_accuracy(**columns)
    options = {"cache_dir": str(tmp_path), "keep_in_memory": keep_in_memory}
    one_by_one, batches = metric_class(**options), metric_class(**options)
    for index in range(4):
        row = {name: column[index] for name, column in columns.items()}
        one_by_one.add(prediction=row.pop("predictions"), reference=row.pop("references"), **row)
    for start in (0, 1):
        batches.add_batch(**part_of(columns, slice(start, None, 2)))
    assert metric_class(**options).compute(**columns) == want
    assert one_by_one.compute() == want
    assert batches.compute() == want


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_splitting_into_batches_changes_nothing(metric_class, cut):
    metric = metric_class(keep_in_memory=True)
    metric.add_batch(**part_of(ALL, slice(None, cut)))
    # What compute() is given is added to what was there.
    assert metric.compute(**part_of(ALL, slice(cut, None))) == choice_accuracy(**ALL)


def test_several_right_choices_have_a_configuration_of_their_own(metric_class):
    want = multi_answer(**MULTI)
    assert metric_class("multi_answer", keep_in_memory=True).compute(**MULTI) == want
    metric = metric_class("multi_answer", keep_in_memory=True)
    metric.add(prediction=None, reference=["cup"], choices=OPTIONS)
    metric.add_batch(**part_of(MULTI, slice(1, None)))
    assert metric.compute() == want
    with pytest.raises(ValueError, match="the configuration is 'several'; give"):
        metric_class("several")


def test_combine_reports_the_metric_beside_others(metric_class, tmp_path):
    import evaluate

    both = evaluate.combine([metric_class(cache_dir=str(tmp_path)), metric_class(cache_dir=str(tmp_path))])
    both.add(prediction=None, reference="A")
    both.add_batch(predictions=["A"], references=["A"])
    result = both.compute()
    assert result["choice_accuracy_0_accuracy"] == result["choice_accuracy_1_accuracy"] == 0.5


@pytest.mark.parametrize(
    ("config", "function", "columns"),
    [("default", choice_accuracy, ALL), ("multi_answer", multi_answer, MULTI)],
)
def test_two_processes_pool_their_questions(metric_class, tmp_path, config, function, columns):
    def member(rank):
        options = {"cache_dir": str(tmp_path), "num_process": 2, "process_id": rank, "experiment_id": "two"}
        metric = metric_class(config, timeout=30, **options)
        results[rank] = metric.compute(**part_of(columns, slice(rank, None, 2)))

    results = {}
    threads = [threading.Thread(target=member, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert results[0] == function(**columns)
    assert results[1] is None


@pytest.mark.parametrize(
    ("config", "inputs", "error", "message"),
    [
        ("default", {"predictions": [], "references": []}, ValueError, "nothing to score"),
        ("default", {"references": ["A"]}, TypeError, "predictions: is of type NoneType"),
        ("default", {"predictions": [2.5], "references": ["A"]}, TypeError, r"predictions\[0\]: is 2.5"),
        ("default", {"predictions": ["A"], "references": ["A"], "weight": 2}, TypeError, "weight"),
        ("multi_answer", {"predictions": [], "references": [], "choices": []}, ValueError, "nothing to score"),
        ("multi_answer", {"predictions": [["A"]], "references": [["A"]]}, TypeError, "choices: is of type NoneType"),
    ],
)
def test_evaluate_passes_on_the_clear_errors(metric_class, config, inputs, error, message):
    with pytest.raises(error, match=message):
        metric_class(config, keep_in_memory=True).compute(**inputs)


def test_a_column_of_a_dataset_is_accepted(metric_class):
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_dict({"p": [None, "A", "B"], "r": ["A", "A", "A"]})
    result = metric_class(keep_in_memory=True).compute(predictions=table["p"], references=table["r"])
    assert result == choice_accuracy([None, "A", "B"], ["A", "A", "A"])


def test_the_example_of_the_readme_runs(metric_class, monkeypatch):
    monkeypatch.chdir(REPO)
    outcome = doctest.testfile(str(REPO / "metrics/choice_accuracy/README.md"), module_relative=False)
    assert outcome.attempted >= 8
    assert outcome.failed == 0


def test_the_examples_in_the_docstrings_run(metric_class):
    from choice_accuracy import handyvqa, inputs, multiple, scoring

    assert [doctest.testmod(module).failed for module in (handyvqa, inputs, multiple, scoring)] == [0] * 4
    assert doctest.testmod(sys.modules[metric_class.__module__]).failed == 0


def test_the_readme_is_a_space_card():
    import yaml

    head = yaml.safe_load((REPO / "metrics/choice_accuracy/README.md").read_text().split("---")[1])
    assert head["sdk"] == "gradio"
    assert head["tags"] == ["evaluate", "metric"]
    assert (REPO / "metrics/choice_accuracy" / head["app_file"]).is_file()
