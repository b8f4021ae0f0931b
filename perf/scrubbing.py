"""How smoothly does the studio scrub through a 1080p video with 30 masks on each frame? Chromium's own clock says.

    python perf/scrubbing.py          # 8 seconds
    python perf/scrubbing.py --hour   # a minute sixty times, after the other one; 25 GB of disk, in TMPDIR

An annotation project with masks on every frame is opened on its page, by its address and from the home page; then the
frame's slider is moved by one frame at each requestAnimationFrame, there and back, and to random frames. Printed: from
the request for the page (or the click) to the first frame, milliseconds between animation frames (median, and the least
of the worst hundredth), how many frames were shown, and how long after the last one it was sharp; and the server's
memory. The hour's copies are those of its minute, put together as its video is, so that no one waits for them; how long
they take to be made is printed of the minute.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import av
import msgspec
import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright
from sample_video import FPS, sample_video

from barista_bench.annotate.decisions import DecidedKeyframe, Decisions, accept
from barista_bench.annotate.project import Project, VideoFiles, start_project
from barista_bench.annotate.records import Provenance, TrackLine
from barista_bench.annotate.running import run_video
from barista_bench.annotate.stages import AFTER_MASKS
from barista_bench.scene_graph.masks import encode_mask
from barista_bench.studio.footage import cache_folder, cached_copy

SECONDS, MASKS, STEPS = 8, 30, 200
MINUTES = 60
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


def project_with_masks(folder: Path) -> VideoFiles:
    """Discs of 100 to 220 pixels across that move, annotated on keyframes and carried in between."""
    (folder / "videos").mkdir(parents=True)
    shutil.copy(sample_video(SECONDS, FPS), folder / "videos" / "long.mp4")
    project = _start_project(folder, "copy_nearest")
    source = project.video("long").source
    rng = np.random.default_rng(0)
    centres, radii = rng.uniform(0.1, 0.9, (MASKS, 2)) * (source.height, source.width), rng.integers(50, 110, MASKS)
    rows, columns = np.ogrid[: source.height, : source.width]
    keyframes = []
    for frame in project.video("long").asked_segments():
        masks = {}
        for number, ((y, x), radius) in enumerate(zip(centres, radii, strict=True)):
            inside = (rows - y) ** 2 + (columns - x - frame) ** 2 < radius**2
            masks[f"cup-{number}"] = msgspec.Raw(msgspec.json.encode(encode_mask(inside)))
        keyframes.append(DecidedKeyframe(frame=frame, masks=masks))
    _accept(project, keyframes)
    outcome = run_video(project.folder, "long")
    if outcome.missing or outcome.problem:
        raise SystemExit(f"no tracks: {outcome}")
    return project.video("long")


def _start_project(folder: Path, propagator: str) -> Project:
    """A project of the video in a folder, with its keyframes chosen."""
    project = start_project(folder / "project", folder / "videos", propagator=propagator)
    accept(project, Decisions(video="long", by="perf", contacts=[(0, project.video("long").source.frames)]))
    run_video(project.folder, "long")
    return project


def _accept(project: Project, keyframes: list[DecidedKeyframe]) -> None:
    objects = dict.fromkeys(keyframes[0].masks, "coffee cup")
    accept(project, Decisions(video="long", by="perf", objects=objects, keyframes=keyframes))


def hour_with_masks(folder: Path, short: VideoFiles) -> VideoFiles:
    """The short video's masks again and again, in files as the stages write them, which would take hours.

    Its keyframes are 2 s apart, as optical flow asks for them.
    """
    (folder / "videos").mkdir(parents=True)
    repeat(sample_video(60, FPS), folder / "videos" / "long.mp4")
    project = _start_project(folder, "flow")
    video = project.video("long")
    masks = [
        {name: msgspec.Raw(msgspec.json.encode(mask.rle)) for name, mask in keyframe.masks.items()}
        for keyframe in short.accepted().keyframes
    ]
    asked = enumerate(video.asked_segments())
    _accept(project, [DecidedKeyframe(frame=frame, masks=masks[index % len(masks)]) for index, frame in asked])
    for stage in AFTER_MASKS:
        identity = stage.identity_of(video)
        assert identity is not None
        provenance = stage.provenance(video, identity)
        if stage.writes is TrackLine:
            write_tracks(video, short, provenance)
        else:
            record = short.read(stage.writes)
            video.write(msgspec.structs.replace(record, provenance=provenance))
    return video


def write_tracks(video: VideoFiles, short: VideoFiles, provenance: Provenance) -> None:
    lines = [msgspec.json.encode(line).partition(b",")[2] for line in short.tracks()]
    with video.file(TrackLine).open("wb") as file:
        file.write(msgspec.json.encode(provenance) + b"\n")
        for frame in range(video.source.frames):
            file.write(b'{"frame":%d,%s\n' % (frame, lines[frame % len(lines)]))


def repeat(minute: Path, target: Path) -> None:
    """A minute's packets, sixty times."""
    with av.open(str(target), "w", options={"movflags": "faststart", "use_editlist": "0"}) as out:
        stream = None
        for number in range(MINUTES):
            with av.open(str(minute)) as container:
                (of,) = container.streams.video
                stream = stream or out.add_stream_from_template(of)
                for packet in container.demux(of):
                    if packet.dts is not None and packet.pts is not None:
                        later = round(number * 60 / packet.time_base)
                        packet.pts, packet.dts = packet.pts + later, packet.dts + later
                        packet.stream = stream
                        out.mux(packet)


def copies_of_hour(video: VideoFiles) -> None:
    """Put the copies that the studio would make into its cache."""
    started = time.perf_counter()
    copy = cached_copy(sample_video(60, FPS), cache_folder(), lambda fraction: None)
    print(f"the copies of a minute took {time.perf_counter() - started:.0f} s to be made")
    for path in cache_folder().glob(f"{copy.stem}*.mp4"):
        repeat(path, path.with_name(path.name.replace(copy.stem.partition("-")[0], video.source.sha256)))


@contextmanager
def studio(video: VideoFiles) -> Iterator[tuple[str, int]]:
    """The address of the studio's own process, and its id."""
    program, project = Path(sys.executable).with_name("barista-bench"), video.project.folder
    command = [program, "studio", project, "--no-browser", "--out", project]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.terminate()


def first_frames(page: Page, frame: int) -> None:
    base = page.url.partition("#")[0]
    for _ in range(3):
        page.goto("about:blank")
        page.goto(f"{base}#/project/long?frame={frame}")
        print(f"first frame {page.evaluate('firstFrame'):.0f} ms after the page was asked for")
        page.wait_for_timeout(2000)
    for _ in range(3):
        page.goto("about:blank")
        page.goto(base)
        page.locator(".video-card a").first.click()
        print(f"first frame {page.evaluate('firstFrame'):.0f} ms after a click on the home page")


def memory_of(process: int) -> str:
    """Resident memory now, and its maximum so far (Linux)."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    now, most = (int(line.split()[1]) >> 10 for name in ("VmRSS", "VmHWM") for line in lines if line.startswith(name))
    return f"server: {now} MiB, at most {most}"


def scrub(page: Page, name: str, frames: list[int]) -> None:
    found = page.evaluate(SCRUB, frames)
    steps = np.diff(found["times"])
    seconds = (found["times"][-1] - found["times"][0]) / 1000
    print(
        f"{name}: median {np.median(steps):.1f} ms, worst 1 % from {np.quantile(steps, 0.99):.1f} ms, "
        f"{found['shown']} frames shown in {seconds:.1f} s ({found['shown'] / seconds:.0f} a second), "
        f"the last one sharp after {found['sharp']:.0f} ms"
    )


def measure_scrubbing(browser: Browser, video: VideoFiles) -> None:
    count = video.source.frames
    with studio(video) as (address, process):
        page = browser.new_page(viewport={"width": 1920, "height": 1080})
        page.add_init_script(FIRST_FRAME)
        page.goto(address)
        page.locator("main h2").first.wait_for()  # at an address of its own
        first_frames(page, count // 2)
        page.locator(".player[data-ready]").wait_for(timeout=600_000)
        page.wait_for_timeout(1000)
        there = [*range(1, STEPS), *range(STEPS, -1, -1)]
        for name, start in {"from the start": 0, "in the middle": count // 2, "at the end": count - 1 - STEPS}.items():
            scrub(page, f"frame by frame {name}", [start + frame for frame in there])
        scrub(page, "anywhere", np.random.default_rng(0).integers(0, count, 2 * STEPS).tolist())
        print(memory_of(process))
        page.close()


def main() -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        os.environ["XDG_CACHE_HOME"] = scratch
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        short = project_with_masks(Path(scratch, "short"))
        measure_scrubbing(browser, short)
        if "--hour" in sys.argv:
            hour = hour_with_masks(Path(scratch, "hour"), short)
            copies_of_hour(hour)
            measure_scrubbing(browser, hour)
        browser.close()


if __name__ == "__main__":
    main()
