"""How smoothly does the studio scrub through a 1080p video with 30 masks on each frame? Chromium's own clock says.

    python perf/scrubbing.py

An annotation project with masks on every frame is opened on its page, by its address and from the home page; then the
frame's slider is moved by one frame at each requestAnimationFrame, there and back, and to random frames. Printed: from
the request for the page (or the click) to the first frame, milliseconds between animation frames (median, and the least
of the worst hundredth), how many frames were shown, and how long after the last one it was sharp.
"""

import os
import shutil
import tempfile
import threading
from pathlib import Path

import msgspec
import numpy as np
from playwright.sync_api import sync_playwright
from sample_video import FPS, sample_video

from barista_bench.annotate.decisions import DecidedKeyframe, Decisions, accept
from barista_bench.annotate.project import Project, start
from barista_bench.annotate.running import run_video
from barista_bench.scene_graph.masks import encode_mask
from barista_bench.studio.server import serving
from barista_bench.studio.workspace import open_workspace

SECONDS, MASKS, STEPS = 8, 30, 200
FIRST_FRAME = """
  let clicked = 0;
  addEventListener("click", () => { clicked = performance.now(); }, {capture: true});
  window.firstFrame = new Promise(done => {
    const painted = () => done(performance.now() - clicked);
    const look = () => {
      const isShown = document.querySelector(".player[data-frame]");
      requestAnimationFrame(isShown ? () => requestAnimationFrame(painted) : look);
    };
    requestAnimationFrame(look);
  });
"""
SCRUB = """frames => new Promise(done => {
  const slider = document.querySelector(".player input[type=range]");
  const player = document.querySelector(".player");
  const times = [];
  let shown = 0;
  const sharp = () => !player.hasAttribute("data-quick") && player.dataset.frame === slider.value;
  const ended = () => {
    if (sharp()) done({times, shown, sharp: performance.now() - times.at(-1)});
    else requestAnimationFrame(ended);
  };
  new MutationObserver(changes => { shown += changes.some(change => change.oldValue !== player.dataset.frame); })
    .observe(player, {attributeFilter: ["data-frame"], attributeOldValue: true});
  const step = now => {
    times.push(now);
    if (times.length > frames.length) return ended();
    slider.value = String(frames[times.length - 1]);
    slider.dispatchEvent(new Event("input"));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


def project_with_masks(folder: Path) -> Project:
    """Discs of 100 to 220 pixels across that move, annotated on keyframes and carried in between."""
    videos = folder / "videos"
    videos.mkdir()
    shutil.copy(sample_video(SECONDS, FPS), videos / "long.mp4")
    project = start(folder / "project", videos, propagator="linear_box")
    source = project.video("long").source
    rng = np.random.default_rng(0)
    centres, radii = rng.uniform(0.1, 0.9, (MASKS, 2)) * (source.height, source.width), rng.integers(50, 110, MASKS)
    rows, columns = np.ogrid[: source.height, : source.width]
    accept(project, Decisions(video="long", by="perf", contacts=[(0, source.frames)]))
    run_video(project.folder, "long")
    keyframes = []
    for frame in project.video("long").asked():
        masks = {}
        for number, ((y, x), radius) in enumerate(zip(centres, radii, strict=True)):
            inside = (rows - y) ** 2 + (columns - x - frame) ** 2 < radius**2
            masks[f"cup-{number}"] = msgspec.Raw(msgspec.json.encode(encode_mask(inside)))
        keyframes.append(DecidedKeyframe(frame=frame, masks=masks))
    objects = dict.fromkeys(keyframes[0].masks, "coffee cup")
    accept(project, Decisions(video="long", by="perf", objects=objects, keyframes=keyframes))
    outcome = run_video(project.folder, "long")
    if outcome.missing or outcome.problem:
        raise SystemExit(f"no tracks: {outcome}")
    return project


def main() -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        os.environ["XDG_CACHE_HOME"] = scratch
        project = project_with_masks(Path(scratch))
        workspace = open_workspace([project.folder], person="perf", out=Path(scratch))
        with serving(workspace) as server:
            thread = threading.Thread(target=server.run, daemon=True)
            thread.start()
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1920, "height": 1080})
            page.add_init_script(FIRST_FRAME)
            page.goto(server.address)
            page.locator("main h2").first.wait_for()
            address = server.address.partition("?")[0] + "#/project/long?frame=100"
            for _ in range(3):
                page.goto("about:blank")
                page.goto(address)
                print(f"first frame {page.evaluate('firstFrame'):.0f} ms after the page was asked for")
            for _ in range(3):
                page.goto("about:blank")
                page.goto(server.address.partition("?")[0])
                page.locator(".video-card a").first.click()
                print(f"first frame {page.evaluate('firstFrame'):.0f} ms after a click on the home page")
            page.locator(".player[data-ready]").wait_for(timeout=300_000)
            page.wait_for_timeout(1000)
            there = [*range(1, STEPS), *range(STEPS, -1, -1)]
            anywhere = np.random.default_rng(0).integers(0, SECONDS * FPS, 2 * STEPS).tolist()
            for name, frames in {"frame by frame": there, "again": there, "anywhere": anywhere}.items():
                found = page.evaluate(SCRUB, frames)
                steps = np.diff(found["times"])
                seconds = (found["times"][-1] - found["times"][0]) / 1000
                print(
                    f"{name}: median {np.median(steps):.1f} ms, worst 1 % from {np.quantile(steps, 0.99):.1f} ms, "
                    f"{found['shown']} frames shown in {seconds:.1f} s ({found['shown'] / seconds:.0f} a second), "
                    f"the last one sharp after {found['sharp']:.0f} ms"
                )
            browser.close()
            server.stop()
            thread.join()


if __name__ == "__main__":
    main()
