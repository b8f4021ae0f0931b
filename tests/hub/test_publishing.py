"""`barista-bench publish` checks and lists files before it sends them; an interrupted upload continues."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from barista_bench.cli.commands import app
from barista_bench.data.folder import build
from barista_bench.data.manifest import MANIFEST
from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.publishing import check_publication
from barista_bench.hub.pushing import Destination, Pusher, PushError
from tests.hub.forging import Forgery, edit
from tests.hub.standin import TOKEN, UploadStandIn

REPO = "garden/BARISTA"
METRICS = Path(__file__).resolve().parents[2] / "metrics"
# One file a commit, where the client's own limit is 100 MB.
SMALL_COMMITS = """
import huggingface_hub._upload_pipeline as pipeline
pipeline.REGULAR_CONTENT_BYTES_BUDGET = 1
from barista_bench.cli import main
main()
"""


@pytest.fixture(scope="module")
def built(small_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "barista"
    configs = ["relations", "graph_frames"]
    return build(small_release, out, configs=configs, sampling={"frame_step": 20}, cache=False).folder


@pytest.fixture
def hub() -> Iterator[UploadStandIn]:
    with UploadStandIn() as server:
        yield server


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def published(hub: UploadStandIn, repo_type: str = "dataset", repo: str = REPO) -> dict[str, bytes]:
    """The files of the repository without the file that the Hub makes."""
    files = hub.files(repo, repo_type=repo_type)
    return {name: content for name, content in files.items() if name != ".gitattributes"}


def publish(hub: UploadStandIn, folder: Path, repo: str = REPO, *, public: bool = False) -> str:
    pusher = Pusher(TOKEN, Destination(to_main=True), endpoint=hub.endpoint)
    return pusher.publish(check_publication(folder, repo), public=public)


@pytest.mark.full
def test_an_upload_interrupted_twice_continues_and_the_repository_then_equals_the_folder(
    hub: UploadStandIn, built: Path
) -> None:
    environment = {**os.environ, "HF_ENDPOINT": hub.endpoint, "A_TOKEN": TOKEN}
    command = [sys.executable, "-c", SMALL_COMMITS, "publish", built, "--repo", REPO, "--token-env", "A_TOKEN"]
    said = b""
    for cut_off in (True, True, False):
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as upload:
            # Dies in its third commit, without seeing the answer.
            hub.before_commit = [upload.kill, lambda: None, lambda: None] if cut_off else []
            said += upload.communicate()[0]
        assert upload.returncode == (-signal.SIGKILL if cut_off else 0), said
        assert (published(hub) == contents(built)) is not cut_off
    assert sorted(hub.committed) == sorted(contents(built)), "each file once"
    assert hub.repos["dataset", REPO].is_private
    assert TOKEN.encode() not in said


def test_a_dry_run_lists_every_file_with_its_size_and_sends_no_request(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.HfApi.create_repo", None)
    done = CliRunner().invoke(app, ["publish", str(built), "--repo", REPO, "--dry-run"])
    assert done.exit_code == 0, done.output
    *listed, total = done.output.splitlines()
    shown = {name: int(size.replace(",", "")) for size, name in map(str.split, listed)}
    assert shown == {name: len(content) for name, content in contents(built).items()}
    assert f"{sum(shown.values()):,} bytes, to the private dataset {REPO} at " in total


@pytest.mark.parametrize(("public", "state"), [(True, "public"), (False, "private")])
def test_a_repository_that_is_not_as_private_as_asked_for_is_not_changed(
    hub: UploadStandIn, built: Path, public: bool, state: str
) -> None:
    publish(hub, built, public=public)
    assert hub.repos["dataset", REPO].is_private is not public
    commits = len(hub.commits_asked())
    with pytest.raises(ConfigError, match=rf"is {state} already.*--public"):
        publish(hub, built, public=not public)
    assert len(hub.commits_asked()) == commits


def test_shards_of_an_earlier_build_go_and_files_of_others_stay(hub: UploadStandIn, built: Path) -> None:
    kept, old = {"notes.md": b"mine"}, {"relations/test-00000-of-00009.parquet": b"old"}
    hub.make(REPO, "dataset", kept | old).is_private = True
    publish(hub, built)
    assert published(hub) == contents(built) | kept
    paths = [request.path for request in hub.requests]
    uploads = [index for index, path in enumerate(paths) if "upload" in path]
    assert paths.index("/api/validate-yaml") < min(uploads), "the card is checked before a file is sent"


def test_a_metric_becomes_a_space_under_the_name_by_which_evaluate_finds_it(hub: UploadStandIn) -> None:
    assert publish(hub, METRICS / "tuple_f1", "garden/tuple_f1").endswith("/spaces/garden/tuple_f1")
    files = published(hub, "space", "garden/tuple_f1")
    folder = {name: data for name, data in contents(METRICS / "tuple_f1").items() if "__pycache__" not in name}
    assert files == folder | {"app.py": (METRICS / "app.py").read_bytes()}
    with pytest.raises(ConfigError, match=r"evaluate would not find tuple_f1.py in garden/f1.*Fix"):
        check_publication(METRICS / "tuple_f1", "garden/f1")


def test_a_token_without_the_right_to_write_is_refused_with_a_message(hub: UploadStandIn, built: Path) -> None:
    hub.rights, hub.careless = "read", True
    with pytest.raises(PushError, match=r"making the repository: the Hub refuses.*Fix: use a token") as caught:
        publish(hub, built)
    assert TOKEN not in str(caught.value)


def without(pattern: str) -> Forgery:
    def spoil(folder: Path) -> None:
        for path in folder.glob(pattern):
            path.unlink()

    return spoil


def saying(name: str, text: str) -> Forgery:
    """A file with one more line, or with only this line where there is none."""
    return lambda folder: (folder / name).open("a").write(text)


def _no_licence(folder: Path) -> None:
    path = folder / "README.md"
    path.write_text(path.read_text().replace("\nlicense: ", "\nlicence: "))


SPOILT: dict[str, tuple[Forgery, str]] = {
    "no card": (without("README.md"), "there is no card"),
    "no licence": (_no_licence, "license: Field required"),
    "no metadata": (lambda folder: (folder / "README.md").write_text("# BARISTA\n"), "license: Field required"),
    "no files": (without("relations/test-*"), "configs.relations: no file relations/test-"),
    "another config": (
        lambda folder: edit(folder / MANIFEST, "configs", lambda configs: [*configs, {**configs[0], "name": "more"}]),
        "'more' is in the card or in the folder only",
    ),
    "linked": (lambda folder: edit(folder / MANIFEST, "frames", "linked"), "links to videos of this machine"),
    "a link": (
        lambda folder: (folder / "frozen" / "more.jsonl").symlink_to("/etc/hostname"),
        "frozen/more.jsonl is a link",
    ),
    "a stranger": (saying("notes.txt", "private"), "notes.txt is not of a built dataset"),
    "unfinished": (without(MANIFEST), "not a built dataset"),
    "a secret in the card": (saying("README.md", f"\n{TOKEN}\n"), "looks like an access token"),
    "a secret in a line": (saying("frozen/relations.jsonl", TOKEN), "looks like an access token"),
    "hidden": (saying("frozen/.env", "KEY=1"), r"frozen/\.env is hidden"),
}


@pytest.mark.parametrize(("spoil", "said"), SPOILT.values(), ids=SPOILT)
def test_a_folder_that_is_not_fit_is_refused(built: Path, tmp_path: Path, spoil: Forgery, said: str) -> None:
    dataset = Path(shutil.copytree(built, tmp_path / "dataset"))
    spoil(dataset)
    with pytest.raises(DataError, match=rf"{said}.*Fix"):
        check_publication(dataset, REPO)
