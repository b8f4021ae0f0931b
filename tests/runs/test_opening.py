"""The start of a run checks its subject: names, prompts with wrong places, other videos, sets too small to score."""

import json
import logging
from pathlib import Path

import pytest
import yaml

from barista_bench.benchmarks import BENCHMARKS, find_task, get_task, task_class, task_names
from barista_bench.benchmarks.barista.relations import Relations
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.data.manifest import MANIFEST
from barista_bench.errors import ConfigError, DataError, ModelError
from barista_bench.reporting.analyses import analyse
from barista_bench.reporting.report import build_report
from barista_bench.runs.ask.catalog import _OtherVideos, load_model
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.opening import _read_wording, open_tasks
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.results import read_results, summary_line
from barista_bench.runs.score.scoring import score
from tests.conftest import MadeOnce
from tests.one_run import run
from tests.released_clone import write_prompts
from tests.releases import document, write_release
from tests.vista.made import write_small_release


@pytest.fixture(scope="session")
def vista(made_once: MadeOnce) -> Path:
    release = made_once("made/vista", write_small_release)
    settings = {"benchmark": "vista", "sampling": {"frames": 2}, "configs": ["minecraft", "all"], "cache": False}
    return made_once("opening/vista", lambda out: build(release, out, **settings))


def names(data: Path, **settings: object) -> list[str]:
    config = RunConfig(data=str(data), out=Path("runs"), model="oracle", **settings)
    return [f"{opened.task.benchmark}/{opened.task.name}" for opened in open_tasks(config)]


def test_a_folder_names_its_benchmark_and_all_its_tasks_are_asked_by_default(vista: Path, dataset: Path) -> None:
    assert names(vista, task=("minecraft",)) == ["vista/minecraft"]
    assert names(vista) == names(vista, benchmark="vista") == ["vista/all"]
    assert names(dataset, task=("barista/relations",)) == ["barista/relations"], "named with its benchmark"


def test_a_folder_of_a_benchmark_that_is_not_known_is_refused(vista: Path, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(json.dumps({"benchmark": "tea"}))
    with pytest.raises(DataError, match="is of 'tea', which this version does not know"):
        names(tmp_path)


def test_the_message_about_a_misspelt_task_names_the_right_one() -> None:
    known = ", ".join(task_names("barista"))
    with pytest.raises(ConfigError, match=f"no task 'releations' of barista.*did you mean relations.*{known}$"):
        task_class("barista", "releations")
    with pytest.raises(ConfigError, match=r"no benchmark 'tea'.*barista, vista"):
        task_class("tea", "relations")


def test_misspelled_models_and_files_are_not_searched_on_the_hub(tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    answers.write_text("{}")
    for name, message in (
        ("oracel", "did you mean oracle"),
        (str(answers), f"write predictions:{answers}"),
        ("served", "say which after a colon, served:NAME"),
        ("human:anna", "let them answer in `barista-bench studio`"),
        ("dual:", "say which after a colon, dual:NAME"),
        ("letters:x", "no package here registers models letters:"),
    ):
        with pytest.raises(ConfigError, match=message):
            load_model(RunConfig(data="x", out=tmp_path, model=name), [])


@pytest.fixture
def prompts(tmp_path: Path):
    def write(user: str) -> Path:
        wording = get_task("barista", "relations").prompts
        path = tmp_path / "prompts.yaml"
        path.write_text(yaml.safe_dump({"version": 1, "system": wording.system, "user": user}))
        return path

    return write


def test_a_prompt_with_an_unknown_place_is_refused(dataset: Path, prompts) -> None:
    user = get_task("barista", "relations").prompts.user
    with pytest.raises(ConfigError, match=r"place \{colour\}, which no value fills. Fix: use only \{"):
        names(dataset, prompts=prompts(user + " In {colour}."))
    assert names(dataset, prompts=prompts(user + ' Like {"a": {}}.')) == ["barista/relations"]


def test_a_missing_place_is_reported(dataset: Path, prompts, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        names(dataset, prompts=prompts("Which relations are there?"))
    assert "the prompts of barista/relations have no place {" in caplog.text


def test_boxes_may_be_described_in_words_of_ones_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    texts = {"version": 1, "system": "{names} of {scale}", "user": "{phrase}"}
    extra = {"names.yxyx": "y first", "names.xyxy": "x first"}
    path = tmp_path / "own.yaml"
    grounding, activity = (find_task(BENCHMARKS["barista"], name) for name in ("grounding", "activity"))
    config = RunConfig(data="d", out=tmp_path, model="oracle", prompts=path)
    path.write_text(json.dumps({"tasks": {"grounding": texts | {"extra": extra}}}))
    assert _read_wording(config, grounding)
    assert not caplog.text
    path.write_text(json.dumps({"tasks": {"grounding": texts}}))
    with pytest.raises(ConfigError, match=r"place \{names\}, which no value fills"):
        _read_wording(config, grounding)
    path.write_text(json.dumps({"tasks": {"activity": {**texts, "system": "{scale}", "user": "{choices}"}}}))
    with pytest.raises(ConfigError, match=r"place \{scale\}, which no value fills"):
        _read_wording(config, activity)


@pytest.mark.full
def test_a_run_in_the_words_of_a_prompt_file_says_so_everywhere(dataset: Path, tmp_path: Path) -> None:
    prompt_file = write_prompts(tmp_path)
    settings = {"task": "relations", "model": "chance", "repetitions": 1, "limit": 2}
    run(dataset, tmp_path / "theirs", prompts=prompt_file, **settings)
    run(dataset, tmp_path / "ours", **settings)
    theirs, ours = score(tmp_path / "theirs"), score(tmp_path / "ours")
    wording = read_run(tmp_path / "theirs").prompts.wording
    assert (wording[:5], ours.results.prompts.wording) == ("file:", "ours v2")
    assert read_results(tmp_path / "theirs" / "results.json").prompts.wording == wording
    assert summary_line(theirs.results).endswith(f", wording {wording}")
    analyses = analyse([theirs, ours])
    report = build_report([theirs, ours], analyses=analyses)
    assert [section.heading for section in report.sections] == [
        f"barista / relations (wording '{wording}')",
        "barista / relations (wording 'ours v2')",
    ]
    assert [dict(section.facts)["wording of the prompts"] for section in report.sections] == [wording, "ours v2"]
    assert not analyses.comparisons
    assert not analyses.agreements
    with pytest.raises(ConfigError, match="holds a run with prompts_hash"):
        run(dataset, tmp_path / "ours", prompts=prompt_file, **settings)


def test_too_few_examples_to_compare_are_reported_without_a_traceback(vista: Path, tmp_path: Path) -> None:
    run(vista, tmp_path / "run", task="all", model="chance", repetitions=1, limit=1)
    with pytest.raises(DataError, match=r"macro_f1 is not defined for these 1 samples.*Fix: run more"):
        score(tmp_path / "run")


def test_a_schema_that_answers_cannot_be_held_to_is_refused_by_name_before_a_model_is_loaded(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("llguidance")
    schema = {"type": "object", "properties": {"boxes": {"type": "array", "uniqueItems": True}}}
    monkeypatch.setattr(Relations, "answer_schema", lambda self, example: schema)
    monkeypatch.setattr("barista_bench.runs.ask.runner.load_model", lambda *_: pytest.fail("a model was loaded"))
    held = {"task": "relations", "structured_output": True}
    with pytest.raises(ConfigError, match=r"barista/relations: .* properties/boxes: .*uniqueItems.*Fix"):
        run(dataset, tmp_path, model="tiny", **held)
    with pytest.raises(ConfigError, match="barista/relations"):
        run(dataset, tmp_path, model="text_only:org/model", **held)
    assert names(dataset, **held) == ["barista/relations"]  # of the oracle, which is held to nothing
    monkeypatch.setattr("barista_bench.errors.find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"needs llguidance. Fix: pip install '?barista_bench\[run\]"):
        run(dataset, tmp_path, model="tiny", **held)


TASK = get_task("barista", "relations")


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """`again` is the video of `first` under another id; `other` has different bytes."""
    for name in ("again", "first", "other"):
        write_release(tmp_path / "release", name, document())
    with (tmp_path / "release/other/video.mp4").open("ab") as file:
        file.write(b"\0\0\0\x08free")
    return tmp_path / "release"


def others_of_first(data: Path, root: Path | None = None) -> set[str]:
    examples = open_examples(data, "barista", "relations", root=root)
    asked = next(example for example in examples.examples if example.video_id == "first")
    return {example.video_id for example in _OtherVideos([(TASK, examples)]).of(TASK, asked)}


def test_copies_of_a_video_are_recognised_under_another_id(
    release: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    built = build(release, tmp_path / "data", configs=["relations"], sampling={"frame_step": 20}, cache=False).folder
    assert others_of_first(built) == {"other"}
    assert others_of_first(built / "frozen/relations.jsonl", root=release) == {"other"}
    assert "only by their ids" not in caplog.text
    (release / "other/video.mp4").unlink()
    assert others_of_first(built / "frozen/relations.jsonl", root=release) == {"again", "other"}
    assert "only by their ids" in caplog.text


def test_the_message_about_a_folder_of_datasets_says_how_to_name_one_or_take_all(
    vista: Path, dataset: Path, tmp_path: Path
) -> None:
    for name, folder in (("barista", dataset), ("vista", vista)):
        (tmp_path / name).symlink_to(folder)
    with pytest.raises(ConfigError, match=r"2 datasets are here \(barista, vista\). Fix: name one, .*--benchmark all"):
        names(tmp_path)
