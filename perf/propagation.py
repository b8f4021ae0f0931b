"""Masks between keyframes: the propagators side by side on clips whose every frame is annotated.

    python perf/propagation.py RELEASE/CLIP ... [--every 25 50 100] [--frames N] [--colour]
    python perf/propagation.py --memory       # peaks at 1,000 and at 2,000 frames of 1080p
    python perf/propagation.py --half-hour    # 54,000 frames of 1080p with copy-nearest

Every n-th frame of a clip is given, the objects that are absent there with empty masks. J&F as in the region_boundary
metric on all frames between: of each object over the frames where it is annotated or predicted, then over the objects.
"""

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import av
import msgspec
import numpy as np
from needed import import_needed

import_needed("cv2")

from sample_video import FPS, HEIGHT, WIDTH, sample_video  # noqa: E402

from barista_bench.annotate.flow_propagation import FlowPropagator  # noqa: E402
from barista_bench.annotate.lucas_kanade import LucasKanade  # noqa: E402
from barista_bench.annotate.propagation import CopyNearest, Propagator  # noqa: E402
from barista_bench.media.video import open_reader  # noqa: E402
from barista_bench.metrics.region_boundary.scoring import boundary_f, region_j  # noqa: E402
from barista_bench.scene_graph import Rle, SceneGraph, encode_mask  # noqa: E402

Masks = dict[int, dict[str, Rle]]


class Clip(NamedTuple):
    """A video, the masks of its frames by frame and object, and an empty mask."""

    video: Path
    masks: Masks
    objects: list[str]
    nothing: Rle


def read_clip(folder: Path, frames: int | None) -> Clip:
    """The first `frames` frames of a video of a release, or all of them."""
    graph = SceneGraph(folder.parent)[folder.name]
    count = min(frames or graph.frame_count, graph.frame_count)
    instances = graph.instances((0, count))
    masks: Masks = {frame: {} for frame in range(count)}
    for instance, rle in zip(instances, graph.rles(instances), strict=True):
        if isinstance(rle, Exception):
            raise rle
        masks[instance.frame][instance.object.id] = rle
    nothing = encode_mask(np.zeros((graph.video.height, graph.video.width), dtype=np.bool_))
    return Clip(folder / "video.mp4", masks, sorted({item.object.id for item in instances}), nothing)


def j_and_f(clip: Clip, propagator: Propagator, every: int) -> tuple[float, float, float]:
    """Mean J and F of the objects, and CPU seconds a frame."""
    keyframes = {
        k: {name: clip.masks[k].get(name, clip.nothing) for name in clip.objects} for k in clip.masks if k % every == 0
    }
    scores: dict[str, list[tuple[float, float]]] = {name: [] for name in clip.objects}
    seconds = 0.0
    with open_reader(clip.video) as frames:
        results = propagator.propagate(frames, keyframes, range(len(clip.masks)))
        while True:
            start = time.process_time()
            result = next(results, None)
            seconds += time.process_time() - start
            if result is None:
                break
            reference = clip.masks[result.frame]
            for name in (reference.keys() | result.masks.keys()) if result.frame not in keyframes else ():
                rle = result.masks[name].rle if name in result.masks else clip.nothing
                pair = msgspec.to_builtins(rle), msgspec.to_builtins(reference.get(name, clip.nothing))
                scores[name].append((region_j(*pair), boundary_f(*pair)))
    j, f = np.mean([np.mean(rows, axis=0) for rows in scores.values() if rows], axis=0)
    return float(j), float(f), seconds / len(clip.masks)


def print_table(folders: list[Path], every: list[int], frames: int | None, colour: bool) -> None:
    """One row a clip and distance, J&F (J/F) of each propagator."""
    propagators: list[Propagator] = [CopyNearest(), LucasKanade(), FlowPropagator()]
    if colour:
        propagators.append(FlowPropagator(colour=True))
    names = ["copy", "Lucas-Kanade", "flow", "flow, colour"][: len(propagators)]
    print("| clip | given every |", " | ".join(names), "| ms a frame, flow |")
    print("|:--|--:|", "--:|" * (len(propagators) + 1), sep="")
    for folder in folders:
        clip = read_clip(folder, frames)
        for distance in every:
            scores = [j_and_f(clip, propagator, distance) for propagator in propagators]
            cells = [f"{(j + f) / 2:.3f} ({j:.2f}/{f:.2f})" for j, f, _ in scores]
            print(f"| {folder.name} | {distance} |", " | ".join(cells), f"| {1000 * scores[2][2]:.0f} |", flush=True)


# ---------------------------------------------------------------- memory and length


def ellipses(frame: int) -> dict[str, Rle]:
    """Eight objects of 1080p that drift."""
    y, x = np.ogrid[:HEIGHT, :WIDTH]
    masks = {}
    for number in range(8):
        centre_x, centre_y = (200 + 200 * number + frame // 5) % WIDTH, 200 + 90 * number
        masks[f"object {number}"] = encode_mask(((x - centre_x) / 120) ** 2 + ((y - centre_y) / 80) ** 2 < 1)
    return masks


def propagated(propagator: Propagator, video: Path, count: int, every: int) -> str:
    """How long `count` frames take, and the highest memory of this process until then."""
    start = time.perf_counter()
    keyframes = {frame: ellipses(frame) for frame in range(0, count, every)}
    with open_reader(video) as frames:
        masks = sum(len(result.masks) for result in propagator.propagate(frames, keyframes, range(count)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = time.perf_counter() - start
    return f"{propagator.identity.name}: {count} frames, {masks} masks, {seconds:.0f} s, {peak:.0f} MiB"


def repeat_video(video: Path, times: int) -> Path:
    """The video so many times one after the other, its packets as they are."""
    path = video.with_stem(f"{video.stem}_x{times}")
    if path.exists():
        return path
    unfinished = path.with_suffix(".part.mp4")
    with av.open(str(unfinished), "w") as out, av.open(str(video)) as source:
        stream = out.add_stream_from_template(source.streams.video[0])
        length = source.streams.video[0].duration
        for number in range(times):
            source.seek(0)
            for packet in source.demux(video=0):
                if packet.dts is not None:
                    packet.pts += number * length
                    packet.dts += number * length
                    packet.stream = stream
                    out.mux(packet)
    unfinished.rename(path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="*", type=Path)
    parser.add_argument("--every", nargs="+", type=int, default=[25, 50, 100])
    parser.add_argument("--frames", type=int)
    parser.add_argument("--colour", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--half-hour", action="store_true")
    options = parser.parse_args()
    if options.clips:
        print_table(options.clips, options.every, options.frames, options.colour)
    if options.memory:
        # A process each: the highest memory of one never falls.
        for count in (1000, 2000):
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                print(pool.submit(propagated, FlowPropagator(), sample_video(67, 250), count, 50).result(), flush=True)
    if options.half_hour:
        print(propagated(CopyNearest(), repeat_video(sample_video(67, 250), 27), 30 * 60 * FPS, 50))


if __name__ == "__main__":
    main()
