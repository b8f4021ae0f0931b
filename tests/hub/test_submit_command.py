"""`barista-bench publish submission`, from a real run to files, and to a server."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from barista_bench.benchmarks import get_task
from barista_bench.cli.commands import app
from barista_bench.core.boxes import BoxFormat
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.runner import run_config
from barista_bench.runs.score.scoring import score
from tests.hub.made_results import DATASET, MODEL
from tests.hub.standin import TOKEN, UploadStandIn

REPOS = ["--model-repo", MODEL, "--dataset-repo", DATASET]


def submit(*arguments: object) -> tuple[int, str]:
    """Exit code and output, in this process: for what talks to no server."""
    done = CliRunner().invoke(app, ["publish", "submission", *map(str, arguments), *REPOS])
    return done.exit_code, done.output


def push(hub: UploadStandIn, *arguments: object) -> tuple[int, str]:
    """Exit code and output of the command itself; the hub client reads HF_ENDPOINT when it is imported."""
    command = [
        sys.executable,
        "-m",
        "barista_bench.cli",
        "publish",
        "submission",
        *map(str, arguments),
        *REPOS,
        "--push",
    ]
    environment = {**os.environ, "HF_ENDPOINT": hub.endpoint, "A_TOKEN": TOKEN, "HF_DEBUG": "1"}
    done = subprocess.run([*command, "--token-env", "A_TOKEN"], env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[UploadStandIn]:
    with UploadStandIn() as server:
        server.make(MODEL, "model", {"README.md": b"# Fruit\n"})
        server.make("garden/results", "dataset", {})
        monkeypatch.setenv("A_TOKEN", TOKEN)
        yield server


def test_a_real_run_becomes_a_submission(small_release: Path, tmp_path: Path) -> None:
    """Answers of a program that is right on every second example, through run and score."""
    data = build(small_release, tmp_path / "d", configs=["relations"], sampling={"frame_step": 20}, cache=False).folder
    task, examples = get_task("barista", "relations"), open_examples(data, "barista", "relations").examples
    header = {"format": "barista_bench.predictions/1", "box_format": "xyxy/1000", "model": MODEL}
    answers = ["[]" if n % 2 else task.reference_answer(e, BoxFormat()) for n, e in enumerate(examples)]
    lines = [{"example_id": e.example_id, "answer": a} for e, a in zip(examples, answers, strict=True)]
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in (header, *lines)))
    run_config(
        RunConfig(data=str(data), out=tmp_path / "run", task="relations", model=f"predictions:{file}", repetitions=2)
    )
    run = tmp_path / "run" / "relations"
    metric = score(run).results.metrics["micro_f1"]
    assert 0 < metric.mean < 1

    code, said = submit(run, "--dataset", data, "--out", tmp_path / "out")
    assert code == 0, said
    (entry,) = yaml.safe_load((tmp_path / "out/model/.eval_results/barista.yaml").read_text())
    assert entry["value"] == pytest.approx(100 * metric.mean, abs=0.005)
    assert f"95% interval {round(100 * metric.low, 2):g} to" in entry["notes"]  # type: ignore[operator]

    code, said = submit(run, "--dataset", data, "--out", tmp_path / "out")
    assert code == 0
    assert "0 files written" in said


def test_a_run_that_was_never_scored_is_scored_for_the_submission(honest_run: Path, tmp_path: Path) -> None:
    code, said = submit(honest_run, "--out", tmp_path / "scored")
    assert code == 0, said
    run = tmp_path / "run"
    shutil.copytree(honest_run, run)
    for name in ("results.json", "scores.jsonl"):
        (run / name).unlink()
    code, said = submit(run, "--data", _data_of(honest_run), "--out", tmp_path / "unscored")
    assert code == 0, said
    assert not (run / "results.json").exists()
    written = [path.relative_to(tmp_path / "scored") for path in (tmp_path / "scored").rglob("*.yaml")]
    assert written
    for name in written:
        assert (tmp_path / "unscored" / name).read_bytes() == (tmp_path / "scored" / name).read_bytes()


def _data_of(run: Path) -> str:
    """The place of a run's dataset."""
    return str((run / json.loads((run / "run.json").read_text())["data"]["path"]).resolve())


def test_nothing_leaves_the_machine_without_push(hub: UploadStandIn, honest_run: Path, tmp_path: Path) -> None:
    code, said = submit(honest_run, "--out", tmp_path / "out")
    assert code == 0, said
    assert "relations: micro_f1 " in said
    assert hub.requests == []


@pytest.mark.full
def test_push_opens_pull_requests_and_the_token_is_in_no_file_and_no_output(
    hub: UploadStandIn, honest_run: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = [honest_run, "--out", out, "--results-repo", "garden/results"]
    code, said = push(hub, *arguments)
    assert code == 0, said
    assert f"/{MODEL}/discussions/1" in said
    assert "/garden/results/discussions/1" in said
    assert set(hub.files(MODEL)) == {"README.md"}
    for name, content in hub.files(MODEL, "refs/pr/1").items():
        assert (out / "model" / name).read_bytes() == content  # the sent text is the one shown before
    assert list(hub.files("garden/results", "refs/pr/1", "dataset")) == [f"results/{MODEL}/relations/results.json"]
    commits = len(hub.commits_asked())
    code, again = push(hub, *arguments)
    assert code == 0, again
    assert again.count("nothing new") == 2
    assert len(hub.commits_asked()) == commits
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert TOKEN not in said + again
    assert TOKEN.encode() not in written


@pytest.mark.full
def test_a_refused_upload_ends_with_one_line_and_exit_code_1(
    hub: UploadStandIn, honest_run: Path, tmp_path: Path
) -> None:
    hub.rights, hub.careless = "read", True
    code, said = push(hub, honest_run, "--out", tmp_path / "out")
    assert code == 1
    assert "error: garden/fruit-8b: uploading: the Hub refuses" in said
    assert TOKEN not in said


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--branch", "x"], "upload options need --push"),
        (["--to-main"], "upload options need --push"),
        (["--push", "--pull-request", "--to-main"], "more than one upload target"),
        (["--push", "--branch", "main", "--token-env", "A_TOKEN"], "'main' is not to be written to"),
        (["--push", "--branch", "x", "--to-main", "--token-env", "A_TOKEN"], "both a branch and main"),
        (["--push", "--model-folder", "."], "--push merges with the repository on the Hub"),
        (["--push", "--token-env", "NO_SUCH_TOKEN"], "no access token in the environment variable NO_SUCH_TOKEN"),
        (["--model-folder", "absent"], "absent"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(
    hub: UploadStandIn, honest_run: Path, tmp_path: Path, flags: list[str], said: str
) -> None:
    code, output = submit(honest_run, "--out", tmp_path / "out", *flags)
    assert code == 1
    assert said in output
    assert hub.commits_asked() == []


def test_an_existing_card_in_a_folder_is_merged_with(honest_run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "README.md").write_text("---\nlicense: mit\n---\n# Fruit\n")
    code, said = submit(honest_run, "--out", tmp_path / "out", "--model-folder", copy)
    assert code == 0, said
    card = (tmp_path / "out/model/README.md").read_text()
    assert card.startswith("---\nlicense: mit\nmodel-index:\n")
    assert card.endswith("\n---\n# Fruit\n")


def test_an_incomplete_run_needs_to_be_allowed(honest_run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(honest_run, tmp_path / "run"))
    log = folder / "samples.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    score(folder)
    assert submit(folder, "--out", tmp_path / "out")[0] == 1
    code, said = submit(folder, "--out", tmp_path / "out", "--allow-incomplete")
    assert code == 0, said
    assert "INCOMPLETE" in said
