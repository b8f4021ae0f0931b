"""Looking at a release in the browser: exact frames, the graph, timelines, search, questions."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from barista_bench.api import evaluate, load_results
from barista_bench.studio import footage
from tests.releases import document, write_release
from tests.reporting.browser import Watched
from tests.studio.annotating_page import Visited
from tests.studio.serving import painted_release, visiting
from tests.video_samples import BITS, BLOCK, WIDTH

pytestmark = pytest.mark.full
FRAMES = 120


def _uneven(count: int) -> list[int]:
    steps = random.Random(1).choices((10, 20, 35, 60), k=count)
    return [sum(steps[:number]) for number in range(count)]


# A canvas is drawn before the browser paints next: the second callback finds the picture that a person sees.
READ = f"""async () => {{
  for (let turn = 0; turn < 2; turn += 1) await new Promise(requestAnimationFrame);
  const canvas = document.querySelector(".picture canvas");
  const across = canvas.width / {WIDTH};
  const row = canvas.getContext("2d").getImageData(0, Math.round({BLOCK // 2} * across), canvas.width, 1).data;
  let index = 0;
  for (let bit = 0; bit < {BITS}; bit += 1) {{
    index = index * 2 + (row[4 * Math.round((bit + 0.5) * {BLOCK} * across)] > 128 ? 1 : 0);
  }}
  return index;
}}"""


def _go(page: Page, frame: int) -> int:
    """Ask for a frame by the slider; the index painted into the pixels that are then shown."""
    slider = page.get_by_role("slider", name="frame")
    slider.evaluate("(field, value) => { field.value = value; field.dispatchEvent(new Event('input')); }", frame)
    expect(page.locator(f'.player[data-frame="{frame}"]')).to_be_visible()
    return int(page.evaluate(READ))


@pytest.mark.parametrize("ticks", [None, _uneven(FRAMES)], ids=["even times", "uneven times"])
def test_every_frame_shown_is_the_frame_asked_for(
    visited: Visited, tmp_path: Path, ticks: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with visited(painted_release(tmp_path / "release", FRAMES, ticks=ticks)) as watched:
        page = watched.page
        page.get_by_role("link", name="clip").click()
        wanted = [*random.Random(0).sample(range(FRAMES), 40), *range(30, 45), *range(45, 30, -1), 0, FRAMES - 1]
        expect(page.locator(".player[data-frame]")).to_be_visible()
        assert [_go(page, frame) for frame in wanted[:10]] == wanted[:10]  # single frames, perhaps
        expect(page.locator(".player[data-ready]")).to_be_visible()
        stills: list[str] = []
        page.on("request", lambda request: stills.append(request.url) if request.url.endswith(".jpg") else None)
        assert [_go(page, frame) for frame in wanted] == wanted
        assert not stills, "the copy shows every frame"


def test_playing_continues_in_order_and_stops_on_a_frame(visited: Visited, tmp_path: Path) -> None:
    with visited(painted_release(tmp_path / "release", FRAMES)) as watched:
        page = watched.page
        page.get_by_role("link", name="clip").click()
        expect(page.locator(".player[data-ready]")).to_be_visible()
        page.get_by_role("button", name="play").click()
        page.wait_for_timeout(800)
        page.get_by_role("button", name="pause").click()
        page.wait_for_timeout(300)
        stopped = int(page.locator(".player").get_attribute("data-frame") or 0)
        assert 0 < stopped < FRAMES
        assert page.evaluate(READ) == stopped


@pytest.fixture
def explored(visited: Visited, small_release: Path) -> Iterator[Watched]:
    with visited(small_release) as watched:
        watched.page.get_by_role("link", name="v1", exact=True).click()
        expect(watched.page.locator(".player[data-frame]")).to_be_visible()
        yield watched
        scheme, host = watched.page.url.split("/")[:3:2]
        assert all(url.startswith((f"{scheme}//{host}/", "blob:")) for url in watched.requests), watched.requests
        assert not watched.console


def test_the_facts_of_the_graph_at_a_second_are_read_in_words(explored: Watched) -> None:
    page = explored.page
    page.get_by_label("second").fill("0.5")
    page.get_by_role("button", name="go", exact=True).click()
    expect(page.locator('.player[data-frame="15"]')).to_be_visible()
    said = page.get_by_label("scene graph")
    for text in ("left hand", "right hand", "coffee cup", "holds"):
        expect(said).to_contain_text(text)


def test_a_search_leads_to_every_moment_and_marks_its_objects(explored: Watched) -> None:
    page = explored.page
    page.get_by_role("searchbox").fill("right hand hold cup")
    page.get_by_role("button", name="search").click()
    moments = page.locator(".results .moments li")
    expect(moments.first).to_contain_text("right hand holds coffee cup")
    moments.first.get_by_role("button").click()
    expect(page.locator(".thing[aria-pressed=true]").first).to_be_visible()


def test_the_search_of_all_videos_shows_pictures_and_seconds(visited: Visited, small_kitchen: Path) -> None:
    with visited(small_kitchen) as watched:
        page = watched.page
        page.goto(page.url.partition("#")[0] + "#/search?text=left+hand+holds")
        found = page.locator("main .moments li")
        expect(found.first).to_contain_text(re.compile(r", \d+\.\d\d to \d+\.\d\d s, frames \d+ to \d+"))
        expect(found.first.locator("img")).to_have_js_property("complete", True)
        assert found.first.locator("img").evaluate("image => image.naturalWidth") > 0
        assert not watched.console


def test_without_a_video_the_search_names_frames(tmp_path: Path, out: Path) -> None:
    write_release(tmp_path, "clip", document(), video=False)
    with visiting(tmp_path, out=out) as anna:
        text = anna.json("/api/video?video=clip")["rows"][0]["text"]
        result = anna.json(f"/api/search?video=clip&text={quote(text)}")
    assert (bool(result["rows"]), result["seconds"]) == (True, {})


def test_a_models_answer_is_beside_the_reference(
    asked_data: Path, small_kitchen: Path, tmp_path: Path, visited: Visited
) -> None:
    runs = tmp_path / "runs"
    for model in ("oracle", "chance"):
        evaluate(asked_data, model, task="activity", repetitions=2, limit=3, out=runs / model)
    run = load_results(runs).samples
    example = run["example_id"][0]
    with visited(asked_data, small_kitchen, runs) as watched:
        page = watched.page
        page.goto(page.url.partition("#")[0] + f"#/example/{quote(example, safe='')}")
        asked = page.locator("details[open]", has_text="Truth")
        for model in ("oracle", "chance"):
            answer = asked.locator(".side-by-side > div", has_text=model)
            texts = run[(run["example_id"] == example) & (run["model"] == model)]["text"].tolist()
            expect(answer).to_contain_text(texts[0])
            expect(answer).to_contain_text("the first of 2")
            expect(answer.locator("li").first).to_contain_text(re.compile("right|wrong|missing"))


def test_a_search_without_a_match_says_so(explored: Watched) -> None:
    page = explored.page
    page.get_by_role("searchbox").fill("left hand holds giraffe")
    page.get_by_role("button", name="search").click()
    expect(page.locator(".results")).to_contain_text("0 moments")


def test_bars_of_the_timeline_and_objects_of_the_picture_are_clicked(explored: Watched) -> None:
    page = explored.page
    bar = page.locator(".timeline .bar").nth(1)
    bar.click()
    start = int((bar.get_attribute("title") or "").rpartition("frames ")[2].split()[0])
    expect(page.locator(f'.player[data-frame="{start}"]')).to_be_visible()


def test_arrow_keys_step_by_a_frame_and_by_a_second(explored: Watched) -> None:
    page = explored.page
    page.keyboard.press("ArrowRight")
    expect(page.locator('.player[data-frame="1"]')).to_be_visible()
    page.keyboard.press("Shift+ArrowRight")
    expect(page.locator('.player[data-frame="31"]')).to_be_visible()


def test_hostile_names_and_texts_are_shown_and_do_nothing(visited: Visited, tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>\u202e<script>alert(2)</script>"
    content = document()
    content["categories"][1]["name"] = evil
    content["activities"][0]["display_name"] = evil
    content["relations"][0]["value"] = evil
    root = tmp_path / "release"
    write_release(root, "clip <b>one", content)
    with visited(root) as watched:
        page = watched.page
        page.get_by_role("link", name="clip").click()
        expect(page.locator(".player[data-frame]")).to_be_visible()
        for tab in ("This frame", "Graph", "Questions"):
            page.get_by_role("button", name=tab).click()
        expect(page.locator(".timeline")).to_contain_text("<img src=x")
        assert page.locator("main img, main script, main b").count() == 0
        assert not watched.dialogs
        assert not watched.console


def test_a_release_of_185_full_videos_opens_without_reading_them(visited: Visited, tmp_path: Path) -> None:
    root = tmp_path / "many"
    for number in range(185):
        folder = root / f"video_{number:03d}"
        folder.mkdir(parents=True)
        (folder / "coco_annotation.json").write_bytes(b"not read")
    with visited(root) as watched:
        page = watched.page
        expect(page.get_by_role("status").filter(has_text="185 of 185 videos")).to_be_visible()
        page.get_by_label("find").fill("184")
        page.get_by_role("link", name="video_184").click()
        expect(page.get_by_text("Fix")).to_be_visible()


def test_the_cache_of_copies_is_bounded_and_the_release_is_unchanged(
    small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footage, "CACHE_BYTES", 1)
    before = {path: path.read_bytes() for path in small_release.rglob("*") if path.is_file()}
    cache = tmp_path / "cache"
    copies = []
    for name in ("v0", "v1"):
        content = json.dumps(name).encode()
        video = tmp_path / f"{name}.mp4"
        video.write_bytes((small_release / name / "video.mp4").read_bytes() + content)  # another hash
        copies.append(footage.cached_copy(video, cache, lambda fraction: None))
    assert list(cache.iterdir()) == copies[1:]
    assert {path: path.read_bytes() for path in small_release.rglob("*") if path.is_file()} == before
