"""Question-answer pairs about the changes of a clip. Templates write them, or they are read from a model's file.

The answers of templates name exactly the detected changes and have at least `FEWEST_WORDS` words. As in the release, a
shorter answer of a model is dropped before the pairs are written to a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, TypedDict

import msgspec

from barista_bench.benchmarks.barista.change_detection import Category, Change
from barista_bench.benchmarks.barista.clips import ClipArrays
from barista_bench.benchmarks.barista.reference_text import is_place, listing
from barista_bench.core.frozen_lines import MAX_FRAMES, FrameIndex
from barista_bench.errors import DataError
from barista_bench.files.reading import read_bounded_json, read_json_lines
from barista_bench.scene_graph.video_graph import UNNAMED

FEWEST_WORDS = 16
SUFFIX = "_qa_pairs.jsonl"
PROVENANCE_FILE = "provenance.json"
"""A file beside the pairs of `barista-bench generate questions`, with model, prompt, time and videos."""
MAX_LINE = 2**22
"""Maximum number of bytes of one line, and of the provenance file."""
_REMEDY = 'write {"clip_index", "frame_indices", "qa_pairs": [{"question", "answer", "category"}]}'


class QaPair(TypedDict):
    """A question with its answer.

    `category` is one of `CATEGORIES`, but files from other sources may have other values.
    """

    question: str
    answer: str
    category: str


class ClipPairs(TypedDict):
    """The pairs of one clip. `frame_indices` are the clip's keyframes, and `clip_index` is the first of them."""

    clip_index: int
    frame_indices: list[int]
    qa_pairs: list[QaPair]


_COMPARING_QUESTIONS: Mapping[Category, str] = {
    "state_change": "How does the state of the objects in view change between the beginning and the end of this clip?",
    "relation_change": (
        "How does the place of objects relative to each other change between the beginning and end of this clip?"
    ),
}
"""Questions that compare the first frames with the last frames."""


def write_pair(category: Category, changes: Sequence[Change]) -> QaPair:
    """Return one question that asks for all changes of a category in a clip, and the answer that names every change."""
    opening = "Following the frames of this clip one after the other in their given order"
    if category in _COMPARING_QUESTIONS:
        opening = "Comparing the first frames of this clip with the last ones that it shows"
        question, facts = _COMPARING_QUESTIONS[category], listing(list(dict.fromkeys(map(describe_change, changes))))
    elif category == "action_transition":
        question, facts = _contacts(changes)
    else:
        question = "How do the activities of the person who films follow each other while this clip runs?"
        facts = ", then ".join(map(describe_change, changes_to_tell(changes)))
    return QaPair(question=question, answer=f"{opening}, {facts}.", category=category)


def changes_to_tell(changes: Sequence[Change]) -> list[Change]:
    """Return the changes that an answer names.

    A continuing activity counts once, and only if it neither begins nor ends within the clip.
    """
    bounded_names = {change.subject for change in changes if change.kind in ("started", "ended")}
    going_on = {c.subject: c for c in reversed(changes) if c.kind == "continuing" and c.subject not in bounded_names}
    others = [change for change in changes if change.kind != "continuing"]
    return [*others, *(going_on[name] for name in sorted(going_on))]


def describe_change(change: Change) -> str:
    """Return one change in words, for answers and explanations.

    >>> describe_change(Change("relation_change", "lost", "lid", "on", 0, ["jar"], [], [], start=0, end=120))
    'the lid is no longer on the jar'
    """
    match change.category:
        case "state_change":
            verb = "was " if change.kind in ("opened", "closed") else ""
            return f"the {change.subject} {verb}{change.kind}"
        case "action_transition":
            return f"the {change.subject} touches {_things(change)}"
        case "relation_change":
            word = "now" if change.kind == "new" else "no longer"
            verb = f"is {word}" if is_place(change.value) else word
            return f"the {change.subject} {verb} {change.value} the {change.objects[0]}"
    name = change.subject[:1].lower() + change.subject[1:]
    verb = {"started": "begins", "ended": "ends", "continuing": "goes on throughout"}[change.kind]
    return f'"{name}" {verb}'


def _contacts(changes: Sequence[Change]) -> tuple[str, str]:
    """Return the question about the contacts of hands, and the facts that its answer states."""
    hands = list(dict.fromkeys(change.subject for change in changes))
    question = (
        f"Following the clip from its first frame to its last, what {'do' if len(hands) > 1 else 'does'} "
        f"{listing([f'the {hand}' for hand in hands])} touch, one after the other?"
    )
    parts = []
    for hand in hands:
        first, *later = [_things(change) for change in changes if change.subject == hand]
        parts.append(f"the {hand} first touches {first}, then {', then '.join(later)}")
    return question, "; ".join(parts)


def _things(change: Change) -> str:
    return listing([f"the {name}" for name in change.objects]) or "nothing"


def clip_text(clip: ClipArrays, changes: Sequence[Change]) -> str:
    """Return a description of a clip for a model that writes a question: its objects, activities and changes.

    The text is exactly the released text (BARISTA release, question generation).
    """
    objects = sorted(set(clip.categories) - {UNNAMED})
    activities = [" + ".join(sorted(names)) for names in clip.activities if names]
    blocks = [
        f"Objects present: {', '.join(objects)}" if objects else "",
        f"Activity timeline: {' -> '.join(text for text, _ in groupby(activities))}" if activities else "",
        "\n".join(["Detected changes:", *_change_lines(changes)]),
    ]
    return "\n\n".join(filter(None, blocks))


def _change_lines(changes: Sequence[Change]) -> list[str]:
    """Return one line per change. The line states all parts of the change."""
    lines = []
    for _, group in groupby(changes, key=lambda change: change.number):
        parts = list(group)
        category, subject = parts[0].category, parts[0].subject
        if category == "state_change":
            text = f'"{subject}" {parts[0].kind}'
        elif category == "action_transition":
            steps = (" & ".join(part.objects) or "idle" for part in parts)
            text = f'"{subject}" contacts: {" -> ".join(steps)}'
        else:
            texts: dict[str, list[str]] = {}
            for part in parts:
                name = f"{part.value} {part.objects[0]}" if category == "relation_change" else part.subject
                texts.setdefault(part.kind, []).append(name)
            text = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in texts.items())
            text = f'"{subject}" \N{EM DASH} {text}' if category == "relation_change" else text
        lines.append(f"- {category}: {text}")
    return lines


def read_pairs(folder: str | Path, video_id: str) -> list[ClipPairs]:
    """Return the pairs of one video from a folder of files `<video>_qa_pairs.jsonl`.

    Each line of a file is a clip in the release's cache format. If only other videos have a file, the list is empty.

    Raises:
        DataError: the folder has no such file at all, or a line is not a clip with pairs. The message names file and
            line.
    """
    path = Path(folder) / f"{video_id}{SUFFIX}"
    if path.exists():
        lines = read_json_lines(path, MAX_LINE, _clip_pairs, what="no question-answer pairs", remedy=_REMEDY)
        return [clip for _, clip in lines]
    if not any(Path(folder).glob(f"*{SUFFIX}")):
        raise DataError(f"{folder}: no file *{SUFFIX}. Fix: give the folder that holds one such file a video")
    return []


def read_writer(folder: str | Path, video_id: str) -> str:
    """Return, in one line, who wrote the pairs of a video.

    Return `cached` if the folder's provenance does not name the video. Raises DataError if the provenance cannot be
    read.
    """
    path = Path(folder) / PROVENANCE_FILE
    if not path.exists():
        return "cached"
    remedy = "write the questions again"
    provenance: Any = read_bounded_json(path, MAX_LINE, what="no provenance", remedy=remedy)
    try:
        if video_id not in provenance["videos"]:
            return "cached"
        identity = provenance["identity"]
        name, revision = identity["model"]["name"], identity["model"]["revision"] or "no revision"
        return f"{name} ({revision[:12]}), prompt {identity['prompt'][:12]}, {provenance['date']}"
    except (KeyError, TypeError) as error:
        raise DataError(f"{path}: no provenance ({error}). Fix: {remedy}") from error


class _StatedPair(msgspec.Struct):
    question: str | None = None
    answer: str | None = None
    category: str | None = None


class _StatedClip(msgspec.Struct):
    """One line of a file. Missing fields of a pair are read as empty."""

    clip_index: FrameIndex
    frame_indices: Annotated[list[FrameIndex], msgspec.Meta(max_length=MAX_FRAMES)]
    qa_pairs: list[_StatedPair]


def _clip_pairs(line: bytes) -> ClipPairs:
    clip = msgspec.json.decode(line, type=_StatedClip)
    pairs = [
        QaPair(question=pair.question or "", answer=pair.answer or "", category=pair.category or "")
        for pair in clip.qa_pairs
    ]
    return ClipPairs(clip_index=clip.clip_index, frame_indices=clip.frame_indices, qa_pairs=pairs)
