r"""Columns of a ViSTa example, and scores read from an answer (docs/upstream/vista.md).

The released rule reads the text after the last "Final Scores". For each label it takes the lines that contain the label
as a word, in either case. It drops the part of each line up to the last occurrence of the label in the same case. The
largest number that remains is the score, so `4/5` gives 5. The released expression `(?<!_)([0-9]+(?:\.[0-9]+)?)`
matches numbers with or without decimals, but no sign. After an underscore it skips the first digit, so `label_12` gives
2. A label without a number scores -0.1.

The strict reading accepts only the prompt's exact format: one line `- (label) score` for every label. Scores range from
0 to 5, or from 0 to 1 with `conversation=minecraft`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from barista_bench.benchmarks.parsing import MAX_ANSWER
from barista_bench.core.example import (
    Inputs,
    Int64,
    Metadata,
    ParseError,
    Prediction,
    Target,
    TracedEvidence,
    TypedFields,
    read_scores,
)


class MatchingInputs(Inputs):
    """One video of a problem set.

    `labels` and `descriptions` have the same order as the set's file. `prompt_gpt` and `example_gpt` are the release's
    texts about the set. `frame_count` is the number of shown frames.
    """

    problem_set: str
    labels: list[str]
    descriptions: list[str]
    prompt_gpt: str
    example_gpt: str | None
    frame_count: int

    @property
    def choices(self) -> dict[str, str]:
        """Map each label to its description."""
        return dict(zip(self.labels, self.descriptions, strict=True))


class MatchingTarget(Target):
    """The labels that fit the video. There is one, except in Minecraft's `multilabel` set."""

    labels: list[str]


class MatchingMetadata(Metadata):
    """The keys by which analysis groups samples.

    `environment`, `level` and `type` use the paper's words. `frames` is the requested number of frames, and
    `frame_count` is the number of frames of the video. `seconds` is None if the video has no times. `ProblemSet`
    describes `shared_prefix`.
    """

    split: str
    environment: str
    type: str
    problem_set: str
    release_level: str
    release_type: str
    level: int
    sequence_length: int
    frames: int
    set_videos: int
    set_labels: int
    shared_prefix: int | None
    frame_count: Int64
    fps: float
    seconds: float | None


class EntryEvidence(TracedEvidence):
    """The file of the set, and the video's index in `<id>_data.json`."""

    file: str
    entry: Int64


HEADING = "Final Scores"
MISSING_SCORE = -0.1
"""The score that the released rule gives to a label without a number, and to every label of a refused video."""
LOWEST, HIGHEST = 0, 5

_NUMBER = re.compile(r"(?<!_)([0-9]+(?:\.[0-9]+)?)")
_DIGIT = re.compile("[0-9]")
_STRICT = re.compile(r"-\s*\((?P<label>[^()\s]+)\)\s*(?P<score>\d(?:\.\d{1,6})?)")
_DECORATION = re.compile(r"[\s:*#_`]*")


class LabelScores(TypedFields):
    """A parsed answer.

    `scores` follow the released rule. Labels without a score are in `missing` instead. `strict` has one score per
    label, and is None if the answer's format is wrong.
    """

    scores: dict[str, float]
    strict: dict[str, float] | None
    missing: list[str]

    @property
    def best(self) -> list[str]:
        """Return the labels with the highest score in the answer, in the order of the question."""
        highest = max(self.scores.values())
        return [label for label, score in self.scores.items() if score == highest]


def read_answer(text: str, labels: Sequence[str], highest: float = HIGHEST) -> Prediction | ParseError:
    """Return the `LabelScores` of an answer to a question with these labels, scored from 0 to `highest`.

    If no label has a score, there is no prediction. In this case the released rule gives every label -0.1, and scoring
    does the same.
    """
    encoder_scores = read_scores(text, labels)
    if encoder_scores is not None:
        return _prediction(encoder_scores, encoder_scores, labels)
    body = text[-MAX_ANSWER:].rpartition(HEADING)[2]
    scores = released_scores(body, labels)
    if not scores:
        return ParseError("no line with a label and a number")
    return _prediction(scores, strict_scores(body, labels, highest) if HEADING in text[-MAX_ANSWER:] else None, labels)


def released_scores(body: str, labels: Sequence[str]) -> dict[str, float]:
    """Return scores by the released rule. `body` is the text after the heading.

    A number that is too large for a float is ignored.
    """
    lines = [line for line in body.split("\n") if _DIGIT.search(line)]
    scores = {}
    for label in labels:
        word = re.compile(rf"\b{re.escape(label)}\b", re.IGNORECASE)
        tails = (line.split(label)[-1] for line in lines if word.search(line))
        numbers = [float(number) for tail in tails for number in _NUMBER.findall(tail)]
        finite = [number for number in numbers if math.isfinite(number)]
        if finite:
            scores[label] = max(finite)
    return scores


def strict_scores(body: str, labels: Sequence[str], highest: float = HIGHEST) -> dict[str, float] | None:
    """Return the scores of an answer in exactly the requested format, or None for any other format.

    `body` is the text after the heading. Fences and blank lines are allowed.
    """
    lines = [line.strip() for line in body.splitlines() if not _DECORATION.fullmatch(line)]
    if len(lines) != len(labels):
        return None
    matches = [_STRICT.fullmatch(line) for line in lines]
    scores = {match["label"]: float(match["score"]) for match in matches if match}
    if set(scores) != set(labels) or not all(LOWEST <= score <= highest for score in scores.values()):
        return None
    return {label: scores[label] for label in labels}


def write_answer(scores: dict[str, float]) -> str:
    """Write scores in the prompt's format: `Final Scores`, then one line `- (label) score` per label."""
    return "\n".join([HEADING, *(f"- ({label}) {score:g}" for label, score in scores.items())])


def _prediction(scores: dict[str, float], strict: dict[str, float] | None, labels: Sequence[str]) -> Prediction:
    missing = [label for label in labels if label not in scores]
    return Prediction(LabelScores(scores, strict, missing).write())
