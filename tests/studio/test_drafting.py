"""A user finishes a domain file in the page, beside pictures; the video's page lists facts that would allow more
questions."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from barista_bench.annotate.project import Project
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import load_domain
from barista_bench.scene_graph.domain_draft import draft_domain
from barista_bench.scene_graph.graph_words import survey_words
from tests.annotate.projects import VIDEO
from tests.studio.annotating_page import HOSTILE, Annotating, Visited, press
from tests.studio.serving import Visitor, visiting
from tests.studio.test_accessibility import serious_faults


@pytest.fixture
def review(generated: Callable[[str], Path], tmp_path: Path) -> Path:
    """A review file with the file of missing facts beside it; one annotation has a hostile name."""
    made = generated("handyvqa").parent
    folder = tmp_path / "made"
    folder.mkdir()
    for name in ("review.jsonl", "handyvqa.items.jsonl"):
        shutil.copy(made / name, folder / name)
    missing = json.loads((made / "missing.json").read_text())
    assert missing["annotations"]
    of_project = {"video_id": VIDEO, "work": HOSTILE, "frames": [*range(12)], "items": 3, "subtasks": {"egocot AOG": 3}}
    missing["annotations"].append(of_project)
    (folder / "missing.json").write_text(json.dumps(missing))
    return folder / "review.jsonl"


def lines_of(visitor: Visitor) -> list[dict[str, object]]:
    while True:
        state = visitor.json("/api/draft")
        assert state["state"] in ("waiting", "running", "done"), state
        if state["state"] == "done":
            return list(state["lines"])


def test_the_proposals_equal_the_drafts_and_a_kept_draft_is_shown_again(small_release: Path, out: Path) -> None:
    graph = SceneGraph(small_release)
    words = survey_words(graph)
    with visiting(small_release, out=out) as visitor:
        lines = lines_of(visitor)
        kept = [f"{line['text']}  # {line['note']}" if line["note"] else line["text"] for line in lines]
        assert kept == draft_domain(words, graph.root.resolve().name).splitlines()
        proposed = [line for line in lines if line["note"]]
        assert proposed
        for line in proposed:
            assert line["count"]
            for place in line["places"]:
                assert 0 <= place["frame"] < graph[place["video_id"]].frame_count
        named = [f"name: mine {HOSTILE}" if str(line).startswith("name:") else line for line in kept]
        visitor.json("/api/draft/keep", {"lines": named})
        assert load_domain(out / "domain.yaml").name == f"mine {HOSTILE}"
        again = lines_of(visitor)
        assert [line["places"] for line in again if line["note"]] == [line["places"] for line in proposed]
        assert f"name: mine {HOSTILE}" in [line["text"] for line in again]


BROKEN = (["version: 2"], ["categories: ["], ["version: 1", "places: 3"], ["x" * 1000], ["a\u0000b"], ["&a [*a, *a]"])


def test_a_text_that_is_no_domain_file_is_refused_and_the_kept_one_stays(small_release: Path, out: Path) -> None:
    with visiting(small_release, out=out) as visitor:
        kept = [str(line["text"]) for line in lines_of(visitor)]
        visitor.json("/api/draft/keep", {"lines": kept})
        before = (out / "domain.yaml").read_bytes()
        for lines in BROKEN:
            assert "Fix" in visitor.refusal("/api/draft/keep", {"lines": lines}), lines
        assert visitor.answer("/api/draft/keep", {"lines": kept, "path": "/etc/passwd"})[0] == 400
    assert (out / "domain.yaml").read_bytes() == before


def test_without_a_release_there_is_nothing_to_propose(review: Path, out: Path) -> None:
    with visiting(review, out=out) as visitor:
        visitor.json("/api/draft")
        state = visitor.json("/api/draft")
        while state["state"] in ("waiting", "running"):
            state = visitor.json("/api/draft")
    assert (state["state"], "Fix" in state["problem"]) == ("failed", True)


def test_the_most_useful_missing_facts_of_a_video_come_first(review: Path, small_release: Path, out: Path) -> None:
    written = json.loads((review.parent / "missing.json").read_text())["annotations"]
    video_id = written[0]["video_id"]
    with visiting(review, out=out) as visitor:
        told = visitor.json(f"/api/missing?video={video_id}")
        assert told["is_known"]
        rows = [row for row in written if row["video_id"] == video_id]
        assert told["annotations"] == sorted(rows, key=lambda row: -row["items"])
        assert visitor.json("/api/missing?video=other") == {"is_known": True, "annotations": []}
    with visiting(small_release, out=out) as visitor:
        assert visitor.json(f"/api/missing?video={video_id}") == {"is_known": False, "annotations": []}


@pytest.mark.full
def test_a_person_finishes_a_draft_beside_its_pictures(
    axe: str, small_kitchen: Path, out: Path, annotating: Annotating
) -> None:
    with annotating(small_kitchen, route="#/words") as page:
        grasp = page.locator("li.proposed", has=page.locator('input.draft-line[value*="grasp: grasping"]'))
        expect(grasp.locator(".count")).to_have_text(re.compile(r"^\d+ ×$"))
        picture = grasp.locator("img").first
        picture.scroll_into_view_if_needed()
        expect(picture).to_have_js_property("complete", True)
        assert picture.evaluate("image => image.naturalWidth") > 0
        grasp.locator("input.draft-line").fill("      grasp: taking hold of")
        grasp.get_by_role("button", name="add below").click()
        grasp.locator("xpath=following-sibling::li[1]").locator("input").fill("      saute: sauteing")
        cut = page.locator("li.proposed", has=page.locator('input.draft-line[value^="  - "]')).first
        left_out = cut.locator("input.draft-line").input_value()
        cut.get_by_role("button", name="leave out").click()
        press(page, "keep")
        expect(page.locator("#status")).to_contain_text("kept in")
        assert serious_faults(page, axe) == []
        doing = load_domain(out / "domain.yaml").families["handyvqa"]["doing"]
        assert (doing["grasp"], doing["saute"]) == ("taking hold of", "sauteing")
        assert left_out not in (out / "domain.yaml").read_text()
        grasp.locator("a").first.click()
        expect(page.locator(".player[data-frame]")).to_be_visible()


@pytest.mark.full
def test_lines_are_in_sections_that_explain_their_purpose(small_kitchen: Path, out: Path, visited: Visited) -> None:
    text = draft_domain(survey_words(SceneGraph(small_kitchen)), small_kitchen.resolve().name)
    with visited(small_kitchen) as watched:
        page = watched.page
        page.get_by_role("link", name="Words").click()
        hands = page.get_by_role("region", name="Hands and things")
        expect(hands).to_contain_text("Relations between hands and things")
        expect(hands.locator('input.draft-line[value^="  holds:"]')).to_be_visible()
        expect(page.get_by_role("region", name="EgoCoT-Bench").locator("li.proposed").first).to_be_visible()
        comments = [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")]
        for comment in comments:
            expect(page.locator("section .note", has_text=comment)).to_be_visible()
        assert page.locator("input[value^='#']:visible").count() == 0
        press(page, "keep")
        expect(page.locator("#status")).to_contain_text("kept in")
    assert (out / "domain.yaml").read_text() == text


@pytest.mark.full
def test_an_error_of_the_file_is_shown_beside_its_line(small_release: Path, out: Path, visited: Visited) -> None:
    with visited(small_release) as watched:
        page = watched.page
        page.get_by_role("link", name="Words").click()
        page.locator('input.draft-line[value^="version"]').fill("version: 7")
        press(page, "keep")
        expect(page.get_by_role("alert")).to_contain_text("Fix")
        assert not (out / "domain.yaml").exists()
        page.locator('input.draft-line[value^="version"]').fill("version: 1")
        press(page, "keep")
        expect(page.locator("#status")).to_contain_text("kept in")
        expect(page.get_by_role("alert")).to_be_hidden()
        assert load_domain(out / "domain.yaml").version == 1


@pytest.mark.full
def test_an_annotator_sees_the_most_useful_missing_annotations_and_jumps_to_them(
    axe: str, review: Path, project: Project, annotating: Annotating
) -> None:
    with annotating(project.folder, review) as page:
        press(page, "Missing")
        panel = page.get_by_role("region", name="annotation")
        expect(panel).to_contain_text(f"{HOSTILE}: up to 3 more questions")
        expect(panel).to_contain_text("3 × egocot AOG")
        expect(panel).to_contain_text("and 4 more")
        panel.get_by_role("button", name="frame 7", exact=True).click()
        expect(page.locator('.player[data-frame="7"]')).to_be_visible()
        assert serious_faults(page, axe) == []
