"""Writes ViSTa's sets in the layout of the release: descriptions, entries, a table, and videos.

A set has one environment per version of its videos: `real_life` for the videos of the graph, and `alfred`, ViSTa's
virtual home, for their rendered versions. A rendered version shows the same events on the same frames.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import yaml

from barista_bench.benchmarks.vista.release import ENTRIES_END, TABLE, TASKS_FOLDER
from barista_bench.benchmarks.vista.release_files import MetadataRow
from barista_bench.errors import DataError
from barista_bench.files.writing import write_whole
from barista_bench.generate.candidates import Item, by_video
from barista_bench.generate.spans import noun_of
from barista_bench.generate.vista.clips import VistaWords
from barista_bench.media.encoding import encode_video, join_videos, resize_pictures
from barista_bench.media.video import open_reader
from barista_bench.scene_graph import SceneGraph

FILMED, RENDERED = "real_life", "alfred"
"""The environments, which are folders of the release."""
RENDERED_FILE = "rendered.mp4"
"""The rendered version of a video, in the video's folder of the source."""
EXTRA_TYPES = frozenset({"opening_v_closing", "object_tracking", "object_interaction"})
"""Types of level 1 in the folder `extrapyramidal`, as in the release. All other types are in `foundation`."""


def write_release(items: Sequence[Item], source: SceneGraph, out: Path, words: VistaWords) -> None:
    """Write all sets of `items` into the folder `out`. The items are grouped by set.

    A set is also written as a rendered set if all of its videos have a rendered version.
    """
    rows: list[MetadataRow] = []
    rendered: list[Item] = []
    for name, group in groupby(items, key=lambda item: item.id.rpartition("/")[0]):
        members = list(group)
        rows += _write_set(FILMED, name, members, out, words)
        if all(_rendered_video(source, item.candidate.video_id).is_file() for item in members):
            rows += _write_set(RENDERED, name, members, out, words)
            rendered += members
    for environment, written in ((FILMED, items), (RENDERED, rendered)):
        for video_id, video_items in by_video(written):
            _write_videos(environment, video_items, source, video_id, out, words)
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(MetadataRow.__struct_fields__)
    writer.writerows(map(msgspec.structs.astuple, rows))
    write_whole(out / TABLE, table.getvalue().encode())


def _rendered_video(source: SceneGraph, video_id: str) -> Path:
    return source.video_path(video_id).with_name(RENDERED_FILE)


def _level_and_type(item: Item) -> tuple[str, str]:
    """Return (level, type), the names of folders of the release."""
    subtask = item.candidate.subtask
    if subtask.startswith("level_"):
        level, _, kind = subtask.rpartition("_")
        return level, kind
    return "extrapyramidal" if subtask in EXTRA_TYPES else "foundation", subtask


def entry_path(item: Item) -> str:
    """Return the path of an item's video in each environment."""
    _, name, number = item.id.split("/")
    return "/".join((*_level_and_type(item), name, f"take_{number}.mp4"))


def _write_set(
    environment: str, name: str, members: Sequence[Item], out: Path, words: VistaWords
) -> Iterator[MetadataRow]:
    first = members[0]
    level, kind = _level_and_type(first)
    labels = {choice.text: f"label_{index}" for index, choice in enumerate(first.choices)}
    stem = out / TASKS_FOLDER / environment / level / kind / name.rpartition("/")[2]
    entries = [{"path": entry_path(item), "label": labels[item.candidate.right[0].text]} for item in members]
    actions = list(dict.fromkeys(action for item in members for action in item.candidate.extra["actions"]))
    metadata: dict[str, object] = {
        "concepts": {"high_level_actions": actions, "objects": list(dict.fromkeys(filter(None, map(noun_of, actions))))}
    }
    if kind == "remix":
        prefixes = {item.candidate.right[0].text: item.candidate.extra["shared"] for item in members}
        metadata["prefix_lens"] = [{"description": text, "shared_prefix": steps} for text, steps in prefixes.items()]
    prompts = {label: text for text, label in labels.items()}
    content = {"label_prompts": prompts, "prompt_gpt": words.prompt, "example_gpt": words.example, "metadata": metadata}
    stem.parent.mkdir(parents=True, exist_ok=True)
    yaml_text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
    write_whole(stem.with_name(f"{stem.name}.yaml"), yaml_text.encode())
    write_whole(stem.with_name(stem.name + ENTRIES_END), json.dumps(entries, indent=1).encode())
    problem_set = f"{stem.relative_to(out).as_posix()}.yaml"
    number = int(level.removeprefix("level_")) if level.startswith("level_") else 1
    for item in members:
        text = item.candidate.right[0].text
        yield MetadataRow(f"{environment}/{entry_path(item)}", number, text, environment, kind, problem_set)


def _write_videos(
    environment: str, items: Sequence[Item], source: SceneGraph, video_id: str, out: Path, words: VistaWords
) -> None:
    """Write the entries of one video. Each is the sequence of its clips, at the common rate and width."""
    video = source[video_id].video
    path = source.video_path(video_id) if environment == FILMED else _rendered_video(source, video_id)
    with open_reader(path) as reader, TemporaryDirectory() as folder:
        if environment == RENDERED and len(reader) != video.frame_count:
            what = f"{path}: holds {len(reader)} frames, and the annotation {video.frame_count}"
            raise DataError(f"{what}. Fix: render each frame of the video once")
        size = _video_size(*reader.size, words.width)

        @cache  # sets share clips: a thousand entries may be made of fifty
        def clip(start: int, end: int) -> Path:
            frames = list(_frames_at_rate(start, end, video.fps or reader.fps, words.fps))
            path = Path(folder) / f"{start}_{end}.mp4"
            return encode_video(path, resize_pictures(reader.read(frames), size), size=size, fps=words.fps)

        for item in items:
            path = out / environment / entry_path(item)
            path.parent.mkdir(parents=True, exist_ok=True)
            join_videos(path, [clip(start, end) for start, end in item.candidate.extra["spans"]], fps=words.fps)


def _frames_at_rate(start: int, end: int, fps: float, rate: int) -> Iterator[int]:
    """Yield frames of [start, end) at `rate` per second. Of two equally near frames, the earlier one is taken.

    >>> list(_frames_at_rate(10, 20, 50.0, 25)), list(_frames_at_rate(0, 3, 25.0, 50))
    ([10, 12, 14, 16, 18], [0, 0, 1, 1, 2, 2])
    """
    count = max(1, round((end - start) * rate / fps))
    return (min(end - 1, start + int(number * fps / rate)) for number in range(count))


def _video_size(width: int, height: int, most: int) -> tuple[int, int]:
    """Return the size of a video. Width and height are even, and the aspect ratio is the source's.

    >>> _video_size(1280, 720, 320), _video_size(120, 80, 320)
    ((320, 180), (120, 80))
    """
    scale = min(1.0, most / max(width, height))
    return max(2, round(width * scale / 2) * 2), max(2, round(height * scale / 2) * 2)
