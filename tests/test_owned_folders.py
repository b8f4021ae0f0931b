"""The owner of a folder: replaced files, refusals before the first change, and files that stay after a failure."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barista_bench.errors import ConfigError
from barista_bench.files.owned_folders import (
    DATASET,
    KITCHEN,
    REPORT,
    RUN,
    VIDEO,
    check_output_path,
    check_target,
    kind_of_folder,
    replacing_folder,
)
from barista_bench.scene_graph.release import ANNOTATION_FILE

OLD = {"page.html": "old", "tables/one.csv": "1", "tables/gone/two.csv": "2"}
NEW = {"page.html": "new", "tables/one.csv": "one", "figures/a.svg": "<svg/>"}


def write(out: Path, files: dict[str, str]) -> None:
    with replacing_folder(out, REPORT) as folder:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)


def held(folder: Path) -> dict[str, str]:
    """All files but the manifest; hidden ones too."""
    files = (path for path in folder.rglob("*") if path.is_file() and path != folder / REPORT.manifest)
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


@pytest.fixture
def report(tmp_path: Path) -> Path:
    out = tmp_path / "report"
    write(out, OLD)
    return out


def test_a_folder_takes_its_place_at_the_end_is_for_everyone_to_read_and_replaces_no_other(tmp_path: Path) -> None:
    out = tmp_path / "runs" / "one"
    with replacing_folder(out) as partial:
        (partial / "run.json").write_text("{}")
        assert not out.exists()
    os.umask(mask := os.umask(0))
    assert out.stat().st_mode & 0o777 == 0o777 & ~mask
    with pytest.raises(ConfigError, match=r"is there already, and holds 'run\.json'"), replacing_folder(out):
        raise AssertionError("the work has begun")
    (tmp_path / "empty").mkdir()
    with replacing_folder(tmp_path / "empty") as partial:
        (partial / "new").touch()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["new", "run.json"]


def test_written_files_are_replaced_as_a_whole_and_equal_files_give_equal_lists(report: Path) -> None:
    write(report.parent / "again", dict(reversed(OLD.items())))
    assert (report.parent / "again" / REPORT.manifest).read_bytes() == (report / REPORT.manifest).read_bytes()
    shutil.rmtree(report.parent / "again")
    (report / "page.html").unlink()  # a removed file does not keep a folder from being replaced
    write(report, NEW)
    assert held(report) == NEW
    assert list(report.parent.iterdir()) == [report]


@pytest.mark.parametrize("name", ["notes.txt", "tables/mine.csv", "tables/gone/deep/run.json", ".hidden", "empty/"])
def test_anything_that_was_not_written_stops_the_command_before_the_first_change(report: Path, name: str) -> None:
    strange = report / name
    strange.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith("/"):
        strange.mkdir()
    else:
        strange.write_text("hours of work")
    before = held(report)
    with pytest.raises(ConfigError, match=rf"holds '{name}', which is not ours\. Fix: "):
        write(report, NEW)
    assert held(report) == before
    assert strange.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda out: (out / "link").symlink_to(out / "page.html"), "holds 'link@', which is not ours"),
        (lambda out: os.mkfifo(out / "pipe"), "holds 'pipe@', which is not ours"),
        (lambda out: (out / REPORT.manifest).write_text("{}"), "lists no files that may be replaced"),
        (lambda out: (out / REPORT.manifest).write_text("["), "cannot be read"),
        (lambda out: (out / REPORT.manifest).unlink(), "is not a report of ours"),
        (lambda out: (out / REPORT.manifest).write_text('{"files": ["../../x"]}'), "holds 'page.html'"),
    ],
)
def test_files_that_the_command_did_not_write_stop_it(
    report: Path, change: Callable[[Path], object], message: str
) -> None:
    change(report)
    with pytest.raises(ConfigError, match=message), replacing_folder(report, REPORT):
        raise AssertionError("the work has begun")
    assert (report / "tables/one.csv").read_text() == "1"


def test_files_that_arrive_during_the_work_stop_it_and_are_kept(report: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds 'late\.txt'"), replacing_folder(report, REPORT):
        (report / "late.txt").write_text("hours of work")
    assert held(report) == OLD | {"late.txt": "hours of work"}
    assert list(report.parent.iterdir()) == [report]


def test_a_folder_that_cannot_be_renamed_is_refused_before_the_work(
    report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(message: str) -> None:
        with pytest.raises(ConfigError, match=message), replacing_folder(report, REPORT):
            raise AssertionError("the work has begun")

    with monkeypatch.context() as patch:
        patch.chdir(report)
        refuse(r"is the working directory\. Fix: start the command from another folder")
    with monkeypatch.context() as patch:
        patch.setattr(os.path, "ismount", lambda path: Path(path) == report)
        refuse(r"is a mount point.*Fix: name a folder inside it")
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != report.parent and real(path, mode))
    refuse(r"may not be written\. Fix: ")


KILLED = """
import os, signal, sys
from pathlib import Path
from barista_bench.files.owned_folders import REPORT, replacing_folder

renames, real = [], Path.rename
def rename(self, other):
    renames.append(other)
    if len(renames) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, other)

Path.rename = rename
with replacing_folder(Path(sys.argv[1]), REPORT) as folder:
    (folder / "page.html").write_text("half")
"""


@pytest.mark.parametrize("rename", [1, 2])
def test_the_next_command_restores_files_that_a_killed_one_moved_away(
    report: Path, rename: int, caplog: pytest.LogCaptureFixture
) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, report, str(rename)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert report.exists() == (rename == 1)
    check_target(report, REPORT)
    assert held(report) == OLD
    assert ("restored" in caplog.text) == (rename == 2)
    (leftover,) = (path for path in report.parent.iterdir() if path != report)
    write(report, NEW)
    assert held(report) == NEW
    assert leftover.exists()  # its command may still run
    for path in (leftover, *leftover.rglob("*")):
        os.utime(path, (0, 0))
    write(report, OLD)
    assert list(report.parent.iterdir()) == [report]


def test_a_swap_that_fails_puts_the_old_folder_back(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.rename

    def rename(self: Path, other: Path) -> Path:
        if self.name == "new":
            raise OSError(errno.EIO, "Input/output error", str(self))
        return real(self, other)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(OSError, match="Input/output error"):
        write(report, NEW)
    monkeypatch.undo()
    assert held(report) == OLD
    assert list(report.parent.iterdir()) == [report]


def test_a_link_to_a_folder_stays_a_link_and_a_broken_link_is_named(report: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(report)
    write(link, NEW)
    assert link.is_symlink()
    assert held(report) == NEW
    shutil.rmtree(report)
    with (
        pytest.raises(ConfigError, match=r"is a link to .*report, which does not exist"),
        replacing_folder(link, REPORT),
    ):
        raise AssertionError("the work has begun")
    assert link.is_symlink()


@pytest.mark.parametrize(
    ("out", "message"),
    [("file", "is not a folder"), ("file/below", "Not a directory"), ("n" * 300, "File name too long")],
)
def test_a_target_that_cannot_be_is_refused_before_the_work(tmp_path: Path, out: str, message: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises((ConfigError, OSError), match=message) as caught, replacing_folder(tmp_path / out, REPORT):
        raise AssertionError("the work has begun")
    assert str(tmp_path) in str(caught.value)


def test_a_place_that_may_not_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(ConfigError, match=r"may not be written\. Fix: "):
        check_target(tmp_path / "a" / "b", REPORT)


def make_run(folder: Path) -> None:
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    (folder / "samples.jsonl").touch()


def make_video(folder: Path) -> None:
    folder.mkdir()
    (folder / ANNOTATION_FILE).touch()


def make_dataset(folder: Path) -> None:
    with replacing_folder(folder, DATASET) as dataset:
        (dataset / "a").write_bytes(b"")
        (dataset / DATASET.manifest).write_text('{"benchmark": "barista"}')


def make_kitchen(folder: Path) -> None:
    with replacing_folder(folder, KITCHEN) as kitchen:
        make_video(kitchen / "mini_1")


@pytest.mark.parametrize(
    ("make", "name"),
    [(make_run, RUN.name), (make_video, VIDEO.name), (make_dataset, DATASET.name), (make_kitchen, KITCHEN.name)],
)
@pytest.mark.parametrize("below", ["", "runs", "runs/barista/relations"])
@pytest.mark.parametrize("linked", [False, True])
def test_nothing_is_written_in_a_folder_of_another_command(
    tmp_path: Path, make: Callable[[Path], None], name: str, below: str, linked: bool
) -> None:
    make(tmp_path / "taken")
    folder = tmp_path / "taken"
    if linked:
        folder = tmp_path / "link"
        folder.symlink_to(tmp_path / "taken")
    with pytest.raises(ConfigError, match=rf"(is|lies inside .*, which is) {name}.*Fix: "):
        check_output_path(folder / below, REPORT)


def test_a_run_folder_takes_its_own_run_and_its_report(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    check_output_path(tmp_path / "run", RUN)
    write(tmp_path / "run" / "report", NEW)
    write(tmp_path / "run" / "report", OLD)
    with pytest.raises(ConfigError, match="which is a run folder"):
        check_output_path(tmp_path / "run" / "relations", RUN)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small separate disk."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if not mount or subprocess.run([mount, "-t", "tmpfs", "-o", "size=256k", "none", folder], check=False).returncode:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_mounted_disk_is_refused_and_takes_a_folder_inside_it(disk: Path) -> None:
    with pytest.raises(ConfigError, match="is a mount point"):
        write(disk, OLD)
    write(disk / "report", OLD)
    write(disk / "report", NEW)
    assert held(disk / "report") == NEW


def test_a_full_disk_leaves_the_old_folder_and_is_named(disk: Path) -> None:
    out = disk / "report"
    write(out, OLD)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write(out, {"page.html": "x" * 2**20})
    assert caught.value.filename == str(out)
    assert held(out) == OLD


def test_the_list_is_added_to_the_content_of_the_manifest(tmp_path: Path) -> None:
    make_dataset(tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / DATASET.manifest).read_text())
    assert manifest == {"benchmark": "barista", "files": ["a"]}
    assert kind_of_folder(tmp_path / "out") is DATASET
