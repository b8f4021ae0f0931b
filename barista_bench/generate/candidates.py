"""Questions that could be asked, what decides whether they may be, and the sampling of those that are: by balance over
videos, answers and the places of choices. HanDyVQA's are sampled by balance over words too.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import groupby
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from barista_bench.core.example import content_seed
from barista_bench.generate.scene import Scene
from barista_bench.generate.statements import Statement

Fields = dict[str, Any]
ALIKE = 0.9
"""Similarity of two texts, letter by letter, from which on they are no two choices."""

DECIDED = "decided"
"""The reason in a tally for what can be asked."""
DIVISIBLE = "parts of what it is about may be in several places"
UNPROVED = "the graph does not prove the answer"
TOO_FEW = "too few answers that the graph excludes"
REPEATED = "asks about what another question asks about"
"""Reasons for not asking what is decided."""
AGAIN = 3.0
"""Seconds between two moments at the least of which a subtask asks the same."""
NEAR_FRACTION = 3
"""Distractors of which one at the least is from the same moment or about the same thing."""
Tally = Counter[tuple[str, str]]
"""(subtask, reason) to how many of its candidates are `DECIDED`, or could not be asked for that reason."""


class Choice(NamedTuple):
    """One answer, and what it says of the scene."""

    text: str
    statement: Statement


Level = Literal["easy", "medium", "hard"]
LEVELS: tuple[Level, ...] = get_args(Level)


class Difficulty(msgspec.Struct, frozen=True):
    """Difficulty of answering a question by looking.

    Args:
        area: smallest fraction of the frame, 0 to 1, that the box of anything that it is about covers at the moments
            asked about; None where there is none.
        seconds: for how long the thing that is seen shortest is in the picture, of what is shown; None without a thing.
        near: how many of the distractors that it needs are near in place, category or time.
        steps: things that must be seen and put together.
        score: mean of these, each 0 (easy) to 1 (hard).
    """

    area: float | None
    seconds: float | None
    near: int
    steps: int
    score: float
    level: Level


class QuestionCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A question about one video.

    Args:
        subtask: of its family.
        video_id: whose graph decides it.
        question: text; an instruction where the family has no questions.
        right: every right answer.
        distractors: answers that may be offered beside, the most plausible first; more than are needed.
        given: what must hold for the question to be asked at all, as that what it speaks of is to be seen.
        span: frames [start, stop) that are shown.
        frames: moments that the question is about.
        objects: ids of what it is about.
        answer: what the answer is, for the balance of the set; by default the text of the right ones.
        event: what happens that is asked about: of one event a subtask asks once. By default what is said of `objects`
            by the right answers.
        second: of the video, that is asked about, where the same may be asked again `AGAIN` seconds before or after.
        extra: what the family writes beside, JSON values.
        wording: of `wordings.yaml`, `family/key`, with what fills its `slots`; empty for a text that stays as it is.
        form: the one of its forms that `question` has; empty for the plain one.
        difficulty: as `difficulty.with_difficulty` states it.
        origins: text of a distractor to where it is from: `SAME_OBJECT`, `SAME_MOMENT`, or neither.
    """

    subtask: str
    video_id: str
    question: str
    right: tuple[Choice, ...]
    distractors: tuple[Choice, ...] = ()
    given: tuple[Statement, ...] = ()
    span: tuple[int, int]
    frames: tuple[int, ...]
    objects: tuple[str, ...] = ()
    answer: str = ""
    event: str = ""
    second: float | None = None
    extra: Fields = {}
    wording: str = ""
    slots: Fields = {}
    form: str = ""
    difficulty: Difficulty | None = None
    origins: dict[str, str] = {}

    @property
    def level(self) -> Level | Literal[""]:
        return self.difficulty.level if self.difficulty else ""

    @property
    def answer_class(self) -> str:
        return self.answer or self.right_text

    @property
    def right_text(self) -> str:
        return "; ".join(choice.text for choice in self.right)

    @property
    def event_key(self) -> tuple[str, ...]:
        """A key that two candidates of one video share where they ask about one event."""
        return (self.subtask, self.event) if self.event else (self.subtask, self.right_text, *self.objects)

    @property
    def fact_key(self) -> tuple[object, ...]:
        """A key that two candidates of one video share where they have the same answer at the same moments."""
        return (self.subtask, self.right_text, *self.frames) if self.frames else self.event_key


def decide(candidate: QuestionCandidate, scene: Scene, distractors_needed: int) -> QuestionCandidate | str:
    """Prove a candidate by the graph: what is given and right holds, and enough of the wrong answers are excluded.

    Args:
        distractors_needed: how many wrong answers the question takes.

    Returns:
        The candidate with those wrong answers that are excluded, and that nobody can take for a right one or for each
        other; or why it cannot be asked.
    """
    nouns = [scene.things[name].noun for name in candidate.objects if name in scene.things]
    choices = [*candidate.right, *candidate.distractors]
    is_of_touch = bool(choices) and all(choice.statement.is_of_touch for choice in choices)
    if not is_of_touch and any(map(scene.domain.is_divisible, nouns)):
        return DIVISIBLE
    for statement in candidate.given:
        if statement.truth(scene) is not True:
            return f"{statement.unmet}, or its source does not say" if scene.coverage.is_partial else statement.unmet
    if any(choice.statement.truth(scene) is not True for choice in candidate.right):
        return UNPROVED
    distractors: list[Choice] = []
    for choice in candidate.distractors:
        is_excluded = choice.statement.truth(scene) is False
        if is_excluded and not any(are_alike(choice.text, other.text) for other in (*candidate.right, *distractors)):
            distractors.append(choice)
    if len(distractors) < distractors_needed:
        return TOO_FEW
    return msgspec.structs.replace(candidate, distractors=tuple(distractors))


def are_alike(first: str, second: str) -> bool:
    """Whether two texts are the same to a reader: but for case, articles, stops, or the odd letter in the same words.

    >>> are_alike("The red cup.", "red cup"), are_alike("left hand", "right hand"), are_alike("colour", "color")
    (True, False, True)
    """
    a, b = _plain_text(first), _plain_text(second)
    if a == b:
        return True
    return len(a.split()) == len(b.split()) == 1 and SequenceMatcher(None, a, b).ratio() >= ALIKE


@lru_cache(maxsize=2**14)
def _plain_text(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"(?i)\b(the|an?)\b", " ", text).casefold()))


def reasons_of(subtask: str, tally: Tally) -> dict[str, int]:
    """Reason to number of candidates, the most frequent first."""
    rows = [(reason, count) for (name, reason), count in tally.items() if name == subtask]
    return dict(sorted(rows, key=lambda row: (-row[1], row[0])))


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A sampled question as it is asked.

    Args:
        id: in its family.
        choices: in the order asked; empty where the family offers none.
        correct: indices of the right ones.
    """

    id: str
    candidate: QuestionCandidate
    choices: tuple[Choice, ...] = ()
    correct: tuple[int, ...] = ()


def by_video(items: Iterable[Item]) -> Iterator[tuple[str, list[Item]]]:
    """(video id, its items in the order given), so that each graph is read once."""
    ordered = sorted(items, key=lambda item: item.candidate.video_id)
    return ((video_id, list(rows)) for video_id, rows in groupby(ordered, key=lambda item: item.candidate.video_id))


def one_per_event(candidates: Iterable[QuestionCandidate], seed: int, tally: Tally) -> list[QuestionCandidate]:
    """Candidates of a video, by seed: one of each event and answer, and others of an event `AGAIN` seconds apart.

    The others are counted as `REPEATED`.
    """
    seeded = [(_seeded_key(candidate, seed), candidate) for candidate in candidates]
    kept: dict[int, QuestionCandidate] = {}
    facts: set[tuple[object, ...]] = set()
    seconds: dict[tuple[str, ...], list[float | None]] = defaultdict(list)
    for number in sorted(range(len(seeded)), key=lambda number: seeded[number][0]):
        candidate = seeded[number][1]
        others, second = seconds[candidate.event_key], candidate.second
        is_apart = all(second is not None and other is not None and abs(second - other) >= AGAIN for other in others)
        if is_apart and candidate.fact_key not in facts:
            kept[number] = candidate
            facts.add(candidate.fact_key)
            others.append(second)
        else:
            tally.update({(candidate.subtask, DECIDED): -1, (candidate.subtask, REPEATED): 1})
    return [candidate for _, candidate in sorted(kept.items())]


def thin(candidates: Iterable[QuestionCandidate], most: int, seed: int) -> list[QuestionCandidate]:
    """At most `most` of one video's candidates of each subtask, by turns of their answers, then of their questions.

    A video keeps no more than it could be asked for, so that memory is bounded by the set and not by the videos.
    """
    by_subtask: dict[str, list[QuestionCandidate]] = defaultdict(list)
    for candidate in candidates:
        by_subtask[candidate.subtask].append(candidate)
    return [chosen for rows in by_subtask.values() for chosen in _in_turns_of_answers(rows, seed)[:most]]


def sample(candidates: Sequence[QuestionCandidate], size: int, seed: int) -> list[QuestionCandidate]:
    """At most `size` of one subtask's candidates: the video and the answer sampled least so far come next.

    The order of `candidates` does not matter.
    """
    remaining = list(enumerate(_in_turns_of_answers(candidates, seed)))
    videos: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    sampled: list[QuestionCandidate] = []
    while remaining and len(sampled) < size:
        keys = [(answers[c.answer_class], videos[c.video_id], rank) for rank, c in remaining]
        _, best = remaining.pop(keys.index(min(keys)))
        videos[best.video_id] += 1
        answers[best.answer_class] += 1
        sampled.append(best)
    return sampled


def _in_turns_of_answers(candidates: Sequence[QuestionCandidate], seed: int) -> list[QuestionCandidate]:
    """The first of each answer, then the second of each, ...; within an answer in seeded order."""
    by_answer: dict[str, list[QuestionCandidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=lambda c: _seeded_key(c, seed)):
        by_answer[candidate.answer_class].append(candidate)
    ranked = [(at, _seeded_key(c, seed), c) for rows in by_answer.values() for at, c in enumerate(rows)]
    return [candidate for _, _, candidate in sorted(ranked, key=lambda row: row[:2])]


def _seeded_key(c: QuestionCandidate, seed: int) -> int:
    return content_seed("draw", seed, c.subtask, c.video_id, c.question, *c.frames, c.answer_class)


def with_choices(
    sampled: Sequence[QuestionCandidate], prefix: str, distractors_needed: Callable[[QuestionCandidate], int], seed: int
) -> list[Item]:
    """Items: the sampled questions with their choices, each in its place.

    A choice is sampled as wrong in proportion to how often it is right in the subtask, so that how often it stands
    there says nothing; the right one takes each place equally often.

    Args:
        prefix: of ids, which count from 0 within it.
        distractors_needed: how many distractors a candidate takes.
    """
    balance = Counter(choice.text for c in sampled for choice in c.right * distractors_needed(c))
    positions = [at % (distractors_needed(candidate) + 1) for at, candidate in enumerate(sampled)]
    random.Random(content_seed("places", seed, prefix)).shuffle(positions)  # noqa: S311
    items = []
    for at, (candidate, position) in enumerate(zip(sampled, positions, strict=True)):
        distractors: list[Choice] = []
        pool = list(candidate.distractors)
        needed = distractors_needed(candidate)
        while len(distractors) < needed:
            # A third is from the same moment or about the same thing, as far as there are such.
            is_first = len(distractors) < -(-needed // NEAR_FRACTION)
            # Ties go to the more plausible, which stands first.
            best = max(
                range(len(pool)),
                key=lambda i: (is_first and bool(candidate.origins.get(pool[i].text)), balance[pool[i].text], -i),
            )
            distractors.append(pool.pop(best))
            balance[distractors[-1].text] -= 1
        items.append(_item(f"{prefix}_{at:05d}", candidate, distractors, position, seed))
    return items


def _item(item_id: str, candidate: QuestionCandidate, distractors: list[Choice], position: int, seed: int) -> Item:
    """An item whose right choice, if there is one, stands at `position`; several right ones stand anywhere."""
    rng = random.Random(_seeded_key(candidate, seed))  # noqa: S311
    choices = list(distractors)
    if len(candidate.right) == 1:
        rng.shuffle(choices)
        choices.insert(position, candidate.right[0])
    else:
        choices += candidate.right
        rng.shuffle(choices)
    correct = tuple(i for i, choice in enumerate(choices) if choice in candidate.right)
    return Item(id=item_id, candidate=candidate, choices=tuple(choices), correct=correct)
