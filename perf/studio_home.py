"""Time the studio's home page on a project of many videos.

`python perf/studio_home.py [--videos 1000]` makes a project whose videos each have a signal of 1,800 frames, 20
keyframes with 6 masks, layers and doubtful frames, and prints how long the page's data take (first, again) and when
Chromium has painted all of it, posters of the first screen included.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import av
import numpy as np
from playwright.sync_api import sync_playwright

from barista_bench.annotate import records
from barista_bench.annotate.project import PROJECT_FILE, ProjectFile, ProjectSettings, VideoSource
from barista_bench.media.video.frame_folder import video_sha256
from barista_bench.scene_graph.masks import Rle
from barista_bench.studio.server import studio_server
from barista_bench.studio.workspace import open_workspace

FRAMES, FPS, WIDTH, HEIGHT = 1_800, 30, 640, 360
KEYFRAMES, OBJECTS, DOUBTS, STATEMENTS = 20, 6, 40, 30
MADE_BY = records.Provenance(stage="perf", inputs="", model="none")


def made_video(path: Path) -> None:
    """A minute of noise that moves."""
    generator = np.random.default_rng(0)
    still = generator.integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"preset": "ultrafast", "crf": "35"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for number in range(FRAMES):
            frame = av.VideoFrame.from_ndarray(np.roll(still, number, axis=1), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def made_project(folder: Path, videos: int) -> Path:
    """A project in all states of the work."""
    footage = folder / "videos"
    footage.mkdir(parents=True)
    made_video(footage / "video_0000.mp4")
    sha256 = video_sha256(footage / "video_0000.mp4")
    sources, project = {}, folder / "project"
    for number in range(videos):
        name = f"video_{number:04}"
        if number:
            os.link(footage / "video_0000.mp4", footage / f"{name}.mp4")
        sources[name] = VideoSource(
            file=f"{name}.mp4", sha256=sha256, width=WIDTH, height=HEIGHT, frames=FRAMES, fps=FPS
        )
        annotate(project / name, number)
    state = ProjectFile(made_with="perf", folder=str(footage), settings=ProjectSettings(), videos=sources, lost={})
    records.write_record(project / PROJECT_FILE, state)
    return project


def annotate(folder: Path, number: int) -> None:
    """Files of one video; every fifth has nothing, every fourth lacks some keyframes."""
    folder.mkdir(parents=True)
    if number % 5 == 0:
        return
    frames = range(0, FRAMES, FRAMES // KEYFRAMES)
    rle = Rle("P" * 300, (HEIGHT, WIDTH))
    masks = {f"object {index}": records.AcceptedMask(rle=rle, by="anna") for index in range(OBJECTS)}
    kept = list(frames)[: KEYFRAMES // 2 if number % 4 == 0 else KEYFRAMES]
    layers = records.Layers(activities=[records.LayerSegment(name="pour", range=(n, n + 1)) for n in range(STATEMENTS)])
    for record in (
        records.SignalFile(by="anna", verified=True, confidence=[0.25 + n % 2 / 2 for n in range(FRAMES)]),
        records.SegmentsFile(provenance=MADE_BY, segments=[(0, FRAMES)]),
        records.KeyframesFile(
            provenance=MADE_BY, keyframes=[records.AskedKeyframe(frame=n, segment=0) for n in frames]
        ),
        records.AcceptedFile(
            objects=dict.fromkeys(masks, "cup"),
            keyframes=[records.AcceptedKeyframe(frame=n, complete=True, masks=masks) for n in kept],
        ),
        records.AcceptedLayersFile(by="ben", layers=layers),
        records.ReviewFile(
            provenance=MADE_BY,
            frames=[records.Doubt(frame=n, object="object 0", doubt=0.5, why="vanishes") for n in range(DOUBTS)],
        ),
    ):
        records.write_record(folder / record.FILE, record)
    (folder / records.TrackLine.FILE).write_text("{}\n")


def timed_request(address: str, path: str) -> tuple[float, int]:
    """Seconds, and bytes answered."""
    base, _, token = address.partition("/?token=")
    request = urllib.request.Request(base + path, headers={"Cookie": f"studio-{base.rpartition(':')[2]}={token}"})
    begun = time.perf_counter()
    with urllib.request.urlopen(request, timeout=60) as response:
        return time.perf_counter() - begun, len(response.read())


def painted(address: str, picture: Path | None) -> list[float]:
    """Seconds from the request of the page: cards are there, and posters in sight are there. In a new browser."""
    shown = "() => document.querySelectorAll('.video-card').length > 0"
    in_sight = """() => [...document.querySelectorAll('.poster img')]
        .filter(image => image.getBoundingClientRect().top < innerHeight)
        .every(image => image.complete && image.naturalWidth > 0)"""
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"]) as browser,
    ):
        page = browser.new_page(viewport={"width": 1920, "height": 1080}, bypass_csp=True)  # for the waiting alone
        page.goto(address.partition("?")[0])
        page.context.add_cookies([cookie(address)])
        begun = time.perf_counter()
        page.goto(address)
        page.wait_for_function(shown)
        times = [time.perf_counter() - begun]
        page.wait_for_function(in_sight)
        times.append(time.perf_counter() - begun)
        if picture:
            page.screenshot(path=picture)
        return times


def cookie(address: str) -> dict[str, str]:
    base, _, token = address.partition("/?token=")
    return {"name": f"studio-{base.rpartition(':')[2]}", "value": token, "url": base}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=1_000)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        project = made_project(Path(folder), arguments.videos)
        with studio_server(open_workspace([project], person="anna", out=Path(folder))) as server:
            thread = threading.Thread(target=server.run)
            thread.start()
            try:
                for title in ("first", "again"):
                    seconds, size = timed_request(server.address, "/api/home")
                    print(f"/api/home {title}: {seconds:.3f} s, {size / 1e6:.2f} MB")
                for title in ("posters not made yet", "posters in the cache"):
                    cards, all_in_sight = painted(server.address, arguments.picture)
                    print(f"page, {title}: cards after {cards:.2f} s, posters in sight after {all_in_sight:.2f} s")
            finally:
                server.stop()
                thread.join()


if __name__ == "__main__":
    main()
