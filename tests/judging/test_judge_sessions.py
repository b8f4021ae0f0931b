"""Sessions of a judge: the requests of a second start, separate folders, frozen steps, refusals."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from barista_bench.benchmarks.barista.temporal_vqa import TemporalVQA
from barista_bench.errors import ConfigError, DataError, ModelError
from barista_bench.judging.results import read_judged
from barista_bench.judging.scoring import all_judged, score_judged
from barista_bench.judging.session import judge
from barista_bench.models import AnsweredRequest, Completion, Failure
from barista_bench.runs.log.sample_log import SampleLog, read_records
from barista_bench.runs.score.scoring import score
from tests.judging.conftest import never
from tests.judging.judges import (
    ONE_CRITERION,
    VQA,
    ScriptedJudge,
    by_hash,
    criterion,
    judged,
    material,
    user_text,
    verdict,
)
from tests.released_clone import write_prompts


def test_a_second_start_asks_only_for_missing_verdicts(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA)
    first = use(ScriptedJudge(lambda r, p: Failure("down") if criterion(r) == "accuracy" else verdict(5)))
    session = judge(run, "any", verdicts_per_answer=2)
    assert session.failed == session.asked > 0
    assert "down" in session.first_failure
    second = use(ScriptedJudge(by_hash))
    again = judge(run, "any", verdicts_per_answer=2)
    assert {criterion(request) for request in second.requests} == {"accuracy"}
    assert (again.asked, again.already_done) == (session.failed, session.asked)
    assert set(second.asked) <= set(first.asked)  # same items, same seeds
    third = use(ScriptedJudge(never))
    assert judge(run, "any", verdicts_per_answer=2).asked == 0
    assert third.asked == []


def test_a_reply_with_overwritten_bytes_is_not_scored_and_asked_again(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, repetitions=1)
    use(ScriptedJudge(lambda *_: verdict(4)))
    session = judge(run, "any")
    log = session.folder / "verdicts.jsonl"
    whole = log.read_bytes()
    assert whole.count(b"4") > whole.replace(b": 4", b": 9", 1).count(b"4")
    log.write_bytes(whole.replace(b": 4", b": 9", 1))
    assert score_judged(session.run, session.folder).results.metrics["mean"].mean == pytest.approx(0.4)
    assert judge(run, "any").asked == 1


def test_more_draws_are_added_to_those_there_are(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, repetitions=1)
    use(ScriptedJudge(lambda *_: verdict(4)))
    first = judge(run, "any", verdicts_per_answer=1)
    more = use(ScriptedJudge(lambda *_: verdict(6)))
    second = judge(run, "any", verdicts_per_answer=3)
    assert second.folder == first.folder
    assert len(more.asked) == 2 * first.asked
    results = score_judged(second.run, second.folder).results
    assert results.metrics["mean"].mean == pytest.approx((4 + 6 + 6) / 30)


def test_draws_have_separate_seeds_that_the_order_does_not_change(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA)
    wide, narrow = use(ScriptedJudge(by_hash, batch_size=64)), ScriptedJudge(by_hash, batch_size=1)
    folder = judge(run, "any", verdicts_per_answer=3).folder
    first = folder / "verdicts.jsonl"
    kept = sorted((record.key, record.text) for record in read_records(first))
    first.unlink()
    use(narrow)
    judge(run, "any", verdicts_per_answer=3)
    assert sorted(wide.asked) == sorted(narrow.asked)
    assert len({seed for _, seed in wide.asked}) == len(wide.asked)
    assert sorted((record.key, record.text) for record in read_records(first)) == kept


def test_judges_rubrics_and_settings_have_separate_folders(make_run: Callable, use: Callable, tmp_path: Path) -> None:
    run = make_run(VQA, repetitions=1)
    mine = tmp_path / "mine.yaml"
    mine.write_text(ONE_CRITERION)
    use(ScriptedJudge(lambda *_: verdict(5)))
    folders = [
        judge(run, "any", verdicts_per_answer=1, **other).folder for other in ({}, {"temperature": 0}, {"rubric": mine})
    ]
    use(ScriptedJudge(lambda *_: verdict(5), name="org/other judge"))
    folders.append(judge(run, "other", verdicts_per_answer=1).folder)
    assert len(set(folders)) == 4
    assert folders[3].name.startswith("org-other-judge-")
    sessions = all_judged(score(run))
    assert sorted(session.folder for session in sessions) == sorted(folders)
    assert {tuple(session.results.rubric.criteria) for session in sessions} == {("accuracy", "completeness"), ("fit",)}


def test_the_results_name_judge_revision_rubric_prompt_and_settings(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, repetitions=1)
    use(ScriptedJudge(by_hash))
    session = judge(run, "any", temperature=0.3, verdicts_per_answer=2)
    written = score_judged(session.run, session.folder).results
    read = read_judged(session.folder / "results.json")
    assert read == written
    assert (read.judge.name, read.judge.revision) == ("scripted-judge", "r1")
    assert read.generation["temperature"] == 0.3
    assert len(read.rubric.sha256) == len(read.prompt_sha256) == len(read.steps_sha256) == 64
    assert (read.steps, read.verdicts_per_answer, read.model) == ("given", 2, "student")
    lines = [json.loads(line) for line in (session.folder / "scores.jsonl").open()]
    assert len(lines) == read.coverage.verdicts["ok"]
    assert {line["text"] for line in lines} == {"because"}


STEPS = Completion('{"steps": ["Read both.", "Compare."]}')


def test_generated_steps_are_made_once_and_frozen(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, repetitions=1)
    tries = iter([Completion("Let me think"), STEPS, STEPS])
    judge_ = use(ScriptedJudge(lambda r, p: next(tries) if r.request_id.startswith("steps:") else by_hash(r, p)))
    session = judge(run, "any", verdicts_per_answer=1, steps="generate")
    steps_asked = [name for name, _ in judge_.asked if name.startswith("steps:")]
    assert steps_asked == ["steps:accuracy", "steps:accuracy", "steps:completeness"]
    assert json.loads((session.folder / "steps.json").read_text())["accuracy"] == ["Read both.", "Compare."]
    forms = [request for request in judge_.requests if not request.request_id.startswith("steps:")]
    assert all("1. Read both.\n2. Compare." in user_text(form) for form in forms)
    results = score_judged(session.run, session.folder).results
    assert results.steps == "generate"
    assert results.coverage.judged == results.coverage.expected
    use(ScriptedJudge(never))
    assert judge(run, "any", verdicts_per_answer=1, steps="generate").asked == 0
    given = use(ScriptedJudge(by_hash))
    assert judge(run, "any", verdicts_per_answer=1).folder != session.folder
    assert given.asked


def test_a_released_rubric_has_the_judge_make_its_steps_and_asks_in_its_own_words(
    make_run: Callable, use: Callable, tmp_path: Path
) -> None:
    run = make_run("referring", repetitions=1)
    judge_ = use(ScriptedJudge(lambda r, p: STEPS if r.request_id.startswith("steps:") else verdict(7)))
    session = judge(run, "any", verdicts_per_answer=1, rubric=write_prompts(tmp_path))
    forms = [request for request in judge_.requests if not request.request_id.startswith("steps:")]
    assert {material(request)["question"] for request in forms} == {"What is in {box}, do you think?"}
    assert all("1. Read both.\n2. Compare." in user_text(request) for request in forms)
    results = score_judged(session.run, session.folder).results
    assert (results.steps, results.rubric.criteria) == ("generate", ["correctness"])
    assert results.rubric.wording.startswith("file:")
    assert results.answers.wording == session.run.results.prompts.wording == "ours v2"
    assert results.metrics["correctness"].mean == pytest.approx(0.7)


@pytest.mark.parametrize(("protocol", "mean", "count"), [("release", 0.5, 1), ("paper", None, 0)])
def test_the_mean_of_an_answer_is_over_the_criteria_that_have_a_verdict(
    protocol: str, mean: float | None, count: int, make_run: Callable, use: Callable
) -> None:
    run = make_run(VQA, repetitions=1)
    use(ScriptedJudge(lambda r, p: Completion("no") if criterion(r) == "accuracy" else verdict(5)))
    session = judge(run, "any", verdicts_per_answer=1)
    task = TemporalVQA(options={"protocol": protocol})
    results = score_judged(replace(session.run, task=task), session.folder).results
    metric = results.metrics.get("mean")
    assert (metric.mean if metric else None) == mean
    assert results.coverage.judged == count * results.coverage.answered
    assert "accuracy" not in results.metrics
    assert results.metrics["completeness"].mean == 0.5


def test_a_judge_that_gives_no_steps_is_refused(make_run: Callable, use: Callable) -> None:
    use(ScriptedJudge(lambda *_: Completion("no idea")))
    with pytest.raises(ModelError, match="no evaluation steps for accuracy"):
        judge(make_run(VQA, repetitions=1), "any", steps="generate")


@pytest.mark.parametrize(
    ("name", "settings", "why"),
    [
        *((name, {}, "cannot grade") for name in ("chance", "predictions:file.jsonl", "dual:tiny", "text_only:tiny")),
        ("lexical", {"cluster": "auto"}, "needs no cluster"),
        ("lexical", {"steps": "generate"}, "does not use steps"),
        ("any", {"model": "other"}, "name the judge with judge"),
        ("any", {"verdicts_per_answer": 0}, "verdicts_per_answer"),
        ("any", {"rounds": 3}, "no setting 'rounds'"),
    ],
)
def test_settings_that_cannot_be_are_refused(name: str, settings: dict, why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=why):
        judge(tmp_path, name, **settings)


def test_a_judge_that_answers_an_unasked_request_is_refused(make_run: Callable, use: Callable) -> None:
    class Confused(ScriptedJudge):
        window = 4

        def stream(self, requests, config):
            for request in requests:
                yield AnsweredRequest(request, [verdict(5)], 0.1)
                yield AnsweredRequest(request, [verdict(5)], 0.1)

    use(Confused(by_hash))
    with pytest.raises(ModelError, match="answered before"):
        judge(make_run(VQA, repetitions=1), "any", verdicts_per_answer=1)


def test_a_streaming_judge_is_read_in_any_order_of_answers(make_run: Callable, use: Callable) -> None:
    class Stream(ScriptedJudge):
        window = 8

        def stream(self, requests, config):
            for request in reversed(list(requests)):
                replies = [by_hash(request, draw) for draw, _ in enumerate(request.seeds)]
                yield AnsweredRequest(request, replies, 0.1)

    run = make_run(VQA)
    use(ScriptedJudge(by_hash))
    batches = judged(run, verdicts_per_answer=2)
    use(Stream(by_hash, name="streaming"))
    streamed = judged(run, verdicts_per_answer=2)
    assert streamed.metrics == batches.metrics
    assert streamed.coverage == batches.coverage


def test_verdicts_of_another_judge_do_not_count_where_they_are_copied_to(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, repetitions=1)
    use(ScriptedJudge(lambda *_: verdict(9)))
    other = judge(run, "any", verdicts_per_answer=1, temperature=0)
    use(ScriptedJudge(lambda *_: verdict(5), name="another"))
    session = judge(run, "any", verdicts_per_answer=1)
    (session.folder / "verdicts.jsonl").write_bytes((other.folder / "verdicts.jsonl").read_bytes())
    results = score_judged(session.run, session.folder).results
    assert results.metrics == {}
    assert results.coverage.verdicts["missing"] == results.coverage.expected * 2


def test_verdicts_by_other_steps_do_not_count(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, repetitions=1)
    use(ScriptedJudge(lambda r, p: STEPS if r.request_id.startswith("steps:") else verdict(5)))
    session = judge(run, "any", verdicts_per_answer=1, steps="generate")
    (session.folder / "steps.json").write_text('{"accuracy": ["Guess."], "completeness": ["Guess."]}')
    asked = use(ScriptedJudge(lambda *_: verdict(7)))
    again = judge(run, "any", verdicts_per_answer=1, steps="generate")
    assert again.folder == session.folder
    assert len(asked.asked) == session.asked
    assert score_judged(again.run, again.folder).results.metrics["mean"].mean == pytest.approx(0.7)


@pytest.mark.parametrize("content", ["[]", '{"accuracy": ["a"]}', "{"])
def test_broken_steps_are_refused(content: str, make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, repetitions=1)
    use(ScriptedJudge(lambda r, p: STEPS if r.request_id.startswith("steps:") else verdict(5)))
    session = judge(run, "any", verdicts_per_answer=1, steps="generate")
    (session.folder / "steps.json").write_text(content)
    with pytest.raises(DataError, match="steps"):
        judge(run, "any", verdicts_per_answer=1, steps="generate")


def test_a_folder_without_a_judge_is_refused(make_run: Callable, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no judge's description"):
        score_judged(score(make_run(VQA, repetitions=1)), tmp_path)
    with pytest.raises(DataError, match="no judged results"):
        read_judged(tmp_path / "results.json")


@pytest.mark.full
def test_two_processes_cannot_judge_in_one_folder(make_run: Callable, use: Callable) -> None:
    run = make_run(VQA, repetitions=1)
    folder = judge(run, "lexical").folder
    with SampleLog(folder / "verdicts.jsonl"), pytest.raises(ConfigError, match="writing here"):
        judge(run, "lexical")
