"""Annotating, reviewing and adjudicating in the browser, by mouse and by keyboard."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect
from typer.testing import CliRunner

from barista_bench.annotate.project import Project, open_project, start_project
from barista_bench.annotate.records import SignalFile
from barista_bench.cli.commands import app
from barista_bench.scene_graph import SceneGraph
from tests.annotate.projects import VIDEO, only, started, tracked
from tests.studio.annotating_page import (
    HOSTILE,
    Annotating,
    area,
    at_frame,
    at_rest,
    drag,
    drag_range,
    draw_box,
    page_of,
    press,
)
from tests.studio.test_accessibility import serious_faults
from tests.studio.test_annotating import second_annotator

pytestmark = pytest.mark.full


def test_a_whole_annotation_by_mouse_becomes_a_release_that_validates(
    small_kitchen: Path, tmp_path: Path, annotating: Annotating
) -> None:
    project = start_project(tmp_path / "project", only(small_kitchen, tmp_path / "videos"))
    with annotating(project.folder) as page:
        expect(page.locator(".next")).to_contain_text("drag over each stretch")
        drag_range(page, "hands touch things", 0.1, 0.4)
        expect(page.locator(".next")).to_contain_text("Next keyframe")
        asked = sorted(project.video(VIDEO).asked_segments())
        for number, frame in enumerate(asked):
            if number == 0:
                press(page, re.compile("Next keyframe"))
            at_frame(page, frame)
            for category in ("coffee cup", "left hand"):
                offer = page.get_by_role("button", name=f"accept suggestion {category} of carried")
                if offer.count():
                    offer.first.click()
                    expect(page.locator(".facts-list .thing", has_text=category)).to_be_visible()
                else:
                    draw_box(page, category, (20, 20) if category == "coffee cup" else (60, 30))
            press(page, f"Accept keyframe {frame}")
            expect(page.locator("#status")).to_have_text(f"accepted: frame {frame}")
            at_rest(page)
        expect(page.locator(".next")).to_contain_text(re.compile("doubtful frames? (is|are) left|Ready to export"))
        press(page, "Statements")
        page.get_by_label("name").fill("make coffee")
        press(page, "add here")
        expect(page.locator("#status")).to_contain_text("drag its ends")
        at_rest(page)
        bar = page.get_by_role("button", name=re.compile("^make coffee: "))
        bar.scroll_into_view_if_needed()
        before = bar.bounding_box()
        assert before
        page.mouse.move(before["x"] + before["width"] - 2, before["y"] + 5)
        page.mouse.down()
        page.mouse.move(before["x"] - 300, before["y"] + 5, steps=3)
        page.mouse.move(before["x"] + 20, before["y"] + 5, steps=3)
        page.mouse.up()
        expect(page.locator("#status")).to_have_text("accepted: statements")
        at_rest(page)
        page.get_by_label("what", exact=True).select_option(label="state: full")
        press(page, "add here")
        expect(page.get_by_role("button", name=re.compile("state: full: .*drag"))).to_be_attached()
        at_rest(page)
        look = page.get_by_role("button", name=re.compile("Check frame"))
        while look.count():
            frame = doubtful(page)
            look.click()
            at_frame(page, frame)
            page.keyboard.press("y")
            expect(page.get_by_role("button", name=f"Check frame {frame}", exact=True)).to_have_count(0)
        command = shlex.split(page.locator(".next code").inner_text())
    assert command[:3] == ["barista-bench", "annotate", "export"]
    graphs = tmp_path / "graphs"
    for words in ([*command[1:-1], str(graphs)], ["validate", str(graphs), "--no-progress"]):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
    graph = SceneGraph(graphs)[VIDEO]
    assert sorted(item.category for item in graph.objects_at(asked[0])) == ["coffee cup", "left hand"]
    assert [(item.type, item.value) for item in graph.attributes()] == [("state", "full")]
    (activity,) = graph.activities()
    assert activity.name == "make coffee"
    assert {mask.by for k in project.video(VIDEO).accepted().keyframes for mask in k.masks.values()} == {"anna"}


def test_polygon_brush_and_eraser_change_the_chosen_mask_and_undo_takes_it_back(
    small_kitchen: Path, tmp_path: Path, annotating: Annotating
) -> None:
    project = started(small_kitchen, tmp_path, propagator="flow")
    frame, later = sorted(project.video(VIDEO).asked_segments())[:2]
    with annotating(project.folder) as page:
        at_frame(page, frame)
        page.get_by_label("category of the next object").fill("no such thing")
        press(page, "polygon")
        drag(page, [(10, 10), (40, 10), (40, 40), (10, 40)], press=False)
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("First name a category")
        page.get_by_label("category of the next object").fill("coffee cup")
        press(page, "polygon")
        press(page, "snap")
        drag(page, [(10, 10), (40, 10), (40, 40), (10, 40)], press=False)
        page.keyboard.press("Enter")
        expect(page.locator(".thing", has_text="coffee cup")).to_be_visible()
        press(page, "eraser")
        drag(page, [(10, 25), (40, 25)])
        expect(page.locator(".facts-list small").first).to_have_text("draft")
        page.keyboard.press("Enter")
        at_frame(page, later)
        at_rest(page)
        erased = area(project.video(VIDEO).accepted(), frame, "coffee_cup-1")
        assert 600 < erased < 900
        page.get_by_role("button", name=re.compile(f"^annotated: .*frames {frame} to")).click()
        at_frame(page, frame)
        expect(page.locator(".thing[aria-pressed=true]")).to_have_text("coffee cup")
        press(page, "brush")
        drag(page, [(70, 25), (90, 25)])
        with page.expect_response("**/api/project/accept"):
            press(page, f"Accept keyframe {frame}")
        assert area(project.video(VIDEO).accepted(), frame, "coffee_cup-1") > erased
        expect(page.locator(".facts-list small").first).not_to_have_text("draft")  # the page has read the reply
        at_rest(page)
        page.keyboard.press("u")
        expect(page.locator("#status")).to_have_text(f"undone: frame {frame}")
        assert area(project.video(VIDEO).accepted(), frame, "coffee_cup-1") == erased


def test_contacts_are_made_and_removed_without_a_mouse(project: Project, annotating: Annotating) -> None:
    with annotating(project.folder, route=f"#/project/{VIDEO}?frame=170") as page:
        at_frame(page, 170)
        press(page, "Statements")
        page.get_by_label("what", exact=True).select_option(label="hands touch things")
        press(page, "add here")
        page.get_by_role("button", name=re.compile("things: .*frames 170 to 229")).focus()
        page.keyboard.press("Shift+ArrowRight")
        at_frame(page, 200)
        page.get_by_role("button", name=re.compile("things: .*frames 170 to")).focus()
        page.keyboard.press("]")
        expect(page.get_by_role("button", name=re.compile("things: .*frames 170 to 200"))).to_be_visible()
        at_rest(page)
        before = sorted(project.video(VIDEO).asked_segments())
        page.get_by_role("button", name=re.compile("frames 110 to 149")).focus()
        page.keyboard.press("Delete")
        expect(page.get_by_role("button", name=re.compile("frames 110 to 149"))).to_have_count(0)
        at_rest(page)
        assert sorted(project.video(VIDEO).asked_segments()) != before
        page.keyboard.press("u")
        expect(page.locator("#status")).to_have_text("undone: contacts")
        at_rest(page)
    assert sorted(project.video(VIDEO).asked_segments()) == before
    confidence = project.video(VIDEO).read(SignalFile).confidence
    assert [at for at, value in enumerate(confidence) if value] == [*range(20, 60), *range(110, 150), *range(170, 201)]


def test_dragging_a_bar_leaves_the_frame_unchanged(project: Project, annotating: Annotating) -> None:
    with annotating(project.folder, route=f"#/project/{VIDEO}?frame=90") as page:
        at_frame(page, 90)
        bar = page.get_by_role("button", name=re.compile("things: .*frames 110 to 149"))
        bar.scroll_into_view_if_needed()
        box = bar.bounding_box()
        assert box
        across, down = box["x"] + box["width"] / 2, box["y"] + 5
        page.mouse.move(across, down)
        page.mouse.down()
        page.mouse.move(across + box["width"] / 4, down, steps=3)
        page.mouse.up()
        expect(page.get_by_role("button", name=re.compile("things: .*frames 120 to 159"))).to_be_visible()
        at_rest(page)
        at_frame(page, 90)


WITHOUT_PICTURE = """elements => elements
  .filter(element => getComputedStyle(element).getPropertyValue("--icon") === "").map(element => element.outerHTML)"""


@pytest.mark.integration
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("route", [f"#/project/{VIDEO}", "#/agreement"])
def test_a_checker_of_accessibility_has_no_serious_fault_to_report(
    axe: str, small_kitchen: Path, tmp_path: Path, scheme: Literal["light", "dark"], route: str, annotating: Annotating
) -> None:
    video = tracked(small_kitchen, tmp_path)
    other = second_annotator(small_kitchen, tmp_path / "b", "bob")
    with annotating(video.project.folder, route=route, compared=[other.folder]) as page:
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("tbody td, .facts-list .thing").first).to_be_visible()
        for panel in ("Frame", "Doubtful", "Statements", "Edits") if "project" in route else ("",):
            if panel:
                press(page, re.compile(panel))
                expect(page.locator(".content > *").first).to_be_visible()
                if panel == "Frame":
                    page.locator(".facts-list .thing").first.click()
                    press(page, "brush")
            assert serious_faults(page, axe) == []
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
        assert serious_faults(page, axe) == []
        assert page.locator("[data-icon]").evaluate_all(WITHOUT_PICTURE) == []


def test_objects_are_renamed_split_merged_and_edits_undone(
    small_kitchen: Path, tmp_path: Path, annotating: Annotating
) -> None:
    video = tracked(small_kitchen, tmp_path)
    frame = sorted(video.asked_segments())[-1]
    with annotating(video.project.folder, route=f"#/project/{VIDEO}?frame={frame}") as page:
        at_frame(page, frame)
        page.locator(".facts-list .thing").first.click()
        name = page.locator(".thing[aria-pressed=true]").inner_text()
        page.get_by_label("category of the chosen object").fill("tamper")
        press(page, "rename")
        expect(page.locator(".thing", has_text="tamper")).to_be_visible(timeout=20_000)
        press(page, "another object from here on")
        expect(page.locator(".thing", has_text="tamper 2")).to_be_visible(timeout=20_000)
        press(page, "Edits")
        for line in (2, 1):
            press(page, f"undo edit {line}")
            expect(page.get_by_role("button", name=f"undo edit {line}", exact=True)).to_have_count(0)
        press(page, "Frame")
        expect(page.locator(".facts-list .thing").first).to_have_text(name)
        at_rest(page)
    assert [type(signed.edit).__name__ for signed in video.edits()] == ["Rename", "Split", "Undo", "Undo"]


def doubtful(page: Page) -> int:
    """The frame that is to be looked at next."""
    return int(page.get_by_role("button", name=re.compile("Check frame")).inner_text().split()[-1])


@contextmanager
def studio_process(project: Project, cache: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command itself, which ends with the block if it has not been killed."""
    words = ["-m", "barista_bench.cli", "studio", str(project.folder), "--by", "anna", "--no-browser"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_killed_review_continues_with_nothing_lost(chromium: Browser, small_kitchen: Path, tmp_path: Path) -> None:
    video = tracked(small_kitchen, tmp_path)
    with studio_process(video.project, tmp_path / "cache") as (process, address), page_of(chromium, address) as page:
        left = page.locator(".next span")
        expect(left).to_contain_text("doubtful frame")
        count = int(left.inner_text().split()[0])
        press(page, re.compile("Check frame"))
        for number in range(2):
            at_frame(page, doubtful(page))
            page.keyboard.press("y")
            expect(left).to_have_text(re.compile(f"^{count - number - 1} doubtful frame"))
        frame = doubtful(page)
        at_frame(page, frame)
        page.locator(".facts-list .thing").first.click()
        press(page, "brush")
        with page.expect_response("**/api/project/draft"):
            drag(page, [(30, 30), (50, 30)])
        process.send_signal(signal.SIGKILL)
        process.wait()
    accepted = video.accepted()
    with ExitStack() as stack:
        _, address = stack.enter_context(studio_process(video.project, tmp_path / "cache"))
        page = stack.enter_context(page_of(chromium, address, f"#/project/{VIDEO}?frame={frame}"))
        expect(page.locator("#status")).to_have_text("Your draft of 1 frames was restored.")
        expect(page.locator(".next span")).to_have_text(re.compile(f"^{count - 2} doubtful frame"))
        press(page, f"Accept correction of frame {frame}")
        expect(page.locator("#status")).to_have_text(f"accepted: frame {frame}")
        at_rest(page)
    added = [keyframe for keyframe in video.accepted().keyframes if keyframe not in accepted.keyframes]
    assert [(keyframe.frame, keyframe.complete, len(keyframe.masks)) for keyframe in added] == [(frame, False, 1)]
    (line,) = (line for line in video.tracks() if line.frame == frame)
    assert {mask.rle.counts for mask in added[0].masks.values()} <= {mask.counts for mask in line.masks.values()}


def test_a_lead_decides_where_two_annotators_differ(
    small_kitchen: Path, project: Project, tmp_path: Path, annotating: Annotating
) -> None:
    first = second_annotator(small_kitchen, tmp_path / "a", "ann")
    second = second_annotator(small_kitchen, tmp_path / HOSTILE, "bob", fewer=True)
    with annotating(project.folder, route="#/agreement", person="lead", compared=[first.folder, second.folder]) as page:
        row = page.locator("tbody tr")
        expect(row).to_contain_text(VIDEO)
        frame = min(project.video(VIDEO).asked_segments())
        row.get_by_role("link").first.click()
        at_frame(page, frame)
        drawn = {by: p.video(VIDEO).accepted().keyframes[0].masks for by, p in (("ann", first), ("bob", second))}
        offers = {
            "ann": page.get_by_role("button", name=re.compile("^accept suggestion .* of a.project")),
            "bob": page.get_by_role("button", name=re.compile("^accept suggestion .* of <img .*>.project")),
        }
        for by, masks in drawn.items():
            expect(offers[by]).to_have_count(len(masks))
        for number in range(len(drawn["ann"])):
            offers["ann"].nth(number).click()
            expect(page.locator(".facts-list .thing")).to_have_count(number + 1)
        offers["bob"].first.click()
        expect(page.locator(".facts-list .thing")).to_have_count(len(drawn["ann"]))
        press(page, f"Accept keyframe {frame}")
        expect(page.locator("#status")).to_have_text(f"accepted: frame {frame}")
    (keyframe,) = open_project(project.folder).video(VIDEO).accepted().keyframes
    assert {name: mask.rle for name, mask in keyframe.masks.items()} == {n: m.rle for n, m in drawn["ann"].items()}
    assert {mask.by for mask in keyframe.masks.values()} == {"lead"}
