"""The annotation pipeline with a perfect annotator: keyframe masks from the reference in, a graph out, held against it.

    python perf/annotation.py RELEASE/CLIP ... [--propagators flow copy_nearest linear_box] [--step 4]

The contact signal is the reference's contacts with noise (seeded); keyframes are those that flow asks for, whoever
propagates. Identities are hidden: each segment has ids of its own, and only links by masks join them. On every
`step`-th frame that is no keyframe: J&F (mean over objects), HOTA, identity switches, and F1 over (frame, claim) of the
proposals in layers.json: contacts and places by geometry, attributes of keyframes carried forward. Segment IoU: frames
of contact.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np
from needed import needed

needed("cv2")

from barista_bench.annotate.decisions import Decisions, accept, decisions_of_graph, layers_of  # noqa: E402
from barista_bench.annotate.flow_propagation import FlowPropagator  # noqa: E402
from barista_bench.annotate.project import VideoFiles, start  # noqa: E402
from barista_bench.annotate.propagation import CopyNearest, LinearBox  # noqa: E402
from barista_bench.annotate.records import Layers, LayersFile, LinksFile, SegmentsFile  # noqa: E402
from barista_bench.annotate.running import run_video  # noqa: E402
from barista_bench.metrics.region_boundary.scoring import boundary_f, region_j  # noqa: E402
from barista_bench.metrics.tracking.scoring import tracking  # noqa: E402
from barista_bench.scene_graph import SceneGraph, VideoGraph, encode_mask  # noqa: E402

CopyNearest.reach = LinearBox.reach = FlowPropagator.reach  # type: ignore[method-assign, assignment]


def contacts(graph: VideoGraph) -> np.ndarray:
    """1 where a hand is in contact, by frame, else 0."""
    reference = np.zeros(graph.frame_count)
    for first, last in decisions_of_graph(graph, ()).contacts or ():
        reference[first:last] = 1
    return reference


def hidden(name: str, segment: int) -> str:
    return f"{segment}:{name}"


def true_id(name: str) -> str:
    return name.partition(":")[2]


def annotated(clip: Path, propagator: str, folder: Path) -> tuple[VideoFiles, float]:
    """A finished project, and the CPU seconds of its propagation."""
    videos = folder / "videos"
    videos.mkdir()
    shutil.copyfile(clip / "video.mp4", videos / f"{clip.name}.mp4")
    graph = SceneGraph(clip.parent)[clip.name]
    project = start(folder / "project", videos, propagator=propagator)
    noise = np.random.default_rng(0).normal(0, 0.25, graph.frame_count)
    confidence = np.clip(0.15 + 0.7 * contacts(graph) + noise, 0, 1).round(3).tolist()
    accept(project, Decisions(video=clip.name, by="noise", confidence=confidence))
    run_video(project.folder, clip.name)
    video = project.video(clip.name)
    asked = video.asked_segments()
    decisions = decisions_of_graph(graph, asked)
    keyframes = []
    for keyframe in decisions.keyframes:
        segment = asked[keyframe.frame]
        masks = {hidden(name, segment): mask for name, mask in keyframe.masks.items()}
        stated = [msgspec.structs.replace(a, object=hidden(a.object, segment)) for a in keyframe.attributes]
        keyframes.append(msgspec.structs.replace(keyframe, masks=masks, attributes=stated))
    objects = {hidden(name, s): kind for s in set(asked.values()) for name, kind in decisions.objects.items()}
    accept(project, Decisions(video=clip.name, by="reference", objects=objects, keyframes=keyframes))
    before = time.process_time()
    outcome = run_video(project.folder, clip.name)
    if outcome.problem or outcome.missing:
        raise SystemExit(outcome.problem or outcome.missing)
    return video, time.process_time() - before


def claims(layers: Layers, kind: str, frames: Iterable[int], plain: bool) -> set[tuple[object, ...]]:
    """(frame, claim) of contacts, verbs (contacts with their verb), places or attributes."""
    name = str if plain else true_id
    rows: set[tuple[object, ...]] = set()
    for frame in frames:
        if kind == "attributes":
            rows |= {(frame, name(a.object), a.type, a.value) for a in layers.attributes if held(a.ranges, frame)}
            continue
        wanted = "position" if kind == "places" else "human_actions"
        for relation in layers.relations:
            if relation.type == wanted and held(relation.ranges, frame):
                value = "" if kind == "contacts" else relation.value
                rows.add((frame, name(relation.source), name(relation.target), value))
    return rows


def held(ranges: Iterable[tuple[int, int]], frame: int) -> bool:
    return any(start <= frame < end for start, end in ranges)


def f1(predicted: set[tuple[object, ...]], true: set[tuple[object, ...]]) -> float:
    return 2 * len(predicted & true) / max(1, len(predicted) + len(true))


def figures(clip: Path, propagator: str, step: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        video, seconds = annotated(clip, propagator, Path(folder))
        graph = SceneGraph(clip.parent)[clip.name]
        nothing = msgspec.to_builtins(encode_mask(np.zeros((graph.video.height, graph.video.width), dtype=np.bool_)))
        asked = video.asked_segments()
        size = [graph.video.height, graph.video.width]
        scores: dict[str, list[tuple[float, float]]] = {}
        true_frames, predicted_frames, looked = [], [], []
        for line in video.tracks():
            if line.frame % step or line.frame in asked:
                continue
            looked.append(line.frame)
            items = graph.instances(line.frame)
            true = {
                item.object.id: msgspec.to_builtins(rle) for item, rle in zip(items, graph.rles(items), strict=True)
            }
            answer = {name: {"size": size, "counts": mask.counts} for name, mask in line.masks.items()}
            true_frames.append(true)
            predicted_frames.append(answer)
            named = {true_id(name): mask for name, mask in answer.items()}
            for name in true.keys() | named.keys():
                pair = named.get(name, nothing), true.get(name, nothing)
                scores.setdefault(name, []).append((region_j(*pair), boundary_f(*pair)))
        j, f = np.mean([np.mean(rows, axis=0) for rows in scores.values()], axis=0)
        result = tracking([predicted_frames], [true_frames])
        layers, reference = video.read(LayersFile).layers, layers_of(graph)
        f1s = [
            f1(claims(layers, kind, looked, False), claims(reference, kind, looked, True))
            for kind in ("contacts", "verbs", "places", "attributes")
        ]
        in_contact = np.zeros(graph.frame_count, dtype=bool)
        for first, last in video.read(SegmentsFile).segments:
            in_contact[first:last] = True
        contact = contacts(graph) > 0
        iou = (in_contact & contact).sum() / max(1, (in_contact | contact).sum())
        links = sum(len(boundary.links) for boundary in video.read(LinksFile).boundaries)
        cells = [clip.name, propagator, len(asked), len(set(asked.values())), links, f"{(j + f) / 2:.3f}"]
        cells += [f"{result['HOTA']:.3f}", result["IDSW"], *(f"{value:.3f}" for value in f1s), f"{iou:.3f}"]
        return [*map(str, cells), f"{1000 * seconds / graph.frame_count:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="+", type=Path)
    parser.add_argument("--propagators", nargs="+", default=["flow", "copy_nearest", "linear_box"])
    parser.add_argument("--step", type=int, default=4)
    options = parser.parse_args()
    heads = ["clip", "propagator", "keyframes", "segments", "links", "J&F", "HOTA", "switches"]
    heads += ["contact F1", "contact and verb F1", "place F1", "attribute F1", "segment IoU", "CPU ms a frame"]
    print("|", " | ".join(heads), "|\n|", ":--|" * 2, "--:|" * (len(heads) - 2), sep="")
    for clip in options.clips:
        for propagator in options.propagators:
            print("|", " | ".join(figures(clip, propagator, options.step)), "|", flush=True)


if __name__ == "__main__":
    main()
