"""Question-answer pairs about the changes of a clip: written by templates, or read from a file that a model wrote.

Templates cover every change that was found, and nothing else. Their answers have `FEWEST_WORDS` words or more, the
length below which the release drops an answer (upstream.md 1.10).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

from barista_bench.benchmarks.barista.change_detection import CATEGORIES, Category, Change
from barista_bench.benchmarks.barista.reference_text import is_place, listing, plural
from barista_bench.bounded_files import read_bounded_json, read_json_lines
from barista_bench.errors import DataError

FEWEST_WORDS = 16
SUFFIX = "_qa_pairs.jsonl"
PROVENANCE_FILE = "provenance.json"
"""Beside pairs that `barista-bench questions` wrote: by which model, with what prompt, and when."""
MAX_LINE = 2**20
"""Bytes of one line, and of the provenance; what is longer is refused."""
_REMEDY = 'write {"clip_index", "frame_indices", "qa_pairs": [{"question", "answer", "category"}]}'


class QaPair(TypedDict):
    question: str
    answer: str
    category: Category


class ClipPairs(TypedDict):
    """The pairs of one clip as cached: `frame_indices` are its keyframes."""

    clip_index: int
    frame_indices: list[int]
    qa_pairs: list[QaPair]


CachedPairs = Mapping[tuple[str, int], ClipPairs]
"""By video id and clip index."""


def write_pair(category: Category, changes: Sequence[Change]) -> QaPair:
    """One question that asks for all changes of a category in a clip, and the answer that names each of them."""
    question, answer = _WRITERS[category](changes)
    return QaPair(question=question, answer=answer, category=category)


def describe_change(change: Change) -> str:
    """One change in words, for explanations.

    >>> describe_change({"category": "relation_change", "kind": "lost", "subject": "lid", "value": "on",
    ...     "objects": ["jar"], "object_ids": [], "rows": [], "start": 0, "end": 120})
    'the lid is no longer on the jar'
    """
    if change["category"] == "state_change":
        return _state(change, 1)
    if change["category"] == "action_transition":
        return f"the {change['subject']} touches {_things(change)}"
    if change["category"] == "relation_change":
        return _relation(change, 1)
    return _activity(change)


def _write_states(changes: Sequence[Change]) -> tuple[str, str]:
    question = "How does the state of the objects in view change between the beginning and the end of this clip?"
    facts = [_state(change, count) for change, count in _counted(changes)]
    return question, f"Comparing the first frames of this clip with the last ones that it shows, {listing(facts)}."


def _write_contacts(changes: Sequence[Change]) -> tuple[str, str]:
    hands = list(dict.fromkeys(change["subject"] for change in changes))
    question = (
        f"Following the clip from its first frame to its last, what {'do' if len(hands) > 1 else 'does'} "
        f"{listing([f'the {hand}' for hand in hands])} touch, one after the other?"
    )
    parts = []
    for hand in hands:
        first, *rest = [_things(change) for change in changes if change["subject"] == hand]
        parts.append(f"the {hand} first touches {first}, then {', then '.join(rest)}")
    return question, f"Following the frames of this clip one after the other in their given order, {'; '.join(parts)}."


def _write_relations(changes: Sequence[Change]) -> tuple[str, str]:
    question = "How does the place of objects relative to each other change between the beginning and end of this clip?"
    facts = [_relation(change, count) for change, count in _counted(changes)]
    return question, f"Comparing the first frames of this clip with the last ones that it shows, {listing(facts)}."


def _write_activities(changes: Sequence[Change]) -> tuple[str, str]:
    question = "How do the activities of the person who films follow each other while this clip runs?"
    facts = [_activity(change) for change in changes]
    return (
        question,
        f"Following the frames of this clip one after the other in their given order, {', then '.join(facts)}.",
    )


_WRITERS: Mapping[Category, Callable[[Sequence[Change]], tuple[str, str]]] = {
    "state_change": _write_states,
    "action_transition": _write_contacts,
    "relation_change": _write_relations,
    "activity_progression": _write_activities,
}


def _counted(changes: Sequence[Change]) -> Iterator[tuple[Change, int]]:
    """Changes that read the same, once with their count."""
    texts = [describe_change(change) for change in changes]
    counts = Counter(texts)
    for text, change in dict(zip(texts, changes, strict=True)).items():
        yield change, counts[text]


def _state(change: Change, count: int) -> str:
    """`the lid was opened`, `2 lids were opened`, `the coffee machine started rinsing`."""
    subject = f"the {change['subject']}" if count == 1 else plural(change["subject"], count)
    if change["kind"] in ("opened", "closed"):
        return f"{subject} {'was' if count == 1 else 'were'} {change['kind']}"
    return f"{subject} {change['kind']}"


def _relation(change: Change, count: int) -> str:
    """`the lid is now on the jar`, or `the jar no longer contains the lid`."""
    word = "now" if change["kind"] == "new" else "no longer"
    verb = f"is {word}" if is_place(change["value"]) else word
    times = "" if count == 1 else f" ({count} of them)"
    return f"the {change['subject']} {verb} {change['value']} the {change['objects'][0]}{times}"


def _activity(change: Change) -> str:
    name = change["subject"][:1].lower() + change["subject"][1:]
    verb = {"started": "begins", "ended": "ends", "continuing": "goes on throughout"}[change["kind"]]
    return f'"{name}" {verb}'


def _things(change: Change) -> str:
    return listing([f"the {name}" for name in change["objects"]]) or "nothing"


def load_qa_pairs(folder: str | Path) -> dict[tuple[str, int], ClipPairs]:
    """Cached pairs of all videos: files `<video>_qa_pairs.jsonl`, one clip a line, as the release caches them.

    Raises:
        DataError: there is no such file, or a line is no clip with pairs of the four categories, each at most once, or
            a clip is given twice; names file and line.
    """
    files = sorted(Path(folder).glob(f"*{SUFFIX}"))
    if not files:
        raise DataError(f"{folder}: no file *{SUFFIX}. Remedy: give the folder that holds one such file a video")
    pairs: dict[tuple[str, int], ClipPairs] = {}
    for path in files:
        clips = read_json_lines(path, MAX_LINE, _clip_pairs, what="no question-answer pairs", remedy=_REMEDY)
        for number, clip in clips:
            key = (path.name.removesuffix(SUFFIX), clip["clip_index"])
            if key in pairs:
                raise DataError(f"{path}: line {number}: clip {key[1]} is given twice. Remedy: keep one")
            pairs[key] = clip
    return pairs


def read_writer(folder: str | Path) -> str:
    """Who wrote a folder of pairs, in one line; `cached` where no provenance lies beside them.

    Raises:
        DataError: the provenance cannot be read.
    """
    path = Path(folder) / PROVENANCE_FILE
    if not path.exists():
        return "cached"
    remedy = "write the questions again"
    found: Any = read_bounded_json(path, MAX_LINE, what="no provenance", remedy=remedy)
    try:
        identity = found["identity"]
        name, revision = identity["model"]["name"], identity["model"]["revision"] or "no revision"
        return f"{name} ({revision[:12]}), prompt {identity['prompt'][:12]}, {found['date']}"
    except (KeyError, TypeError) as error:
        raise DataError(f"{path}: no provenance ({error}). Remedy: {remedy}") from error


def _clip_pairs(line: bytes) -> ClipPairs:
    record = json.loads(line)
    if not isinstance(record, dict):
        raise TypeError("not an object")
    index, frames, listed = (record[key] for key in ("clip_index", "frame_indices", "qa_pairs"))
    if not _is_index(index) or not isinstance(frames, list) or not all(_is_index(frame) for frame in frames):
        raise TypeError("clip_index and frame_indices must be whole numbers from 0")
    if not isinstance(listed, list):
        raise TypeError("qa_pairs is no list")
    pairs = [_pair(item) for item in listed]
    categories = [pair["category"] for pair in pairs]
    if len(set(categories)) < len(categories):
        raise ValueError("more than one pair of a category")
    return ClipPairs(clip_index=index, frame_indices=frames, qa_pairs=pairs)


def _pair(item: object) -> QaPair:
    if not isinstance(item, dict):
        raise TypeError("a pair is no object")
    question, answer, category = (item[key] for key in ("question", "answer", "category"))
    for name, text in (("question", question), ("answer", answer)):
        if not isinstance(text, str) or not text.strip():
            raise TypeError(f"{name} is {text!r}, not a text")
    if category not in CATEGORIES:
        raise ValueError(f"category is {category!r}, not one of {', '.join(CATEGORIES)}")
    return QaPair(question=question, answer=answer, category=cast("Category", category))


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
