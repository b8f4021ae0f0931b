"""A small release in ViSTa's layout, cut from the annotated activities of a mini kitchen.

Its videos are clips of the kitchen, alone and joined, and its words are ours: it stands in for the videos of the real
release where these are not at hand, so that every step of a run can be tried. The folders are called as in the release,
though all of them show the same kitchen.
"""

from __future__ import annotations

import csv
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml

from barista_bench.benchmarks.vista.release import ENTRIES_END, TABLE, TASKS_FOLDER
from barista_bench.benchmarks.vista.release_files import MetadataRow
from barista_bench.errors import DataError
from barista_bench.mini.cutting import cut_clip, join_clips
from barista_bench.scene_graph import SceneGraph

WIDTH = 160
"""Pixels of a clip's longer side, at the most."""
FRAMES = 20
"""Frames of a clip at the most: two thirds of a second of the kitchen."""
FEWEST = 6
"""Different activities that a kitchen must show."""

_PROMPT = (
    "Somebody handles things in a kitchen. Say for each frame where the hands are, what they touch, and what has "
    "changed since the frame before. The question will be what was done, and in which order."
)
_EXAMPLE = (
    "An answer to three frames could read:\n"
    "1. The right hand is above the table, holding nothing.\n"
    "2. The hand has closed around a cup.\n"
    "3. The cup stands on the tray now, and the hand is empty: it was put down.\n"
)


class ActivityClip(NamedTuple):
    """Frames [start, stop) of one kitchen video that show one activity, forwards or backwards."""

    video_id: str
    start: int
    stop: int
    activity: str
    reverse: bool = False

    @property
    def verb(self) -> str:
        return self.activity.partition(" ")[0].lower()

    @property
    def noun(self) -> str:
        return self.activity.partition(" ")[2]

    @property
    def words(self) -> str:
        return f"{self.verb} the {self.noun}"


class PlannedVideo(NamedTuple):
    """Clips in their order, and the labels that fit them together."""

    labels: tuple[str, ...]
    clips: tuple[ActivityClip, ...]


class PlannedSet(NamedTuple):
    """A problem set to be written; `folder` is its path below `tasks`, without the environment.

    `shared` is, for each description, how many steps it shares with the first one.
    """

    environment: str
    folder: str
    name: str
    descriptions: dict[str, str]
    videos: Sequence[PlannedVideo]
    shared: Sequence[int] = ()


def write_mini(kitchen: Path, out: Path) -> None:
    """Write a small release into the new folder `out`, from the kitchen (or any other release) at `kitchen`.

    Raises:
        DataError: `out` holds something already, or the kitchen shows too few activities.
    """
    if out.exists() and any(out.iterdir()):
        raise DataError(f"{out}: is not empty. Remedy: name a new folder")
    graph = SceneGraph(kitchen)
    sets = list(_sets(_clips(graph), kitchen))
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        numbers = count()

        @cache  # each clip is cut once, whatever number of videos it is joined into
        def cut(clip: ActivityClip) -> Path:
            video, part = graph[clip.video_id].video, Path(folder) / f"{next(numbers)}.mp4"
            size, source = _small(video.width, video.height), graph.video_path(clip.video_id)
            return cut_clip(source, part, clip.start, clip.stop, size=size, reverse=clip.reverse)

        rows = [row for planned in sets for row in _write_set(planned, out, cut)]
    with (out / TABLE).open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(MetadataRow.__struct_fields__)
        writer.writerows(map(msgspec.structs.astuple, rows))


def _clips(graph: SceneGraph) -> list[ActivityClip]:
    """One clip of every activity of every video, in their order, from its middle."""
    clips = []
    for video in graph:
        for segment in video.activities():
            length = min(FRAMES, segment.end - segment.start)
            start = (segment.start + segment.end - length) // 2
            clip = ActivityClip(video.video_id, start, start + length, segment.name)
            if clip.noun and length > 1:
                clips.append(clip)
    return clips


def _sets(clips: Sequence[ActivityClip], kitchen: Path) -> Iterator[PlannedSet]:
    """Of each kind of problem set that the release has, one or two."""
    kinds = {clip.activity: clip for clip in reversed(clips)}
    if len(kinds) < FEWEST:
        raise DataError(f"{kitchen}: shows {len(kinds)} activities, fewer than {FEWEST}. Remedy: render more videos")
    steps = [kinds[name] for name in sorted(kinds, key=lambda name: clips.index(kinds[name]))]
    yield _by_part("alfred", "foundation/objects", clips, "noun")
    yield _by_part("real_life", "foundation/pick_v_put", clips, "verb")
    yield _backwards(steps[0])
    yield _several(steps)
    yield _permutation("alfred", steps[:2])
    yield _permutation("alfred", steps[2:5])
    yield _permutation("real_life", steps[1:4])
    yield _permutation("minecraft", steps[4:6])
    yield _general("alfred", steps)
    yield _general("real_life", steps[::-1])


def _by_part(environment: str, folder: str, clips: Sequence[ActivityClip], part: str) -> PlannedSet:
    """Clips that share the verb and differ in the noun, or the other way round: one or two of each of three."""
    other = "verb" if part == "noun" else "noun"
    groups: dict[str, dict[str, list[ActivityClip]]] = {}
    for clip in clips:
        groups.setdefault(getattr(clip, other), {}).setdefault(getattr(clip, part), []).append(clip)
    shared = max(groups, key=lambda name: len(groups[name]))
    by_label = {f"label_{at}": alike for at, alike in enumerate(islice(groups[shared].values(), 3))}
    videos = [PlannedVideo((label,), (clip,)) for label, alike in by_label.items() for clip in alike[:2]]
    texts = {label: f"The hands {alike[0].words}" for label, alike in by_label.items()}
    return PlannedSet(environment, folder, shared.replace(" ", "_"), texts, videos)


def _backwards(clip: ActivityClip) -> PlannedSet:
    """One clip forwards and backwards, whole and its first half: level 1 beyond single actions."""
    half = clip._replace(stop=(clip.start + clip.stop) // 2 + 1)
    videos = [
        PlannedVideo((label,), (part._replace(reverse=label == "back"),))
        for part in (clip, half)
        for label in ("on", "back")
    ]
    texts = {"on": f"Time runs forwards while the hands {clip.words}", "back": "Time runs backwards"}
    return PlannedSet("real_life", "extrapyramidal/opening_v_closing", "time", texts, videos)


def _several(steps: Sequence[ActivityClip]) -> PlannedSet:
    """Videos that fit one or two of several descriptions."""
    chosen = list({clip.verb: clip for clip in reversed(steps)}.values())[:3]
    texts = {clip.verb: f"At some time the hands {clip.words}" for clip in chosen}
    videos = [PlannedVideo((clip.verb,), (clip,)) for clip in chosen]
    videos.append(PlannedVideo((chosen[0].verb, chosen[1].verb), (chosen[0], chosen[1])))
    return PlannedSet("minecraft", "foundation", "multilabel", texts, videos)


def _permutation(environment: str, steps: Sequence[ActivityClip]) -> PlannedSet:
    """The same clips in as many orders as there are clips: each order a turn of the one before."""
    length = len(steps)
    orders = [(*steps[turn:], *steps[:turn]) for turn in range(length)]
    return _orders(environment, f"level_{length}/permutation", f"turns_of_{length}", orders)


def _general(environment: str, steps: Sequence[ActivityClip]) -> PlannedSet:
    """A base of three steps, and sequences that share two, one and none of them at their beginning."""
    a, b, c, d, e, f = steps[:6]
    orders = [(a, b, c), (a, b, d), (a, e, d), (f, e, d)]
    return _orders(environment, "level_3/remix", "from_three_steps", orders)._replace(shared=(3, 2, 1, 0))


def _orders(environment: str, folder: str, name: str, orders: Sequence[tuple[ActivityClip, ...]]) -> PlannedSet:
    by_label = {f"label_{at}": clips for at, clips in enumerate(orders)}
    texts = {label: _in_words(clips) for label, clips in by_label.items()}
    videos = [PlannedVideo((label,), clips) for label, clips in by_label.items()]
    return PlannedSet(environment, folder, name, texts, videos)


def _in_words(clips: Sequence[ActivityClip]) -> str:
    """
    >>> _in_words([ActivityClip("v", 0, 9, "Lift cup"), ActivityClip("v", 9, 18, "Press button")])
    'To begin with, the hands lift the cup; at last they press the button'
    """
    first, *between, last = (clip.words for clip in clips)
    return "; ".join(
        [
            f"To begin with, the hands {first}",
            *(f"after that they {words}" for words in between),
            f"at last they {last}",
        ]
    )


def _small(width: int, height: int) -> tuple[int, int]:
    """The size of a clip: even, and of the video's shape.

    >>> _small(1280, 720), _small(120, 80)
    ((160, 90), (120, 80))
    """
    scale = min(1.0, WIDTH / max(width, height))
    return max(2, round(width * scale / 2) * 2), max(2, round(height * scale / 2) * 2)


def _write_set(planned: PlannedSet, out: Path, cut: Callable[[ActivityClip], Path]) -> Iterator[MetadataRow]:
    """Write the two files of a set and its videos; its rows of the table."""
    level, kind = planned.folder.split("/")[0], planned.folder.split("/")[-1]
    number = int(level.removeprefix("level_")) if level.startswith("level_") else 1
    base = f"{TASKS_FOLDER}/{planned.environment}/{planned.folder}/{planned.name}"
    entries = []
    for at, video in enumerate(planned.videos):
        path = f"{planned.folder}/{planned.name}/take_{at}.mp4"
        video_id, parts = f"{planned.environment}/{path}", list(map(cut, video.clips))
        (out / video_id).parent.mkdir(parents=True, exist_ok=True)
        if len(parts) > 1:
            join_clips(parts, out / video_id)
        else:
            shutil.copyfile(parts[0], out / video_id)
        entries.append({"path": path, "label": ",".join(video.labels)})
        for label in video.labels:
            text = planned.descriptions[label]
            yield MetadataRow(video_id, number, text, planned.environment, kind, f"{base}.yaml")
    (out / base).parent.mkdir(parents=True, exist_ok=True)
    content = yaml.safe_dump(_description_file(planned), allow_unicode=True, sort_keys=False)
    (out / f"{base}.yaml").write_text(content, encoding="utf-8")
    (out / f"{base}{ENTRIES_END}").write_text(json.dumps(entries, indent=1), encoding="utf-8")


def _description_file(planned: PlannedSet) -> dict[str, object]:
    """What the set's YAML file holds; Minecraft's have neither an example nor metadata, as in the release."""
    content: dict[str, object] = {"label_prompts": planned.descriptions, "prompt_gpt": _PROMPT}
    if planned.environment == "minecraft":
        return content
    nouns = sorted({clip.noun for video in planned.videos for clip in video.clips})
    metadata: dict[str, object] = {"concepts": {"objects": nouns}}
    if planned.shared:
        shared = zip(planned.descriptions.values(), planned.shared, strict=True)
        metadata["prefix_lens"] = [{"description": text, "shared_prefix": steps} for text, steps in shared]
    return {**content, "example_gpt": _EXAMPLE, "metadata": metadata}
