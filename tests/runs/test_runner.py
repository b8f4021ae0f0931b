"""Runs: every sample asked once, statuses kept apart, results the same after any interruption."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.status import Status
from barista_bench.data.dataset import BuiltExamples
from barista_bench.data.loaded_example import LoadedExample
from barista_bench.errors import ConfigError, DataError
from barista_bench.models import Completion, Failure, GenerationConfig, ModelIdentity, Request
from barista_bench.runs.log.sample_log import read_records
from barista_bench.runs.score import scoring
from barista_bench.runs.score.results import read_results
from barista_bench.runs.score.scoring import score
from tests.conftest import Use
from tests.one_run import run
from tests.releases import write_video
from tests.runs.made_logs import change_lines, read_folder

SAMPLES = 24 * 3


class FakeModel:
    """Answers `[]`, or the entry of `answers` for an example, and counts its requests."""

    def __init__(self, answers: dict[str, Completion | Failure] | None = None, batch_size: int = 8) -> None:
        self.identity = ModelIdentity("fake")
        self.box_format = BoxFormat()
        self.batch_size = batch_size
        self.answers = answers or {}
        self.asked: list[tuple[str, int]] = []

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        assert len(requests) <= self.batch_size
        self.asked += [(r.request_id, seed) for r in requests for seed in r.seeds]
        default = Completion("[]", input_tokens=10, output_tokens=2)
        return [[self.answers.get(r.request_id, default) for _ in r.seeds] for r in requests]


def example_ids(dataset: Path) -> list[str]:
    return [json.loads(line)["example_id"] for line in (dataset / "frozen/relations.jsonl").open()]


@pytest.mark.parametrize("kind", ["dataset", "linked_dataset"])
def test_the_oracle_scores_one_on_frozen_and_linked_sets(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    session = run(request.getfixturevalue(kind), tmp_path / "run", model="oracle")
    assert (session.asked, session.already_done) == (SAMPLES, 0)
    results = score(tmp_path / "run").results
    metric = {
        "mean": 1.0,
        "std": 0.0,
        "repetitions": [1.0, 1.0, 1.0],
        "low": pytest.approx(0.025 ** (1 / 6)),
        "high": 1.0,
    }
    assert results.metrics["micro_f1"].model_dump() == metric, "of six videos no more can be said"
    assert results.coverage.is_complete
    assert results.coverage.statuses["ok"] == SAMPLES


def test_a_finished_run_asks_nothing_again(dataset: Path, tmp_path: Path, use: Use) -> None:
    model = use(FakeModel())
    run(dataset, tmp_path)
    assert len(model.asked) == len(set(model.asked)) == SAMPLES
    before = (tmp_path / "samples.jsonl").read_bytes()
    assert run(dataset, tmp_path, batch_size=3).asked == 0
    assert len(model.asked) == SAMPLES
    assert (tmp_path / "samples.jsonl").read_bytes() == before


def test_more_runs_ask_only_new_questions(dataset: Path, tmp_path: Path, use: Use) -> None:
    use(FakeModel())
    run(dataset, tmp_path, repetitions=1)
    assert run(dataset, tmp_path, repetitions=3).asked == 48
    assert score(tmp_path).results.coverage.expected == SAMPLES


def test_a_name_is_recorded_and_changes_no_key_and_no_result(dataset: Path, tmp_path: Path, use: Use) -> None:
    fake = use(FakeModel())
    run(dataset, tmp_path / "run", model="x", repetitions=1, name="Kitchen 1.2")
    before = score(tmp_path / "run")
    first_results = (tmp_path / "run" / "results.json").read_bytes()
    assert run(dataset, tmp_path / "run", model="x", repetitions=1, name="Kitchen 1.3").asked == 0
    after = score(tmp_path / "run")
    assert (before.name, after.name) == ("Kitchen 1.2", "Kitchen 1.3")
    assert after.results.metrics == before.results.metrics
    assert b"Kitchen" not in first_results
    assert len(fake.asked) == SAMPLES // 3


def test_all_runs_of_an_example_are_one_request(dataset: Path, tmp_path: Path, use: Use) -> None:
    model = use(FakeModel(batch_size=1))
    run(dataset, tmp_path)
    assert [example for example, _ in model.asked[:3]] == [model.asked[0][0]] * 3
    assert len({seed for _, seed in model.asked}) == SAMPLES


def test_each_kind_of_failure_has_its_own_status(dataset: Path, tmp_path: Path, use: Use) -> None:
    names = example_ids(dataset)
    reference = json.dumps([{"source_id": 1, "target_id": 3, "relation_type": "position", "value": "part of"}])
    model = use(
        FakeModel(
            {
                names[0]: Completion("I would rather not say"),
                names[1]: Completion("", finish_reason="refusal"),
                names[2]: Completion('[{"source_id": 1,', finish_reason="length"),
                names[3]: Failure("connection reset"),
                names[4]: Completion(reference, finish_reason="length"),
                names[5]: Completion("", finish_reason="thinking", reasoning="On the one hand"),
            }
        )
    )
    run(dataset, tmp_path)
    results = score(tmp_path).results
    assert results.coverage.model_dump() == {
        "expected": SAMPLES,
        "scored": SAMPLES - 3,
        "answered": SAMPLES - 15,
        "statuses": {
            **{"ok": 54, "parse_error": 3, "refused": 3, "truncated": 6, "truncated_thinking": 3},
            "infra_error": 3,
        },
        "dropped": 0,
    }
    assert not results.coverage.is_complete
    # In relations the release counts a provider's error as an answer that cannot be read; it lowers the coverage too.
    assert results.details[0]["n"] == 24
    assert results.details[0]["n_failed"] == 5
    assert results.details[0]["tp"] == 1

    model.answers.pop(names[3])
    assert run(dataset, tmp_path).asked == 3, "only infrastructure errors are tried again"
    again = score(tmp_path).results
    assert again.coverage.statuses["infra_error"] == 0
    assert again.coverage.is_complete


def test_metrics_of_chance_are_low_means_over_runs_and_breakdowns_cover_all_examples(dataset, tmp_path):
    run(dataset, tmp_path, model="chance")
    scored = score(tmp_path)
    metric = scored.results.metrics["micro_f1"]
    assert 0 < metric.mean < 0.2
    assert len(set(metric.repetitions)) > 1
    assert metric.mean == pytest.approx(sum(metric.repetitions) / 3)
    assert set(scored.results.breakdowns["preparation"]) == {"capsule", "portafilter", "fully automatic"}
    for groups in scored.results.breakdowns.values():
        assert sum(group.examples for group in groups.values()) == 24
    lines = [json.loads(line) for line in (tmp_path / "scores.jsonl").open()]
    assert len(lines) == SAMPLES
    assert [line["example_id"] for line in lines[::3]] == example_ids(dataset)


def test_a_damaged_picture_costs_its_example_and_is_an_infrastructure_error(
    dataset: Path, tmp_path: Path, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(FakeModel())
    bad = example_ids(dataset)[5]
    original = BuiltExamples.__getitem__

    def damaged(self: BuiltExamples, index: int) -> LoadedExample:
        item = original(self, index)
        return replace(item, media=(b"not a picture",) * 2) if item.example.example_id == bad else item

    monkeypatch.setattr(BuiltExamples, "__getitem__", damaged)
    run(dataset, tmp_path)
    failed = [r for r in read_records(tmp_path / "samples.jsonl") if r.status is Status.INFRA_ERROR]
    assert {r.example_id for r in failed} == {bad}
    assert "stored image is damaged" in str(failed[0].error)
    assert score(tmp_path).results.coverage.scored == SAMPLES - 3


@pytest.mark.parametrize(
    ("change", "what"),
    [({"model": "chance"}, "model"), ({"temperature": 0.0}, "generation"), ({"split": "test"}, "split")],
)
def test_a_folder_belongs_to_one_run(dataset: Path, tmp_path: Path, change: dict, what: str) -> None:
    run(dataset, tmp_path, model="oracle", limit=2)
    with pytest.raises(ConfigError, match=f"holds a run with {what}"):
        run(dataset, tmp_path, **{"model": "oracle", "limit": 2, **change})


def test_a_changed_prompt_is_another_run_and_the_results_hold_its_hash(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path / "run", limit=2)
    (tmp_path / "relations.yaml").write_text("version: 1\nsystem: Other words\nuser: '{legend}'\n")
    with pytest.raises(ConfigError, match="prompts_hash"):
        run(dataset, tmp_path / "run", limit=2, prompts=tmp_path)
    run(dataset, tmp_path / "other", limit=2, prompts=tmp_path / "relations.yaml")
    hashes = {score(tmp_path / name).results.prompts.sha256 for name in ("run", "other")}
    assert len(hashes) == 2


def test_scoring_against_another_dataset_is_refused(dataset: Path, small_release: Path, tmp_path: Path) -> None:
    from barista_bench.data.folder import build

    run(dataset, tmp_path / "run")
    other = build(small_release, tmp_path / "other", configs=["relations"], sampling={"frame_step": 20}, cache=False)
    with pytest.raises(DataError, match="was run on examples"):
        score(tmp_path / "run", data=other.folder)


def test_results_are_checked_against_their_schema(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path, limit=2)
    score(tmp_path)
    assert read_results(tmp_path / "results.json").primary == "micro_f1"
    for damage in ({"surprise": 1}, {"repetitions": "many"}, {"coverage": {}}, {"schema_version": 1}):
        data = {**json.loads((tmp_path / "results.json").read_text()), **damage}
        (tmp_path / "broken.json").write_text(json.dumps(data))
        with pytest.raises(DataError, match=next(iter(damage))):
            read_results(tmp_path / "broken.json")


def test_a_frozen_file_runs_and_scores_beside_the_videos(dataset: Path, small_release: Path, tmp_path: Path) -> None:
    frozen = dataset / "frozen/relations.jsonl"
    run(frozen, tmp_path / "run", root=small_release)
    results = score(tmp_path / "run").results
    assert results.metrics["micro_f1"].mean == 1.0
    assert results.dataset.examples == 24
    with pytest.raises(ConfigError, match="--root"):
        run(frozen, tmp_path / "other")


def test_a_linked_set_refuses_another_video_of_the_same_name(
    linked_dataset: Path, small_release: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    shutil.copytree(small_release, root)
    write_video(root / "v0/video.mp4", frames=41)
    run(linked_dataset, tmp_path / "run", root=root)
    failed = [r for r in read_records(tmp_path / "run/samples.jsonl") if r.status is Status.INFRA_ERROR]
    assert {r.example_id.split(":")[1] for r in failed} == {"v0"}
    assert "is another video" in str(failed[0].error)


def test_samples_of_an_unknown_run_are_not_gone_on_with(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path, model="oracle")
    (tmp_path / "run.json").unlink()
    with pytest.raises(ConfigError, match="holds samples"):
        run(dataset, tmp_path, model="chance")


def test_a_video_that_was_missing_at_first_is_asked_about_when_it_is_there(
    linked_dataset: Path, small_release: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    shutil.copytree(small_release, root)
    frozen = linked_dataset / "frozen/relations.jsonl"
    (root / "v0/video.mp4").rename(tmp_path / "away.mp4")
    first = run(frozen, tmp_path / "run", root=root)
    assert (first.asked, first.failed) == (60, 12)
    (tmp_path / "away.mp4").rename(root / "v0/video.mp4")
    assert run(frozen, tmp_path / "run", root=root).asked == 12
    assert score(tmp_path / "run").results.coverage.is_complete


def test_a_video_that_went_missing_takes_no_answer_with_it(
    linked_dataset: Path, small_release: Path, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(small_release, tmp_path / "root"))
    frozen = linked_dataset / "frozen/relations.jsonl"
    assert run(frozen, tmp_path / "run", root=root).asked == SAMPLES
    (root / "v0/video.mp4").unlink()
    again = run(frozen, tmp_path / "run", root=root)
    assert (again.asked, again.failed, again.already_done) == (0, 0, SAMPLES)
    assert score(tmp_path / "run").results.coverage.is_complete


def test_a_run_of_another_version_of_its_task_is_refused_and_never_mixed(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path, model="oracle", limit=3)
    described = json.loads((tmp_path / "run.json").read_text())
    described["identity"]["task_version"] -= 1
    (tmp_path / "run.json").write_text(json.dumps(described))
    with pytest.raises(ConfigError, match=r"asked as version 2, but is now 3.*Fix: start a new run"):
        score(tmp_path)
    with pytest.raises(ConfigError, match="task_version 2, not 3"):
        run(dataset, tmp_path, model="oracle", limit=3)


def test_answers_to_another_prompt_are_never_counted(
    dataset: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Keys do not suffice: a record names its own question."""
    run(dataset, tmp_path / "ours", model="oracle", repetitions=1)
    (tmp_path / "relations.yaml").write_text("version: 1\nsystem: Other words\nuser: '{legend}'\n")
    run(dataset, tmp_path / "theirs", model="oracle", repetitions=1, prompts=tmp_path)
    change_lines(tmp_path / "theirs/samples.jsonl", lambda line: line | {"text": "[]"})
    with (tmp_path / "ours/samples.jsonl").open("ab") as file:
        file.write((tmp_path / "theirs/samples.jsonl").read_bytes())
    assert score(tmp_path / "ours").results.metrics["micro_f1"].mean == 1.0
    assert "24 records are not of this run" in caplog.text


def test_statuses_follow_the_answers_as_they_are_read_now(dataset: Path, tmp_path: Path, use: Use) -> None:
    use(FakeModel())
    run(dataset, tmp_path, repetitions=1)
    change_lines(tmp_path / "samples.jsonl", lambda line: line | {"text": "nothing to read"})
    coverage = score(tmp_path).results.coverage
    assert (coverage.answered, coverage.statuses["ok"], coverage.statuses["parse_error"]) == (0, 0, 24)


def test_a_file_of_answers_to_a_task_without_boxes_need_not_say_how_boxes_are_written(
    dataset: Path, tmp_path: Path
) -> None:
    run(dataset, tmp_path / "oracle", repetitions=1, model="oracle")
    rows = [{"example_id": record.example_id, "answer": record.text} for record in read_folder(tmp_path / "oracle")]
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(dataset, tmp_path / "run", repetitions=1, model=f"predictions:{answers}").asked == len(rows)


def test_a_damaged_session_line_costs_only_its_seconds(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path, limit=2)
    with (tmp_path / "sessions.jsonl").open("a") as file:
        file.write('\n{"asked": 1, "alr')
    run(dataset, tmp_path, limit=2)
    assert score(tmp_path).results.timing.sessions == 2


def test_an_answer_with_a_lone_surrogate_does_not_break_the_results(dataset: Path, tmp_path: Path, use: Use) -> None:
    answer = '[{"source_id": 1, "target_id": 2, "relation_type": "\\ud83d", "value": "x"}]'
    use(FakeModel(dict.fromkeys(example_ids(dataset), Completion(answer))))
    run(dataset, tmp_path)
    assert score(tmp_path).results.coverage.statuses["ok"] == SAMPLES


@pytest.mark.parametrize("returned", [[], [[]], [[Completion(None)]], [["text"]]])  # type: ignore[arg-type]
def test_an_answer_that_a_model_fails_to_return_is_a_failure_of_that_sample(
    dataset: Path, tmp_path: Path, use: Use, returned: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = use(FakeModel())
    monkeypatch.setattr(model, "generate", lambda requests, config: returned)
    session = run(dataset, tmp_path, limit=3, repetitions=1)
    assert (session.asked, session.failed) == (0, 3)
    assert "the model returned" in session.first_failure


def test_the_log_can_be_scored_while_samples_are_missing(dataset: Path, tmp_path: Path, use: Use) -> None:
    use(FakeModel())
    run(dataset, tmp_path)
    lines = (tmp_path / "samples.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "samples.jsonl").write_bytes(b"".join(lines[:30]))
    results = scoring.score(tmp_path).results
    assert (results.coverage.scored, results.coverage.expected, results.coverage.is_complete) == (30, SAMPLES, False)


def test_a_full_disk_costs_the_answer_that_was_written_and_is_named(dataset: Path, tmp_path: Path, use: Use) -> None:
    resource = pytest.importorskip("resource")
    out, limits = tmp_path / "run", resource.getrlimit(resource.RLIMIT_FSIZE)

    class Filling(FakeModel):
        def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
            if self.asked:  # from now on a write that reaches this size is cut off there
                resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
            return super().generate(requests, config)

    use(Filling())
    try:
        with pytest.raises(OSError, match=r"run/samples\.jsonl"):
            run(dataset, out, task="relations", repetitions=3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (out / "samples.jsonl").stat().st_size == 20_000
    whole = list(read_records(out / "samples.jsonl"))
    assert 24 < len(whole) < SAMPLES
    rest = use(FakeModel())
    run(dataset, out, task="relations", repetitions=3)
    assert len(rest.asked) == SAMPLES - len(whole)
    assert list(read_records(out / "samples.jsonl"))[: len(whole)] == whole
