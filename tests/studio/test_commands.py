"""Commands, requests and files that the page may run, send and open in the studio's folder, and refusals."""

import json
import logging
import os
import shlex
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from barista_bench.errors import DataError
from barista_bench.studio import drop_videos, jobs as jobs_module
from barista_bench.studio.jobs import MOST_RUNNING, Jobs, StudioJob
from barista_bench.studio.workspace import default_paths, find_folders, open_workspace
from tests.reporting.browser import Watched
from tests.studio.killing import killed_studio
from tests.studio.serving import Visitor, studio_at, until, visiting
from tests.studio.test_accessibility import serious_faults

SHELL = ("/bin/sh", "-c")


@pytest.fixture
def folder(small_release: Path, tmp_path: Path) -> Path:
    """The studio's folder: a release, and a link that leads out."""
    folder = tmp_path / "work"
    shutil.copytree(small_release, folder / "graphs")
    (tmp_path / "secret").mkdir()
    (folder / "out").symlink_to(tmp_path / "secret")
    return folder


@pytest.fixture
def anna(folder: Path, out: Path) -> Iterator[Visitor]:
    with visiting(out=out, folder=folder) as visitor:
        yield visitor


def line(visitor: Visitor, step: str, **values: str) -> str:
    """The command that the page shows. The page refuses and starts the same commands."""
    told: dict[str, str] = visitor.json("/api/command?" + urlencode({"step": step, **values}))
    if told["problem"]:
        status, body, _ = visitor.answer("/api/jobs/start", {"step": step, "values": values})
        assert (status, json.loads(body)["error"]) == (400, told["problem"])
    return told["line"] or told["problem"]


def test_a_form_shows_the_command_that_one_would_type(anna: Visitor) -> None:
    typed = (
        "barista-bench build --source graphs --out data/barista --sampling limit=4 --sampling relations.frame_step=9"
    )
    filled = {"source": "graphs", "out": "data/barista", "sampling": "limit=4 relations.frame_step=9"}
    assert line(anna, "build", **filled) == typed
    quoted = line(anna, "export", project="graphs", out="my graphs; rm -rf $HOME")
    assert shlex.split(quoted) == ["barista-bench", "annotate", "export", "graphs", "--out", "my graphs; rm -rf $HOME"]
    assert line(anna, "run", data="graphs", model="served:some/model", out="runs/m").startswith(
        "barista-bench run graphs"
    )


@pytest.mark.parametrize(
    ("step", "values", "problem"),
    [
        ("rm", {}, "may not run this command"),
        ("validate", {"root": "graphs", "strict": "1"}, "no option"),
        ("validate", {}, "is needed"),
        ("validate", {"root": "/etc"}, "refused"),
        ("validate", {"root": "../secret"}, "refused"),
        ("validate", {"root": "out"}, "leads outside"),
        ("validate", {"root": "nowhere"}, "there is no"),
        ("mini", {"out": "--help"}, "begins with a dash"),
        ("mini", {"out": "~"}, "only a shell can expand"),
        ("mini", {"out": "~/kitchen"}, "only a shell can expand"),
        ("start", {"project": "p", "videos": "~anna/videos"}, "only a shell can expand"),
        ("validate", {"root": "~root"}, "only a shell can expand"),
        ("mini", {"out": "out/kitchen"}, "leads outside"),
        ("mini", {"out": "kitchen", "videos": "1e9"}, "is not a number"),
        ("mini", {"out": "a\nb"}, "contains invisible characters"),
        ("mini", {"out": "a" * 501}, "too long"),
        ("start", {"project": "p", "videos": "/no/such/folder"}, "there is no folder"),
        ("start", {"project": "/tmp/p", "videos": "graphs"}, "refused"),
        ("build", {"source": "graphs", "out": "d", "benchmark": "other"}, "is none of"),
        ("build", {"source": "graphs", "out": "d", "sampling": "limit=4 --strict"}, "begins with a dash"),
        ("run", {"data": "graphs", "out": "r", "model": "predictions:/etc/passwd"}, "leads out"),
        ("run", {"data": "graphs", "out": "r", "model": "../../model"}, "leads out"),
    ],
)
def test_forbidden_values_are_refused_with_a_message(
    anna: Visitor, step: str, values: dict[str, str], problem: str
) -> None:
    told = line(anna, step, **values)
    assert problem in told
    assert "Fix" in told


def test_without_a_folder_nothing_can_be_run_sent_or_opened(small_release: Path, out: Path) -> None:
    with visiting(small_release, out=out) as anna:
        paths = ("/api/commands", "/api/jobs", "/api/command?step=mini")
        assert {anna.answer(path)[0] for path in paths} == {404}
        started = anna.answer("/api/jobs/start", {"step": "mini", "values": {"out": "kitchen"}})
        sent = anna.answer("/api/upload?folder=videos&name=a.mp4", b"video")
        assert (started[0], sent[0], anna.answer("/api/open", {"path": "."})[0]) == (404, 404, 404)


@pytest.mark.parametrize("path", ["/etc", "../secret", "out", "..", "graphs/../../secret", "", "nowhere"])
def test_nothing_outside_of_the_folder_is_opened(anna: Visitor, path: str) -> None:
    assert anna.answer("/api/open", {"path": path})[0] == 400


def test_an_opened_file_is_there_for_every_view_and_replaces_the_one_of_its_kind(
    anna: Visitor, folder: Path, small_release: Path
) -> None:
    home = anna.json("/api/home")
    assert (home["cards"], [found["path"] for found in home["closed"]]) == ([], ["graphs"])
    anna.json("/api/open", {"path": "graphs"})
    home = anna.json("/api/home")
    assert (len(home["cards"]), home["closed"]) == (6, [])
    assert anna.answer("/media/graph/v0/0.jpg")[0] == 200
    shutil.copytree(small_release / "v1", folder / "others" / "v1")
    anna.json("/api/open", {"path": "others"})
    home = anna.json("/api/home")
    assert [card["id"] for card in home["cards"]] == ["v1"]
    assert [found["path"] for found in home["closed"]] == ["graphs"]


def test_a_folder_is_looked_through_without_following_links(folder: Path, small_release: Path, tmp_path: Path) -> None:
    shutil.copytree(small_release / "v1", tmp_path / "secret" / "others" / "v1")
    (folder / "clips").mkdir()
    (folder / "clips" / "a.MP4").touch()
    (folder / "made" / "deep").mkdir(parents=True)
    (folder / "made" / "review.jsonl").touch()
    (folder / "words.yaml").touch()
    found = [*map(tuple, find_folders(folder))]
    assert found == [
        ("release", "graphs"),
        ("review", "made/review.jsonl"),
        ("videos", "clips"),
        ("vocabulary", "words.yaml"),
    ]
    (folder / "foreign").mkdir()
    (folder / "foreign" / "project.json").write_text('{"name": "of another program"}')
    assert default_paths(folder) == [folder / "graphs", folder / "made" / "review.jsonl"]


def upload(visitor: Visitor, folder: str, name: str, content: bytes) -> tuple[int, str]:
    status, body, _ = visitor.answer("/api/upload?" + urlencode({"folder": folder, "name": name}), content)
    return status, body.decode()


def test_a_video_that_is_dropped_is_written_whole_or_not_at_all(anna: Visitor, folder: Path) -> None:
    video = (folder / "graphs" / "v0" / "video.mp4").read_bytes()
    assert upload(anna, "videos", "a.mp4", video) == (200, '{"path":"videos/a.mp4"}')
    assert (folder / "videos" / "a.mp4").read_bytes() == video
    again, none, empty = (upload(anna, "videos", *sent) for sent in (("a.mp4", b"x"), ("b.mp4", b"x"), ("c.mp4", b"")))
    assert (again[0], none[0], empty[0]) == (400, 400, 400)
    assert "already exists" in again[1]
    assert [path.name for path in (folder / "videos").iterdir()] == ["a.mp4"]


@pytest.mark.parametrize(
    ("place", "name"),
    [
        *(("videos", name) for name in ("../a.mp4", "a/b.mp4", ".a.mp4", "-a.mp4", "a.sh", "a\x00.mp4", "", "a.mp4\n")),
        *((place, "a.mp4") for place in ("..", "/tmp", "out", "", "-videos", "videos/../..", "~", "~/v")),
    ],
)
def test_an_upload_to_a_place_outside_the_folder_is_refused(
    anna: Visitor, tmp_path: Path, place: str, name: str
) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert upload(anna, place, name, b"video")[0] == 400
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("path", ["/api/upload?folder=videos&name=a.mp4", "/api/jobs/start"])
def test_an_upload_that_breaks_off_leaves_no_traceback_and_no_file(folder: Path, out: Path, path: str) -> None:
    told: list[logging.LogRecord] = []
    listener = logging.Handler()
    listener.emit = told.append  # type: ignore[method-assign]
    with visiting(out=out, folder=folder) as anna:
        logging.getLogger("uvicorn.error").addHandler(listener)
        head = [f"POST {anna.home[:-1]}{path} HTTP/1.1", f"Host: {anna.host}", f"Cookie: {anna.cookie}"]
        head += [f"Origin: {anna.base}", "Content-Length: 1000000", "", "abc"]
        name, port = anna.host.split(":")
        with socket.create_connection((name, int(port))) as broken:
            broken.sendall("\r\n".join(head).encode())
            assert anna.json("/api/jobs") == {"jobs": []}
        assert anna.json("/api/jobs") == {"jobs": []}
    logging.getLogger("uvicorn.error").removeHandler(listener)
    assert told == []
    assert not any((folder / "videos").glob("*"))


def test_the_size_of_a_video_is_bounded(anna: Visitor, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drop_videos, "MAX_VIDEO", 1000)
    status, problem = upload(anna, "videos", "a.mp4", bytes(2000))
    assert (status, "has more than" in problem) == (400, True)
    monkeypatch.setattr(drop_videos, "MAX_VIDEO", 10**9)
    monkeypatch.setattr(drop_videos, "_LEFT_FREE", 2**62)
    assert "disk is nearly full" in upload(anna, "videos", "a.mp4", b"x")[1]
    assert list((folder / "videos").iterdir()) == []


def shell(jobs: Jobs, script: str) -> StudioJob:
    return jobs.start("shell", script, [script], "")


def state(jobs: Jobs) -> dict[str, Any]:
    return jobs.rows()[0]


def test_a_job_has_a_state_and_the_end_of_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Jobs(tmp_path, SHELL)
    shell(jobs, r"printf 'one\r10%%\r20%%\ntwo \033[1m'; pwd; exit 3")
    until(lambda: state(jobs)["state"] == "failed")
    told = state(jobs)
    assert (told["code"], told["makes"]) == (3, "")
    assert told["output"].splitlines()[0] == "20%"
    assert "\x1b" not in told["output"]
    assert str(tmp_path) in told["output"]
    monkeypatch.setattr(jobs_module, "MOST_OUTPUT", 1000)
    shell(jobs, "seq 10000")
    until(lambda: state(jobs)["state"] == "done")
    assert len(state(jobs)["output"]) <= 1000
    assert state(jobs)["output"].rstrip().endswith("10000")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"


def test_cancelling_also_ends_children_that_ignore_the_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "GRACE", 0.3)
    jobs = Jobs(tmp_path, SHELL)
    job = shell(jobs, "trap '' TERM; sleep 60 & echo $!; wait; sleep 60")
    until(lambda: state(jobs)["output"].strip().isdigit())
    child = int(state(jobs)["output"])
    assert alive(child)
    jobs.cancel(job.number)
    until(lambda: state(jobs)["state"] == "cancelled")
    until(lambda: not alive(child))


def test_the_end_of_the_studio_ends_its_jobs(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, SHELL)
    children = [shell(jobs, "sleep 60").process.pid for _ in range(MOST_RUNNING)]
    with pytest.raises(DataError, match="running already"):
        shell(jobs, "true")
    jobs.end()
    assert not any(map(alive, children))
    assert {job["state"] for job in jobs.rows()} == {"cancelled"}
    with pytest.raises(DataError):
        shell(jobs, "true")


@pytest.mark.full
@pytest.mark.parametrize("by_signal", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_no_command_outlives_the_studio(folder: Path, out: Path, by_signal: int) -> None:
    with killed_studio(by="anna", out=out, folder=folder, by_signal=by_signal) as address:
        anna = Visitor(address)
        values = {"out": "kitchen", "videos": "500"}
        anna.json("/api/jobs/start", {"step": "mini", "values": values})
        until(lambda: bool(running_below(folder)))
        pages = [threading.Thread(target=asked_until_it_ends, args=(anna,)) for _ in range(4)]
        for page in pages:
            page.start()
    until(lambda: not running_below(folder))
    for page in pages:
        page.join()


def asked_until_it_ends(visitor: Visitor) -> None:
    """A page that asks all the time, so that a signal meets a request."""
    with suppress(OSError, HTTPException):
        while True:
            visitor.json("/api/jobs")


def running_below(folder: Path) -> list[int]:
    """Processes that work in a folder."""
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [number for number in numbers if working_folder(number) == str(folder)]


def working_folder(number: int) -> str:
    try:
        return os.readlink(f"/proc/{number}/cwd")
    except OSError:
        return ""


def run_step(page: Page, step: str, values: dict[str, str], opened: str = "") -> None:
    """Fill in a form, run it, and open its output."""
    page.goto(f"{page.url.partition('#')[0]}#/make?step={step}")
    form = page.locator(f"details[open]:has-text('{values.pop('title')}')")
    for name, value in values.items():
        form.get_by_label(name, exact=False).first.fill(value)
    page.locator("details[open] .command-line:not(:empty)").wait_for()
    page.get_by_role("button", name="run", exact=True).locator("visible=true").click()
    first = page.locator(".job").first
    expect(first).to_have_attribute("data-state", "done", timeout=300_000)
    if opened:
        first.get_by_role("button", name=f"open {opened}").click()
        page.locator(".folders").wait_for(timeout=300_000)


@pytest.mark.full
def test_from_videos_that_are_dropped_to_a_report_without_a_terminal(
    chromium: Browser, axe: str, small_kitchen: Path, tmp_path: Path, out: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    workspace = open_workspace([], person="anna", out=out, folder=folder)
    size: ViewportSize = {"width": 1280, "height": 900}
    with studio_at(workspace) as address, chromium.new_context(viewport=size) as context:
        page = context.new_page()
        watched = Watched(page)
        page.goto(address)
        page.get_by_role("link", name="Start a project").click()
        video = next(small_kitchen.glob("*/video.mp4"))
        page.locator("input[type=file]").set_input_files(shutil.copy(video, tmp_path / "clip.mp4"))
        expect(page.get_by_text("videos/clip.mp4: ready")).to_be_visible()
        assert serious_faults(page, axe) == []
        page.get_by_role("button", name="run", exact=True).locator("visible=true").click()
        expect(page.locator(".job").first).to_have_attribute("data-state", "done", timeout=300_000)
        page.reload()  # jobs stay
        page.get_by_role("button", name="open project").click()
        expect(page.get_by_role("link", name="clip")).to_be_visible(timeout=300_000)
        shutil.copytree(small_kitchen, folder / "graphs")
        run_step(page, "validate", {"title": "Validate"})
        filled = {"title": "Build", "out": "data/barista", "sampling": "limit=2"}
        run_step(page, "build", filled, "data/barista")
        run_step(page, "run", {"title": "Run a model"}, "runs/oracle")
        page.get_by_role("link", name="Runs", exact=True).click()
        page.locator("table.board").wait_for()
        assert not watched.console
