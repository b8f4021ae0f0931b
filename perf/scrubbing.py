"""How smoothly does the studio scrub through a 1080p video with 30 masks on each frame? Chromium's own clock says.

    python perf/scrubbing.py

An annotation project with masks on every frame is opened on its page; then the frame's slider is moved by one frame at
each requestAnimationFrame, there and back. Printed: seconds to the first frame, milliseconds between animation frames
(median, and the least of the worst hundredth), and how many frames were shown.
"""

import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

import msgspec
import numpy as np
from playwright.sync_api import sync_playwright
from sample_video import sample_video

from barista_bench.annotate.decisions import DecidedKeyframe, Decisions, accept
from barista_bench.annotate.project import Project, start
from barista_bench.annotate.running import run_video
from barista_bench.scene_graph.masks import encode_mask
from barista_bench.studio.server import serving
from barista_bench.studio.workspace import open_workspace

SECONDS, MASKS, STEPS = 8, 30, 200
SCRUB = """steps => new Promise(done => {
  const slider = document.querySelector(".player input[type=range]");
  const player = document.querySelector(".player");
  const times = [], shown = new Set();
  new MutationObserver(() => shown.add(player.dataset.frame)).observe(player, {attributeFilter: ["data-frame"]});
  const step = now => {
    times.push(now);
    const at = times.length;
    if (at > 2 * steps) return done({times, shown: shown.size});
    slider.value = String(at <= steps ? at : 2 * steps - at);
    slider.dispatchEvent(new Event("input"));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


def project_with_masks(folder: Path) -> Project:
    """Discs of 100 to 220 pixels across that move, annotated on keyframes and carried in between."""
    videos = folder / "videos"
    videos.mkdir()
    shutil.copy(sample_video(SECONDS, 30), videos / "long.mp4")
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
            thread = threading.Thread(target=server.run)
            thread.start()
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1920, "height": 1080})
            page.goto(server.address)
            page.locator("main h2").first.wait_for()
            for _ in range(2):  # the first opening reads the video's facts
                page.goto("about:blank")
                began = time.perf_counter()
                page.goto(server.address.partition("?")[0] + "#/project/long?frame=100")
                page.locator(".player[data-frame]").wait_for()
                print(f"first frame after {time.perf_counter() - began:.2f} s")
            page.locator(".player[data-ready]").wait_for(timeout=300_000)
            page.wait_for_timeout(1000)
            for name in ("first time", "again"):
                found = page.evaluate(SCRUB, STEPS)
                steps = np.diff(found["times"])
                seconds = (found["times"][-1] - found["times"][0]) / 1000
                worst = np.quantile(steps, 0.99)
                print(
                    f"{name}: median {np.median(steps):.1f} ms, worst 1 % from {worst:.1f} ms, "
                    f"{found['shown']} frames shown in {seconds:.1f} s"
                )
            browser.close()
            server.stop()
            thread.join()


if __name__ == "__main__":
    main()
