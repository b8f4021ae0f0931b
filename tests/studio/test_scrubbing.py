"""A large video in the browser: small pictures on the way, the sharp one where one stays, each of the right frame."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from barista_bench.studio.footage import cache_folder
from tests.studio.annotating_page import Visited
from tests.studio.serving import painted_release, visiting
from tests.video_samples import BITS, BLOCK, WIDTH

FRAMES = 90
LARGE = (960, 480)
"""Five times as large as what is painted."""

MOVE = f"""async frames => {{
  const player = document.querySelector(".player"), slider = player.querySelector("input[type=range]");
  const canvas = player.querySelector("canvas");
  const drawn = async () => {{ for (let wait = 0; wait < 2; wait += 1) await new Promise(requestAnimationFrame); }};
  const index = () => {{
    const across = canvas.width / {WIDTH};
    const row = canvas.getContext("2d").getImageData(0, Math.round({BLOCK // 2} * across), canvas.width, 1).data;
    return Array.from({{length: {BITS}}}, (_, bit) => row[4 * Math.round((bit + 0.5) * {BLOCK} * across)] > 128 ? 1 : 0)
      .reduce((number, bit) => 2 * number + bit);
  }};
  // No time passes for the page on the way, however slow the machine is: only at the last frame does one stay.
  const timers = new Map(), {{setTimeout, clearTimeout}} = window;
  let made = 0;
  performance.now = () => 0;
  window.setTimeout = (call) => timers.set((made -= 1), call) && made;
  window.clearTimeout = (id) => timers.delete(id) || clearTimeout(id);
  const found = [];
  for (const frame of frames) {{
    slider.value = String(frame);
    slider.dispatchEvent(new Event("input"));
    while (player.dataset.frame !== slider.value) await drawn();
    const isQuick = player.hasAttribute("data-quick");
    await drawn();
    if (isQuick === player.hasAttribute("data-quick")) found.push([frame, index(), isQuick]);
  }}
  delete performance.now;
  Object.assign(window, {{setTimeout, clearTimeout}});
  for (const call of timers.values()) call();
  while (player.hasAttribute("data-quick")) await drawn();
  await drawn();
  return {{found, last: index()}};
}}"""


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return painted_release(tmp_path / "release", FRAMES, size=LARGE)


@pytest.fixture
def page(visited: Visited, release: Path) -> Iterator[Page]:
    with visited(release) as watched:
        page = watched.page
        page.get_by_role("link", name="clip").click()
        expect(page.locator(".player[data-ready]")).to_be_visible()
        yield page


@pytest.mark.full
@pytest.mark.parametrize(
    "wanted",
    [[*range(1, 40), *range(40, 5, -1)], random.Random(0).choices(range(FRAMES), k=60)],
    ids=["frame by frame", "anywhere"],
)
def test_every_frame_on_the_way_is_the_right_one_and_the_last_is_sharp(page: Page, wanted: list[int]) -> None:
    stills: list[str] = []
    page.on("request", lambda request: stills.append(request.url) if request.url.endswith(".jpg") else None)
    moved = page.evaluate(MOVE, wanted)
    assert [shown for _, shown, _ in moved["found"]] == [frame for frame, _, _ in moved["found"]]
    assert all(is_quick for *_, is_quick in moved["found"])
    assert len(moved["found"]) > len(wanted) / 2
    assert moved["last"] == wanted[-1]
    assert not stills, "the copies show every frame"


STAY = """async frames => {
  const slider = document.querySelector(".player input[type=range]");
  for (const frame of frames) {
    slider.value = String(frame);
    slider.dispatchEvent(new Event("input"));
    await new Promise((done) => setTimeout(done, 130));
  }
}"""
"""Stays at each frame just long enough that the sharp picture is asked for."""


@pytest.mark.full
def test_a_sharp_picture_that_comes_too_late_is_not_asked_of_the_server(page: Page) -> None:
    stills: list[str] = []
    page.on("request", lambda request: stills.append(request.url) if request.url.endswith(".jpg") else None)
    page.evaluate(STAY, random.Random(0).choices(range(FRAMES), k=60))
    expect(page.locator(".player:not([data-quick])")).to_be_visible()
    assert not stills, "the copies show every frame"


@pytest.mark.full
def test_the_panel_beside_the_picture_follows_where_one_stays(page: Page) -> None:
    page.get_by_role("button", name="This frame").click()
    page.evaluate(MOVE, [*range(1, 31)])
    expect(page.locator(".player:not([data-quick])")).to_be_visible()
    assert "frame=30" in page.url


@pytest.mark.full
def test_only_a_large_video_is_served_as_a_small_copy(release: Path, out: Path, small_release: Path) -> None:
    for root, name, has_small in ((release, "clip", True), (small_release, "v0", False)):
        with visiting(root, out=out) as visitor:
            assert visitor.with_copies(name)["has_small"] is has_small
            status = visitor.answer(f"/media/graph/{name}/small.mp4")[0]
            assert (status, visitor.answer(f"/media/graph/{name}/proxy.mp4")[0]) == (200 if has_small else 404, 200)
            assert visitor.answer(f"/media/graph/{name}/other.mp4")[0] == 404


@pytest.mark.full
def test_a_small_copy_that_is_gone_is_made_again(release: Path, out: Path) -> None:
    with visiting(release, out=out) as visitor:
        visitor.with_copies("clip")
        before = visitor.answer("/media/graph/clip/small.mp4")[1]
        for path in cache_folder().glob("*-small.mp4"):
            path.unlink()
        visitor.with_copies("clip")
        assert visitor.answer("/media/graph/clip/small.mp4")[1] == before
