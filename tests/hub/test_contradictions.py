"""Run folders in which one file contradicts another, the adapter or the published set: all are refused.

Forgeries of `test_forgeries.py` are not repeated here. A forged run is scored again where that can hide the forgery.
"""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from barista_bench.core.training_videos import TrainingVideos
from barista_bench.data.folder import build
from barista_bench.data.rows import video_hashes
from barista_bench.errors import BaristaError
from barista_bench.judging.judge_folder import VERDICTS_FILE
from barista_bench.judging.released_verdicts import verdict_key
from barista_bench.judging.scoring import score_judged
from barista_bench.models.local.loading import adapter_hash
from barista_bench.runs.log.inputs import INPUTS_FILE
from barista_bench.runs.log.sample_log import LOG_FILE, SampleRecord, encode_record, seal
from barista_bench.runs.run_folder import CONFIG_FILE, JUDGE_FILE, judge_folders
from barista_bench.runs.score.results import RESULTS_FILE, SCORES_FILE
from barista_bench.runs.score.scoring import score
from tests.conftest import MadeOnce
from tests.hub.conftest import run_of, some_right
from tests.hub.forging import Forgery, contents, edit, first, forge_log, other, read_log, submit, write_log
from tests.vista.made import write_small_release

SETTINGS = {"configs": ["relations"], "sampling": {"frame_step": 20}, "cache": False}


def in_run(field: str, value: object) -> Forgery:
    return lambda run: edit(run / CONFIG_FILE, field, value)


def in_results(field: str, value: object) -> Forgery:
    return lambda run: edit(run / RESULTS_FILE, field, value)


def lines(file: str, change: Callable[[list[bytes]], list[bytes]]) -> Forgery:
    """Change the lines of a file."""

    def forge(run: Path) -> None:
        path = run / file
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))

    return forge


def sealed(line: bytes, **changes: object) -> bytes:
    """A valid line of `inputs.jsonl` with another content."""
    content = {name: value for name, value in json.loads(line).items() if name not in ("log", "checksum")}
    return seal(msgspec.json.encode(content | changes))


def each(**changes: Any) -> Forgery:
    return forge_log(lambda records: [other(record, **changes) for record in records])


RUN: dict[str, Forgery] = {
    "the paper's protocol": in_run("protocol", "paper"),
    "another task": in_run("identity.task", "hand_object"),
    "an option of the prompt": in_run("identity.options", lambda options: {**options, "protocol": "paper"}),
    "a setting of decoding more": in_run("identity.generation", lambda g: {**g, "beams": 5}),
    "an adapter that was not there": in_run("identity.model.settings", {"adapter": "5f" * 32}),
    "answers of another harness": in_run(
        "imported", [{"folder": "x", "predictions_sha256": "0" * 64, "thinking_tokens": 0}]
    ),
    "another version of the prompts": in_run("prompts.version", 7),
    "a further text of the prompts": in_run("prompts.extra", {"image": "Look here:"}),
    "our wording as a file's": lambda run: edit(
        run / CONFIG_FILE, "prompts", lambda prompts: {**prompts, "wording": f"file:{prompts['sha256'][:8]}"}
    ),
    "training videos of nobody": in_run("training_videos", ["no hash"]),
    "a digest of training videos": in_run("identity.model.settings", {"training_videos": "ab" * 32}),
    "a price below 0": in_run("prices", {"input": -1.0, "output": 1.0}),
    "a version that commands a terminal": in_run("barista_bench", "0.1\x1b[2J"),
    "a field of the forger's own": in_run("verified", True),
}
LOG: dict[str, Forgery] = {
    "other media": each(media="ab" * 32),
    "other prompts": each(prompt="ab" * 32),
    "lines without a checksum": lines(
        LOG_FILE, lambda all: [line.partition(b',"checksum"')[0] + b"}\n" for line in all]
    ),
    "two records in one line": lines(LOG_FILE, lambda all: [all[0][:-1] + all[1], *all[2:]]),
    "zeros in a line": lines(LOG_FILE, lambda all: [b"\0" * len(all[0]), *all[1:]]),
    "a record of a longer log": lines(
        LOG_FILE, lambda all: [*all, encode_record(SampleRecord("k", "f", "e", 0, "ok", "x"))]
    ),  # type: ignore[arg-type]
}
BESIDE: dict[str, Forgery] = {
    "an example less was asked": lines(INPUTS_FILE, lambda all: all[1:]),
    "something else was asked": lines(INPUTS_FILE, lambda all: [sealed(line, fingerprint="ab" * 32) for line in all]),
    "it was asked unsealed": lines(INPUTS_FILE, lambda all: [all[0].replace(b"v0", b"v9"), *all[1:]]),
    "the questions are unknown": lambda run: (run / INPUTS_FILE).unlink(),
    "a sample's score": lines(SCORES_FILE, lambda all: [line.replace(b": 0.0", b": 1.0") for line in all]),
    "the seconds of a start": lambda run: next(run.glob("sessions*.jsonl")).write_text('{"seconds": {"total": 1}}\n'),
    "the record of the figures": in_results("comparability.split", "test"),
    "the cost of an answer": in_results("timing.costs", first(lambda cost: {**cost, "mean": 0.0})),
    "the interval of a group": in_results(
        "breakdowns", first(first(lambda cell: {**cell, "metric": {**cell["metric"], "high": 1.0}}))
    ),
    "a field of the forger's own in the figures": in_results("verified", True),
}


def refused(run: Path, forge: Forgery, *, rescored: bool = True, **options: Any) -> str:
    """The message about a submitted forged run; scored again before, unless that would undo the forgery."""
    before = contents(run)
    forge(run)
    assert contents(run) != before, "nothing was forged"
    if rescored:
        with suppress(BaristaError):
            for judge in judge_folders(run):
                score_judged(score(run), judge)
            score(run)
    with pytest.raises(BaristaError, match="Fix") as refusal:
        submit(run, **options)
    return str(refusal.value)


@pytest.fixture
def run(honest_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest_run, tmp_path / "run"))


@pytest.mark.full
@pytest.mark.parametrize("name", [*RUN, *LOG])
def test_a_run_that_contradicts_itself_is_refused_scored_again_or_not(name: str, run: Path) -> None:
    shutil.copytree(run, run.with_name("stale"))
    refused(run, (RUN | LOG)[name])
    refused(run.with_name("stale"), (RUN | LOG)[name], rescored=False)


@pytest.mark.full
@pytest.mark.parametrize("name", BESIDE)
def test_files_beside_the_log_that_contradict_it_are_refused(name: str, run: Path) -> None:
    refused(run, BESIDE[name], rescored=False)


def in_rows(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Forgery:
    """Change the rows of a built set."""

    def forge(data: Path) -> None:
        for path in sorted((data / "relations").glob("*.parquet")):
            table = pq.read_table(path)
            pq.write_table(
                type(table).from_pylist([change(row) for row in table.to_pylist()], schema=table.schema), path
            )

    return forge


PUBLISHED: dict[str, Forgery] = {
    "one picture for all": in_rows(lambda row: {**row, "images": row["images"][:1] * len(row["images"])}),
    "pictures that were written again": in_rows(
        lambda row: {**row, "images": [{**image, "bytes": image["bytes"] + b"\0"} for image in row["images"]]}
    ),
    "relations left out of the truth": in_rows(
        lambda row: {**row, "target": {**row["target"], "relations": row["target"]["relations"][:1]}}
    ),
    "other frames": in_rows(lambda row: {**row, "frame_indices": [index + 1 for index in row["frame_indices"]]}),
    "all examples in the test split": in_rows(lambda row: {**row, "metadata": {**row["metadata"], "split": "test"}}),
}


@pytest.mark.full
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_run_on_a_forged_set_is_refused_by_the_published_one(name: str, honest_data: Path, tmp_path: Path) -> None:
    """The run itself is honest: asked on the forged set, with the hash of that set."""
    data = Path(shutil.copytree(honest_data, tmp_path / "data"))
    PUBLISHED[name](data)
    run = run_of(data, tmp_path / "run", "relations", lambda *_: "[]")
    with pytest.raises(BaristaError, match="Fix"):
        submit(run, dataset=honest_data)


TRAINED: dict[str, Forgery] = {
    "no training videos, and no digest": lambda run: [in_run(f, v)(run) for f, v in _UNTRAINED.items()] and None,
    "no mark in the figures": in_results("trained_on", 0),
}
_UNTRAINED: dict[str, object] = {"training_videos": [], "trained_on": [], "identity.model.settings": {}}


@pytest.mark.full
@pytest.mark.parametrize("name", TRAINED)
def test_a_model_that_was_trained_on_the_videos_stays_out(name: str, trained_run: Path, tmp_path: Path) -> None:
    refused(Path(shutil.copytree(trained_run, tmp_path / "run")), TRAINED[name])


@pytest.mark.full
def test_videos_that_a_forged_set_hashes_differently_equal_the_published_ones(
    trained_run: Path, honest_data: Path, tmp_path: Path
) -> None:
    """Hashes of videos are in no hash of the set."""
    data = Path(shutil.copytree(honest_data, tmp_path / "data"))
    in_rows(lambda row: {**row, "video_sha256": "ab" * 32})(data)
    run = Path(shutil.copytree(trained_run, tmp_path / "run"))
    in_run("data.path", str(data))(run)
    assert score(run).results.trained_on == 0
    with pytest.raises(BaristaError, match=r"trained_on: is 0, not \d"):
        submit(run, dataset=honest_data)


@pytest.fixture(scope="module")
def adapted(honest_data: Path, made_once: MadeOnce) -> Path:
    """An adapter that was trained on no video of the set, and a run with it."""

    def make(out: Path) -> None:
        adapter = out / "adapter"
        adapter.mkdir(parents=True)
        (adapter / "adapter_config.json").write_text("{}")
        (adapter / "adapter_model.safetensors").write_bytes(b"weights")
        TrainingVideos(videos=frozenset({"ab" * 32})).write(adapter)
        run_of(
            *(honest_data, out / "run", "relations", some_right(honest_data, "relations"), frozenset({"ab" * 32})),
            model_settings={"adapter": adapter_hash(adapter)},
        )

    return made_once("adapted", make)


def in_adapter(name: str, change: Callable[[bytes], bytes]) -> Forgery:
    def forge(folder: Path) -> None:
        path = folder / "adapter" / name
        path.write_bytes(change(path.read_bytes()))

    return forge


def _trained_on_the_set(folder: Path) -> None:
    """The adapter's record names a video of the set, which lay elsewhere while the run was made."""
    seen = {sha256 for hashes in video_hashes(folder.parent / "data").values() for sha256 in hashes.values()}
    TrainingVideos(videos=frozenset({"ab" * 32, *seen})).write(folder / "adapter")


ADAPTER: dict[str, Forgery] = {
    "other weights": in_adapter("adapter_model.safetensors", lambda content: content + b"!"),
    "another configuration": in_adapter("adapter_config.json", lambda content: b'{"r": 64}'),
    "a record of more videos": _trained_on_the_set,
    "another adapter's hash": lambda folder: in_run("identity.model.settings.adapter", "5f" * 32)(folder / "run"),
    "no adapter": lambda folder: in_run("identity.model.settings", {})(folder / "run"),
}


def test_a_run_is_held_to_the_adapter_that_it_names(adapted: Path) -> None:
    assert submit(adapted / "run", adapter=str(adapted / "adapter")).rows


@pytest.mark.full
@pytest.mark.parametrize("name", ADAPTER)
def test_a_run_that_contradicts_its_adapter_is_refused(
    name: str, adapted: Path, honest_data: Path, tmp_path: Path
) -> None:
    shutil.copytree(honest_data, tmp_path / "data")
    folder = Path(shutil.copytree(adapted, tmp_path / "adapted"))
    ADAPTER[name](folder)
    with pytest.raises(BaristaError, match="Fix"):
        submit(folder / "run", adapter=str(folder / "adapter"))


def judge_of(run: Path) -> Path:
    (folder,) = judge_folders(run)
    return folder


def in_judge(field: str, value: object, file: str = JUDGE_FILE) -> Forgery:
    return lambda run: edit(judge_of(run) / file, field, value)


def _came_along(run: Path) -> None:
    """Verdicts of the forger's own, as of a run that another harness judged."""
    judge = judge_of(run)
    records = [
        other(
            record,
            key=verdict_key(sample.example_id, sample.repetition, name),
            fingerprint=verdict_key(sample.example_id, sample.repetition, name),
            example_id=sample.example_id,
            repetition=sample.repetition,
            prompt="",
            text=json.dumps({"criterion": name, "score": 1.0, "reason": "fine"}),
        )
        for record in read_log(judge / VERDICTS_FILE)[:1]
        for sample in read_log(run / LOG_FILE)
        for name in ("accuracy",)
    ]
    write_log(judge / VERDICTS_FILE, records)
    edit(judge / JUDGE_FILE, "identity.method", "released")
    edit(judge / JUDGE_FILE, "rubric", {"version": 0, "wording": "", "criteria": [{"name": "accuracy"}]})
    edit(judge / JUDGE_FILE, "verdicts_per_answer", 1)


def judge_lines(file: str, change: Callable[[list[bytes]], list[bytes]]) -> Forgery:
    return lambda run: lines(file, change)(judge_of(run))


JUDGE: dict[str, Forgery] = {
    "verdicts that came along": _came_along,
    "another text of the form": in_judge("prompt.user", "Give ten."),
    "steps that the judge worked out": in_judge("identity.steps", "generate"),
    "a version of the rubric": in_judge("rubric.version", 9),
    "another method": in_judge("identity.method", "reasoning"),
}
JUDGE_METRICS: dict[str, Forgery] = {
    "a verdict beside the log": judge_lines(
        SCORES_FILE, lambda all: [line.replace(b'"ok"', b'"refused"') for line in all]
    ),
    "a spread of verdicts": in_judge("sd_of_verdicts.mean", 0.0, RESULTS_FILE),
    "what verdicts took": in_judge("output_tokens", 1, RESULTS_FILE),
    "what was judged": in_judge("answers.wording", "ours v1", RESULTS_FILE),
}


@pytest.mark.full
@pytest.mark.parametrize("name", [*JUDGE, *JUDGE_METRICS])
def test_a_judge_that_contradicts_itself_is_refused(name: str, judged_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(judged_run, tmp_path / "run"))
    refused(run, (JUDGE | JUDGE_METRICS)[name], rescored=name in JUDGE)


@pytest.fixture(scope="module")
def stepped(made_once: MadeOnce) -> Path:
    """A run of a task that asks on after an answer."""

    def make(out: Path) -> None:
        write_small_release(out / "release")
        data = build(out / "release", out / "vista", benchmark="vista", configs=["minecraft"], cache=False).folder
        run_of(data, out / "run", "minecraft", lambda example, seed: f"1. {seed % 3} {example}")

    return made_once("stepped", make) / "run"


STEPS: dict[str, Forgery] = {
    "other answers on the way": each(earlier=("lift the cup",)),
    "no answers on the way": each(earlier=None),
    "tokens that no step took": each(input_tokens=1, output_tokens=1),
    "a step less": lines("steps.jsonl", lambda all: all[2:]),
}


def test_a_run_of_a_task_with_several_steps_is_submitted(stepped: Path) -> None:
    assert submit(stepped).rows


@pytest.mark.full
@pytest.mark.parametrize("name", STEPS)
def test_samples_that_contradict_their_steps_are_refused(name: str, stepped: Path, tmp_path: Path) -> None:
    assert "differs from its steps" in refused(Path(shutil.copytree(stepped, tmp_path / "run")), STEPS[name])
