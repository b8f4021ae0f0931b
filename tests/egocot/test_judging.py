"""`barista-bench judge` on a run with reasons in its answers: R and SCR, from the sample log to the results."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from barista_bench.benchmarks.egocot.cot import Cot
from barista_bench.benchmarks.egocot.submission import read_submission
from barista_bench.cli.commands import app
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example
from barista_bench.data.folder import build
from barista_bench.errors import ConfigError, DataError
from barista_bench.interchange.recorded_answers import write_submission_file
from barista_bench.judging import session
from barista_bench.judging.judge_folder import read_judge
from barista_bench.judging.results import read_judged
from barista_bench.judging.scoring import all_judged, score_judged
from barista_bench.judging.session import JudgeSession, judge
from barista_bench.models import Completion, Failure, Request
from barista_bench.models.base import ScriptedModel
from barista_bench.reporting import write_report
from barista_bench.runs.ask import runner
from barista_bench.runs.score.scoring import ScoredRun, score
from tests.conftest import Use
from tests.judging.judges import ScriptedJudge, material, user_text
from tests.one_run import run


@pytest.fixture(scope="module")
def dataset(mini_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("egocot_dataset") / "egocot"
    return build(mini_root, out, benchmark="egocot", sampling={"frames": 2}, cache=False).folder


@pytest.fixture
def make_run(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    def make(
        answer: Callable[[str, int], str], *, repetitions: int = 2, split: str = "dev", **settings: object
    ) -> Path:
        model = ScriptedModel("student", answer)
        monkeypatch.setattr(runner, "load_model", lambda *args, **kwargs: model)
        out = tmp_path / "run"
        settings = {"repetitions": repetitions, "model": "student", "split": split, **settings}
        run(dataset, out, benchmark="egocot", task=("cot",), **settings)
        return out

    return make


@pytest.fixture
def use(loads_model: Callable[[ModuleType], Use]) -> Callable[[ScriptedJudge], ScriptedJudge]:
    return loads_model(session)


@pytest.fixture
def done(make_run: Callable[..., Path], use: Callable[[ScriptedJudge], ScriptedJudge]) -> JudgeSession:
    """Two runs with the answers `said`, judged `by_hash`."""
    use(ScriptedJudge(by_hash))
    return judge(make_run(said), "any")


def said(example_id: str, seed: int) -> str:
    """Some without a letter, some without a reason."""
    kind = hashlib.sha256(f"{example_id}{seed}".encode()).digest()[0]
    if kind % 7 == 0:
        return "I cannot tell."
    reason = "" if kind % 5 == 0 else f"1. Because of {kind % 3}.\n"
    return f"{reason}ANSWER: {'ABCD'[kind % 4]}"


def by_hash(request: Request, draw: int) -> Completion | Failure:
    kind = hashlib.sha256(json.dumps(material(request)).encode()).digest()[0]
    if kind % 9 == 0:
        return Completion("no JSON")
    return Completion(json.dumps({"reasoning_score": kind % 6, "analysis": "so"}), input_tokens=10, output_tokens=2)


def definitions(run: ScoredRun) -> dict[str, float]:
    """R and SCR of the first run from their definitions, by asking the judge again."""
    scores: list[tuple[int | None, bool]] = []
    for sample in run.samples:
        if sample.record.repetition:
            continue
        right = bool(sample.prediction) and sample.prediction.value["answer"] == sample.example.target["answer"]
        if sample.prediction is None or not sample.prediction.value["reasoning"]:
            scores.append((0, right))
            continue
        shown = Cot().rationale(sample.example, sample.prediction)
        fields = {name: getattr(shown, name) for name in shown.__dataclass_fields__}
        kind = hashlib.sha256(json.dumps(fields).encode()).digest()[0]
        scores.append((None if kind % 9 == 0 else kind % 6, right))
    judged = [(score, right) for score, right in scores if score is not None]
    rights = [score for score, right in judged if right]
    return {
        "r": sum(score for score, _ in judged) / len(judged),
        "scr": sum(score <= 2 for score in rights) / len(rights),
        "judged": len(judged),
    }


def test_r_and_scr_follow_their_definitions(done: JudgeSession) -> None:
    judged = score_judged(done.run, done.folder)
    results, want = judged.results, definitions(done.run)
    assert results.metrics["r"].repetitions[0] == pytest.approx(want["r"])
    assert results.metrics["mean"].repetitions[0] == pytest.approx(want["r"] / 5)
    assert results.metrics["scr"].repetitions[0] == pytest.approx(want["scr"])
    assert (results.method, results.scale, results.tops) == ("reasoning", 5.0, {"r": 5.0})
    coverage = results.coverage
    assert coverage.finished == coverage.expected == len(done.run.samples)
    assert coverage.verdicts["parse_error"] == coverage.expected - coverage.judged > 0
    assert coverage.answered < coverage.expected
    assert results.scoring["rule"] == coverage.expected - coverage.answered
    assert read_judged(done.folder / "results.json") == results
    assert read_judge(done.folder).verdicts_per_answer == 1


def test_each_reply_has_its_status_and_an_equal_rationale_is_asked_about_once(
    make_run: Callable[..., Path], use: Callable[[ScriptedJudge], ScriptedJudge]
) -> None:
    replies = {
        "good": Completion('{"reasoning_score": 5, "analysis": "so"}'),
        "poor": Completion('{"reasoning_score": 2, "analysis": "so"}'),
        "odd": Completion('{"reasoning_score": 6, "analysis": "so"}'),
        "no": Completion("no", finish_reason="refusal"),
        "lost": Failure("down"),
    }
    reasons: dict[str, str] = {}

    def answer(example_id: str, seed: int) -> str:
        reason = reasons.setdefault(example_id, [*replies, " "][len(reasons) % 6])
        return f"{reason}\nANSWER: A"

    folder = make_run(answer, repetitions=2)
    asked = use(ScriptedJudge(lambda request, draw: replies[material(request)["reasoning"]]))
    done = judge(folder, "any")
    assert {config.temperature for config in asked.configs} == {0.0}
    results, counts = score_judged(done.run, done.folder).results, Counter(reasons.values())
    assert len(asked.requests) == len(reasons) - counts[" "] > 5
    assert results.coverage.verdicts == {
        "ok": 2 * (counts["good"] + counts["poor"] + counts[" "]),
        "parse_error": 2 * counts["odd"],
        "refused": 2 * counts["no"],
        "infra_error": 2 * counts["lost"],
        "truncated": 0,
        "missing": 0,
    }
    judged = counts["good"] + counts["poor"] + counts[" "]
    assert results.metrics["r"].mean == pytest.approx((5 * counts["good"] + 2 * counts["poor"]) / judged)


def test_reasons_have_one_verdict_with_any_content_of_the_judges_file(done: JudgeSession) -> None:
    metrics = score_judged(done.run, done.folder).results.metrics
    described = json.loads((done.folder / "judge.json").read_text())
    described |= {
        "verdicts_per_answer": 9,
        "rubric": {**described["rubric"], "criteria": [{"name": "other"}, {"name": "more"}]},
    }
    (done.folder / "judge.json").write_text(json.dumps(described))
    assert score_judged(done.run, done.folder).results.metrics == metrics


def test_groups_pool_their_samples(done: JudgeSession) -> None:
    results = score_judged(done.run, done.folder).results
    assert set(results.breakdowns) == {"split", "group", "subtask", "source"}
    for parts in (*results.breakdowns.values(), results.per_category):
        assert sum(part.expected for part in parts.values()) == results.coverage.expected
        assert sum(part.judged for part in parts.values()) == results.coverage.judged
    groups = results.breakdowns["group"].values()
    pooled = sum(part.metrics["r"].mean * part.judged for part in groups) / results.coverage.judged
    # Runs differ a little in how many of their samples are judged.
    assert pooled == pytest.approx(results.metrics["r"].mean, abs=0.15)
    assert results.breakdowns["split"]["dev"].metrics["r"].mean == pytest.approx(results.metrics["r"].mean)


def test_the_offline_judges_need_no_model(make_run: Callable[..., Path], dev: list[Example]) -> None:
    references = {example.example_id: Cot().reference_answer(example, BoxFormat()) for example in dev}
    folder = make_run(lambda example, seed: references[example], repetitions=1)
    for name in ("lexical", "oracle"):
        done = judge(folder, name)
        metrics = score_judged(done.run, done.folder).results.metrics
        assert (metrics["r"].mean, metrics["scr"].mean) == (5.0, 0.0), name
    assert {judged.results.judge.name for judged in all_judged(score(folder))} == {"lexical", "oracle"}


def test_made_up_steps_are_refused(make_run: Callable[..., Path]) -> None:
    with pytest.raises(ConfigError, match="judged without steps"):
        judge(make_run(said, repetitions=1), "any", steps="generate")


def test_a_prompt_file_has_the_judge_asked_in_its_words(
    make_run: Callable[..., Path], use: Callable[[ScriptedJudge], ScriptedJudge], tmp_path: Path
) -> None:
    user = "Grade this.\nBEGIN {fence}\n{data}\nEND {fence}\nThat was all."
    texts = {"version": 1, "system": "Be stern.", "user": user}
    path = tmp_path / "prompts.yaml"
    path.write_text(json.dumps({"rubrics": {"cot": texts}}))
    folder = make_run(said, repetitions=1)
    judge_ = use(ScriptedJudge(by_hash))
    session_ = judge(folder, "any", rubric=path)
    for request in judge_.requests:
        begin, data, end = user_text(request).split("\n")[1:4]
        assert request.prompt.system == "Be stern."
        assert user_text(request) == f"Grade this.\n{begin}\n{data}\n{end}\nThat was all."
        assert json.loads(data) == material(request)
    judged = score_judged(session_.run, session_.folder).results
    assert re.fullmatch("file:[0-9a-f]{8}", judged.rubric.wording)
    assert judge(folder, "any").folder != session_.folder, "our own words are another judge"
    path.write_text(json.dumps({"rubrics": {"cot": texts | {"user": "Grade {data}."}}}))
    with pytest.raises(ConfigError, match=r"user: has no place \{fence\}\. Fix: add it"):
        judge(folder, "any", rubric=path)
    path.write_text(json.dumps({"rubrics": {"cot": {"version": 1}}}))
    with pytest.raises(ConfigError, match=r"rubrics\.cot: system: Field required"):
        judge(folder, "any", rubric=path)


def test_a_run_over_hidden_answers_is_never_scored(make_run: Callable[..., Path]) -> None:
    folder = make_run(said, repetitions=1, split="test")
    with pytest.raises(DataError, match=r"answer is hidden \(split test\)"):
        score(folder)
    assert not (folder / "results.json").exists()
    with pytest.raises(DataError, match="answer is hidden"):
        judge(folder, "lexical")


def test_the_command_prints_r_and_scr_and_the_report_shows_the_leaderboards(
    make_run: Callable[..., Path], tmp_path: Path
) -> None:
    folder = make_run(said, repetitions=1)
    done = CliRunner().invoke(app, ["judge", str(folder), "--judge", "lexical"])
    assert done.exit_code == 0, done.output
    assert all(part in done.output for part in ("r 0.", "scr ", "a lower bound"))
    write_report([score(folder)], tmp_path / "report")
    text = (tmp_path / "report/report.md").read_text()
    for title in ("Accuracy leaderboard", "Reasoning leaderboard", "Evidence-checked reasoning", "Judge and evidence"):
        assert title in text


def test_of_a_run_over_all_splits_only_known_answers_are_scored_and_the_rest_is_submitted(
    make_run: Callable[..., Path], dev: list[Example], hidden: list[Example], tmp_path: Path
) -> None:
    folder, known = make_run(said, repetitions=1, split="all"), len(dev)
    coverage = score(folder).results.coverage
    assert (coverage.expected, coverage.scored) == (known, known)
    path, count = write_submission_file(folder, tmp_path / "answers.json")
    assert count == len(read_submission(path)) == known + len(hidden)
    with pytest.raises(DataError, match=r"run 1 has no finished sample.*Fix"):
        write_submission_file(folder, tmp_path / "answers.json", 1)


def test_answers_to_a_part_of_the_questions_cannot_be_submitted(
    make_run: Callable[..., Path], dev: list[Example], tmp_path: Path
) -> None:
    (tmp_path / "ids.txt").write_text(dev[0].example_id)
    folder = make_run(said, repetitions=1, example_ids=tmp_path / "ids.txt")
    with pytest.raises(DataError, match=rf"1 of {len(dev)} questions .*Fix"):
        write_submission_file(folder, tmp_path / "answers.json")
    assert write_submission_file(folder, tmp_path / "answers.json", allow_incomplete=True)[1] == 1


def test_answers_to_rotated_choices_cannot_be_submitted(make_run: Callable[..., Path], tmp_path: Path) -> None:
    folder = make_run(said, repetitions=1, option=("order=circular",))
    with pytest.raises(DataError, match="rotated choices"):
        write_submission_file(folder, tmp_path / "answers.json", allow_incomplete=True)
