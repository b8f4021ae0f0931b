"""The studio's views before axe-core, which is had from npm."""

from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from barista_bench.annotate.decisions import DecidedKeyframe, Decisions, accept
from barista_bench.scene_graph.masks import encode_mask
from barista_bench.studio.workspace import open_workspace
from tests.annotate.projects import VIDEO, started
from tests.studio.annotating_page import HEIGHT, WIDTH, at_frame, draw_box
from tests.studio.serving import studio_at

pytestmark = pytest.mark.integration


def serious_faults(page: Page, axe: str) -> list[list[str]]:
    """[rule, impact, element] of what keeps people out."""
    page.evaluate(axe)
    faults = page.evaluate("axe.run().then(result => result.violations.map(v => [v.id, v.impact, v.nodes[0].html]))")
    return [fault for fault in faults if fault[1] in ("serious", "critical")]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_checker_of_accessibility_has_no_serious_fault_to_report(
    chromium: Browser, axe: str, small_release: Path, out: Path, scheme: Literal["light", "dark"]
) -> None:
    workspace = open_workspace([small_release], person="anna", out=out)
    with studio_at(workspace) as address, chromium.new_context(color_scheme=scheme) as context:
        page = context.new_page()
        page.goto(address)
        expect(page.get_by_role("link", name="v1", exact=True)).to_be_visible()
        assert serious_faults(page, axe) == []
        page.get_by_role("link", name="v1", exact=True).click()
        expect(page.locator(".player[data-frame]")).to_be_visible()
        page.get_by_role("searchbox").fill("left hand holds")
        page.get_by_role("button", name="search").click()
        expect(page.locator(".results li").first).to_be_visible()
        for tab in ("This frame", "Graph", "Questions"):
            page.get_by_role("button", name=tab).click()
            assert serious_faults(page, axe) == [], tab
        page.goto(page.url.partition("#")[0] + "#/search?text=left+hand")
        expect(page.get_by_role("status")).to_contain_text("6 of 6 videos")
        assert serious_faults(page, axe) == []


def test_home_make_and_a_conflict_in_the_dark_have_no_serious_fault(
    chromium: Browser, axe: str, small_kitchen: Path, small_release: Path, tmp_path: Path, out: Path
) -> None:
    project = started(small_kitchen, tmp_path / "work")
    frame = min(project.video(VIDEO).asked_segments())
    paths = [project.folder, small_release]
    workspace = open_workspace(paths, person="anna", out=out, folder=tmp_path / "work")
    with studio_at(workspace) as address, chromium.new_context(color_scheme="dark") as context:
        page = context.new_page()
        page.goto(address)
        expect(page.get_by_text("annotate 16 keyframes")).to_be_visible()
        assert serious_faults(page, axe) == []
        page.get_by_role("link", name="Make", exact=True).click()
        expect(page.get_by_role("button", name="run", exact=True).locator("visible=true")).to_be_visible()
        assert serious_faults(page, axe) == []
        page.goto(f"{page.url.partition('#')[0]}#/project/{VIDEO}")
        at_frame(page, frame)
        draw_box(page, "coffee cup", (20, 20))
        whole = msgspec.Raw(msgspec.json.encode(encode_mask(np.ones((HEIGHT, WIDTH), dtype=bool))))
        theirs = DecidedKeyframe(frame=frame, masks={"lid-1": whole})
        accept(project, Decisions(video=VIDEO, objects={"lid-1": "lid"}, keyframes=[theirs]), "ben")
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog", name="what differs").locator("figcaption").last).to_have_text("lid")
        assert serious_faults(page, axe) == []
