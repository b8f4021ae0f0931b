"""Descriptions that distinguish a thing from others with its name, read from the words and proved from a raw annotation
file."""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from tests.generate.raw_video import DOMAIN, SIDES, RawVideo, Row
from tests.generate.raw_words import could_mean

SIDEWAYS = r"on the (?:left|right)"
PLACE_WORDS = {
    name: {words["words"], words.get("enclosed") or words["words"]} for name, words in DOMAIN["places"].items()
}
"""Words by predicate: a mug under a machine's spout is at the machine."""
WORDS = "|".join(sorted({word for words in PLACE_WORDS.values() for word in words}, key=len, reverse=True))
BEHIND = (
    rf"(?P<side>{SIDEWAYS})|in the (?P<hand>left|right) hand|being (?P<done>.+)|(?P<where>{WORDS}) the (?P<other>.+)"
)
BEHIND += (
    r"|that the person touches ?(?P<nth>first|second|third)?|that (?P<view>comes into view first|comes into view later"
)
BEHIND += r"|is in view from the start)"
DESCRIBED = re.compile(rf"(?:(?P<row>leftmost|middle|rightmost) (?P<plain>.+)|(?P<head>.+?) (?:{BEHIND}))")


def plain(words: str) -> str:
    """The words for a thing without the distinguishing description."""
    match = DESCRIBED.fullmatch(words)
    return (match["plain"] or match["head"]) if match else words


def is_told_apart(video: RawVideo, item: str, words: str, frames: Iterable[int]) -> bool:
    """Whether a description is true of an object on all frames, and false of all others that its name could mean."""
    match = DESCRIBED.fullmatch(words)
    assert match, words
    name = plain(words)
    others = [i for i in video.category if i not in {item, *video.is_hand} and could_mean(video, name, i)]
    rivals = {frame: [other for other in others if video.on(other, frame)] for frame in frames}
    if match["nth"] is not None or "that the person touches" in words:
        return _is_nth_touched(video, item, others, match["nth"])
    if match["view"]:
        return _comes_into_view(video, item, others, match["view"])
    return all(
        _fits(video, match.groupdict(), item, at) and not _any_fits(video, match, near, at, item)
        for at, near in rivals.items()
    )


def _any_fits(video: RawVideo, match: re.Match[str], rivals: list[str], frame: int, item: str) -> bool:
    side = match["side"] or match["row"]
    if side:
        middles = [_middle(video, i, frame) for i in sorted([*rivals, item], key=lambda i: _middle(video, i, frame))]
        at = middles.index(_middle(video, item, frame))
        place = {"on the left": 0, "leftmost": 0, "middle": 1}.get(side, len(middles) - 1)
        return at != place or any(b - a < 0.1 * video.width for a, b in pairwise(middles))
    return any(_fits(video, match.groupdict(), rival, frame) for rival in rivals)


def _fits(video: RawVideo, said: dict[str, Any], item: str, frame: int) -> bool:
    """Whether the recorded facts allow this description of an object."""
    if said["hand"]:
        return any(row.label == "holds" and row.start <= frame < row.end for row in video.touching(said["hand"], item))
    if said["done"]:
        during = [row for row in video.actions if row.start <= frame < row.end]
        touches = [row for side in SIDES for row in video.touching(side, item)]
        is_done = any(_overlaps(touch, row) for touch in touches for row in during)
        verbs = {words["do"]: name for name, words in DOMAIN["contacts"].items()}
        pressed = [
            row for row in touches if said["done"].startswith(next(v for v, n in verbs.items() if n == row.label)[:4])
        ]
        return is_done or any(row.start <= frame < row.end for row in pressed)
    if said["where"]:
        predicate = next(name for name, words in PLACE_WORDS.items() if said["where"] in words)
        others = [other for other in video.category if could_mean(video, said["other"], other)]
        rows = [row for other in others for row in video.places.get((item, other), ())]
        return any(row.label == predicate and row.start <= frame < row.end for row in rows)
    return True


def _overlaps(first: Row, second: Row) -> bool:
    return first.start < second.end and first.end > second.start


def _middle(video: RawVideo, item: str, frame: int) -> float:
    x, _, width, _ = video.marks[item][frame]["bbox"]
    return float(x + width / 2)


def _is_nth_touched(video: RawVideo, item: str, others: list[str], nth: str | None) -> bool:
    first = {i: min((r.start for s in SIDES for r in video.touching(s, i)), default=None) for i in (item, *others)}
    order = sorted((start, name) for name, start in first.items() if start is not None)
    at = [name for _, name in order].index(item)
    return (len(order) == 1) if nth is None else ("first", "second", "third")[at] == nth


def _comes_into_view(video: RawVideo, item: str, others: list[str], how: str) -> bool:
    (other,) = others
    first, second = min(video.marks[item]), min(video.marks[other])
    return (first > second) == (how == "comes into view later") and (first == 0) == (how == "is in view from the start")
