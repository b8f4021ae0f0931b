"""Small hand-made releases, and samples of a task made without any model."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import yaml
from PIL import Image

from barista_bench.benchmarks.vista.scoring import AnsweredVideo, MatchedSet, match_set as match_videos
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, FrameRef, Prediction, Scored
from barista_bench.media.encoding import encode_video

BOXES = BoxFormat()
COLUMNS = ("video", "level", "description", "environment", "problem_set_type", "problem_set")


def write_set(
    root: Path,
    set_id: str,
    entries: Sequence[tuple[str, str]],
    descriptions: Mapping[str, str],
    *,
    level: int = 1,
    **fields: object,
) -> Path:
    """A problem set's two files and its rows of the table. `entries` are (path, label)."""
    environment, *_, kind, _ = set_id.split("/")
    description = root / "tasks" / f"{set_id}.yaml"
    description.parent.mkdir(parents=True, exist_ok=True)
    document = {"label_prompts": dict(descriptions), "prompt_gpt": "Look at the hands.", **fields}
    description.write_text(yaml.safe_dump(document, sort_keys=False))
    data = [{"path": path, "label": label} for path, label in entries]
    description.with_name(f"{description.stem}_data.json").write_text(json.dumps(data))
    rows = [
        (f"{environment}/{path}", level, descriptions[part], environment, kind, f"tasks/{set_id}.yaml")
        for path, label in entries
        for part in label.split(",")
        if part in descriptions
    ]
    add_rows(root, rows)
    return description


def add_rows(root: Path, rows: Sequence[tuple[object, ...]]) -> None:
    table = root / "metadata.csv"
    is_new = not table.exists()
    with table.open("a", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerows([COLUMNS, *rows] if is_new else rows)


def write_frames(folder: Path, pictures: Sequence[np.ndarray]) -> Path:
    """A video as a folder of frames: exactly these pixels."""
    folder.mkdir(parents=True, exist_ok=True)
    for at, picture in enumerate(pictures):
        Image.fromarray(picture).save(folder / f"{at:06d}.png")
    return folder


def plain_frames(count: int, size: int = 8) -> list[np.ndarray]:
    """Frames of one colour each, no two alike."""
    return [np.full((size, size, 3), (at * 20 % 256, at * 7 % 256, 90), np.uint8) for at in range(count)]


def write_small_release(root: Path) -> None:
    """A release with sets of every environment, of levels 1 to 3, and with videos that several descriptions fit."""
    steps = ["open the lid", "lift the cup", "pour the milk", "wipe the tray"]

    def add(set_id: str, orders: Sequence[Sequence[int]], level: int, **fields: object) -> None:
        environment, folder = set_id.split("/", 1)
        descriptions = {f"label_{at}": "; then ".join(steps[step] for step in order) for at, order in enumerate(orders)}
        entries = [(f"{folder}/take_{at}.mp4", f"label_{at}") for at in range(len(orders))]
        write_set(root, set_id, entries, descriptions, level=level, **fields)
        for take, ((path, _), order) in enumerate(zip(entries, orders, strict=True)):
            video = root / environment / path
            video.parent.mkdir(parents=True, exist_ok=True)
            pictures = [np.full((16, 16, 3), 60 * step + at, np.uint8) for step in order for at in range(4 + take)]
            encode_video(video, pictures, size=(16, 16), fps=10)

    singles = [[0], [1], [2]]
    add("alfred/foundation/objects/hands", singles, 1)
    add("alfred/level_2/permutation/two", [[0, 1], [1, 0]], 2)
    add("alfred/level_3/permutation/three", [[0, 1, 2], [1, 2, 0], [2, 0, 1]], 3)
    add("alfred/level_3/remix/general", [[0, 1, 2], [0, 1, 3], [0, 3, 2], [3, 1, 2]], 3)
    add("real_life/extrapyramidal/opening_v_closing/doors", singles, 1)
    add("real_life/level_3/permutation/turns", [[0, 1, 2], [1, 2, 0], [2, 0, 1]], 3, example_gpt="1. A lid.")
    add("minecraft/level_2/permutation/two", [[0, 1], [1, 0]], 2)
    add("minecraft/foundation/multilabel", singles, 1)
    data = root / "tasks/minecraft/foundation/multilabel_data.json"
    data.write_text(data.read_text().replace('"label_0"', '"label_0,label_1"'))


def example(
    set_id: str = "alfred/level_3/permutation/one",
    video: str = "v",
    labels: Sequence[str] = ("a", "b", "c"),
    reference: Sequence[str] = ("a",),
    *,
    videos: int = 3,
    level: int = 3,
    kind: str = "permutation",
    environment: str = "virtual_home",
    frames: int = 16,
) -> Example:
    """One question without a release."""
    return Example(
        example_id=f"all:{set_id}:{video}",
        benchmark="vista",
        task="all",
        label=reference[0],
        frames=tuple(FrameRef(f"{set_id}/{video}", at) for at in range(frames)),
        inputs={
            "problem_set": set_id,
            "labels": list(labels),
            "descriptions": [f"somebody does {label}" for label in labels],
            "prompt_gpt": "Look at the hands.",
            "example_gpt": "1. A hand.",
            "frame_count": frames,
        },
        target={"labels": list(reference)},
        metadata={
            "split": "test",
            "environment": environment,
            "type": kind,
            "problem_set": set_id,
            "release_level": f"level_{level}",
            "release_type": kind,
            "level": level,
            "sequence_length": level,
            "frames": frames,
            "set_videos": videos,
            "set_labels": len(labels),
            "shared_prefix": None,
            "frame_count": frames,
            "fps": 30.0,
            "seconds": frames / 30,
        },
    )


def scored(asked: Example, scores: Mapping[str, float] | None, *, strict: bool = True) -> Scored:
    """A sample whose answer gave these scores; None for an unreadable answer."""
    if scores is None:
        return Scored(asked, None)
    missing = [label for label in asked.inputs["labels"] if label not in scores]
    value = {"scores": dict(scores), "strict": dict(scores) if strict and not missing else None, "missing": missing}
    return Scored(asked, Prediction(value))


def match(samples: Sequence[Scored]) -> MatchedSet:
    """The samples of one problem set, scored."""
    return match_videos([AnsweredVideo.of(sample) for sample in samples])


def by_set(samples: Sequence[Scored]) -> dict[str, list[Scored]]:
    """Samples by problem set; sets and samples keep their order."""
    sets: dict[str, list[Scored]] = {}
    for sample in samples:
        sets.setdefault(sample.example.inputs["problem_set"], []).append(sample)
    return sets
