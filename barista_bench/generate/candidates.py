"""Candidates for questions, the proof that they can be asked, and the sampling of a set.

A set is balanced over videos, answers and the places of right choices. HanDyVQA's sets are also balanced over words.
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
from barista_bench.generate.statements import Statement, Touches

Fields = dict[str, Any]
ALIKE = 0.9
"""Two words whose letters are at least this similar (0 to 1) do not count as different choices."""

DECIDED = "decided"
"""The key in a tally for candidates that can be asked."""
DIVISIBLE = "parts of what it is about may be in several places"
UNPROVED = "the graph does not prove the answer"
TOO_FEW = "too few answers that the graph excludes"
REPEATED = "asks about what another question asks about"
"""The reasons for which decided candidates are not asked."""
FACTS = " & "
"""Joins the facts of a candidate's `event`. The candidate is asked only if all these facts are new."""
NEAR_FRACTION = 3
"""At least one in this many distractors is from the same moment or about the same object, if possible."""
Tally = Counter[tuple[str, str]]
"""Maps (subtask, reason) to a number of candidates. The reason is `DECIDED`, or says why they cannot be asked."""


class Choice(NamedTuple):
    """A choice, and the statement about the scene that it makes."""

    text: str
    statement: Statement


DifficultyName = Literal["easy", "medium", "hard"]
DIFFICULTIES: tuple[DifficultyName, ...] = get_args(DifficultyName)


class Difficulty(msgspec.Struct, frozen=True):
    """The difficulty of answering a question by watching the video.

    Args:
        area: the smallest share of the frame, 0 to 1, that the box of an object of the question covers at the moments
            asked about; None without boxes.
        seconds: the shortest time that an object of the question is visible in the frames shown; None without objects.
        near: number of the needed distractors that are near in place, category or time.
        steps: number of things that must be seen and combined.
        score: mean difficulty of these points, each from 0 (easy) to 1 (hard).
    """

    area: float | None
    seconds: float | None
    near: int
    steps: int
    score: float
    level: DifficultyName


class QuestionCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A question about one video.

    Args:
        subtask: subtask of the family.
        video_id: the video whose graph decides the question.
        question: text of the question, or an instruction if the family has no questions.
        right: all right answers.
        distractors: possible wrong choices, more than needed, the most plausible first.
        given: conditions for asking the question, for example that its objects are visible.
        span: frames [start, stop) that are shown.
        frames: moments that the question is about.
        objects: ids of the objects that the question is about.
        answer: key of the answer by which the set is balanced; by default the text of the right answers.
        event: the event that the question is about. A subtask asks about each event once. By default it is the text of
            the right answers with `objects`.
        topic: subtasks whose questions have the same topic ask about each event once together; by default the subtask.
        extra: additional JSON values that the family writes.
        wording: `family/key` in `wordings.yaml`, filled with `slots`; empty for a fixed text.
        form: the form of the wording that `question` has; empty for the plain form.
        chosen_as: subtask and plain question of another candidate with the same right answers. By seed, both are chosen
            or neither.
        difficulty: set by `difficulty.with_difficulty`.
        origins: maps the text of a distractor to its origin, `SAME_OBJECT` or `SAME_MOMENT`.
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
    topic: str = ""
    extra: Fields = {}
    wording: str = ""
    slots: Fields = {}
    form: str = ""
    chosen_as: tuple[str, str] | None = None
    difficulty: Difficulty | None = None
    origins: dict[str, str] = {}

    @property
    def level(self) -> DifficultyName | Literal[""]:
        return self.difficulty.level if self.difficulty else ""

    @property
    def choosing_subtask(self) -> str:
        return self.chosen_as[0] if self.chosen_as else self.subtask

    @property
    def answer_class(self) -> str:
        return self.answer or self.right_text

    @property
    def right_text(self) -> str:
        return "; ".join(choice.text for choice in self.right)

    @property
    def event_key(self) -> tuple[str, ...]:
        """Return a key of the event. Candidates of a video that ask about the same event share this key."""
        names = (self.event,) if self.event else (self.right_text, *self.objects)
        return (self.topic or self.subtask, *names)

    @property
    def fact_key(self) -> tuple[object, ...]:
        """Return a key of the fact. Candidates of a video with the same answer at the same moments share this key."""
        return (self.subtask, self.right_text, *self.frames) if self.frames else self.event_key

    @property
    def facts(self) -> frozenset[tuple[object, ...]]:
        """Return the keys of the facts that the candidate asks for. Of candidates with a common key, one is asked."""
        topic, *names = self.event_key
        single = [(topic, *names)] if len(names) > 1 else [(topic, fact) for fact in names[0].split(FACTS)]
        return frozenset((self.fact_key, *single))

    @property
    def claims(self) -> frozenset[Statement]:
        """Return what the right answers say about moments; nothing for a candidate that is chosen as another one.

        A touch that the question names at the moment of the answer belongs to it.
        """
        stated = [choice.statement for choice in self.right if self.frames and not self.chosen_as]
        if len(self.frames) == 1:
            stated += [statement for statement in self.given if stated and isinstance(statement, Touches)]
        return frozenset(part for statement in stated for part in statement.implications)


def decide_candidate(candidate: QuestionCandidate, scene: Scene, distractors_needed: int) -> QuestionCandidate | str:
    """Prove by the graph that a candidate's conditions and right answers hold and enough wrong answers are excluded.

    Args:
        distractors_needed: number of wrong answers that the question needs.

    Returns:
        The candidate, or the reason why it cannot be asked. The candidate's distractors are the excluded wrong answers
        that cannot be confused with a right answer or with each other.
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
    """Return whether two texts look the same to a reader: they differ only in case, articles, stops, or single letters.

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
    """Return the number of candidates for each reason, the most frequent first."""
    rows = [(reason, count) for (name, reason), count in tally.items() if name == subtask]
    return dict(sorted(rows, key=lambda row: (-row[1], row[0])))


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A sampled question with its choices in the order asked.

    Args:
        id: id within the family.
        choices: in the order asked; empty if the family has no choices.
        correct: indices of the right choices.
    """

    id: str
    candidate: QuestionCandidate
    choices: tuple[Choice, ...] = ()
    correct: tuple[int, ...] = ()


def by_video(items: Iterable[Item]) -> Iterator[tuple[str, list[Item]]]:
    """Group items by video id, so that each graph is read once. Within a video, items keep their order."""
    ordered = sorted(items, key=lambda item: item.candidate.video_id)
    return ((video_id, list(rows)) for video_id, rows in groupby(ordered, key=lambda item: item.candidate.video_id))


def one_per_event(candidates: Iterable[QuestionCandidate], seed: int, tally: Tally) -> list[QuestionCandidate]:
    """Choose, by seed, the candidates of a video that ask for new facts. All other candidates count as `REPEATED`.

    So does a candidate of any subtask that makes a claim of a chosen one. Candidates that exclude few other facts come
    first, so that many can be chosen. Among equals the subtasks choose in turns, an event each, so that none of them
    takes all events from another.
    """
    listed = list(candidates)
    events = [_seeded_event(candidate, seed) for candidate in listed]
    by_subtask: dict[str, set[int]] = defaultdict(set)
    facts_with: dict[object, set[frozenset[object]]] = defaultdict(set)
    facts = [frozenset((*candidate.facts, *candidate.claims)) for candidate in listed]
    for candidate, event, own_facts in zip(listed, events, facts, strict=True):
        by_subtask[candidate.choosing_subtask].add(event)
        for fact in own_facts:
            facts_with[fact].add(own_facts)
    turns = {name: {event: turn for turn, event in enumerate(sorted(rows))} for name, rows in by_subtask.items()}
    ranks = [
        (
            len(frozenset[frozenset[object]]().union(*(facts_with[fact] for fact in own_facts))),
            turns[candidate.choosing_subtask][event],
            event,
            _seeded_key(candidate, seed),
        )
        for candidate, event, own_facts in zip(listed, events, facts, strict=True)
    ]
    kept: dict[int, QuestionCandidate] = {}
    used_facts: set[object] = set()
    for number in sorted(range(len(listed)), key=ranks.__getitem__):
        candidate = listed[number]
        if used_facts.isdisjoint(facts[number]):
            kept[number] = candidate
            used_facts |= facts[number]
        else:
            tally.update({(candidate.subtask, DECIDED): -1, (candidate.subtask, REPEATED): 1})
    return [candidate for _, candidate in sorted(kept.items())]


def keep_most(candidates: Iterable[QuestionCandidate], most: int, seed: int) -> list[QuestionCandidate]:
    """Keep at most `most` candidates of each subtask of one video, alternating between answers.

    Memory then grows with the size of the set, not with the number of videos.
    """
    by_subtask: dict[str, list[QuestionCandidate]] = defaultdict(list)
    for candidate in candidates:
        by_subtask[candidate.subtask].append(candidate)
    return [chosen for rows in by_subtask.values() for chosen in _in_turns_of_answers(rows, seed)[:most]]


def sample_candidates(candidates: Sequence[QuestionCandidate], size: int, seed: int) -> list[QuestionCandidate]:
    """Sample at most `size` candidates of one subtask.

    The next candidate has the answer, and then the video, that was sampled least so far. The order of `candidates`
    does not matter.
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
    """Return the first candidate of each answer, then the second of each answer, and so on.

    Within an answer, candidates are in seeded order.
    """
    by_answer: dict[str, list[QuestionCandidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=lambda c: _seeded_key(c, seed)):
        by_answer[candidate.answer_class].append(candidate)
    ranked = [(index, _seeded_key(c, seed), c) for rows in by_answer.values() for index, c in enumerate(rows)]
    return [candidate for _, _, candidate in sorted(ranked, key=lambda row: row[:2])]


def _seeded_key(c: QuestionCandidate, seed: int) -> int:
    subtask, question = c.chosen_as or (c.subtask, c.question)
    return content_seed("draw", seed, subtask, c.video_id, question, *c.frames, c.answer_class)


def _seeded_event(c: QuestionCandidate, seed: int) -> int:
    """Return a key of an event in its subtask."""
    return content_seed("event", seed, c.choosing_subtask, c.video_id, *c.event_key[1:])


def with_choices(
    sampled: Sequence[QuestionCandidate], prefix: str, distractors_needed: Callable[[QuestionCandidate], int], seed: int
) -> list[Item]:
    """Return the sampled questions as items, with their choices in order.

    A text is a wrong choice in proportion to how often it is right in the subtask, so its frequency reveals nothing.
    The right choice has each place equally often.

    Args:
        prefix: beginning of the ids, which are numbered from 0.
        distractors_needed: returns the number of distractors that a candidate needs.
    """
    balance = Counter(choice.text for c in sampled for choice in c.right * distractors_needed(c))
    positions = [index % (distractors_needed(candidate) + 1) for index, candidate in enumerate(sampled)]
    random.Random(content_seed("places", seed, prefix)).shuffle(positions)  # noqa: S311
    items = []
    for index, (candidate, position) in enumerate(zip(sampled, positions, strict=True)):
        distractors: list[Choice] = []
        pool = list(candidate.distractors)
        needed = distractors_needed(candidate)
        while len(distractors) < needed:
            # If possible, a third of the distractors is from the same moment or about the same object.
            is_first = len(distractors) < -(-needed // NEAR_FRACTION)
            # At a tie, the more plausible distractor wins, which comes first in the list.
            best = max(
                range(len(pool)),
                key=lambda i: (is_first and bool(candidate.origins.get(pool[i].text)), balance[pool[i].text], -i),
            )
            distractors.append(pool.pop(best))
            balance[distractors[-1].text] -= 1
        items.append(_item(f"{prefix}_{index:05d}", candidate, distractors, position, seed))
    return items


def _item(item_id: str, candidate: QuestionCandidate, distractors: list[Choice], position: int, seed: int) -> Item:
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
