"""Questions in the form of HanDyVQA, with wording of our own, out of a scene graph: what a small release asks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from barista_bench.benchmarks.handyvqa.release import HALF_WINDOW_S
from barista_bench.core.task import content_seed
from barista_bench.errors import DataError
from barista_bench.scene_graph import VideoGraph
from barista_bench.scene_graph.video_graph import HANDS, NAMELESS, Contact, SceneObject

OPTIONS = 5
_PLACE_RELATIONS = frozenset({"under", "on", "inside", "attached to"})
_PART_RELATIONS = frozenset({"part of", "attached to"})
_WITH = {("left",): "the left hand alone", ("right",): "the right hand alone", ("left", "right"): "both hands"}


@dataclass(frozen=True, slots=True)
class AskedClip:
    """One question about the frames `span` [start, stop) of a video, around `centre`.

    Args:
        options: texts in the order asked.
        correct: indices of the right ones.
        objects: for each right option the ids of the objects that it means; empty where it means none.
    """

    video: VideoGraph
    span: range
    centre: int
    question: str
    options: tuple[str, ...]
    correct: tuple[int, ...]
    objects: tuple[tuple[str, ...], ...] = ()


def fps_of(video: VideoGraph) -> float:
    """Frames a second. Raises DataError where the annotations do not say."""
    if not video.video.fps:
        raise DataError(f"{video.video_id}: has no fps. Remedy: give it in video_metadata")
    return video.video.fps


class VideoQuestions:
    """The questions about one video, a method a category."""

    def __init__(self, video: VideoGraph) -> None:
        self.video = video
        self.names = _names(video)
        self.verbs = sorted({contact.value for contact in video.hand_contacts()})

    def name(self, item: SceneObject) -> str:
        """What an object is called."""
        return self.names[item.id]

    def actions(self) -> Iterator[AskedClip]:
        """What a hand does: hand, verb and object."""
        done = sorted(self._acts())
        for centre, span in self._moments():
            true, now = self._acts(span), self._acts(centre)
            if now:
                others = [act for act in product(HANDS.values(), self.verbs, self._things(span)) if act not in true]
                truth = min(now, key=lambda act: (act[1] == "holds", act))
                near = [*((side, *truth[1:]) for side in HANDS.values()), *done]
                texts = map(_act, others)
                yield from self._single(
                    centre, span, "What does a hand do here?", _act(truth), texts, near=map(_act, near)
                )

    def processes(self) -> Iterator[AskedClip]:
        """How an object is handled: by which hands, and what they do to it."""
        for centre, span in self._moments():
            contacts = self._contacts(span)
            for item in {c.object.id: c.object for c in self._contacts(centre)}.values():
                touches = [c for c in contacts if c.object.id == item.id]
                sides, done = tuple(sorted({c.side for c in touches})), {c.value for c in touches}
                verb = min(done, key=lambda value: (value == "holds", value))
                others = [(s, v) for s, v in product(_WITH, self.verbs) if s != sides or v not in done]
                question = f"How is the {self.name(item)} handled?"
                yield from self._single(centre, span, question, _handled(sides, verb), (_handled(*o) for o in others))

    def locations(self) -> Iterator[AskedClip]:
        """Where an object that a hand touches is."""
        placed = [item for item in self.video.relations() if item.value in _PLACE_RELATIONS and _is_named(item.target)]
        usual = sorted({(item.value, self.name(item.target)) for item in placed})
        for centre, span in self._moments():
            touched = {c.object.id for c in self._contacts(span)}
            in_span = [item for item in self.video.relations((span.start, span.stop)) if item.value in _PLACE_RELATIONS]
            for item in self.video.relations(centre):
                if item.value in _PLACE_RELATIONS and item.source.id in touched and _is_named(item.target):
                    true = {(r.value, self.name(r.target)) for r in in_span if r.source.id == item.source.id}
                    pairs = [pair for pair in product(sorted(_PLACE_RELATIONS), self._things(span)) if pair not in true]
                    others = [pair for pair in pairs if pair[1] != self.name(item.source)]
                    question, truth = f"Where is the {self.name(item.source)}?", (item.value, self.name(item.target))
                    near = map(_location, usual)
                    yield from self._single(centre, span, question, _location(truth), map(_location, others), near=near)

    def states(self) -> Iterator[AskedClip]:
        """How an object's state changes."""
        all_states = [item for item in self.video.attributes() if item.type == "state"]
        words = sorted({item.value for item in all_states} | {"broken", "folded", "hanging"})
        for after in all_states:
            of_object = [state for state in all_states if state.object.id == after.object.id]
            before = next((state for state in of_object if state.end == after.start), None)
            centre, span = self._window(after.start)
            in_span = [state for state in of_object if state.start < span.stop and state.end > span.start]
            # One change, and no other near it.
            if before is not None and before.value != after.value and len(in_span) == 2:
                truth = before.value, after.value
                others = [pair for pair in product(words, words) if pair != truth]
                # The same two states otherwise, so that knowing the object's states does not give the answer away.
                near = [truth[::-1], (before.value, before.value), (after.value, after.value)]
                question, texts = f"How does the state of the {self.name(after.object)} change?", map(_change, others)
                yield from self._single(centre, span, question, _change(truth), texts, near=map(_change, near))

    def parts(self) -> Iterator[AskedClip]:
        """Which part of an object a hand touches."""
        owned = [item for item in self.video.relations() if item.value in _PART_RELATIONS]
        for centre, span in self._moments():
            touched = {c.object.id for c in self._contacts(span)}
            named = [item for item in self.video.objects if _is_named(item)]
            others = [self.name(item) for item in named if item.id not in touched]
            near = sorted({self.name(item.source) for item in owned if item.source.id not in touched})
            for contact in self._contacts(centre):
                owner = next((item.target for item in owned if item.source.id == contact.object.id), None)
                if owner is not None and _is_named(owner):
                    question, truth = f"Which part of the {self.name(owner)} does a hand touch?", contact.object
                    yield from self._single(
                        centre, span, question, self.name(truth), others, object_id=truth.id, near=near
                    )

    def objects(self) -> Iterator[AskedClip]:
        """Which objects the hands touch."""
        for centre, span in self._moments():
            touched: dict[str, dict[str, None]] = {}
            for contact in self._contacts(span):
                touched.setdefault(self.name(contact.object), {})[contact.object.id] = None
            others = sorted(set(self._things(span)) - set(touched))
            count = max(OPTIONS, len(touched) + 3)
            if touched and len(touched) + len(others) >= count:
                rng = self._rng(centre, *sorted(touched))
                drawn = [*touched, *rng.sample(others, count - len(touched))]
                rng.shuffle(drawn)
                right = tuple(index for index, name in enumerate(drawn) if name in touched)
                ids = tuple(tuple(touched[drawn[index]]) for index in right)
                question = "Which objects do the hands touch?"
                yield AskedClip(self.video, span, centre, question, tuple(drawn), right, ids)

    def _single(
        self,
        centre: int,
        span: range,
        question: str,
        truth: str,
        others: Iterable[str],
        *,
        near: Iterable[str] = (),
        object_id: str = "",
    ) -> Iterator[AskedClip]:
        """A question with one right option; none where there are too few wrong ones.

        Of `others`, the wrong options, those that are `near` too are drawn first: they are as likely without the video.
        """
        wrong = sorted({text for text in others if text != truth})
        if len(wrong) < OPTIONS - 1:
            return
        rng = self._rng(centre, question, truth)
        likely = [text for text in dict.fromkeys(near) if text in wrong]
        first = rng.sample(likely, min(len(likely), OPTIONS - 1))
        rest = [text for text in wrong if text not in first]
        drawn = [truth, *first, *rng.sample(rest, OPTIONS - 1 - len(first))]
        rng.shuffle(drawn)
        ids = ((object_id,),) if object_id else ()
        yield AskedClip(self.video, span, centre, question, tuple(drawn), (drawn.index(truth),), ids)

    def _rng(self, *parts: str | int) -> random.Random:
        return random.Random(content_seed("handyvqa mini", self.video.video_id, *parts))  # noqa: S311

    def _moments(self) -> Iterator[tuple[int, range]]:
        """(centre, frames within 2.5 s of it) of each activity."""
        for segment in self.video.activities():
            yield self._window((segment.start + segment.end) // 2)

    def _window(self, centre: int) -> tuple[int, range]:
        """A frame, and those within 2.5 s of it."""
        half = int(HALF_WINDOW_S * fps_of(self.video))
        return centre, range(max(0, centre - half), min(self.video.frame_count, centre + half + 1))

    def _things(self, span: range) -> list[str]:
        """Names of what is seen in a span, sorted, but for hands and what has no name."""
        return sorted({self.name(item) for item in self.video.objects_at((span.start, span.stop)) if _is_named(item)})

    def _contacts(self, when: range | int | None = None) -> list[Contact]:
        """What hands do to things that have a name, on the frames of a span, on one, or on all."""
        frames = (when.start, when.stop) if isinstance(when, range) else when
        return [contact for contact in self.video.hand_contacts(frames) if _is_named(contact.object)]

    def _acts(self, when: range | int | None = None) -> set[tuple[str, str, str]]:
        """(hand, verb, object) of these contacts."""
        return {(c.side, c.value, self.name(c.object)) for c in self._contacts(when)}


QUESTIONS: dict[str, Callable[[VideoGraph], Iterator[AskedClip]]] = {
    "action": lambda video: VideoQuestions(video).actions(),
    "process": lambda video: VideoQuestions(video).processes(),
    "location": lambda video: VideoQuestions(video).locations(),
    "state": lambda video: VideoQuestions(video).states(),
    "parts": lambda video: VideoQuestions(video).parts(),
    "objects": lambda video: VideoQuestions(video).objects(),
    "rvos_objects": lambda video: VideoQuestions(video).objects(),
    "rvos_parts": lambda video: VideoQuestions(video).parts(),
}


def _names(video: VideoGraph) -> dict[str, str]:
    """Object id to what it is called: by type or category, by colour too where two would share a name."""
    known = {(item.object.id, item.type): item.value for item in reversed(video.attributes())}
    plain = {}
    for item in video.objects:
        kind = known.get((item.id, "type"), "")
        plain[item.id] = kind if kind.endswith(item.category) else item.category
    times = Counter(plain.values())
    return {
        object_id: f"{colour} {name}" if times[name] > 1 and (colour := known.get((object_id, "color"))) else name
        for object_id, name in plain.items()
    }


def _is_named(item: SceneObject) -> bool:
    return item.category.lower() not in NAMELESS


def _act(act: tuple[str, str, str]) -> str:
    side, verb, name = act
    return f"The {side} hand {verb} the {name}."


def _handled(sides: tuple[str, ...], verb: str) -> str:
    return f"With {_WITH[sides]}: a hand {verb} it."


def _location(pair: tuple[str, str]) -> str:
    return f"{pair[0].capitalize()} the {pair[1]}."


def _change(pair: tuple[str, str]) -> str:
    return f"It stays {pair[0]}." if pair[0] == pair[1] else f"From {pair[0]} to {pair[1]}."
