"""What every metric in metrics/ must do.

A new metric adds its samples, a handful of examples, to metric_samples.py; without them the test fails. The tests load
each metric as a stranger would and hold it to the same list.
"""

import doctest
import importlib
import json
import os
import random
import re
import subprocess
import sys
import threading
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.loading import FOLDERS, METRICS, load_class, own_modules
from tests.conformance.metric_samples import SAMPLES, Sample

CASES = [
    pytest.param(name, sample, id=f"{name}-{sample.config}" if sample.config else name)
    for name in FOLDERS
    for sample in SAMPLES.get(name, ())
]
every_folder = pytest.mark.parametrize("name", FOLDERS)
every_sample = pytest.mark.parametrize(("name", "sample"), CASES)


class Loaded:
    """Metrics as evaluate.load finds them, each loaded once."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._classes: dict[str, type] = {}

    def metric_class(self, name: str) -> type:
        if name not in self._classes:
            self._classes[name] = load_class(name, self.data)
        return self._classes[name]

    def metric(self, name: str, sample: Sample, **options: Any) -> Any:
        return self.metric_class(name)(sample.config, **({"keep_in_memory": True} | options))

    def compute(self, name: str, sample: Sample, columns: dict[str, Any]) -> Any:
        return self.metric(name, sample).compute(**columns)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    with own_modules(tmp_path_factory.mktemp("modules")) as data:
        yield Loaded(data)


def rows_of(columns, indices):
    return {name: [column[index] for index in indices] for name, column in columns.items()}


def without(result, sample):
    return {key: value for key, value in result.items() if key not in sample.in_order}


def assert_same(got, want, where="result"):
    """Equal except for the last digits of floats, at any depth."""
    if isinstance(want, dict):
        assert isinstance(got, dict), where
        assert got.keys() == want.keys(), where
        for key in want:
            assert_same(got[key], want[key], f"{where}.{key}")
    elif isinstance(want, list | tuple):
        assert len(got) == len(want), where
        for index, pair in enumerate(zip(got, want, strict=True)):
            assert_same(*pair, f"{where}[{index}]")
    elif isinstance(want, float) and not isinstance(got, str):
        assert got == pytest.approx(want, abs=1e-9, nan_ok=True), where
    else:
        assert got == want, where


def headline(result, sample):
    return reduce(lambda part, key: part[key], sample.headline.split("."), result)


def size(sample):
    return len(sample.columns["references"])


@every_folder
def test_the_metric_has_samples_here(name):
    assert SAMPLES.get(name), f"metrics/{name} is not tested for conformance: add its samples to metric_samples.py"


def test_every_sample_belongs_to_a_metric():
    assert set(SAMPLES) <= set(FOLDERS)


@every_folder
def test_the_example_of_the_readme_runs(name, loaded, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    outcome = doctest.testfile(str(METRICS / name / "README.md"), module_relative=False)
    assert outcome.attempted >= 4
    assert outcome.failed == 0


@pytest.mark.full
@every_folder
def test_the_examples_in_the_docstrings_run(name, loaded, monkeypatch):
    monkeypatch.syspath_prepend(str(METRICS))
    modules = [sys.modules[loaded.metric_class(name).__module__]]
    for path in (METRICS / name).glob("*.py"):
        if path.name not in (f"{name}.py", "__init__.py"):
            modules.append(importlib.import_module(f"{name}.{path.stem}"))
    results = [doctest.testmod(module) for module in modules]
    assert sum(result.attempted for result in results) >= 2
    assert sum(result.failed for result in results) == 0


STRANGER = """
import importlib.abc, json, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in blocked:
            raise ModuleNotFoundError(f"{name} is not installed here", name=name)

folder, blocked, jobs = json.load(sys.stdin)
sys.meta_path.insert(0, Blocked())
import evaluate
results = []
for name, config, columns in jobs:
    metric = evaluate.load(f"{folder}/{name}", config, keep_in_memory=True)
    results.append(metric.compute(**columns))
json.dump(results, open("results.json", "w"))
"""


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    """The results of all samples in an isolated Python that knows neither barista_bench nor metrics."""
    pytest.importorskip("evaluate")
    folder = tmp_path_factory.mktemp("stranger")
    jobs = [[case.values[0], case.values[1].config, case.values[1].columns] for case in CASES]
    request = json.dumps([str(METRICS), ["barista_bench", "metrics", *FOLDERS], jobs])
    env = os.environ | {"HF_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-I", "-c", STRANGER]
    done = subprocess.run(command, input=request, env=env, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    results = json.loads((folder / "results.json").read_text())
    return {case.id: result for case, result in zip(CASES, results, strict=True)}


@pytest.mark.full
@every_sample
def test_a_stranger_gets_the_same_metrics(name, sample, loaded, strangers, request):
    want = json.loads(json.dumps(loaded.compute(name, sample, sample.columns)))
    assert_same(strangers[request.node.callspec.id], want)


@every_sample
def test_a_result_counts_its_examples_and_is_plain_json(name, sample, loaded):
    result = loaded.compute(name, sample, sample.columns)
    assert json.loads(json.dumps(result, allow_nan=False)).keys() == result.keys()
    n_failed = sample.columns["predictions"].count(sample.failure)
    assert (result["n"], result["n_failed"]) == (size(sample), n_failed)
    assert result["coverage"] == pytest.approx(1 - n_failed / size(sample))
    lost = loaded.compute(name, sample, sample.columns | {"predictions": [sample.failure] * size(sample)})
    assert (lost["coverage"], lost["n_failed"]) == (0, size(sample))
    json.dumps(lost, allow_nan=False)
    for index in range(size(sample)):
        alone = loaded.compute(name, sample, rows_of(sample.columns, [index]))
        assert alone["n"] == 1
        json.dumps(alone, allow_nan=False)


@every_sample
def test_empty_input_is_refused_with_a_message(name, sample, loaded):
    with pytest.raises(ValueError, match=r"empty|nothing to score|give at least"):
        loaded.compute(name, sample, {column: [] for column in sample.columns})


@every_sample
def test_perfect_answers_get_the_most_and_wrong_ones_the_least(name, sample, loaded):
    for predictions, expected in ((sample.perfect, sample.highest), (sample.all_wrong, sample.lowest)):
        result = loaded.compute(name, sample, sample.columns | {"predictions": predictions})
        assert headline(result, sample) == pytest.approx(expected)
        assert result["n_failed"] == 0


@every_sample
def test_the_order_of_examples_does_not_matter(name, sample, loaded):
    want = without(loaded.compute(name, sample, sample.columns), sample)
    for seed in range(3):
        order = random.Random(seed).sample(range(size(sample)), size(sample))
        got = loaded.compute(name, sample, rows_of(sample.columns, order))
        assert_same(without(got, sample), want)


@every_sample
def test_metrics_do_not_depend_on_the_way_in_which_examples_are_added(name, sample, loaded, tmp_path):
    want = loaded.compute(name, sample, sample.columns)
    for cut in range(1, size(sample)):
        first, rest = rows_of(sample.columns, range(cut)), rows_of(sample.columns, range(cut, size(sample)))
        added, given = loaded.metric(name, sample), loaded.metric(name, sample)
        added.add_batch(**first)
        added.add_batch(**rest)
        assert_same(added.compute(), want)
        given.add_batch(**first)
        assert_same(given.compute(**rest), want)
    one_by_one = loaded.metric(name, sample)
    for index in range(size(sample)):
        row = {column: values[index] for column, values in sample.columns.items()}
        one_by_one.add(prediction=row.pop("predictions"), reference=row.pop("references"), **row)
    assert_same(one_by_one.compute(), want)
    on_disk = loaded.metric(name, sample, keep_in_memory=False, cache_dir=str(tmp_path))
    on_disk.add_batch(**sample.columns)
    assert_same(on_disk.compute(), want)


@pytest.mark.parametrize(("name", "sample"), [case for case in CASES if case.values[1].config is None])
def test_combine_reports_the_metric_beside_others(name, sample, loaded):
    import evaluate

    columns = {column: sample.columns[column] for column in ("predictions", "references")}  # combine knows no others
    want = loaded.compute(name, sample, columns)
    both = evaluate.combine([loaded.metric(name, sample), loaded.metric(name, sample)])
    both.add_batch(**columns)
    result = both.compute()
    for index in (0, 1):
        assert_same({key: result[f"{name}_{index}_{key}"] for key in want}, want)


@every_sample
def test_two_processes_pool_their_examples(name, sample, loaded, tmp_path):
    def member(rank):
        options = {"cache_dir": str(tmp_path), "num_process": 2, "process_id": rank, "experiment_id": "two"}
        metric = loaded.metric(name, sample, keep_in_memory=False, timeout=300, **options)
        metric.add_batch(**rows_of(sample.columns, range(rank, size(sample), 2)))
        results[rank] = metric.compute()

    results = {}
    threads = [threading.Thread(target=member, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    one_after_the_other = [*range(0, size(sample), 2), *range(1, size(sample), 2)]
    assert_same(results[0], loaded.compute(name, sample, rows_of(sample.columns, one_after_the_other)))
    assert results[1] is None


@pytest.mark.parametrize(("name", "sample"), [case for case in CASES if case.values[1].function is not None])
def test_the_module_and_its_function_give_equal_results(name, sample, loaded, monkeypatch):
    monkeypatch.syspath_prepend(str(METRICS))
    function = getattr(importlib.import_module(name), sample.function or name)
    predictions, references, *_ = sample.columns.values()
    extra = {column: values for column, values in sample.columns.items() if column not in ("predictions", "references")}
    plain = function(predictions, references, **extra)
    assert loaded.metric(name, sample).inputs_description == function.__doc__
    assert loaded.compute(name, sample, sample.columns) == plain
    for options in sample.options:
        chosen = function(predictions, references, **extra, **options)
        assert chosen != plain, options
        assert loaded.compute(name, sample, sample.columns | options) == chosen


@every_sample
def test_predictions_are_needed_and_unknown_options_refused(name, sample, loaded):
    needed = {column: values for column, values in sample.columns.items() if column != "predictions"}
    with pytest.raises(TypeError, match="predictions: is of type NoneType"):
        loaded.compute(name, sample, needed)
    with pytest.raises(TypeError, match="weight"):
        loaded.compute(name, sample, sample.columns | {"weight": 2})
    for options, said in sample.wrong_options:
        with pytest.raises(ValueError, match=re.escape(said)):
            loaded.compute(name, sample, sample.columns | options)


@pytest.mark.parametrize(("name", "sample"), [case for case in CASES if case.values[1].in_arrow])
def test_columns_of_a_dataset_are_as_good_as_lists(name, sample, loaded):
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_dict(sample.columns)
    columns = {column: table[column] for column in sample.columns}
    assert not isinstance(columns["references"], list)
    assert_same(loaded.compute(name, sample, columns), loaded.compute(name, sample, sample.columns))


@every_sample
def test_a_wrong_type_is_named_with_its_place_and_remedy(name, sample, loaded):
    general = [(column, 3.5, column) for column in ("predictions", "references")]
    for column, bad, named in (*general, *sample.wrong):
        values = [*sample.columns[column]]
        values[1] = bad
        with pytest.raises((TypeError, ValueError), match=rf"{column}\[1\].*") as caught:
            loaded.compute(name, sample, sample.columns | {column: values})
        assert named in str(caught.value)
        assert "give " in str(caught.value)


@every_sample
def test_a_column_of_text_and_columns_of_unequal_length_are_named(name, sample, loaded):
    for column in ("predictions", "references"):
        with pytest.raises((TypeError, ValueError), match=f"{column}.*give"):
            loaded.compute(name, sample, sample.columns | {column: "abc"})
    n = size(sample)
    with pytest.raises(ValueError, match=rf"{n - 1} .*\b{n} .*give|{n} .*\b{n - 1} .*give"):
        loaded.compute(name, sample, sample.columns | {"predictions": sample.columns["predictions"][1:]})


def with_arrays(value, convert, counter):
    """The same value with every list of numbers, at any depth, as an array."""
    if isinstance(value, dict):
        return {key: with_arrays(item, convert, counter) for key, item in value.items()}
    if not isinstance(value, list) or not value:
        return value
    try:
        kind = np.asarray(value).dtype.kind
    except ValueError:  # lists of unequal length
        kind = "O"
    if kind in "if":
        counter.append(value)
        return convert(value)
    return [with_arrays(item, convert, counter) for item in value]


def half(value):
    """Only fractions: numbers and pixels are whole."""
    torch = pytest.importorskip("torch")
    return torch.tensor(value, dtype=torch.float16 if np.asarray(value).dtype.kind == "f" else None)


def scalars(value):
    """A list of tensors and numpy's numbers without a dimension."""
    torch = pytest.importorskip("torch")
    if isinstance(value, list):
        return [scalars(item) for item in value]
    return torch.tensor(value) if value % 2 else np.asarray(value)[()]


@pytest.mark.parametrize("kind", ["numpy", "torch", "half", "scalars"])
@every_sample
def test_arrays_and_tensors_are_as_good_as_lists(name, sample, loaded, kind):
    convert = {"numpy": np.asarray, "half": half, "scalars": scalars}.get(kind) or pytest.importorskip("torch").tensor
    answered = [i for i, prediction in enumerate(sample.columns["predictions"]) if prediction != sample.failure]
    columns, counter = rows_of(sample.columns, answered), []
    given = with_arrays(columns, convert, counter)
    lists = with_arrays(columns, (lambda value: half(value).tolist()) if kind == "half" else list, [])  # as rounded
    got = loaded.compute(name, sample, given)
    assert_same(got, loaded.compute(name, sample, lists))
    assert bool(counter) == sample.arrays
    if sample.function is not None:
        function = getattr(importlib.import_module(name), sample.function or name)
        predictions, references, *extra = given.values()
        assert_same(function(predictions, references, **dict(zip([*columns][2:], extra, strict=True))), got)


@pytest.mark.parametrize(
    ("name", "known"),
    [("choice_accuracy", '"default" or "multi_answer"'), ("judge_score", "verdicts, agreement, egocot")],
)
def test_an_unknown_configuration_is_refused_with_the_known_ones(loaded, name, known):
    with pytest.raises(ValueError, match=f"'several'.*{known}"):
        loaded.metric_class(name)("several", keep_in_memory=True)
