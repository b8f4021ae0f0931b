"""HanDyVQA's questions: actions of hands in a clip of five seconds, with their manner, place, objects and effects."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from barista_bench.benchmarks.handyvqa import records, release
from barista_bench.benchmarks.kinds.masks import unite_masks
from barista_bench.errors import DataError
from barista_bench.files.writing import write_whole
from barista_bench.generate.candidates import Choice, Item, QuestionCandidate, by_video, sample_candidates, with_choices
from barista_bench.generate.family import Family, SampledItems, domain_error, family_words, place_video
from barista_bench.generate.handyvqa.object_questions import HandyvqaWords
from barista_bench.generate.handyvqa.questions import Questions
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import COLOUR
from barista_bench.media.frame_choice import in_window
from barista_bench.media.video.readers import VideoFacts, video_facts
from barista_bench.scene_graph import SceneGraph, VideoGraph
from barista_bench.scene_graph.domain import Domain

OPTIONS = 5
"""Number of options of a question.

A question has fewer options if the graph excludes fewer. It has more options if fewer than `LEAST_DISTRACTORS` of them
would be wrong.
"""
LEAST_DISTRACTORS = 2


class HandyvqaFamily(Family):
    """All eight categories of the benchmark, asked about clips of the source's videos."""

    name: ClassVar[str] = "handyvqa"
    subtasks: ClassVar[tuple[str, ...]] = release.CATEGORIES
    choice_subtasks: ClassVar[tuple[str, ...]] = release.MCQ_CATEGORIES

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self.domain_words = family_words(domain, self.name, HandyvqaWords)
        for key, described, words_used in (
            ("grip", domain.contacts, (self.domain_words.grip,)),
            ("where", domain.places, self.domain_words.where),
            ("state", domain.attributes, (self.domain_words.state,)),
        ):
            if unknown := sorted({*words_used} - {*described, ""}):
                raise domain_error(domain, f"families.{self.name}.{key}: {unknown[0]!r} is not described in the file")
        if domain.lengths.clip != 2 * release.HALF_WINDOW_S:
            clip = f"{domain.lengths.clip:g} s, and a clip of this benchmark has {2 * release.HALF_WINDOW_S:g} s"
            raise domain_error(domain, f"lengths.clip is {clip}")
        self._colours = frozenset(domain.attributes[COLOUR].values) if COLOUR in domain.attributes else frozenset()

    def distractors_needed(self, candidate: QuestionCandidate) -> int:
        """Return the smallest number of distractors. It is 0 if masks are the answer, since no model sees options."""
        return 0 if candidate.subtask in release.RVOS_CATEGORIES else LEAST_DISTRACTORS

    def candidates(self, scene: Scene) -> Iterator[QuestionCandidate]:
        questions = Questions(scene, self.domain_words)
        yield from chain(questions.actions(), questions.processes(), questions.locations())
        yield from chain(questions.states(), questions.parts(), questions.objects())

    def items(
        self, candidates: Sequence[QuestionCandidate], size: int, seed: int, ceiling: float | None = None
    ) -> SampledItems:
        """Return the sample. Its questions with masks are those with options that also have masks, under their ids.

        If there are none, questions with masks are sampled by themselves.
        """
        with_options = [c for c in candidates if c.subtask not in release.RVOS_CATEGORIES]
        sampled = super().items(with_options, size, seed, ceiling)
        masked: list[Item] = []
        for subtask in release.RVOS_CATEGORIES:
            own = {_moment(c): c for c in candidates if c.subtask == subtask}
            shared = [
                msgspec.structs.replace(item, id=f"rvos_{item.id}", candidate=own[_moment(item.candidate)])
                for item in sampled.items
                if f"rvos_{item.candidate.subtask}" == subtask and _moment(item.candidate) in own
            ]
            masked += shared or self.sample_subtask(subtask, list(own.values()), size, seed)
        return sampled._replace(items=[*sampled.items, *self.assign_forms(masked, seed)])

    def size_problem(self, subtask: str, candidates: Sequence[QuestionCandidate], size: int) -> str:
        return "its question with options is not in the set" if subtask in release.RVOS_CATEGORIES else ""

    def sample_subtask(self, subtask: str, candidates: Sequence[QuestionCandidate], size: int, seed: int) -> list[Item]:
        if subtask in release.RVOS_CATEGORIES:
            return with_choices(sample_candidates(candidates, size, seed), subtask, _shown_distractors, seed)
        sampled = sample_balanced(candidates, size, seed, _shown_distractors, self.words)
        return with_choices(sampled, subtask, _shown_distractors, seed)

    def words(self, candidate: QuestionCandidate, choice: Choice) -> tuple[str, ...]:
        """Return the cues of a choice: its words, its text, and its text combined with the name in the question.

        Colours are left out, since they only distinguish the objects of one video.
        """
        words, name_words = (
            [word for word in re.findall(r"\w+", text.lower()) if word not in self._colours]
            for text in (choice.text, candidate.slots.get("name", ""))
        )
        return tuple(dict.fromkeys((*words, " ".join(words), " ".join([*name_words, "?", *words]))))

    def write(self, items: Sequence[Item], source: SceneGraph, out: Path) -> None:
        """Write `<category>.jsonl` for each category that has items, and the complete videos below `videos`.

        Raises:
            DataError: a video is missing, or the times of its frames do not match its graph.
        """
        lines: dict[str, list[bytes]] = defaultdict(list)
        (out / "videos").mkdir()
        for video_id, video_items in by_video(items):
            path = out / _video_name(video_id)
            place_video(source, video_id, path)
            graph, facts = source[video_id], video_facts(path)
            for item in video_items:
                record = msgspec.structs.replace(
                    _record(item, graph, facts),
                    split=self.splits.get(video_id, records.TEST),
                    scenario=self.domain.name,
                )
                lines[item.candidate.subtask].append(msgspec.json.encode(record) + b"\n")
        for category, encoded in lines.items():
            write_whole(out / f"{category}.jsonl", b"".join(sorted(encoded)))


def _shown_distractors(candidate: QuestionCandidate) -> int:
    """Return the usual number of distractors of a decided candidate, or all of them if the graph excludes fewer."""
    return min(max(LEAST_DISTRACTORS, OPTIONS - len(candidate.right)), len(candidate.distractors))


def _moment(candidate: QuestionCandidate) -> tuple[object, ...]:
    return candidate.video_id, candidate.span, candidate.objects, candidate.slots.get("side")


def _video_name(video_id: str) -> str:
    return f"videos/{video_id}.mp4"


def _record(item: Item, graph: VideoGraph, facts: VideoFacts) -> records.ItemRecord:
    candidate = item.candidate
    fps = graph.video.fps or facts.fps
    centre = candidate.frames[0] / fps
    window = in_window(facts, centre, release.HALF_WINDOW_S)
    if (window.start, window.stop) != candidate.span:
        raise DataError(
            f"{candidate.video_id}: frames {candidate.span} of its graph are {window} in its video, by their times. "
            "Fix: give the video that was annotated, at a constant rate, and its fps"
        )
    return records.ItemRecord(
        id=item.id,
        question=candidate.question,
        options=[choice.text for choice in item.choices],
        correct_idx=list(item.correct),
        clip=records.ClipRecord(video=_video_name(candidate.video_id), centre_seconds=centre),
        annotated=[
            records.AnnotatedRecord(frame=frame, targets=_targets(item, graph, frame))
            for frame in candidate.extra.get("annotated", ())
        ],
    )


def _targets(item: Item, graph: VideoGraph, frame: int) -> list[records.TargetRecord]:
    """Return the masks of the right options on a frame. Each option is an object with all its parts."""
    instances = {instance.object.id: instance for instance in graph.instances(frame)}
    masked: list[list[str]] = item.candidate.extra["masked"]
    targets = []
    for option in item.correct:
        ids = masked[item.candidate.right.index(item.choices[option])]
        rles = [graph.rle(instances[object_id]) for object_id in ids if object_id in instances]
        if rles:
            mask = unite_masks([rle.counts for rle in rles], rles[0].size)
            segmentation = records.RunLengths(size=mask.size, counts=mask.counts)
            targets.append(records.TargetRecord(option=option, segmentation=segmentation))
    return targets


# Sampling, balanced over videos, answers and words


SLACK = 3.0
"""A word's count in distractors may deviate by this number plus the square root of the expected count."""
SPARE = 4
"""Maximum number of candidates that are examined per requested item."""
AT_ONCE = 40
"""Number of candidates, next in the order of `sample_candidates`, from which one is chosen."""

DistractorsNeeded = Callable[[QuestionCandidate], int]
Words = Callable[[QuestionCandidate, Choice], Sequence[str]]
Counts = NDArray[np.int64]


class _WordCounts(NamedTuple):
    """The word counts of a candidate: in its right choices, (words,), and in each wrong choice, (choices, words)."""

    candidate: QuestionCandidate
    right: Counts
    distractors: Counts
    needed: int


def sample_balanced(
    candidates: Sequence[QuestionCandidate], size: int, seed: int, distractors_needed: DistractorsNeeded, words: Words
) -> list[QuestionCandidate]:
    """Sample at most `size` candidates and their distractors so that no word tells right choices from wrong choices.

    The expected count of a word in distractors is its count in right choices times the set's number of distractors per
    right choice. Candidates are taken in the order of `sample_candidates`. Among the next few, the candidate comes
    first whose answer was sampled least and that keeps all words nearest to their expected counts. A candidate that
    would make a word disproportionate is left out. Sums are integers, so the result is the same on any machine.

    Args:
        words: returns the cues in one choice of a candidate.
    """
    pool = _word_counts(sample_candidates(candidates, SPARE * size, seed), distractors_needed, words)
    sampled: list[QuestionCandidate] = []
    answers: Counter[str] = Counter()
    balance = _Balance(pool[0].right.size if pool else 0)
    window_start = 0
    while window_start < len(pool) and len(sampled) < size:
        additions = [
            (answers[counts.candidate.answer_class], addition, index)
            for index, counts in enumerate(pool[window_start : window_start + AT_ONCE], start=window_start)
            if (addition := balance.addition(counts))
        ]
        if not additions:
            window_start += AT_ONCE
            continue
        _, (_, chosen), index = min(additions, key=lambda row: (row[0], row[1][0], row[2]))
        counts = pool.pop(index)
        candidate = counts.candidate
        answers[candidate.answer_class] += 1
        balance.add(counts, chosen)
        distractors = tuple(candidate.distractors[number] for number in chosen)
        sampled.append(msgspec.structs.replace(candidate, distractors=distractors))
        window_start = 0
    return sampled


def _word_counts(
    candidates: Sequence[QuestionCandidate], distractors_needed: DistractorsNeeded, words: Words
) -> list[_WordCounts]:
    index: dict[str, int] = {}
    for candidate in candidates:
        for choice in (*candidate.right, *candidate.distractors):
            for word in words(candidate, choice):
                index.setdefault(word, len(index))

    def counts(candidate: QuestionCandidate, choices: Sequence[Choice]) -> Counts:
        table = np.zeros((len(choices), len(index)), dtype=np.int64)
        for row, choice in enumerate(choices):
            table[row, [index[word] for word in words(candidate, choice)]] = 1
        return table

    return [
        _WordCounts(c, counts(c, c.right).sum(axis=0), counts(c, c.distractors), distractors_needed(c))
        for c in candidates
    ]


class _Balance:
    """Counts of each word in the right choices and in the distractors of a set that grows."""

    def __init__(self, vocabulary_size: int) -> None:
        self.in_right = np.zeros(vocabulary_size, dtype=np.int64)
        self.in_distractors = np.zeros(vocabulary_size, dtype=np.int64)
        self.correct_choices = 0
        self.distractors = 0

    def addition(self, counts: _WordCounts) -> tuple[int, list[int]] | None:
        """Return the cost of the set with one more candidate, and the indices of the distractors with the lowest cost.

        Return None if a word would become disproportionate.
        """
        right_count = self.correct_choices + len(counts.candidate.right)
        due = (self.in_right + counts.right) * (self.distractors + counts.needed)  # times `right_count`: an integer
        # The cost of a word grows with the square of its deviation, and falls with its expected number.
        weight = 2**30 // (due + 4 * right_count)
        in_distractors = self.in_distractors.copy()
        chosen: list[int] = []
        for _ in range(counts.needed):
            cost = counts.distractors @ ((2 * (in_distractors * right_count - due) + right_count) * weight)
            cost[chosen] = np.iinfo(np.int64).max
            chosen.append(int(np.argmin(cost)))  # at a tie, the more plausible choice
            in_distractors += counts.distractors[chosen[-1]]
        excess = in_distractors * right_count - due
        if np.any(np.abs(excess) / right_count > SLACK + np.sqrt(due / right_count)):
            return None
        return int(np.sum(excess // right_count * excess * weight)), chosen

    def add(self, counts: _WordCounts, chosen: Sequence[int]) -> None:
        self.in_right += counts.right
        self.in_distractors += counts.distractors[chosen].sum(axis=0)
        self.correct_choices += len(counts.candidate.right)
        self.distractors += counts.needed
