"""Writes problem sets as a ViSTa release: descriptions, entries, the table of rows, and the videos."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby
from pathlib import Path

import msgspec
import yaml

from barista_bench.benchmarks.vista.release import ENTRIES_END, TABLE, TASKS_FOLDER
from barista_bench.benchmarks.vista.release_files import MetadataRow
from barista_bench.files.writing import write_whole
from barista_bench.generate.sampling import Item, by_video
from barista_bench.generate.vista_words import VistaWords
from barista_bench.media.video import open_reader
from barista_bench.mini.cutting import Picture, encode_video, resized
from barista_bench.scene_graph import SceneGraph

ENVIRONMENT = "real_life"
"""Folder of the release in which all sets lie."""
EXTRA_TYPES = frozenset({"opening_v_closing"})
"""Types of level 1 that lie in `extrapyramidal`, as in the release; the others in `foundation`."""
CLIPS = 24
"""Clips of one video that are kept decoded, in the small size of the release."""


def write_release(items: Sequence[Item], source: SceneGraph, out: Path, words: VistaWords) -> None:
    """Write all sets of `items`, which stand set by set, into the folder `out`."""
    rows: list[MetadataRow] = []
    for name, members in groupby(items, key=lambda item: item.id.rpartition("/")[0]):
        rows += _write_set(name, list(members), out, words)
    for video_id, of_video in by_video(items):
        _write_videos(of_video, source, video_id, out, words)
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(MetadataRow.__struct_fields__)
    writer.writerows(map(msgspec.structs.astuple, rows))
    write_whole(out / TABLE, table.getvalue().encode())


def _folder(item: Item) -> tuple[str, str]:
    """(level, type) as folders of the release."""
    subtask = item.candidate.subtask
    if subtask.startswith("level_"):
        level, _, kind = subtask.rpartition("_")
        return level, kind
    return "extrapyramidal" if subtask in EXTRA_TYPES else "foundation", subtask


def _path(item: Item) -> str:
    _, name, number = item.id.split("/")
    return "/".join((*_folder(item), name, f"take_{number}.mp4"))


def _write_set(name: str, members: Sequence[Item], out: Path, words: VistaWords) -> Iterator[MetadataRow]:
    first = members[0]
    level, kind = _folder(first)
    labels = {choice.text: f"label_{at}" for at, choice in enumerate(first.choices)}
    base = out / TASKS_FOLDER / ENVIRONMENT / level / kind / name.rpartition("/")[2]
    entries = [{"path": _path(item), "label": labels[item.candidate.right[0].text]} for item in members]
    actions = list(dict.fromkeys(action for item in members for action in item.candidate.extra["actions"]))
    metadata: dict[str, object] = {
        "concepts": {
            "high_level_actions": actions,
            "objects": list(dict.fromkeys(action.partition(" ")[2].lower() for action in actions)),
        }
    }
    if kind == "remix":
        shared = {item.candidate.right[0].text: item.candidate.extra["shared"] for item in members}
        metadata["prefix_lens"] = [{"description": text, "shared_prefix": steps} for text, steps in shared.items()]
    content = {
        "label_prompts": {label: text for text, label in labels.items()},
        "prompt_gpt": words.prompt,
        "example_gpt": words.example,
        "metadata": metadata,
    }
    base.parent.mkdir(parents=True, exist_ok=True)
    described = yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
    write_whole(base.with_name(f"{base.name}.yaml"), described.encode())
    write_whole(base.with_name(base.name + ENTRIES_END), json.dumps(entries, indent=1).encode())
    problem_set = f"{base.relative_to(out).as_posix()}.yaml"
    number = int(level.removeprefix("level_")) if level.startswith("level_") else 1
    for item in members:
        text = item.candidate.right[0].text
        yield MetadataRow(f"{ENVIRONMENT}/{_path(item)}", number, text, ENVIRONMENT, kind, problem_set)


def _write_videos(items: Sequence[Item], source: SceneGraph, video_id: str, out: Path, words: VistaWords) -> None:
    """The entries of one video, each its clips one after the other, at the common rate and width."""
    fps = source[video_id].video.fps
    with open_reader(source.video_path(video_id)) as reader:
        size = _small(*reader.size, words.width)

        @lru_cache(maxsize=CLIPS)  # sets share clips, and decoding is what takes the time
        def pictures(start: int, end: int) -> list[Picture]:
            frames = list(_at_rate(start, end, fps or reader.fps, words.fps))
            return list(resized(reader.read(frames), size))

        for item in items:
            path = out / ENVIRONMENT / _path(item)
            path.parent.mkdir(parents=True, exist_ok=True)
            clips = (pictures(start, end) for start, end in item.candidate.extra["spans"])
            encode_video(path, chain.from_iterable(clips), size=size, fps=words.fps)


def _at_rate(start: int, end: int, fps: float, rate: int) -> Iterator[int]:
    """The frames of [start, end) at `rate` a second, the earlier of two that are as near.

    >>> list(_at_rate(10, 20, 50.0, 25)), list(_at_rate(0, 3, 25.0, 50))
    ([10, 12, 14, 16, 18], [0, 0, 1, 1, 2, 2])
    """
    count = max(1, round((end - start) * rate / fps))
    return (min(end - 1, start + int(number * fps / rate)) for number in range(count))


def _small(width: int, height: int, most: int) -> tuple[int, int]:
    """The size of a video: even, and of its source's shape.

    >>> _small(1280, 720, 320), _small(120, 80, 320)
    ((320, 180), (120, 80))
    """
    scale = min(1.0, most / max(width, height))
    return max(2, round(width * scale / 2) * 2), max(2, round(height * scale / 2) * 2)
