"""Questions in the form of HanDyVQA, with wording of our own, out of a scene graph: what a small release asks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from barista_bench.benchmarks.handyvqa.clip_frames import HALF_WINDOW_S
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


class Namer:
    """What the objects of a video are called: by type or category, by colour too where two would share a name."""

    def __init__(self, video: VideoGraph) -> None:
        known = {(item.object.id, item.type): item.value for item in reversed(video.attributes())}
        plain = {item.id: _plain_name(item, known.get((item.id, "type"), "")) for item in video.objects}
        times = Counter(plain.values())
        self.names = {
            object_id: f"{colour} {name}" if times[name] > 1 and (colour := known.get((object_id, "color"))) else name
            for object_id, name in plain.items()
        }

    def __call__(self, item: SceneObject) -> str:
        return self.names[item.id]


def _plain_name(item: SceneObject, kind: str) -> str:
    return kind if kind.endswith(item.category) else item.category


def fps_of(video: VideoGraph) -> float:
    """Frames a second. Raises DataError where the annotations do not say."""
    if not video.video.fps:
        raise DataError(f"{video.video_id}: has no fps. Remedy: give it in video_metadata")
    return video.video.fps


def moments(video: VideoGraph) -> Iterator[tuple[int, range]]:
    """(centre, frames within 2.5 s of it) of each activity."""
    for segment in video.activities():
        yield window(video, (segment.start + segment.end) // 2)


def window(video: VideoGraph, centre: int) -> tuple[int, range]:
    """A frame, and those within 2.5 s of it."""
    half = int(HALF_WINDOW_S * fps_of(video))
    return centre, range(max(0, centre - half), min(video.frame_count, centre + half + 1))


def actions(video: VideoGraph) -> Iterator[AskedClip]:
    """What a hand does: hand, verb and object."""
    namer = Namer(video)
    verbs = sorted({contact.value for contact in video.hand_contacts()})
    done = sorted({(c.side, c.value, namer(c.object)) for c in _contacts(video)})
    for centre, span in moments(video):
        true = {(c.side, c.value, namer(c.object)) for c in _contacts(video, span)}
        now = [(c.side, c.value, namer(c.object)) for c in _contacts(video, centre)]
        names = sorted({namer(item) for item in _things(video, span)})
        if now:
            others = [fact for fact in product(HANDS.values(), verbs, names) if fact not in true]
            truth = min(now, key=lambda fact: (fact[1] == "holds", fact))
            near = [*((side, *truth[1:]) for side in HANDS.values()), *done]
            question = "What does a hand do here?"
            yield from _single(video, centre, span, question, _act(truth), map(_act, others), near=map(_act, near))


def _act(fact: tuple[str, str, str]) -> str:
    side, verb, name = fact
    return f"The {side} hand {verb} the {name}."


def processes(video: VideoGraph) -> Iterator[AskedClip]:
    """How an object is handled: by which hands, and what they do to it."""
    namer = Namer(video)
    verbs = sorted({contact.value for contact in video.hand_contacts()})
    for centre, span in moments(video):
        contacts = _contacts(video, span)
        for thing in {c.object.id: c.object for c in _contacts(video, centre)}.values():
            touches = [c for c in contacts if c.object.id == thing.id]
            sides, done = tuple(sorted({c.side for c in touches})), {c.value for c in touches}
            verb = min(done, key=lambda value: (value == "holds", value))
            others = [(s, v) for s, v in product(_WITH, verbs) if s != sides or v not in done]
            texts = (f"With {_WITH[s]}: a hand {v} it." for s, v in others)
            question = f"How is the {namer(thing)} handled?"
            yield from _single(video, centre, span, question, f"With {_WITH[sides]}: a hand {verb} it.", texts)


def locations(video: VideoGraph) -> Iterator[AskedClip]:
    """Where an object that a hand touches is."""
    namer = Namer(video)
    usual = sorted(
        {(r.value, namer(r.target)) for r in video.relations() if r.value in _PLACE_RELATIONS and _is_named(r.target)}
    )
    for centre, span in moments(video):
        touched = {c.object.id for c in _contacts(video, span)}
        placed = [item for item in video.relations((span.start, span.stop)) if item.value in _PLACE_RELATIONS]
        names = sorted({namer(item) for item in _things(video, span)})
        for item in video.relations(centre):
            if item.value in _PLACE_RELATIONS and item.source.id in touched and _is_named(item.target):
                true = {(other.value, namer(other.target)) for other in placed if other.source.id == item.source.id}
                others = [pair for pair in product(sorted(_PLACE_RELATIONS), names) if pair not in true]
                texts = (_place(pair) for pair in others if pair[1] != namer(item.source))
                question, truth = f"Where is the {namer(item.source)}?", _place((item.value, namer(item.target)))
                yield from _single(video, centre, span, question, truth, texts, near=map(_place, usual))


def _place(pair: tuple[str, str]) -> str:
    return f"{pair[0].capitalize()} the {pair[1]}."


def states(video: VideoGraph) -> Iterator[AskedClip]:
    """How an object's state changes."""
    namer = Namer(video)
    states_seen = [item for item in video.attributes() if item.type == "state"]
    words = sorted({item.value for item in states_seen} | {"broken", "folded", "hanging"})
    for after in states_seen:
        of_object = [state for state in states_seen if state.object.id == after.object.id]
        before = next((state for state in of_object if state.end == after.start), None)
        if before is None or before.value == after.value:
            continue
        centre, span = window(video, after.start)
        in_span = [state for state in of_object if state.start < span.stop and state.end > span.start]
        if len(in_span) == 2:  # one change, and no other near it
            truth = before.value, after.value
            others = [pair for pair in product(words, words) if pair != truth]
            # The same two states otherwise, so that knowing the object's states does not give the answer away.
            near = [truth[::-1], (before.value, before.value), (after.value, after.value)]
            question = f"How does the state of the {namer(after.object)} change?"
            texts = map(_change, others)
            yield from _single(video, centre, span, question, _change(truth), texts, near=map(_change, near))


def _change(pair: tuple[str, str]) -> str:
    return f"It stays {pair[0]}." if pair[0] == pair[1] else f"From {pair[0]} to {pair[1]}."


def parts(video: VideoGraph) -> Iterator[AskedClip]:
    """Which part of an object a hand touches."""
    namer = Namer(video)
    owned = [item for item in video.relations() if item.value in _PART_RELATIONS]
    for centre, span in moments(video):
        touched = {c.object.id for c in _contacts(video, span)}
        others = sorted({namer(item) for item in video.objects if item.id not in touched and _is_named(item)})
        for contact in _contacts(video, centre):
            owner = next((item.target for item in owned if item.source.id == contact.object.id), None)
            if owner is not None and _is_named(owner):
                question, truth = f"Which part of the {namer(owner)} does a hand touch?", namer(contact.object)
                near = sorted({namer(item.source) for item in owned if item.source.id not in touched})
                yield from _single(video, centre, span, question, truth, others, contact.object.id, near=near)


def objects(video: VideoGraph) -> Iterator[AskedClip]:
    """Which objects the hands touch."""
    namer = Namer(video)
    for centre, span in moments(video):
        touched: dict[str, dict[str, None]] = {}
        for contact in _contacts(video, span):
            touched.setdefault(namer(contact.object), {})[contact.object.id] = None
        others = sorted({namer(item) for item in _things(video, span)} - set(touched))
        count = max(OPTIONS, len(touched) + 3)
        if touched and len(touched) + len(others) >= count:
            rng = random.Random(content_seed("handyvqa mini", video.video_id, centre, *sorted(touched)))  # noqa: S311
            drawn = [*touched, *rng.sample(others, count - len(touched))]
            rng.shuffle(drawn)
            right = tuple(index for index, name in enumerate(drawn) if name in touched)
            ids = tuple(tuple(touched[drawn[index]]) for index in right)
            yield AskedClip(video, span, centre, "Which objects do the hands touch?", tuple(drawn), right, ids)


QUESTIONS: dict[str, Callable[[VideoGraph], Iterator[AskedClip]]] = {
    "action": actions,
    "process": processes,
    "location": locations,
    "state": states,
    "parts": parts,
    "objects": objects,
    "rvos_objects": objects,
    "rvos_parts": parts,
}


def _single(
    video: VideoGraph,
    centre: int,
    span: range,
    question: str,
    truth: str,
    others: Iterable[str],
    object_id: str = "",
    *,
    near: Iterable[str] = (),
) -> Iterator[AskedClip]:
    """A question with one right option; none where there are too few wrong ones.

    Of `others`, the wrong options, those that are `near` too are drawn first: they are as likely without the video.
    """
    wrong: Sequence[str] = sorted({text for text in others if text != truth})
    if len(wrong) >= OPTIONS - 1:
        rng = random.Random(content_seed("handyvqa mini", video.video_id, centre, question, truth))  # noqa: S311
        likely = [text for text in dict.fromkeys(near) if text in wrong]
        first = rng.sample(likely, min(len(likely), OPTIONS - 1))
        rest = [text for text in wrong if text not in first]
        drawn = [truth, *first, *rng.sample(rest, OPTIONS - 1 - len(first))]
        rng.shuffle(drawn)
        ids = ((object_id,),) if object_id else ()
        yield AskedClip(video, span, centre, question, tuple(drawn), (drawn.index(truth),), ids)


def _is_named(item: SceneObject) -> bool:
    return item.category.lower() not in NAMELESS


def _things(video: VideoGraph, span: range) -> list[SceneObject]:
    """What is seen in a span, but for hands and what has no name."""
    return [item for item in video.objects_at((span.start, span.stop)) if _is_named(item)]


def _contacts(video: VideoGraph, when: range | int | None = None) -> list[Contact]:
    """What hands do to things that have a name, on the frames of a span, on one, or on all."""
    frames = (when.start, when.stop) if isinstance(when, range) else when
    return [contact for contact in video.hand_contacts(frames) if _is_named(contact.object)]
