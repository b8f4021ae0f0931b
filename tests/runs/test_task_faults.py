"""A method of a task that raises is one failure: every answer is kept, every other sample scored and reported."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from barista_bench.api import evaluate, load_results
from barista_bench.benchmarks import BENCHMARKS, task_class
from barista_bench.benchmarks.barista.relations import Relations
from barista_bench.cli.commands import app
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example
from barista_bench.core.settings import check_settings
from barista_bench.core.status import Status
from barista_bench.core.task import Task
from barista_bench.data.folder import build
from barista_bench.errors import TaskError
from barista_bench.models import Completion, Failure, GenerationConfig, ModelIdentity, Request
from barista_bench.models.base import AnsweredRequest
from barista_bench.reporting import write_report
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.opening import open_tasks
from barista_bench.runs.ask.runner import run, run_config
from barista_bench.runs.log.inputs import sample_seeds
from barista_bench.runs.log.sample_log import read_records
from barista_bench.runs.score.scoring import ScoredRun, read_scored, score
from tests.conftest import MadeOnce, Use
from tests.reporting.test_report import Page
from tests.runs.made_logs import read_folder

MARKER = "an answer that nobody foresaw"
EXAMPLES = 4
MOST = 16
"""Examples of a task, of which figures over groups can be made."""
SPLITS = {name: benchmark.leaderboards[0] for name, benchmark in BENCHMARKS.items()}
"""One of each whose answers are known."""
TASKS = [(name, task.name) for name, benchmark in BENCHMARKS.items() for task in benchmark.tasks]


class Reciter:
    """Answers from `answers` by example, and from `by_seed` by seed; counts its requests."""

    def __init__(self, answers: Mapping[str, str], by_seed: Mapping[int, str] | None = None) -> None:
        self.identity, self.box_format, self.batch_size = ModelIdentity("reciter"), BoxFormat(), 2
        self.answers, self.by_seed, self.asked = answers, by_seed or {}, list[str]()

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        self.asked += [request.request_id for request in requests for _ in request.seeds]
        return [
            [Completion(self.by_seed.get(seed, self.answers[request.request_id])) for seed in request.seeds]
            for request in requests
        ]


class StreamingReciter(Reciter):
    window = 3

    def stream(self, requests: Iterator[Request], config: GenerationConfig) -> Iterator[AnsweredRequest]:
        for request in requests:
            yield AnsweredRequest(request, self.generate([request], config)[0], 0.0)


def break_method(
    patch: pytest.MonkeyPatch,
    kind: type[Task],
    method: str,
    about: Callable[..., bool],
    error: type[Exception] = IndexError,
) -> None:
    """The method raises where `about` its arguments is true."""
    whole: Callable[..., Any] = getattr(kind, method)

    def broken(self: Task, *arguments: Any) -> object:
        if about(*arguments):
            raise error("list index out of range")
        return whole(self, *arguments)

    patch.setattr(kind, method, broken)


def of_example(name: str) -> Callable[..., bool]:
    return lambda example, *rest: example.example_id == name


def marked(text: str, *rest: object) -> bool:
    return MARKER in text


def examples_of(data: Path, benchmark: str, task: str, limit: int = EXAMPLES) -> Sequence[Example]:
    settings = {"data": str(data), "out": Path("none"), "benchmark": benchmark, "task": task, "limit": limit}
    (opened,) = open_tasks(check_settings(RunConfig, {**settings, "model": "oracle", "split": SPLITS[benchmark]}))
    return opened.examples.examples


def true_answers(examples: Sequence[Example], kind: type[Task]) -> dict[str, str]:
    return {example.example_id: kind().reference_answer(example, BoxFormat()) for example in examples}


@pytest.fixture(scope="module")
def built(source_of: Callable[[str], Path], made_once: MadeOnce) -> Callable[[str], Path]:
    """A small dataset of each benchmark, with all of its tasks."""

    def dataset(name: str) -> Path:
        settings: dict[str, Any] = {"benchmark": name, "frames": "linked", "cache": False}
        return made_once(f"faults/{name}", lambda out: build(source_of(name), out, **settings))

    return dataset


@pytest.mark.full
@pytest.mark.parametrize(("benchmark", "name"), TASKS, ids=lambda value: value)
def test_an_answer_at_which_a_parser_raises_costs_no_other_of_any_task(
    benchmark: str, name: str, built: Callable[[str], Path], use: Use, tmp_path: Path
) -> None:
    data, kind = built(benchmark), task_class(benchmark, name)
    answers = true_answers(examples_of(data, benchmark, name, MOST), kind)
    unforeseen, count = next(iter(answers)), 2 * len(answers)
    expected = {(example, run): text for example, text in answers.items() for run in (0, 1)}
    expected[unforeseen, 0] = MARKER
    settings: dict[str, Any] = {"benchmark": benchmark, "task": name, "model": "oracle", "split": SPLITS[benchmark]}
    settings |= {"limit": MOST, "repetitions": 2}
    settings["option"] = ("matcher=exact",) if benchmark == "tog_bench" else ()  # the default's model is on the Hub
    model = use(Reciter(answers, dict.fromkeys(sample_seeds(kind(), unforeseen, 0), MARKER)))
    with pytest.MonkeyPatch.context() as patch:
        break_method(patch, kind, "parse", marked)
        session = run(data, tmp_path, **settings)
        assert (session.asked, session.failed, session.faulty) == (count, 0, 1)
        assert session.first_fault.startswith(
            f"{benchmark}/{name}: parse raised IndexError: list index out of range for {unforeseen}. Fix"
        )
        logged = {(record.example_id, record.repetition): record.text for record in read_folder(tmp_path / name)}
        assert logged == expected
        scored = score(tmp_path / name)
        coverage = scored.results.coverage
        assert (coverage.expected, coverage.scored, coverage.statuses["task_error"]) == (count, count - 1, 1)
        others = [sample for sample in scored.samples if sample.name != (unforeseen, 0)]
        assert all(sample.is_counted and sample.scores for sample in others)
        page, _ = write_report([scored], tmp_path / "report", compare=False)
        answered = [answer for sample in Page(page.read_text()).samples for answer in sample["models"][0]]
        statuses = ["task_error", *(str(sample.record.status) for sample in others)]
        assert sorted(answer["status"] for answer in answered) == sorted(statuses)
    asked = len(model.asked)
    assert run(data, tmp_path, **settings).already_done == count
    assert len(model.asked) == asked
    coverage = score(tmp_path / name).results.coverage
    assert coverage.is_complete
    assert "task_error" not in coverage.statuses


@pytest.fixture
def answers(dataset: Path) -> dict[str, str]:
    return true_answers(examples_of(dataset, "barista", "relations"), Relations)


@pytest.fixture(scope="module")
def two_tasks(small_release: Path, made_once: MadeOnce) -> Path:
    settings: dict[str, Any] = {"configs": ["relations", "referring"], "frames": "linked", "cache": False}
    return made_once("faults/two_tasks", lambda out: build(small_release, out, **settings))


SETTINGS = {"task": "relations", "model": "oracle", "limit": EXAMPLES, "repetitions": 1}


@pytest.mark.parametrize("model_class", [Reciter, StreamingReciter])
@pytest.mark.parametrize("error", [IndexError, RecursionError, TaskError, MemoryError])
def test_the_log_holds_every_answer_for_any_error_of_a_parser(
    model_class: type[Reciter],
    error: type[Exception],
    dataset: Path,
    answers: dict[str, str],
    use: Use,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(model_class(answers))
    break_method(monkeypatch, Relations, "parse", lambda *_: True, error)
    session = run(dataset, tmp_path, **SETTINGS)
    assert (session.asked, session.faulty) == (EXAMPLES, EXAMPLES)
    assert {record.example_id: record.text for record in read_folder(tmp_path / "relations")} == answers
    assert {record.status for record in read_folder(tmp_path / "relations")} == {Status.OK}
    with pytest.raises(TaskError, match=f"barista/relations: parse raised {error.__name__}: list index out of range"):
        score(tmp_path / "relations")


def test_an_answer_is_in_the_log_before_the_task_sees_it(
    dataset: Path, answers: dict[str, str], use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(Reciter(answers))
    seen = []

    def looked(text: str, *rest: object) -> bool:
        seen.append(text in [record.text for record in read_records(tmp_path / "relations" / "samples.jsonl")])
        return False

    break_method(monkeypatch, Relations, "parse", looked)
    run(dataset, tmp_path, **SETTINGS)
    assert seen == [True] * EXAMPLES


def test_the_commands_name_the_task_and_the_example_and_end_with_an_error(
    dataset: Path, answers: dict[str, str], use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unforeseen = next(iter(answers))
    use(Reciter({**answers, unforeseen: MARKER}))
    break_method(monkeypatch, Relations, "parse", marked)
    flags = ["--task", "relations", "--limit", str(EXAMPLES), "--repetitions", "1", "--no-progress"]
    commands = [
        ["run", str(dataset), "--model", "oracle", "--out", str(tmp_path), *flags],
        ["score", str(tmp_path / "relations")],
        ["report", str(tmp_path / "relations"), "--out", str(tmp_path / "report")],
        ["evaluate", str(dataset), "--model", "oracle", "--out", str(tmp_path), *flags],
    ]
    for command in commands:
        ended = CliRunner().invoke(app, command)
        assert ended.exit_code == 1, command
        said = " ".join(ended.output.split())
        assert f"barista/relations: parse raised IndexError: list index out of range for {unforeseen}" in said, command
        assert "Traceback" not in ended.output
        if command[0] != "run":
            assert f"{EXAMPLES - 1}/{EXAMPLES} answered (ok {EXAMPLES - 1}, task_error 1) INCOMPLETE" in said
    assert (tmp_path / "report" / "report.html").is_file()


def test_an_evaluation_holds_scored_and_unscored_tasks(
    dataset: Path, answers: dict[str, str], use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unforeseen = next(iter(answers))
    use(Reciter({**answers, unforeseen: MARKER}))
    break_method(monkeypatch, Relations, "parse", marked)
    evaluation = evaluate(dataset, out=tmp_path, **SETTINGS)
    (fault,) = evaluation.faults
    assert "relations: parse raised IndexError" in fault
    assert unforeseen in fault
    assert "1 samples not scored" in repr(evaluation)
    assert sorted(evaluation.samples["status"]) == ["ok"] * (EXAMPLES - 1) + ["task_error"]
    assert load_results(tmp_path).faults == evaluation.faults


@pytest.mark.parametrize("method", ["prompt", "images", "request_inputs", "answer_schema", "choices"])
def test_only_an_example_that_the_task_cannot_ask_fails_and_it_is_asked_again(
    method: str, linked_dataset: Path, use: Use, tmp_path: Path
) -> None:
    answers = true_answers(examples_of(linked_dataset, "barista", "relations"), Relations)
    name = next(iter(answers))
    model = use(Reciter(answers))
    with pytest.MonkeyPatch.context() as patch:
        break_method(patch, Relations, method, of_example(name))
        session = run(linked_dataset, tmp_path, **SETTINGS)
        assert (session.asked, session.failed) == (EXAMPLES - 1, 1)
        assert f"barista/relations: {method} raised IndexError" in session.first_failure
        assert name in session.first_failure
        coverage = score(tmp_path / "relations").results.coverage
        assert (coverage.scored, coverage.statuses["task_error"]) == (EXAMPLES - 1, 1)
    model.asked.clear()
    session = run(linked_dataset, tmp_path, **SETTINGS)
    assert (session.asked, session.failed, model.asked) == (1, 0, [name])
    assert score(tmp_path / "relations").results.coverage.is_complete


@pytest.mark.parametrize("method", ["has_answer", "resampling_unit"])
def test_a_sample_that_the_task_cannot_score_costs_no_other(
    method: str, dataset: Path, answers: dict[str, str], use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(Reciter(answers))
    run(dataset, tmp_path, **SETTINGS)
    break_method(monkeypatch, Relations, method, of_example(next(iter(answers))))
    coverage = score(tmp_path / "relations").results.coverage
    assert (coverage.expected, coverage.scored, coverage.statuses["task_error"]) == (EXAMPLES, EXAMPLES - 1, 1)


def test_a_sample_without_statistics_costs_no_other(
    dataset: Path, answers: dict[str, str], use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = next(iter(answers))
    use(Reciter(answers))
    run(dataset, tmp_path, **SETTINGS)
    break_method(
        monkeypatch, Relations, "statistics", lambda samples: any(s.example.example_id == name for s in samples)
    )
    scored = score(tmp_path / "relations")
    assert scored.results.coverage.statuses["task_error"] == 1
    assert scored.results.metrics["micro_f1"].mean == 1.0
    (faulty,) = (sample for sample in scored.samples if not sample.is_counted)
    assert f"statistics raised IndexError: list index out of range for {name}" in str(faulty.record.error)


def test_a_task_whose_statistics_raise_is_not_scored_and_the_others_are(
    two_tasks: Path, use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_method(monkeypatch, Relations, "statistics", lambda samples: len(samples) > 1)
    settings = {"out": tmp_path / "runs", "limit": EXAMPLES, "repetitions": 1}
    evaluation = evaluate(two_tasks, "oracle", task="all", **settings)
    assert [run.task.name for run in evaluation.runs] == ["referring"]
    assert f"relations: statistics raised IndexError: list index out of range for {EXAMPLES} samples" in str(
        evaluation.unscored
    )
    ended = CliRunner().invoke(app, ["score", str(tmp_path / "runs")])
    assert ended.exit_code == 1
    assert "barista/referring, oracle:" in ended.output
    assert "error: barista/relations: statistics raised IndexError" in ended.output
    assert [run.task.name for run in load_results(tmp_path / "runs").runs] == ["referring"]


@pytest.mark.parametrize(
    "method",
    [
        "explain",
        "facets",
        *(pytest.param(name, marks=pytest.mark.full) for name in ("overlays", "image_captions", "mistakes")),
    ],
)
def test_a_report_is_written_without_the_parts_that_a_task_cannot_show(
    method: str, dataset: Path, answers: dict[str, str], use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = next(iter(answers))
    use(Reciter(answers))
    run(dataset, tmp_path, **SETTINGS)
    scored: ScoredRun = score(tmp_path / "relations")
    break_method(monkeypatch, Relations, method, of_example(name))
    write_report([scored], tmp_path / "report", compare=False)
    assert any(f"raised IndexError: list index out of range for {name}" in fault for fault in scored.task.faults)
    page = Page((tmp_path / "report" / "report.html").read_text())
    assert {(answer["text"], answer["status"]) for sample in page.samples for answer in sample["models"][0]} == {
        (text, "ok") for text in answers.values()
    }
    ended = CliRunner().invoke(app, ["report", str(tmp_path / "relations"), "--out", str(tmp_path / "report")])
    assert ended.exit_code == 1
    assert "wrote" in ended.output


@pytest.mark.parametrize("method", ["reference_answer", "random_answer", "prior_answer"])
def test_a_baseline_that_raises_fails_only_for_that_example(
    method: str, dataset: Path, answers: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = {"reference_answer": "oracle", "random_answer": "chance", "prior_answer": "prior"}[method]
    break_method(monkeypatch, Relations, method, of_example(next(iter(answers))))
    session = run(dataset, tmp_path, **{**SETTINGS, "model": model})
    assert (session.asked, session.failed) == (EXAMPLES - 1, 1)
    assert f"{method} raised IndexError" in session.first_failure
    assert read_scored(tmp_path / "relations").results.coverage.statuses["task_error"] == 1


def test_a_failing_task_costs_no_other_task_of_the_same_start(
    two_tasks: Path, use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"data": str(two_tasks), "out": tmp_path / "runs", "task": "all", "model": "oracle"}
    config = check_settings(RunConfig, {**settings, "limit": EXAMPLES, "repetitions": 1})
    opened = open_tasks(config)
    answers = {
        example.example_id: item.task.reference_answer(example, BoxFormat())
        for item in opened
        for example in item.examples.examples
    }
    use(Reciter(answers))
    break_method(monkeypatch, Relations, "parse", lambda *_: True)
    session = run_config(config, opened)
    assert (session.asked, session.faulty) == (2 * EXAMPLES, EXAMPLES)
    assert score(tmp_path / "runs" / "referring").results.coverage.is_complete


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_an_answer_on_the_way_is_kept_when_the_next_question_cannot_be_made(
    steps: int, built: Callable[[str], Path], use: Use, tmp_path: Path
) -> None:
    """ViSTa asks in three steps: after the first or second, `follow_up` raises for one example."""
    data, kind = built("vista"), task_class("vista", "virtual_home")
    answers = true_answers(examples_of(data, "vista", "virtual_home", MOST), kind)
    name = next(iter(answers))
    settings = {"benchmark": "vista", "task": "virtual_home", "model": "oracle", "limit": MOST, "repetitions": 1}

    class Talker(Reciter):
        def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
            self.asked += [request.request_id for request in requests]
            return [
                [Completion(self.answers[request.request_id] if request.prompt.earlier else "It is seen.")]
                for request in requests
            ]

    model = use(Talker(answers))
    with pytest.MonkeyPatch.context() as patch:
        break_method(
            patch, kind, "follow_up", lambda example, given, _: example.example_id == name and len(given) == steps
        )
        session = run(data, tmp_path, **settings)
        assert (session.asked, session.failed) == (len(answers) - 1, 1)
        assert "vista/virtual_home: follow_up raised IndexError" in session.first_failure
        assert model.asked.count(name) == steps
        assert score(tmp_path / "virtual_home").results.coverage.statuses["task_error"] == 1
    model.asked.clear()
    session = run(data, tmp_path, **settings)
    assert (session.asked, session.failed) == (1, 0)
    assert model.asked == [name] * (3 - steps)
    record = next(
        record for record in read_folder(tmp_path / "virtual_home") if record.example_id == name and record.is_finished
    )
    assert (record.earlier, record.text) == (("It is seen.", "It is seen."), answers[name])
    assert score(tmp_path / "virtual_home").results.coverage.is_complete
