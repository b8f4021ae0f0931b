"""Rules that every sibling benchmark keeps, for all of its tasks and options."""

import fnmatch
import itertools
import random
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.benchmarks.release_records import AnnotationRelease
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, content_seed
from barista_bench.core.task import Task
from barista_bench.errors import BaristaError
from tests.answering import answered
from tests.conformance.task_examples import Releases
from tests.conftest import SHARED
from tests.stats.made import drawn_out

ROOT = Path(__file__).resolve().parents[2]
SIBLINGS = ("vista", "handyvqa", "tog_bench", "egocot")
TASKS = [task for name in SIBLINGS for task in BENCHMARKS[name].tasks]
RESAMPLED = [*TASKS, *BENCHMARKS["extended"].tasks]
"""Tasks whose figures of resamples are looked at here; tests/stats does so for those of BARISTA, on whole runs."""
BOXES = BoxFormat()
VALUES: Mapping[str, tuple[object, ...]] = {"matcher": ("synonyms", "exact"), "max_side": (None, 40)}
"""Of options whose values are not listed by the option itself, or not all at hand."""
RUN = 8
"""Words that make a copy."""


def with_every_option(task: type[Task], combine: Callable[..., Iterable[tuple[object, ...]]]) -> Iterator[Task]:
    """The task with the values that its options list, as `combine` puts them together."""
    names = [
        name
        for name, option in task.options.items()
        if name in VALUES or option.choices or option.default in (True, False)
    ]
    values = [VALUES.get(name, task.options[name].choices or (False, True)) for name in names]
    for chosen in combine(*values):
        yield task(options=dict(zip(names, chosen, strict=True)))


def each_value_once(*values: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
    """Every value of every option, in as few combinations as there can be."""
    for number in range(max(map(len, values), default=1)):
        yield tuple(listed[number % len(listed)] for listed in values)


@pytest.fixture(scope="module")
def examples(source_of: Callable[[str], Path]) -> dict[type[Task], list[Example]]:
    """The questions with answers of a small release of each."""
    by_task: dict[type[Task], list[Example]] = {}
    for name in SIBLINGS:
        benchmark = BENCHMARKS[name]
        release = benchmark.open_release(source_of(name), None)
        for kind in benchmark.tasks:
            task = kind()
            made = task.examples(release, task.sampling)  # type: ignore[attr-defined]
            by_task[kind] = [example for example in made if isinstance(example, Example) and task.has_answer(example)]
            assert by_task[kind], kind
    return by_task | {kind: Releases(source_of).examples(kind) for kind in BENCHMARKS["extended"].tasks}


@pytest.mark.full
@pytest.mark.parametrize("kind", TASKS, ids=lambda kind: f"{kind.benchmark}-{kind.name}")
def test_the_oracle_has_the_best_score_by_every_combination_of_options(
    kind: type[Task], examples: dict[type[Task], list[Example]]
) -> None:
    for task in with_every_option(kind, itertools.product):
        samples = [answered(task, example, task.reference_answer(example, BOXES)) for example in examples[kind]]
        metrics = task.aggregate(samples)
        assert metrics[task.primary] == pytest.approx(1.0, abs=1e-9), task.chosen
        for sample in samples:
            assert task.score(sample.example, sample.prediction)[task.sample_score] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("kind", RESAMPLED, ids=lambda kind: f"{kind.benchmark}-{kind.name}")
def test_drawn_metrics_equal_the_metrics_of_the_drawn_samples_for_every_option(
    kind: type[Task], examples: dict[type[Task], list[Example]]
) -> None:
    for task in with_every_option(kind, each_value_once):
        samples = []
        for index, example in enumerate(examples[kind]):
            chance = task.random_answer(example, random.Random(content_seed(example.example_id)), BOXES)
            text = [task.reference_answer(example, BOXES), chance, chance, chance, "no answer"][index % 5]
            samples.append(answered(task, example, text))
        weights = np.ones((1, len(samples)))
        if not task.scores_whole_units:  # its draws are not lists of samples
            weights = np.vstack([weights, np.random.default_rng(1).integers(0, 3, (4, len(samples)))])
        drawn, slow = task.statistics(samples).compute_metrics(weights), drawn_out(task, samples, weights)
        assert task.primary in drawn
        for name, values in drawn.items():
            wanted = slow.get(name, [np.nan] * len(weights))
            np.testing.assert_allclose(values, wanted, atol=1e-12, err_msg=f"{name} {task.chosen}")


@pytest.mark.parametrize("name", ["vista", "handyvqa", "egocot"])
def test_a_release_of_another_benchmark_is_refused(name: str, tmp_path: Path) -> None:
    task = BENCHMARKS[name].tasks[0]()
    with pytest.raises(BaristaError, match=r"not a .*release.*Fix"):
        list(task.examples(AnnotationRelease(tmp_path, tmp_path, ()), task.sampling))  # type: ignore[attr-defined]


def test_runner_analysis_and_reporting_name_no_sibling() -> None:
    word = re.compile(rf"\b(?:{'|'.join(SIBLINGS)})\b", re.IGNORECASE)
    for room in ("runs", "stats", "reporting"):
        paths = sorted((ROOT / "barista_bench" / room).rglob("*.py"))
        assert paths
        for path in paths:
            assert not word.search(path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("name", SIBLINGS)
def test_runs_that_a_page_shows_say_where_they_go_and_reports_where_they_are(name: str) -> None:
    lines = re.findall(r"^ {4}barista-bench (.*)$", (ROOT / "docs" / f"{name}.md").read_text(), re.MULTILINE)
    folders: list[str] = []
    for words in map(shlex.split, lines):
        if words[0] == "run":
            folders.append(words[words.index("--out") + 1])
        elif words[0] == "report":
            for folder in words[1:]:
                assert any(
                    fnmatch.fnmatch(f"{pattern}{task}", folder) for pattern in folders for task in ("", "/all")
                ), folder
    assert folders


def _words(path: Path) -> list[str]:
    return re.findall(r"[a-z0-9']+", path.read_text(encoding="utf-8", errors="ignore").lower())


def _runs(words: list[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1))


@pytest.mark.full
def test_prompts_instructions_and_pages_are_in_our_own_words() -> None:
    """No eight consecutive words of a paper or of the data are in texts for models or people."""
    sources = [path for part in ("papers", "data") for path in (SHARED / part).rglob("*") if path.is_file()]
    if not sources:
        pytest.skip(f"{SHARED} is absent: papers and data are not part of this repository")
    theirs = {run for path in sources for run in _runs(_words(path))}
    folder = ROOT / "barista_bench" / "benchmarks"
    ours = [path for name in SIBLINGS for suffix in ("yaml", "json") for path in (folder / name).rglob(f"*.{suffix}")]
    ours += [path for name in SIBLINGS for path in (folder / name).glob("mini*.py")]
    ours += [ROOT / "docs" / f"{name}.md" for name in SIBLINGS]
    assert len(ours) > 15
    for path in ours:
        assert not [" ".join(run) for run in _runs(_words(path)) if run in theirs], path
