"""Releases, wordings, recorded answers and folders of datasets that break their rules."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from barista_bench.api import evaluate
from barista_bench.benchmarks import BENCHMARKS, RecordedAnswer, RecordedAnswers
from barista_bench.cli.commands import app
from barista_bench.core.example import Example, FrameRef, Scored
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.data.manifest import MANIFEST
from barista_bench.errors import ConfigError, DataError, ModelError
from barista_bench.interchange.recorded_answers import import_recorded, write_submission_file
from barista_bench.runs.ask import runner
from barista_bench.runs.ask.catalog import check_fit
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.opening import benchmarks_in
from barista_bench.runs.ask.runner import estimate, estimate_text
from barista_bench.runs.score import scoring
from barista_bench.runs.score.scoring import ScoredRun, score
from tests.made_benchmark import BENCHMARK, WORDS, Words
from tests.one_run import run
from tests.runs.made_logs import read_folder
from tests.runs.test_release_tasks import Talker

pytestmark = pytest.mark.usefixtures("registered")
QUESTION = {"id": 0, "video": "videos/clip_0.mp4", "split": "test", "words": list(WORDS), "answer": "cup"}


def _plan(release: Path, folder: Path, *questions: dict[str, object], **sampling: object) -> dict[str, int]:
    folder.mkdir()
    (folder / "questions.json").write_text(json.dumps(questions))
    built = build(
        folder, folder / "out", benchmark="words", videos=release, sampling=sampling, cache=False, dry_run=True
    )
    return dict(built.configs[0].rows)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": "\ud800"}, "cannot be written"),
        ({"answer": float("nan")}, "cannot be written"),
        ({"split": "../x"}, "is of split '../x'"),
        ({"split": "all"}, "is of split 'all'"),
        ({"split": 3}, "is of split 3"),
    ],
)
def test_a_question_that_no_set_can_hold_is_named_before_anything_is_built(
    release: Path, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(DataError, match=f"words/choose: 'words:0' {message}.*Fix"):
        _plan(release, tmp_path / "words", {**QUESTION, **changes})


def test_questions_that_share_an_id_are_refused_when_the_set_is_built(release: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"example 'words:0' is there twice.*Fix"):
        _plan(release, tmp_path / "words", QUESTION, {**QUESTION, "answer": "tap"})


@pytest.mark.parametrize("video", ["../clip.mp4", "/etc/passwd", "videos//clip_0.mp4", "videos", "", "videos/\x00"])
def test_a_video_outside_the_release_costs_only_its_question(release: Path, tmp_path: Path, video: str) -> None:
    assert _plan(release, tmp_path / "words", QUESTION, {**QUESTION, "id": 1, "video": video}) == {"test": 1}


@pytest.mark.parametrize(("name", "value"), [("preparations", ["capsule"]), ("frame_range", [0, 2])])
def test_a_sampling_that_only_graphs_know_is_refused(release: Path, tmp_path: Path, name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"words/choose is not sampled by {name}.*Fix"):
        _plan(release, tmp_path / "words", QUESTION, **{name: value})


def test_a_video_to_draw_from_that_no_question_is_about_is_refused(release: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no question about video 'nope'.*Fix"):
        _plan(release, tmp_path / "words", QUESTION, videos=["videos/clip_0.mp4", "nope"])


def test_the_manifest_does_not_say_where_the_release_lay(release: Path, tmp_path: Path) -> None:
    folder = tmp_path / "private"
    (folder / "videos").mkdir(parents=True)
    shutil.copy(release / "videos" / "clip_0.mp4", folder / "videos")
    (folder / "videos" / "clip_1.mp4").write_bytes(b"no video")
    rows = [QUESTION, {**QUESTION, "id": 1, "video": "videos/clip_1.mp4"}, {**QUESTION, "id": 2, "video": "../x"}]
    (folder / "questions.json").write_text(json.dumps(rows))
    built = build(folder, tmp_path / "words", benchmark="words", cache=False)
    reasons = json.loads((built.folder / MANIFEST).read_text())["configs"][0]["skipped"]
    assert len(reasons) == 2
    assert "videos/clip_1.mp4: not a readable video" in reasons[0]
    assert not any(str(tmp_path) in reason for reason in reasons)


def test_no_byte_depends_on_the_number_of_processes(release: Path, tmp_path: Path) -> None:
    made = [
        build(release, tmp_path / f"{count}" / "words", benchmark="words", cache=False, num_proc=count).folder
        for count in (1, 2)
    ]
    contents = [
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()} for folder in made
    ]
    others = [path for path in contents[0] if path.suffix != ".parquet"]
    assert len(others) == 6, "frozen lines, manifest, card, its picture, two lists of leaderboards"
    assert contents[0] == contents[1]


def test_a_wording_without_a_later_question_is_refused_before_any_answer(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "choose.yaml").write_text("version: 1\nsystem: a\nuser: b\n")
    monkeypatch.setattr(runner, "load_model", lambda *_: model)
    model = Talker()
    with pytest.raises(ConfigError, match=r"words/choose have no text extra\.choose.*Fix"):
        run(data, tmp_path / "run", benchmark="words", task="choose", prompts=tmp_path / "choose.yaml")
    assert not model.asked


def test_a_file_of_answers_to_each_run_answers_every_step(data: Path, tmp_path: Path) -> None:
    ids = [example.example_id for example in open_examples(data, "words", "choose").examples]
    rows = [{"example_id": name, "repetition": index, "answer": WORDS[index]} for name in ids for index in (0, 1)]
    header = {"format": "barista_bench.predictions/1", "box_format": "xyxy/pixels"}
    (tmp_path / "said.jsonl").write_text("\n".join(map(json.dumps, [header, *rows])))
    model = f"predictions:{tmp_path / 'said.jsonl'}"
    run(data, tmp_path / "run", benchmark="words", task="choose", model=model, repetitions=2)
    assert {(record.repetition, record.text) for record in read_folder(tmp_path / "run")} == {(0, "cup"), (1, "tap")}
    assert score(tmp_path / "run").results.coverage.answered == 10


def test_an_estimate_names_the_parts_that_it_cannot_count(data: Path, tmp_path: Path) -> None:
    estimated = estimate(
        RunConfig(data=str(data), out=tmp_path, benchmark="words", task=("choose",), model="oracle", repetitions=2)
    )
    assert (estimated.samples, estimated.images, estimated.asks_in_steps) == (10, 10, ("choose",))
    assert "choose: questions that depend on answers are not counted" in estimate_text(estimated)


def test_a_run_of_only_the_first_questions_is_no_whole_submission(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(samples: Sequence[Scored], out: Path) -> Path:
        out.write_text(str(len(samples)), encoding="utf-8")
        return out

    monkeypatch.setitem(BENCHMARKS, "words", replace(BENCHMARK, submission=write))
    run(data, tmp_path / "run", benchmark="words", task="choose", model="oracle", repetitions=1, limit=2)
    with pytest.raises(DataError, match=r"first 2 questions only.*Fix"):
        write_submission_file(tmp_path / "run", tmp_path / "out.json")
    assert write_submission_file(tmp_path / "run", tmp_path / "out.json", allow_incomplete=True)[1] == 2


def test_one_of_several_processes_scores_nothing(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match=r"have finished.*Fix"):
        evaluate(data, "oracle", out=tmp_path / "runs", benchmark="words", task="choose")
    assert not (tmp_path / "runs").exists()


@pytest.mark.full
def test_a_task_that_cannot_be_scored_costs_no_other_its_score(
    data: Path, small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "words").symlink_to(data)
    build(small_release, tmp_path / "data" / "kitchen", configs=["relations"], sampling={"limit": 3}, cache=False)

    def scored(folder: Path, **settings: object) -> ScoredRun:
        if folder.name == "choose":
            raise ModelError("its encoder is not here. Fix: fetch it")
        return score(folder, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(scoring, "score", scored)
    flags = ["--benchmark", "all", "--repetitions", "1", "--out", str(tmp_path / "runs"), "--no-progress"]
    result = CliRunner().invoke(app, ["evaluate", str(tmp_path / "data"), "--model", "oracle", *flags])
    assert result.exit_code == 0, result.output
    assert "barista/relations, oracle: micro_f1 1.000" in result.output
    assert "not scored: words/choose: its encoder is not here" in result.output
    assert (tmp_path / "runs" / "report" / "report.html").is_file()

    evaluation = evaluate(tmp_path / "data", out=tmp_path / "runs", benchmark="all", task="all", repetitions=1)
    assert [run.task.name for run in evaluation.runs] == ["relations"]
    assert evaluation.unscored == {"words/choose": "its encoder is not here. Fix: fetch it"}
    with pytest.raises(ModelError, match="its encoder is not here"):
        evaluate(data, out=tmp_path / "alone", benchmark="words", task="choose", repetitions=1)


def test_a_named_task_that_a_model_cannot_be_asked_is_refused_before_anything_is_asked(
    small_release: Path, tmp_path: Path
) -> None:
    built = build(small_release, tmp_path / "d", configs=["relations"], sampling={"limit": 2}, cache=False).folder
    with pytest.raises(ConfigError, match="relations gives no texts to choose from, which dual:tiny would score"):
        run(built, tmp_path / "run", task="relations", model="dual:tiny")
    assert not (tmp_path / "run").exists()


def _said(*examples: Example) -> RecordedAnswers:
    return RecordedAnswers("m", Words, examples, (RecordedAnswer("a", 0, "cup"),))


def _example(name: str = "a", frames: int = 1, split: str = "test") -> Example:
    fields = {"words": list(WORDS)}, {"answer": "cup"}, {"split": split, "colour": "red"}, {"row": 0}
    return Example(name, "words", "choose", "cup", tuple(FrameRef("v", index) for index in range(frames)), *fields)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        ([_said(_example(frames=0))], "'a' has 0 frames"),
        ([_said(_example(frames=1025))], "'a' has 1025 frames"),
        ([_said(_example(), _example())], "'a' is there twice"),
        ([_said(_example(), _example("\ud800"))], "cannot be written"),
        ([_said(_example()), _said(_example())], "2 sets of answers are to choose"),
        ([_said(_example("b"))], "'a', which is not an example"),
    ],
)
def test_recorded_answers_that_cannot_be_kept_leave_no_folder_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[RecordedAnswers], message: str
) -> None:
    monkeypatch.setitem(BENCHMARKS, "words", replace(BENCHMARK, formats={"said": lambda _: read}))
    with pytest.raises(DataError, match=f"{message}.*Fix"):
        import_recorded("said", tmp_path / "runs", "said")
    assert not (tmp_path / "runs").exists()


def test_an_option_that_no_recorded_task_has_leaves_no_folder_behind(tmp_path: Path) -> None:
    line = {"id": 1, "words": WORDS, "answer": "cup", "said": "It is cup"}
    (tmp_path / "said.jsonl").write_text(json.dumps(line))
    with pytest.raises(ConfigError, match=r"no task here has an option 'colour'.*Fix"):
        import_recorded(tmp_path / "said.jsonl", tmp_path / "runs", "said", options={"colour": 1})
    assert not (tmp_path / "runs").exists()


def test_a_folder_of_datasets_may_hold_files_of_a_killed_build_and_newer_benchmarks(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("words", ".words.killed"):
        (tmp_path / name).mkdir()
        shutil.copy(data / MANIFEST, tmp_path / name)
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / MANIFEST).write_text('{"benchmark": "newer"}')
    assert benchmarks_in(tmp_path) == {"words": tmp_path / "words"}
    assert "newer: is of 'newer'" in caplog.text
    assert "newer" not in BENCHMARKS


@pytest.mark.parametrize("content", ["[]", "{", "[" * 100_000, "\x00"])
def test_a_damaged_manifest_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / MANIFEST).write_text(content)
    with pytest.raises(DataError, match=r"words/barista_bench\.json: .*Fix"):
        benchmarks_in(tmp_path)


@pytest.mark.parametrize(
    ("model", "message"),
    [("text_only:dual:tiny", "compares texts with no image"), ("first_frame:centre_box", "asks for no boxes")],
)
def test_a_model_that_could_answer_nothing_is_refused_before_it_is_loaded(data: Path, model: str, message: str) -> None:
    examples = open_examples(data, "words", "choose")
    with pytest.raises(ConfigError, match=f"{message}.*Fix"):
        check_fit(model, Words(), examples)
    check_fit("first_frame:dual:tiny", Words(), examples)
