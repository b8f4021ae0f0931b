"""Masks drawn in the browser: by the segmenter, zoomed in, undone, and when two people or a server are in the way."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import expect

from barista_bench.annotate.decisions import DecidedKeyframe, Decisions, accept
from barista_bench.annotate.project import Project
from tests.annotate.projects import VIDEO, with_models
from tests.studio.annotating_page import WIDTH, Annotating, Visited, area, at_frame, at_rest, drag, draw_box, press
from tests.studio.test_annotating import rectangle

pytestmark = pytest.mark.full


def test_a_box_and_clicks_ask_the_segmenter(tmp_path: Path, project: Project, annotating: Annotating) -> None:
    pytest.importorskip("transformers", reason="SAM is loaded through transformers")
    from tests.annotate.sam_checkpoints import write_checkpoint

    with_models(project, segmenter=f"sam:{write_checkpoint(tmp_path / 'sam', 'sam2')}")
    frame = min(project.video(VIDEO).asked_segments())
    with annotating(project.folder) as page:
        at_frame(page, frame)
        page.get_by_label("category of the next object").fill("coffee cup")
        press(page, "box")
        asked: list[dict[str, Any]] = []
        page.on("request", lambda sent: asked.append(sent.post_data_json) if sent.url.endswith("/segment") else None)
        drag(page, [(20, 20), (60, 60)])
        expect(page.get_by_role("button", name="points")).to_have_attribute("aria-pressed", "true", timeout=300_000)
        assert asked[-1]["points"] == []
        with page.expect_response(lambda got: got.url.endswith("/draft") and len(asked[-1]["points"]) == 2):
            drag(page, [(30, 30), (40, 40)], press=False)
    assert [round(value) for value in asked[-1]["box"]] == [20, 20, 60, 60]
    assert [(round(point["x"]), point["inside"]) for point in asked[-1]["points"]] == [(30, True), (40, True)]


def test_zoomed_in_the_brush_draws_a_pixel_and_the_frame_is_moved(project: Project, annotating: Annotating) -> None:
    frame = min(project.video(VIDEO).asked_segments())
    with annotating(project.folder) as page:
        at_frame(page, frame)
        picture = page.locator(".picture")
        box = picture.bounding_box()
        assert box
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(*middle)
        for _ in range(20):
            page.mouse.wheel(0, -300)
        expect(picture).to_have_attribute("data-zoom", "4")
        assert 4 * box["width"] / WIDTH >= 8, "pixels of the page a pixel"
        page.get_by_label("category of the next object").fill("coffee cup")
        press(page, "brush")
        page.get_by_label("brush size").fill("2")
        page.mouse.click(*middle)
        expect(page.locator(".thing", has_text="coffee cup")).to_be_visible()
        page.keyboard.down(" ")
        page.mouse.down()
        page.mouse.move(middle[0] - 40, middle[1], steps=3)
        page.mouse.up()
        page.keyboard.up(" ")
        page.mouse.click(middle[0] - 40, middle[1])  # on the same pixel again
        page.keyboard.press("0")
        expect(picture).to_have_attribute("data-zoom", "1")
        with page.expect_response("**/api/project/accept"):
            page.keyboard.press("Enter")
        at_rest(page)
    assert area(project.video(VIDEO).accepted(), frame, "coffee_cup-1") == 1


def test_a_first_decision_is_undone_and_done_again_by_keys(project: Project, annotating: Annotating) -> None:
    frame, later = sorted(project.video(VIDEO).asked_segments())[:2]
    with annotating(project.folder) as page:
        at_frame(page, frame)
        page.keyboard.press("?")
        page.get_by_role("searchbox", name="command").fill("new object")
        page.keyboard.press("Enter")
        page.keyboard.type("coffee c")
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="box", exact=True)).to_have_attribute("aria-pressed", "true")
        drag(page, [(20, 20), (60, 60)])
        expect(page.locator(".facts-list .thing", has_text="coffee cup")).to_be_visible()
        page.keyboard.press("Enter")
        at_frame(page, later)
        at_rest(page)
        page.keyboard.press("Control+z")
        expect(page.locator("#status")).to_have_text(f"undone: frame {frame}", timeout=300_000)
        at_rest(page)
        assert not project.video(VIDEO).accepted().keyframes
        page.keyboard.press("U")
        expect(page.locator("#status")).to_have_text(f"redone: frame {frame}", timeout=300_000)
        at_rest(page)
        page.keyboard.press("p")
        expect(page.locator(".facts-list small").first).to_have_text("draft")
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_have_text(f"accepted: frame {later}")
    first, second = project.video(VIDEO).accepted().keyframes
    assert (first.frame, second.frame, first.masks.keys()) == (frame, later, second.masks.keys())
    assert first.masks["coffee_cup-1"].rle == second.masks["coffee_cup-1"].rle, "copied"


def test_two_decisions_are_shown_side_by_side_and_one_of_them_is_taken(project: Project, visited: Visited) -> None:
    frame = min(project.video(VIDEO).asked_segments())
    with visited(project.folder) as watched:
        page = watched.page
        page.goto(f"{page.url.partition('#')[0]}#/project/{VIDEO}")
        at_frame(page, frame)
        draw_box(page, "coffee cup", (20, 20))
        mask = rectangle(project, 8)
        theirs = DecidedKeyframe(frame=frame, masks={"lid-1": msgspec.Raw(msgspec.json.encode(mask))})
        accept(project, Decisions(video=VIDEO, objects={"lid-1": "lid"}, keyframes=[theirs]), "ben")
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="what differs")
        expect(dialog.locator("figcaption")).to_have_text(["coffee cup", "lid"])
        dialog.get_by_role("button", name="take yours").click()
        expect(page.locator("#status")).to_have_text(f"accepted: frame {frame}")
        at_rest(page)
    (keyframe,) = project.video(VIDEO).accepted().keyframes
    assert {name: mask.by for name, mask in keyframe.masks.items()} == {"coffee_cup-1": "anna"}


def test_a_draft_that_cannot_be_saved_is_reported_and_saved_later(project: Project, visited: Visited) -> None:
    with visited(project.folder) as watched:
        page = watched.page
        page.goto(f"{page.url.partition('#')[0]}#/project/{VIDEO}")
        at_frame(page, min(project.video(VIDEO).asked_segments()))
        page.context.route("**/api/project/draft", lambda route: route.abort())
        draw_box(page, "coffee cup", (20, 20))
        expect(page.locator(".kept")).to_contain_text("not saved, trying again")
        page.context.unroute("**/api/project/draft")
        expect(page.locator(".kept")).to_have_text("saved")
    (draft,) = project.video(VIDEO).folder.glob("draft-*.json")
    assert b"coffee_cup-1" in draft.read_bytes()


def test_part_of_a_name_offers_the_categories_and_an_empty_keyframe_is_asked_about(
    project: Project, annotating: Annotating
) -> None:
    frame, later = sorted(project.video(VIDEO).asked_segments())[:2]
    question = "No masks: is the frame empty?"
    with annotating(project.folder) as page:
        at_frame(page, frame)
        page.keyboard.press("o")
        page.keyboard.type("of")
        page.keyboard.press("Enter")
        offered = page.get_by_role("group", name="categories like of").get_by_role("button")
        assert [name for name in offered.all_inner_texts() if "of" not in name] == []
        expect(page.get_by_role("button", name="coffee cup", exact=True)).to_be_visible()
        page.keyboard.press("Escape")
        page.locator("h2").first.click()
        for _ in range(2):  # a second Enter takes back the first one's request
            page.keyboard.press("Enter")
        expect(page.get_by_role("dialog", name=question)).to_have_count(0)
        at_frame(page, frame)
        assert not project.video(VIDEO).accepted().keyframes
        page.keyboard.press("o")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="coffee cup", exact=True).click()
        drag(page, [(20, 20), (60, 60)])
        expect(page.locator(".facts-list .thing", has_text="coffee cup")).to_be_visible()
        page.keyboard.press("x")
        page.keyboard.press("Enter")
        page.get_by_role("dialog", name=question).get_by_role("button", name="yes, it is empty").click()
        at_frame(page, later)
        at_rest(page)
    (keyframe,) = project.video(VIDEO).accepted().keyframes
    assert (keyframe.frame, keyframe.complete, dict(keyframe.masks)) == (frame, True, {})
