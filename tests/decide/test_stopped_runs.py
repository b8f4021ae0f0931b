"""Runs that stop when they are decided: their requests, their messages, and the places without a score."""

import os
import random
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from barista_bench.api import compare, load_results
from barista_bench.cli.commands import app as commands
from barista_bench.core.settings import check_settings
from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.checks import check_results
from barista_bench.models import Completion, Failure, GenerationConfig, Request
from barista_bench.models.base import ScriptedModel
from barista_bench.reporting import write_report
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.decide.order import AskingOrder
from barista_bench.runs.described import DECISION_FILE
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.scoring import read_scored, score
from barista_bench.runs.score.stopping import read_decision
from tests.decide.conftest import TASK, Asks, skilled
from tests.kills import in_child
from tests.runs.made_logs import read_folder

UNTIL = {"until": "decided"}


def answered(out: Path) -> set[str]:
    return {record.example_id for record in read_folder(out / TASK) if record.is_finished}


def test_it_stops_before_the_last_answer_and_says_why(six_tasks: Path, asks: Asks, tmp_path: Path) -> None:
    session = asks(tmp_path / "b", skilled(six_tasks, 0.0, "model"), until="above=0.9")
    decision = read_decision(tmp_path / "b" / TASK)
    assert decision is not None
    assert session.asked == decision.counted < decision.examples
    assert session.decision == decision.sentence("model")
    assert score(tmp_path / "b" / TASK).results.metrics == {}


@pytest.mark.full
def test_a_clear_difference_needs_few_answers_and_all_answers_give_the_same_decision(
    six_tasks: Path, asks: Asks, weak: Path, tmp_path: Path
) -> None:
    session = asks(tmp_path / "b", skilled(six_tasks, 0.95, "strong"), against=weak, **UNTIL)
    decision = read_decision(tmp_path / "b" / TASK)
    assert decision is not None
    assert decision.counted == session.asked < decision.examples
    assert session.decision == decision.sentence("strong")
    assert f"on these {decision.examples} questions: strong above weak in lexical_f1" in session.decision
    complete = asks(tmp_path / "b", skilled(six_tasks, 0.95, "strong"))
    assert complete.asked == decision.examples - decision.counted
    scored = score(tmp_path / "b" / TASK)
    assert scored.results.stopped is None
    mean = scored.results.metrics["lexical_f1"].mean
    assert decision.low <= mean <= decision.high
    assert mean > read_scored(weak / TASK).results.metrics["lexical_f1"].mean


@pytest.mark.full
def test_the_run_asks_the_first_blocks_of_an_order_that_content_fixes(
    six_tasks: Path, asks: Asks, weak: Path, tmp_path: Path
) -> None:
    asks(tmp_path / "b", skilled(six_tasks, 0.95, "strong"), against=weak, **UNTIL)
    ids = [example.example_id for example in read_scored(weak / TASK).examples.examples]
    content_hash = read_run(weak / TASK).identity.content_hash
    first = [ids[unit[0]] for unit in AskingOrder.of(content_hash, ids).units[: len(answered(tmp_path / "b"))]]
    assert answered(tmp_path / "b") == set(first)


@pytest.mark.full
@pytest.mark.parametrize(
    ("until", "skill", "verdict"),
    [("above=0.5", 0.95, "above"), ("above=0.5", 0.0, "below"), ("within=0.25", 1.0, "within")],
)
def test_a_threshold_and_a_width_stop_too(
    until: str, skill: float, verdict: str, six_tasks: Path, asks: Asks, tmp_path: Path
) -> None:
    session = asks(tmp_path / "b", skilled(six_tasks, skill, "model"), until=until)
    decision = read_decision(tmp_path / "b" / TASK)
    assert decision is not None
    assert decision.verdict == verdict
    assert "on these" in session.decision
    if verdict == "within":
        assert (decision.high - decision.low) / 2 <= 0.25


@pytest.mark.full
def test_a_bet_over_videos_is_worded_as_a_comparison(six_tasks: Path, asks: Asks, tmp_path: Path) -> None:
    asks(tmp_path / "a", skilled(six_tasks, 0.0, "weak"))
    session = asks(
        tmp_path / "b",
        skilled(six_tasks, 1.0, "strong"),
        against=tmp_path / "a",
        until="decided-over-videos",
        alpha=0.2,
    )
    assert session.decision.startswith("lexical_f1: strong is better than weak (sure, p < 0.2, over ")
    assert "on these" not in session.decision


@pytest.mark.full
def test_equal_models_are_asked_to_the_end_and_have_a_score(
    six_tasks: Path, asks: Asks, weak: Path, tmp_path: Path
) -> None:
    session = asks(tmp_path / "b", skilled(six_tasks, 0.3, "weak"), against=weak, **UNTIL)
    assert session.decision == ""
    assert score(tmp_path / "b" / TASK).results.coverage.is_complete


@pytest.mark.full
def test_repetitions_of_an_example_count_together(six_tasks: Path, asks: Asks, weak: Path, tmp_path: Path) -> None:
    session = asks(tmp_path / "b", skilled(six_tasks, 0.95, "strong"), against=weak, repetitions=3, **UNTIL)
    decision = read_decision(tmp_path / "b" / TASK)
    assert decision is not None
    assert session.asked == 3 * decision.counted
    assert f"after {session.asked} answers" in session.decision


@pytest.mark.full
def test_several_tasks_stop_one_by_one(six_tasks: Path, asks: Asks, tmp_path: Path) -> None:
    tasks = ("activity", "temporal_vqa")
    for out, model, settings in (("a", "chance", {}), ("b", "oracle", {"until": "decided", "against": tmp_path / "a"})):
        command = ["run", str(six_tasks), "--task", ",".join(tasks), "--model", model, "--repetitions", "1"]
        command += ["--out", str(tmp_path / out), *(f"--{name}={value}" for name, value in settings.items())]
        done = CliRunner().invoke(commands, command)
        assert done.exit_code == 0, done.output
    assert done.output.count("oracle above chance") == 2
    decisions = [read_decision(tmp_path / "b" / task) for task in tasks]
    assert [decision.tasks for decision in decisions if decision] == [2, 2]


@pytest.mark.full
def test_micro_f1_is_decided_by_its_linear_form(six_tasks: Path, asks: Asks, tmp_path: Path) -> None:
    for name, skill in (("worse", 0.1), ("better", 0.9)):
        asks(tmp_path / name, skilled(six_tasks, skill, name, "hand_object"), task=("hand_object",))
    settings = {"task": ("hand_object",), "max_new_tokens": 60, **UNTIL}
    up = asks(tmp_path / "b", skilled(six_tasks, 0.9, "b", "hand_object"), against=tmp_path / "worse", **settings)
    assert "b above worse in f1" in up.decision
    assert "(if no answer lists more than 3 entries)" in up.decision
    down = asks(tmp_path / "c", skilled(six_tasks, 0.1, "c", "hand_object"), against=tmp_path / "better", **settings)
    assert "c below better in f1" in down.decision
    assert "if no answer" not in down.decision


@pytest.mark.full
@pytest.mark.parametrize("world", [1, 4])
def test_processes_stop_with_the_same_decision(
    world: int, six_tasks: Path, asks: Asks, weak: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks(tmp_path / "one", skilled(six_tasks, 0.95, "strong"), against=weak, **UNTIL)
    for rank in range(world):  # one after the other: the first cannot know the answers of the last
        if world > 1:
            monkeypatch.setenv("RANK", str(rank))
            monkeypatch.setenv("WORLD_SIZE", str(world))
        asks(tmp_path / "many", skilled(six_tasks, 0.95, "strong"), against=weak, **UNTIL)
    first, second = (read_decision(tmp_path / out / TASK) for out in ("one", "many"))
    assert first == second


@pytest.mark.full
def test_killed_anywhere_and_resumed_it_decides_the_same(
    six_tasks: Path, asks: Asks, weak: Path, tmp_path: Path
) -> None:
    def killed_after(count: int) -> ScriptedModel:
        model, left = skilled(six_tasks, 0.8, "strong"), iter(range(count))

        def answer(request: str, seed: int) -> str:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return model._answer(request, seed)

        return ScriptedModel("strong", answer, batch_size=3)

    settings = {"against": weak, **UNTIL}
    asks(tmp_path / "whole", skilled(six_tasks, 0.8, "strong"), **settings)
    rng = random.Random(0)
    for _ in range(2):
        model = killed_after(rng.randint(1, 14))
        assert in_child(lambda model=model: asks(tmp_path / "killed", model, **settings)) == -signal.SIGKILL
    asks(tmp_path / "killed", skilled(six_tasks, 0.8, "strong"), **settings)
    again = asks(tmp_path / "killed", skilled(six_tasks, 0.8, "strong"), **settings)
    assert again.asked == 0
    assert answered(tmp_path / "killed") == answered(tmp_path / "whole")
    assert (tmp_path / "killed" / TASK / DECISION_FILE).read_bytes() == (
        tmp_path / "whole" / TASK / DECISION_FILE
    ).read_bytes()


class Unsteady(ScriptedModel):
    """A streaming model that answers in another order than asked, and fails at some requests."""

    window = 16

    def __init__(self, model: ScriptedModel, failing: float) -> None:
        super().__init__(model.identity.name, model._answer)
        self._rng, self._failing = random.Random(0), failing

    def stream(self, requests: object, config: GenerationConfig) -> object:
        from barista_bench.models import AnsweredRequest

        waiting: list[Request] = list(requests)
        self._rng.shuffle(waiting)
        for request in waiting:
            (answers,) = self.generate([request], config)
            failed = self._rng.random() < self._failing
            completions: list[Completion | Failure] = [Failure("server down")] if failed else answers
            yield AnsweredRequest(request, completions, 0.0)


@pytest.mark.full
def test_answers_that_arrive_out_of_order_and_fail_cost_answers_and_never_the_decision(
    six_tasks: Path, asks: Asks, weak: Path, tmp_path: Path
) -> None:
    asks(tmp_path / "steady", skilled(six_tasks, 0.95, "strong"), against=weak, **UNTIL)
    for name, failing in (("shuffled", 0.0), ("failing", 0.1)):
        asks(tmp_path / name, Unsteady(skilled(six_tasks, 0.95, "strong"), failing), against=weak, **UNTIL)
    steady, shuffled, failing = (read_decision(tmp_path / name / TASK) for name in ("steady", "shuffled", "failing"))
    assert shuffled == steady
    assert steady is not None
    assert failing is not None
    assert failing.verdict == "above"
    assert failing.counted >= steady.counted


@pytest.fixture
def stopped(six_tasks: Path, asks: Asks, weak: Path, tmp_path: Path) -> Path:
    asks(tmp_path / "b", skilled(six_tasks, 0.95, "strong"), against=weak, **UNTIL)
    return tmp_path / "b"


@pytest.mark.full
def test_a_stopped_run_has_an_interval_a_sentence_and_no_score(stopped: Path) -> None:
    results = score(stopped / TASK).results
    assert results.metrics == results.breakdowns == {}
    assert not results.details
    assert results.stopped == read_decision(stopped / TASK)
    done = CliRunner().invoke(commands, ["score", str(stopped)])
    assert "STOPPED EARLY, no score: lexical_f1 at least 0." in done.output
    assert "strong above weak" in done.output


@pytest.mark.full
def test_compare_report_and_frames_show_the_decision_and_no_rank(stopped: Path, weak: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(commands, ["compare", str(stopped), str(weak)])
    assert done.exit_code == 0, done.output
    assert "STOPPED EARLY" in done.output
    assert "strong 0." not in done.output
    evaluation = load_results([stopped, weak])
    assert set(evaluation.metrics["model"]) == {"weak"}
    assert "STOPPED EARLY" in repr(evaluation)
    with pytest.raises(DataError, match="no two runs"):
        compare([stopped, weak])
    _, markdown = write_report((*evaluation.runs, *evaluation.stopped), tmp_path / "report", tables=True)
    board, _, table = markdown.read_text().partition("## Stopped early")
    assert "strong" not in board
    assert "on these" in table
    assert "strong above weak" in (tmp_path / "report/report_tables/stopped_early.csv").read_text()
    with pytest.raises(ConfigError, match="all runs stopped early"):
        write_report(evaluation.stopped, tmp_path / "other")


@pytest.mark.full
def test_a_stopped_run_cannot_be_published_judged_or_read_by_other_rules(stopped: Path) -> None:
    results = score(stopped / TASK).results
    with pytest.raises(DataError, match="stopped early, and has no score"):
        check_results(results, "run")
    done = CliRunner().invoke(commands, ["judge", str(stopped / TASK), "--judge", "lexical"])
    assert done.exit_code == 1
    assert "stopped early" in done.output


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"until": "soon"}, "say decided, decided-over-videos"),
        ({"until": "above"}, "say decided"),
        ({"until": "above=2"}, "say decided"),
        ({"until": "decided"}, "goes with against"),
        ({"until": "within=0.1", "against": "x"}, "goes without against"),
        ({"against": "x"}, "until is not"),
    ],
)
def test_a_goal_that_makes_no_sense_is_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_settings(RunConfig, {"data": "d", "out": "o", "model": "chance", **settings})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": ("grounding",), "until": "above=0.5"}, "barista/grounding: map is declared neither"),
        ({"task": ("hand_object",), "until": "above=0.5", "repetitions": 3}, "say --repetitions 1"),
        ({"task": ("hand_object",), "until": "decided-over-videos", "against": "x"}, "no mean over videos"),
        ({"until": "above=0.5", "aid": ("objects",)}, "needs every answer"),
        ({"until": "decided", "against": "nowhere"}, "no run of barista/referring"),
    ],
)
def test_a_run_that_cannot_be_decided_early_is_refused_before_the_first_question(
    settings: dict[str, object], message: str, six_tasks: Path, asks: Asks, tmp_path: Path
) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        asks(tmp_path / "b", ScriptedModel("never", lambda *_: pytest.fail("it was asked")), **settings)


@pytest.mark.full
def test_the_run_to_compare_with_must_be_complete_and_of_the_same_questions(
    six_tasks: Path, asks: Asks, weak: Path, stopped: Path, tmp_path: Path
) -> None:
    strong = skilled(six_tasks, 0.95, "strong")
    with pytest.raises(DataError, match="samples are missing"):
        asks(tmp_path / "c", strong, against=stopped, **UNTIL)
    with pytest.raises(DataError, match="other questions or rules"):
        asks(tmp_path / "c", strong, against=weak, limit=20, **UNTIL)
