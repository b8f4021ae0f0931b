"""ViSTa's problem sets: single actions and their effects at level 1, sequences of actions at levels 2 to 8.

A set of level 1 has clips of several videos. A set of a higher level has clips of one video, joined in orders that
could have happened. In a general set, the sequences share their beginnings with a base. In a permutation set, they
share all of their actions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle, groupby
from pathlib import Path
from typing import ClassVar

import msgspec

from barista_bench.core.example import content_seed
from barista_bench.generate.candidates import (
    DECIDED,
    REPEATED,
    Choice,
    Item,
    QuestionCandidate,
    Tally,
    keep_most,
    one_per_event,
)
from barista_bench.generate.family import Family, family_words
from barista_bench.generate.missing import UndecidedCandidates
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import noun_of
from barista_bench.generate.vista.clips import REVIEW_QUESTION, Order, Sequences, VistaWords, foundation_candidates
from barista_bench.generate.vista.effects import effect_candidates
from barista_bench.generate.vista.release import entry_path, write_release
from barista_bench.generate.wordings import Phrases, fill_form, plain_text, shuffled_forms
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import Domain

FOUNDATION = (
    *("objects", "containers", "on_v_off", "sliced_v_whole", "pick_v_put", "opening_v_closing"),
    *("clean", "heat", "cool", "toggle", "slice", "object_tracking", "object_interaction"),
)
LEVELS = range(2, 9)
LARGEST_FOUNDATION = 8
"""Maximum number of descriptions in one set of level 1."""
MOST_PER_LABEL = 4
"""Maximum number of videos of one description of level 1."""


class VistaFamily(Family):
    """ViSTa's questions.

    A candidate is a video of a set. Its description is the right choice, and the set's other descriptions are wrong.
    """

    name: ClassVar[str] = "vista"
    has_own_texts: ClassVar[bool] = False
    subtasks: ClassVar[tuple[str, ...]] = (
        *FOUNDATION,
        *(f"level_{level}_{kind}" for level in LEVELS for kind in ("remix", "permutation")),
    )

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self.words = family_words(domain, self.name, VistaWords)

    def distractors_needed(self, candidate: QuestionCandidate) -> int:
        """Return the number of distractors of a video.

        Above level 1 these are all other descriptions of its set, which is chosen before its videos are decided.
        """
        return 1 if candidate.subtask in FOUNDATION else max(1, len(candidate.distractors))

    def candidates(self, scene: Scene) -> Iterator[QuestionCandidate]:
        sequences = Sequences(scene, self.words.fps)
        yield from foundation_candidates(scene, sequences.clips, self.words)
        yield from effect_candidates(scene, sequences.clips, self.words)
        for level in LEVELS:
            used: set[Order] = set()
            for orders in sequences.permutation_sets(level):
                used |= {*orders} if len(orders) > 1 else set()
                yield from self._set_of(sequences, f"level_{level}_permutation", orders)
            for base in sequences.orders(level):
                if base not in used:
                    orders = sequences.general_set(base, used)
                    used |= {*orders}
                    yield from self._set_of(sequences, f"level_{level}_remix", orders)

    def decide_all(
        self, scene: Scene, tally: Tally, undecided: UndecidedCandidates | None = None
    ) -> Iterator[QuestionCandidate]:
        for reason in Sequences(scene, self.words.fps).refusals:
            for subtask in self.subtasks:
                tally[subtask, f"an action: {reason}"] += 1
        yield from super().decide_all(scene, tally, undecided)

    def _set_of(self, sequences: Sequences, subtask: str, orders: Sequence[Order]) -> Iterator[QuestionCandidate]:
        scene = sequences.scene
        slots = [{"deeds": self._phrases(scene, [sequences.clips[index].name for index in order])} for order in orders]
        texts = [plain_text("vista/steps", row) for row in slots]
        base = orders[0]
        breaks = [index for index in range(1, len(base)) if base[index] != base[index - 1] + 1]
        starts = "_".join(f"{index}_from_{sequences.clips[base[index]].start:05d}" for index in (0, *breaks))
        for order, text, phrases in zip(orders, texts, slots, strict=True):
            spans = [(sequences.clips[index].start, sequences.clips[index].end) for index in order]
            other_orders = [(other, text) for other, text in zip(orders, texts, strict=True) if other != order]
            shared = next((index for index, (a, b) in enumerate(zip(order, base, strict=True)) if a != b), len(order))
            yield QuestionCandidate(
                subtask=subtask,
                video_id=scene.video_id,
                question=REVIEW_QUESTION,
                right=(Choice(text, sequences.depiction(order, order)),),
                distractors=tuple(Choice(text, sequences.depiction(other, order)) for other, text in other_orders),
                given=sequences.joints(order),
                span=(min(start for start, _ in spans), max(end for _, end in spans)),
                frames=tuple(start for start, _ in spans),
                wording="vista/steps",
                slots=phrases,
                extra={
                    "set": f"{scene.video_id}_{starts}",
                    "spans": spans,
                    "shared": shared,
                    "actions": [sequences.clips[index].name for index in order],
                },
            )

    def _phrases(self, scene: Scene, actions: Sequence[str]) -> Phrases:
        """Return actions in words. If two successive actions have the same single object, the second says "it"."""
        actions_in_words = [scene.action_in_words(action) for action in actions]
        phrases = list(map(self.words.action, actions_in_words))
        for index in range(1, 0 if scene.coverage.is_partial else len(actions_in_words)):
            noun = noun_of(actions_in_words[index])
            is_same = noun != "" and noun == noun_of(actions_in_words[index - 1])
            if is_same and len(scene.things_done_to(actions[index - 1]) | scene.things_done_to(actions[index])) == 1:
                phrases[index] = self.words.action_on_it(actions_in_words[index])
        return Phrases(phrases)

    def collect_candidates(
        self, scene: Scene, tally: Tally, most: int, seed: int, undecided: UndecidedCandidates | None = None
    ) -> list[QuestionCandidate]:
        """Return clips of level 1, one per description, and complete sets of higher levels.

        No two of the sets differ in the same way.
        """
        clips, sets = _clips_and_sets(self.decide_all(scene, tally, undecided), seed)
        candidates = one_per_event(clips, seed, tally)
        described_texts: set[tuple[tuple[str, ...], ...]] = set()
        for (subtask, _), members in sets.items():
            # Raising and lowering in turn is no other order than raising, then lowering.
            texts = tuple(sorted({tuple(dict.fromkeys(row)) for row in _differing_actions(members)}))
            if texts in described_texts:
                tally.update({(subtask, DECIDED): -len(members), (subtask, REPEATED): len(members)})
            else:
                described_texts.add(texts)
                candidates += members
        if undecided is not None:
            undecided.mark_asked(self.name, candidates)
        return self.limit_candidates(candidates, most, seed)

    def limit_candidates(
        self, candidates: Sequence[QuestionCandidate], most: int, seed: int
    ) -> list[QuestionCandidate]:
        """Keep up to `most` clips of each subtask of level 1, and complete sets of higher levels.

        Sets are kept until their subtask has `most` candidates.
        """
        clips, sets = _clips_and_sets(candidates, seed)
        counts: Counter[str] = Counter()
        thinned = keep_most(clips, most, seed)
        for (subtask, _), members in sets.items():
            if counts[subtask] < most:
                counts[subtask] += len(members)
                thinned += members
        return thinned

    def sample_subtask(self, subtask: str, candidates: Sequence[QuestionCandidate], size: int, seed: int) -> list[Item]:
        clips, sequences = _clips_and_sets(candidates, seed)
        sets = {name: members for (_, name), members in sequences.items() if len(members) > 1}
        return _sample_sets(subtask, _foundation_sets(clips, seed) | sets, size, seed)

    def assign_forms(self, items: Sequence[Item], seed: int) -> list[Item]:
        """Assign forms set by set. All descriptions of a set have the same form, and the next set has the next form."""
        reworded: list[Item] = []
        forms_in_turn: dict[str, Iterator[str]] = {}
        for _, members in groupby(items, key=lambda item: item.id.rpartition("/")[0]):
            set_items = list(members)
            wording = set_items[0].candidate.wording
            if wording not in forms_in_turn:
                forms_in_turn[wording] = cycle(shuffled_forms(wording, seed))
            reworded += _items_in_form(set_items, next(forms_in_turn[wording]))
        return reworded

    def size_problem(self, subtask: str, candidates: Sequence[QuestionCandidate], size: int) -> str:
        """Return the size of the smallest whole set if it is larger than the subtask may be."""
        sets = Counter(candidate.extra["set"] for candidate in candidates if candidate.subtask == subtask)
        needed = min((count for count in sets.values() if count > 1), default=0)
        return (
            f"a set needs {needed} items; you asked for {size}" if needed > size and subtask not in FOUNDATION else ""
        )

    def public_items(self, items: Sequence[Item]) -> dict[str, Item]:
        return {entry_path(item): item for item in items}

    def write(self, items: Sequence[Item], source: SceneGraph, out: Path) -> None:
        write_release(items, source, out, self.words)


def _differing_actions(members: Sequence[QuestionCandidate]) -> set[tuple[str, ...]]:
    """Return the actions of each sequence of a set, without the first and last actions that all sequences share."""
    rows = [tuple(member.extra["actions"]) for member in members]
    first = next((index for index, names in enumerate(zip(*rows, strict=True)) if len(set(names)) > 1), 0)
    backwards = enumerate(zip(*(row[::-1] for row in rows), strict=True))
    last = next((index for index, names in backwards if len(set(names)) > 1), 0)
    return {row[first : len(row) - last] for row in rows}


def _clips_and_sets(
    candidates: Iterable[QuestionCandidate], seed: int
) -> tuple[list[QuestionCandidate], dict[tuple[str, str], list[QuestionCandidate]]]:
    """Return the candidates of level 1, and the candidates of higher levels by subtask and set.

    Sets are in seeded order.
    """
    clips, sets = list[QuestionCandidate](), defaultdict[tuple[str, str], list[QuestionCandidate]](list)
    for candidate in candidates:
        is_clip = candidate.subtask in FOUNDATION
        (clips if is_clip else sets[candidate.subtask, candidate.extra["set"]]).append(candidate)
    return clips, dict(sorted(sets.items(), key=lambda row: content_seed("vista", seed, *row[0])))


def _foundation_sets(candidates: Sequence[QuestionCandidate], seed: int) -> dict[str, list[QuestionCandidate]]:
    """Return sets of clips with a common key. Each description is excluded for the clips of all other descriptions.

    Within a set, each description has the same number of clips.
    """
    groups: dict[str, dict[str, list[QuestionCandidate]]] = defaultdict(lambda: defaultdict(list))
    for candidate in sorted(candidates, key=lambda c: content_seed("vista", seed, c.video_id, c.extra["set"], *c.span)):
        groups[candidate.extra["set"]][candidate.right[0].text].append(candidate)
    sets = {}
    for key, by_text in sorted(groups.items()):
        number = 0
        while members := _exclusive_set(by_text):
            sets[f"{key}_{number}"] = members
            number += 1
            used_ids = {id(member) for member in members}
            for text, clips in by_text.items():
                by_text[text] = [clip for clip in clips if id(clip) not in used_ids]
    return sets


def _exclusive_set(by_text: dict[str, list[QuestionCandidate]]) -> list[QuestionCandidate]:
    """Choose descriptions with the most clips, as long as a description and the earlier ones exclude each other.

    If fewer than two can be chosen, the list is empty.
    """
    set_clips: dict[str, list[QuestionCandidate]] = {}
    for text in sorted(by_text, key=lambda text: (-len(by_text[text]), text)):
        if len(set_clips) == LARGEST_FOUNDATION:
            break
        clips = [clip for clip in by_text[text] if _is_excluded(clip, set_clips)]
        other_clips = {
            other: [clip for clip in rows if _is_excluded(clip, [text])] for other, rows in set_clips.items()
        }
        if clips and all(other_clips.values()):
            set_clips = {**other_clips, text: clips}
    clips_each = min(MOST_PER_LABEL, *(len(clips) for clips in set_clips.values())) if set_clips else 0
    return [clip for clips in set_clips.values() for clip in clips[:clips_each]] if len(set_clips) > 1 else []


def _is_excluded(clip: QuestionCandidate, texts: Sequence[str] | dict[str, list[QuestionCandidate]]) -> bool:
    distractors = {choice.text for choice in clip.distractors}
    return all(text in distractors for text in texts)


def _sample_sets(subtask: str, sets: dict[str, list[QuestionCandidate]], size: int, seed: int) -> list[Item]:
    """Sample complete sets while the number of entries stays within `size`.

    The next set is from the video that was sampled least so far.
    """
    names = sorted(sets, key=lambda name: content_seed("vista set", seed, subtask, name))
    videos: Counter[str] = Counter()
    items: list[Item] = []
    while names:
        name = min(names, key=lambda name: videos[sets[name][0].video_id])  # at a tie, the first
        names.remove(name)
        members = sets[name]
        if len(items) + len(members) > size:
            continue
        videos.update(member.video_id for member in members)
        texts = list(dict.fromkeys(member.right_text for member in members))
        for index, member in enumerate(members):
            by_text = {choice.text: choice for choice in (*member.distractors, *member.right)}
            choices, correct = tuple(by_text[text] for text in texts), (texts.index(member.right_text),)
            items.append(Item(id=f"{subtask}/{name}/{index}", candidate=member, choices=choices, correct=correct))
    return items


def _items_in_form(members: Sequence[Item], form: str) -> Iterator[Item]:
    """Return a set's items with the descriptions in another form. Each description belongs to an item of the set."""
    texts = {item.candidate.right[0].text: fill_form(form, item.candidate.slots) for item in members}

    def reword(choices: Sequence[Choice]) -> tuple[Choice, ...]:
        return tuple(Choice(texts[choice.text], choice.statement) for choice in choices if choice.text in texts)

    for item in members:
        candidate = msgspec.structs.replace(
            item.candidate,
            right=reword(item.candidate.right),
            distractors=reword(item.candidate.distractors),
            origins={texts[text]: origin for text, origin in item.candidate.origins.items() if text in texts},
            form=form,
        )
        yield msgspec.structs.replace(item, candidate=candidate, choices=reword(item.choices))
