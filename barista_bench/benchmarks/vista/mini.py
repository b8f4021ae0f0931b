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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

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


@dataclass(frozen=True, slots=True)
class ActivityClip:
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


@dataclass(frozen=True, slots=True)
class _Take:
    """One video to be: clips in their order, and the labels that fit it."""

    labels: tuple[str, ...]
    clips: tuple[ActivityClip, ...]


@dataclass(frozen=True, slots=True)
class _Set:
    """One problem set to be; `folder` is its path below `tasks`, without the environment."""

    environment: str
    folder: str
    name: str
    descriptions: Mapping[str, str]
    takes: Sequence[_Take]
    shared: Sequence[int] = field(default_factory=tuple)


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
    rows = []
    with tempfile.TemporaryDirectory(dir=out) as folder:
        cutter = _Cutter(graph, Path(folder))
        for planned in sets:
            rows += _write_set(planned, out, cutter)
    with (out / TABLE).open("w", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        writer.writerow(MetadataRow.__struct_fields__)
        writer.writerows(rows)


def _clips(graph: SceneGraph) -> list[ActivityClip]:
    """One clip of every activity of every video, in their order, from its middle."""
    found = []
    for video in graph:
        for segment in video.activities():
            length = min(FRAMES, segment.end - segment.start)
            start = (segment.start + segment.end - length) // 2
            if segment.name.partition(" ")[2] and length > 1:
                found.append(ActivityClip(video.video_id, start, start + length, segment.name))
    return found


def _sets(clips: Sequence[ActivityClip], kitchen: Path) -> Iterator[_Set]:
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


def _by_part(environment: str, folder: str, clips: Sequence[ActivityClip], part: str) -> _Set:
    """Clips that share the verb and differ in the noun, or the other way round: one or two of each of three."""
    other = "verb" if part == "noun" else "noun"
    groups: dict[str, dict[str, list[ActivityClip]]] = {}
    for clip in clips:
        groups.setdefault(getattr(clip, other), {}).setdefault(getattr(clip, part), []).append(clip)
    shared = max(groups, key=lambda name: len(groups[name]))
    chosen = dict(islice(groups[shared].items(), 3))
    labels = {name: f"label_{at}" for at, name in enumerate(chosen)}
    takes = [_Take((labels[name],), (clip,)) for name, own in chosen.items() for clip in own[:2]]
    texts = {labels[name]: f"The hands {own[0].words}" for name, own in chosen.items()}
    return _Set(environment, folder, shared.replace(" ", "_"), texts, takes)


def _backwards(clip: ActivityClip) -> _Set:
    """One clip forwards and backwards, whole and its first half: level 1 beyond single actions."""
    half = ActivityClip(clip.video_id, clip.start, (clip.start + clip.stop) // 2 + 1, clip.activity)
    takes = [
        _Take((label,), (ActivityClip(own.video_id, own.start, own.stop, own.activity, reverse=label == "back"),))
        for own in (clip, half)
        for label in ("on", "back")
    ]
    texts = {"on": f"Time runs forwards while the hands {clip.words}", "back": "Time runs backwards"}
    return _Set("real_life", "extrapyramidal/opening_v_closing", "time", texts, takes)


def _several(steps: Sequence[ActivityClip]) -> _Set:
    """Videos that fit one or two of several descriptions."""
    chosen = list({clip.verb: clip for clip in reversed(steps)}.values())[:3]
    texts = {clip.verb: f"At some time the hands {clip.words}" for clip in chosen}
    takes = [_Take((clip.verb,), (clip,)) for clip in chosen]
    takes.append(_Take((chosen[0].verb, chosen[1].verb), (chosen[0], chosen[1])))
    return _Set("minecraft", "foundation", "multilabel", texts, takes)


def _permutation(environment: str, steps: Sequence[ActivityClip]) -> _Set:
    """The same clips in as many orders as there are clips: each order a turn of the one before."""
    count = len(steps)
    orders = [tuple(steps[(turn + place) % count] for place in range(count)) for turn in range(count)]
    texts = {f"label_{at}": _in_words(order) for at, order in enumerate(orders)}
    takes = [_Take((f"label_{at}",), order) for at, order in enumerate(orders)]
    return _Set(environment, f"level_{count}/permutation", f"turns_of_{count}", texts, takes)


def _general(environment: str, steps: Sequence[ActivityClip]) -> _Set:
    """A base of three steps, and sequences that share two, one and none of them at their beginning."""
    a, b, c, d, e, f = steps[:6]
    orders = [(a, b, c), (a, b, d), (a, e, d), (f, e, d)]
    texts = {f"label_{at}": _in_words(order) for at, order in enumerate(orders)}
    takes = [_Take((f"label_{at}",), order) for at, order in enumerate(orders)]
    return _Set(environment, "level_3/remix", "from_three_steps", texts, takes, (3, 2, 1, 0))


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


class _Cutter:
    """Cuts each clip once, whatever number of videos it is joined into."""

    def __init__(self, graph: SceneGraph, folder: Path) -> None:
        self._graph = graph
        self._folder = folder
        self._cut: dict[ActivityClip, Path] = {}

    def write(self, clips: Sequence[ActivityClip], out: Path) -> None:
        out.parent.mkdir(parents=True, exist_ok=True)
        parts = [self._clip(clip) for clip in clips]
        if len(parts) == 1:
            shutil.copyfile(parts[0], out)
        else:
            join_clips(parts, out)

    def _clip(self, clip: ActivityClip) -> Path:
        if clip not in self._cut:
            video = self._graph[clip.video_id]
            size, path = _small(video.video.width, video.video.height), self._folder / f"{len(self._cut)}.mp4"
            cut_clip(
                self._graph.video_path(clip.video_id), path, clip.start, clip.stop, size=size, reverse=clip.reverse
            )
            self._cut[clip] = path
        return self._cut[clip]


def _small(width: int, height: int) -> tuple[int, int]:
    """The size of a clip: even, and of the video's shape.

    >>> _small(1280, 720), _small(120, 80)
    ((160, 90), (120, 80))
    """
    scale = min(1.0, WIDTH / max(width, height))
    return max(2, round(width * scale / 2) * 2), max(2, round(height * scale / 2) * 2)


def _write_set(planned: _Set, out: Path, cutter: _Cutter) -> list[tuple[str, int, str, str, str, str]]:
    """The two files of a set and its videos. Returns its rows of the table."""
    level = planned.folder.split("/")[0]
    number = int(level.removeprefix("level_")) if level.startswith("level_") else 1
    relative = f"{TASKS_FOLDER}/{planned.environment}/{planned.folder}/{planned.name}"
    entries, rows = [], []
    for at, take in enumerate(planned.takes):
        path = f"{planned.folder}/{planned.name}/take_{at}.mp4"
        cutter.write(take.clips, out / planned.environment / path)
        entries.append({"path": path, "label": ",".join(take.labels)})
        rows += [
            (
                f"{planned.environment}/{path}",
                number,
                planned.descriptions[label],
                planned.environment,
                planned.folder.split("/")[-1],
                f"{relative}.yaml",
            )
            for label in take.labels
        ]
    (out / relative).parent.mkdir(parents=True, exist_ok=True)
    (out / f"{relative}.yaml").write_text(
        yaml.safe_dump(_document(planned), allow_unicode=True, sort_keys=False), encoding="utf-8"
    )
    (out / f"{relative}{ENTRIES_END}").write_text(json.dumps(entries, indent=1), encoding="utf-8")
    return rows


def _document(planned: _Set) -> dict[str, object]:
    """What the set's YAML file says; Minecraft's have neither an example nor metadata, as in the release."""
    document: dict[str, object] = {"label_prompts": dict(planned.descriptions), "prompt_gpt": _PROMPT}
    if planned.environment == "minecraft":
        return document
    objects = sorted({clip.noun for take in planned.takes for clip in take.clips})
    metadata: dict[str, object] = {"concepts": {"objects": objects}}
    if planned.shared:
        texts = planned.descriptions.values()
        shared = zip(texts, planned.shared, strict=True)
        metadata["prefix_lens"] = [{"description": text, "shared_prefix": count} for text, count in shared]
    return {**document, "example_gpt": _EXAMPLE, "metadata": metadata}
