"""The train/test split by video: 80/20, stratified by preparation type (paper, section 3.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from barista_bench.core.task import content_seed
from barista_bench.errors import DataError
from barista_bench.files.bounded import read_bounded_json

TRAIN, TEST = "train", "test"
SPLITS = (TRAIN, TEST)
MAX_BYTES = 2**26
"""Of a split file."""
_REMEDY = 'write {"train": [ids], "test": [ids]}'


def split_videos(preparations: Mapping[str, str], *, test_share: float = 0.2, seed: int = 42) -> dict[str, str]:
    """Video id to split. Depends on ids, preparations and seed alone, not on their order.

    Test videos are allotted to the preparation types by largest remainder, so that their sum is the share of all
    videos; every type of at least two videos gets one.

    >>> split_videos({"a": "capsule", "b": "capsule", "c": "capsule"})
    {'a': 'test', 'b': 'train', 'c': 'train'}
    """
    strata: dict[str, list[str]] = defaultdict(list)
    for video_id in sorted(preparations):
        strata[preparations[video_id]].append(video_id)
    chosen: set[str] = set()
    for stratum, count in _test_counts({k: len(v) for k, v in strata.items()}, test_share).items():
        ranked = sorted(strata[stratum], key=lambda video_id: (content_seed("split", seed, video_id), video_id))
        chosen.update(ranked[:count])
    return {video_id: TEST if video_id in chosen else TRAIN for video_id in sorted(preparations)}


def split_of(split_file: str | Path | None, preparations: Mapping[str, str]) -> dict[str, str]:
    """Video id to split, for the preparation types of all videos: from a file (see `load_splits`), or derived."""
    return load_splits(split_file, tuple(preparations)) if split_file else split_videos(preparations)


def load_splits(path: str | Path, video_ids: tuple[str, ...]) -> dict[str, str]:
    """A split from a JSON file `{"train": [video ids], "test": [video ids]}`.

    Raises:
        DataError: the file has another shape, or a video of the data is in no split or in both.
    """
    listed: Any = read_bounded_json(path, MAX_BYTES, what="no split file", remedy=_REMEDY)
    try:
        splits = {name: [str(video) for video in listed[name]] for name in SPLITS}
    except (KeyError, TypeError) as error:
        raise DataError(f"{path}: no split file ({error!r}). Remedy: {_REMEDY}") from error
    both = set(splits[TRAIN]) & set(splits[TEST])
    if both:
        raise DataError(f"{path}: {sorted(both)[0]!r} is in both splits. Remedy: keep it in one")
    of_video = {video: name for name, videos in splits.items() for video in videos}
    absent = [video for video in video_ids if video not in of_video]
    if absent:
        raise DataError(f"{path}: video {absent[0]!r} is in no split. Remedy: add it")
    return {video: of_video[video] for video in video_ids}


def _test_counts(sizes: Mapping[str, int], share: float) -> dict[str, int]:
    total = round(share * sum(sizes.values()))
    exact = {name: share * size for name, size in sizes.items()}
    counts = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(sizes, key=lambda name: (counts[name] - exact[name], name))
    for name in by_remainder[: max(0, total - sum(counts.values()))]:
        counts[name] += 1
    return {name: max(count, int(sizes[name] >= 2)) for name, count in counts.items()}
