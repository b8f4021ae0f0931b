"""Divide the videos of a source into the splits train, val and test. A video with all its questions is in one split."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose

from barista_bench.core.example import content_seed
from barista_bench.errors import ConfigError

SPLITS = ("train", "val", "test")


def parse_fractions(text: str) -> tuple[float, ...]:
    """Return the fractions of the splits. Raises ConfigError unless `text` has three that add up to 1.

    >>> parse_fractions("0.6,0.2,0.2")
    (0.6, 0.2, 0.2)
    """
    try:
        fractions = tuple(float(part) for part in text.split(","))
    except ValueError:
        fractions = ()
    if len(fractions) != len(SPLITS) or not all(0 <= part <= 1 for part in fractions) or not isclose(sum(fractions), 1):
        raise ConfigError(
            f"splits: {text!r:.80} is not three fractions that add up to 1. Fix: give the fractions of train, val and "
            "test, such as 0.6,0.2,0.2"
        )
    return fractions


def split_videos(video_ids: Sequence[str], fractions: Sequence[float], seed: int) -> dict[str, str]:
    """Return the split of each video. The split depends on the ids and the seed, but not on the order of the ids.

    Each split with a fraction has a video. Raises ConfigError if there are too few videos.
    """
    counts = {name: 0 for name, fraction in zip(SPLITS, fractions, strict=True) if fraction}
    if len(video_ids) < len(counts):
        raise ConfigError(f"splits: {len(video_ids)} videos do not fill {', '.join(counts)}. Fix: leave splits out")
    by_name = dict(zip(SPLITS, fractions, strict=True))
    splits = {}
    for video_id in sorted(video_ids, key=lambda name: (content_seed("split", seed, name), name)):
        # The next video goes where it keeps the fractions nearest, but first to a split without a video.
        name = max(counts, key=lambda split: (not counts[split], by_name[split] / (2 * counts[split] + 1)))
        splits[video_id] = name
        counts[name] += 1
    return splits
