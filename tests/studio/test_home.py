"""The home page: the progress of each video, its picture, and its open work."""

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image
from playwright.sync_api import expect

from barista_bench.annotate.project import Project
from barista_bench.annotate.records import AcceptedFile, ReviewFile, write_record
from barista_bench.data.folder import build
from barista_bench.studio import posters
from tests.annotate.projects import VIDEO, annotated, propagated
from tests.studio.annotating_page import Visited
from tests.studio.serving import Visitor, visiting
from tests.studio.test_accessibility import serious_faults


def card(visitor: Visitor) -> dict[str, Any]:
    (shown,) = visitor.json("/api/home")["cards"]
    return shown


def test_a_card_says_how_far_a_video_is_as_its_files_change(small_kitchen: Path, project: Project, out: Path) -> None:
    video = project.video(VIDEO)
    asked = len(video.asked_segments())
    with visiting(project.folder, out=out) as anna:
        first = card(anna)
        annotated(small_kitchen, project, by="ben")
        drawn = card(anna)
        propagated(video)
        tracks = card(anna)
        doubts = [doubt.frame for doubt in video.read(ReviewFile).frames]
        draft = {"decisions": {"video": VIDEO}, "looked_at": doubts, "revision": 1, "page": "p"}
        anna.json("/api/project/draft", draft)
        seen = card(anna)
    assert (first["next"], first["asked"], first["done"], first["by"]) == ("keyframes", asked, 0, ["anna"])
    assert first["seconds"] == pytest.approx(video.source.frames / video.source.fps)
    accepted = video.accepted()
    assert (drawn["next"], drawn["done"], drawn["objects"]) == ("stages", asked, len(accepted.objects))
    assert drawn["masks"] == sum(len(keyframe.masks) for keyframe in accepted.keyframes) > 0
    layers = video.accepted_layers()
    assert drawn["layers"] == len(layers.claims) + len(layers.activities) + len(layers.process_steps) > 0
    assert drawn["by"] == ["anna", "ben"]
    assert tracks["doubtful"] == len(doubts)
    assert tracks["next"] == ("doubtful" if doubts else "export")
    assert (seen["next"], seen["doubtful"]) == ("export", 0)


def test_an_unreadable_file_costs_only_its_card(project: Project, small_release: Path, out: Path) -> None:
    project.video(VIDEO).file(AcceptedFile).write_text("{")
    with visiting(project.folder, small_release, out=out) as anna:
        broken, *others = anna.json("/api/home")["cards"]
    assert broken["next"] == "problem"
    assert "accepted.json" in broken["problem"]
    assert [(other["kind"], other["next"]) for other in others] == [("graph", "look")] * 6


def test_the_home_page_counts_the_videos_of_open_folders(project: Project, small_release: Path, out: Path) -> None:
    with visiting(project.folder, small_release, out=out) as anna:
        folders = {folder["kind"]: folder["counts"] for folder in anna.json("/api/home")["folders"]}
    assert folders == {"project": {"video": 1, "lost video": 0}, "release": {"video": 6, "problem": 0}}


def test_of_a_dataset_the_questions_are_counted_and_no_rows_of_the_graphs_tables(
    small_release: Path, tmp_path: Path, out: Path
) -> None:
    configs, sampling = ["relations", "graph_frames"], {"frame_step": 20}
    dataset = build(small_release, tmp_path / "data", configs=configs, sampling=sampling, cache=False).folder
    with visiting(dataset, out=out) as anna:
        (folder,) = anna.json("/api/home")["folders"]
    questions = (dataset / "frozen" / "relations.jsonl").read_text().splitlines()
    assert (dataset / "graph_frames").is_dir()
    assert folder["counts"] == {"set": 1, "question": len(questions)}


def test_a_poster_is_small_and_kept_until_the_video_is_another(
    project: Project, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    video, path = project.video(VIDEO), f"/media/project/{VIDEO}/poster.jpg"
    with visiting(project.folder, out=out) as anna:
        _, content, headers = anna.answer(path)
        again = anna.answer(path, If_None_Match=headers["etag"])[0]
        monkeypatch.setattr(posters, "open_video", None)  # it is not opened again
        assert anna.answer(path)[1] == content
        monkeypatch.undo()
        video.path.write_bytes(b"no video")
        status, problem, _ = anna.answer(path)
    picture = Image.open(io.BytesIO(content))
    assert picture.width <= posters.POSTER_WIDTH
    assert picture.width / picture.height == pytest.approx(video.source.width / video.source.height, rel=0.02)
    assert again == 304
    assert (status, b"Fix" in problem) == (404, True)


@pytest.mark.full
def test_cards_are_found_filtered_and_sorted_and_the_way_back_leads_to_the_same(
    axe: str, project: Project, small_release: Path, visited: Visited
) -> None:
    with visited(project.folder, small_release) as watched:
        page = watched.page
        cards = page.locator("article")
        expect(cards).to_have_count(7)
        assert serious_faults(page, axe) == []
        page.get_by_label("show").select_option("with keyframes to annotate")
        expect(cards).to_have_count(1)
        page.get_by_label("find").fill("nobody")
        expect(page.get_by_text("No video matches")).to_be_visible()
        page.get_by_label("find").fill("ANNA")
        page.get_by_role("link", name=VIDEO).click()
        page.locator(".player[data-frame]").wait_for()
        page.go_back()
        expect(cards).to_have_count(1)
        page.get_by_label("show").select_option("all videos")
        page.get_by_label("find").fill("")
        page.get_by_label("sort by").select_option("next step")
        expect(cards.first).to_contain_text("annotate")
        assert not [text for text in watched.console if "404" not in text]  # the release has no videos to show


@pytest.mark.full
def test_a_card_counts_the_masks_and_doubtful_frames_that_are_left(
    small_kitchen: Path, project: Project, visited: Visited
) -> None:
    annotated(small_kitchen, project)
    video = project.video(VIDEO)
    propagated(video)
    accepted = video.accepted()
    kept = accepted.keyframes[: len(accepted.keyframes) // 2]
    write_record(video.file(AcceptedFile), msgspec.structs.replace(accepted, keyframes=kept))
    per_keyframe = sum(len(keyframe.masks) for keyframe in kept) / len(kept)
    masks = round((len(accepted.keyframes) - len(kept)) * per_keyframe)
    doubtful = len(video.read(ReviewFile).frames)
    assert masks > 1
    with visited(project.folder) as watched:
        to_go = f"about {masks} masks, {doubtful} doubtful frame{'s' * (doubtful != 1)} to go"
        expect(watched.page.locator("article")).to_contain_text(to_go)
