"""How much work is a real clip without a segmenter? Polygons by hand, counted by the keystroke-level model.

    python perf/by_hand.py RELEASE CLIP

The studio's first tools: on each keyframe each object is an outline of corners that are clicked, as few at equal
distances as reach IoU .85 (all of them where 60 do not), with a part for each piece of the object. Seconds are those of
tests/studio/test_real_clip_in_browser.py: a click 1.3, a key .28, a hand from mouse to keys or back .4, thinking of an
object 1.35. A name is typed once; contacts, three relations and an activity take what they take there.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from needed import needed

needed("cv2")
import cv2  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from barista_bench.annotate.decisions import Decisions, accept  # noqa: E402
from barista_bench.annotate.project import start  # noqa: E402
from barista_bench.annotate.running import run_video  # noqa: E402
from barista_bench.scene_graph import SceneGraph  # noqa: E402

GOOD, MOST_CORNERS, LEAST_PART = 0.85, 60, 30
CLICK, KEY, HOME, THINK = 1.3, 0.28, 0.4, 1.35
OTHERWISE = (1 + 4 + 13, 2.4 + 4 * CLICK + 5 * THINK + 12 * KEY + 2 * HOME)
"""Actions and seconds of contacts, three relations and an activity by name."""
NAME = 5
"""Keys for the category of a new object: o, three letters or so, Enter."""
Mask = NDArray[np.bool_]


def corners_of(mask: Mask) -> tuple[int, int, float]:
    """Corners, parts and IoU of the outline that a person clicks."""
    parts = list(cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[0])
    large = [part[:, 0] for part in parts if len(part) >= LEAST_PART] or [max(parts, key=len)[:, 0]]
    for count in range(3, MOST_CORNERS + 1):
        drawn = np.zeros(mask.shape, np.uint8)
        for part in large:
            at = np.linspace(0, len(part), count, endpoint=False).astype(int)
            cv2.fillPoly(drawn, [part[at].astype(np.int32)], 1)
        iou = float((mask & (drawn > 0)).sum() / (mask | (drawn > 0)).sum())
        if iou >= GOOD:
            break
    return count * len(large), len(large), iou


def main(root: str, clip: str) -> None:
    graph = SceneGraph(Path(root))[clip]
    with tempfile.TemporaryDirectory() as scratch:
        videos = Path(scratch) / "videos"
        videos.mkdir()
        (videos / f"{clip}.mp4").write_bytes((Path(root) / clip / "video.mp4").read_bytes())
        project = start(Path(scratch) / "project", videos)
        accept(project, Decisions(video=clip, by="perf", contacts=[(0, graph.frame_count)]))
        run_video(project.folder, clip)
        asked = sorted(project.video(clip).asked_segments())
    actions, seconds = OTHERWISE
    named: set[str] = set()
    scores = []
    for frame in asked:
        for item in graph.instances(frame):
            corners, parts, iou = corners_of(graph.mask(item).astype(bool))
            scores.append(iou)
            keys = parts + (1 if item.object.id in named else NAME)  # Enter closes an outline; a number chooses
            named.add(item.object.id)
            actions += corners + keys
            seconds += THINK + corners * CLICK + keys * KEY + 2 * HOME
        actions, seconds = actions + 1, seconds + KEY
    print(f"{len(asked)} keyframes, {len(scores)} masks, mean IoU {np.mean(scores):.3f}, least {min(scores):.3f}")
    print(f"{actions} actions, {seconds:.0f} s by the keystroke-level model")


if __name__ == "__main__":
    main(*sys.argv[1:])
