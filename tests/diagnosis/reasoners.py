"""Answers from aids: exact reasoners, which should score 1.

Reasoners read the text and the data of pictures, and the truth of a level where a task asks it. They read nothing else
of the target.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby, pairwise

from barista_bench.aids.levels import Part
from barista_bench.aids.texts import AidBook
from barista_bench.benchmarks.barista.change_detection import Change, _description
from barista_bench.benchmarks.barista.frame_aids import THE_OBJECT, instance_labels
from barista_bench.benchmarks.barista.qa_templates import write_pair
from barista_bench.benchmarks.barista.reference_text import FrameFacts, Link, Property, one_sentence
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat, write_box, xywh_to_xyxy
from barista_bench.core.example import Example
from barista_bench.core.task import Task
from barista_bench.scene_graph import SceneObject
from barista_bench.scene_graph.domain import load_domain
from barista_bench.testing.aid_laws import Reasoner

_LINE = re.compile(
    r"- (?P<words>.*?)(?: (?P<box>\[[^]]*\]))? \((?:at (?P<at>\S+)|from (?P<start>\S+) to (?P<end>\S+))\)"
)
_SHOWN = re.compile(r"frames? (?:are|is) at ([-0-9., ]+)\.\n")
WINDOW = 2


class Line:
    """One line of an aid; times in frames from the first frame shown."""

    def __init__(self, match: re.Match[str], fps: float) -> None:
        self.words, self.box = match["words"], json.loads(match["box"]) if match["box"] else None
        start = match["at"] or match["start"]
        self.start = round(float(start) * fps)
        self.end = self.start + 1 if match["at"] else round(float(match["end"]) * fps)

    def holds(self, frame: int) -> bool:
        return self.start <= frame < self.end


def read(text: str, fps: float) -> tuple[dict[str, list[Line]], list[int]]:
    """The lines of an aid by heading, and the frames shown."""
    lines: dict[str, list[Line]] = defaultdict(list)
    heading = ""
    for line in text.splitlines():
        if match := _LINE.fullmatch(line):
            lines[heading].append(Line(match, fps))
        else:
            heading = line.split()[0] if line else ""
    shown = _SHOWN.search(text)
    return lines, [round(float(each) * fps) for each in shown[1].split(", ")] if shown else []


def exact_reasoner(book: AidBook) -> Reasoner:
    """A reasoner over parts; `book` supplies the truth of the asked level where the example does not."""

    def reason_parts(task: Task, example: Example, parts: Sequence[Part]) -> str:
        if task.name == "hand_object":
            return _hand_object(example, parts, book.size(example))
        text = "".join(part for part in parts if isinstance(part, str))
        if task.name == "grounding":
            return _grounding(example, text, book)
        return reason(task, example, text, DEFAULT_BOX_FORMAT)

    return reason_parts


def _hand_object(example: Example, parts: Sequence[Part], size: tuple[int, int]) -> str:
    """The truth of the asked level says which named things are in contact; the marks, where these are."""
    (picture,) = (part for part in parts if not isinstance(part, str))
    names = {}
    for part in parts:
        if isinstance(part, str) and (match := re.match(r"- (\d+): (.*) \(at ", part)):
            names[int(match[1])] = match[2]
    marks = [(names[number], tuple(box)) for number, box in picture.marks]
    answers = []
    for item in example.target["interactions"]:
        sides = {"both": ("left hand", "right hand")}.get(item["hand_type"], (f"{item['hand_type']} hand",))
        hands = [box for side in sides for name, box in marks if name == side]
        where = tuple(item["object_pixels"])  # tells which of several things of a name is meant
        box = next(box for name, box in marks if name == item["category"] and box == where)
        written = [write_box(each, DEFAULT_BOX_FORMAT, *size) for each in (box, *hands)]
        answers.append({"object_box": written[0], "hand_boxes": written[1:], "hand_type": item["hand_type"]})
    return json.dumps(answers)


def _grounding(example: Example, text: str, book: AidBook) -> str:
    """The truth of the asked level gives the objects and their places; the aids give the facts about each."""
    scene = book._scene(example)
    boxes = {row.object_id: row.box for row in scene.video.boxes[scene.frames[0]]}
    lines = [match["words"] for line in text.splitlines() if (match := _LINE.fullmatch(line))]
    wanted = example.metadata
    meant = []
    for object_id, label in instance_labels(scene).items():
        colors = {line.removeprefix(f"{label}: color ") for line in lines if line.startswith(f"{label}: color ")}
        stated = [line for line in lines if f"{label} " in f"{line} " and ": " not in line]
        value, other = wanted["relation"], wanted["related_category"]
        is_related = not value or any(value in line.lower() and other in line for line in stated)
        if set(wanted["colors"]) <= colors and is_related:
            meant.append(boxes[object_id])
    return json.dumps({"bboxes": [write_box(box, DEFAULT_BOX_FORMAT, *scene.video.size) for box in meant]})


def reason(task: Task, example: Example, text: str, box_format: BoxFormat) -> str:
    """The answer that follows from the text, and from the truth of the asked level."""
    lines, shown = read(text, float(example.metadata["fps"]) or 1.0)
    if task.name == "relations":
        return _relations(example, lines["Objects,"], box_format)
    if task.name == "referring":
        return _referring(example, lines["Relations"])
    category = example.target["category"]
    detect = {
        "state_change": lambda: _states(lines["States"], shown),
        "relation_change": lambda: _places(lines["Relations"], shown),
        "action_transition": lambda: _contacts(lines["Relations"], shown),
        "activity_progression": lambda: _activities(lines["Activities"], shown),
    }
    changes = detect[category]()
    return f"Answer: {write_pair(category, changes)['answer']}" if changes else "Answer: nothing"


def _relations(example: Example, lines: list[Line], box_format: BoxFormat) -> str:
    """The truth of the asked level says which places are related; the aid, which mark is at a place."""
    size = example.inputs["frame_width"], example.inputs["frame_height"]
    place = {
        item["mark"]: (item["category"], tuple(write_box(xywh_to_xyxy(item["bbox"]), box_format, *size)))
        for item in example.inputs["objects"]
    }
    marks: dict[tuple, dict[str, int]] = defaultdict(dict)
    for line in lines:
        mark, name = line.words.partition(" ")[2].split(": ")
        marks[tuple(line.box)][name] = int(mark)

    def mark_at(number: int) -> int | None:
        name, box = place[number]
        there = marks.get(box, {})
        return there.get(name, next(iter(there.values()), None))

    known = [
        {**item, **{end: mark_at(item[end]) for end in ("source_id", "target_id")}}
        for item in example.target["relations"]
    ]
    return json.dumps([item for item in known if item["source_id"] and item["target_id"]])


def _referring(example: Example, lines: list[Line]) -> str:
    facts = FrameFacts(objects=(SceneObject("0", example.target["category"]),))
    facts.properties[0] = [Property(a["attribute_type"], a["value"], 0) for a in example.target["attributes"]]
    links, indices, said = [], {}, Counter()
    for number, line in enumerate(lines, start=1):
        is_source = line.words.startswith(f"{THE_OBJECT} ")
        known = sorted({item["value"] for item in example.target["relations"]}, key=len, reverse=True)
        rest = line.words.replace(THE_OBJECT, "").strip()
        for value in known:
            verb = value if value.split(" ")[0].endswith("s") else f"is {value}"
            if is_source and rest.startswith(f"{verb} "):
                name = rest.removeprefix(f"{verb} ")
            elif not is_source and rest.endswith(f" {verb}"):
                name = rest.removesuffix(f" {verb}")
            else:
                continue
            said[name, value, is_source] += 1  # of several things with one name, each is told in turn
            thing = (name, said[name, value, is_source])
            if thing not in indices:
                facts.objects = (*facts.objects, SceneObject(str(number), name))
                indices[thing] = len(facts.objects) - 1
            links.append(Link(indices[thing], is_source, "", value, number))
            break
    facts.links[0] = links
    return f"Description: {one_sentence(facts, 0, load_domain())}"


def _change(category: str, kind: str, subject: str, value: str = "", objects: tuple[str, ...] = ()) -> Change:
    return Change(category, kind, subject, value, 0, list(objects), [], [], start=0, end=0)


def _window(frame: int) -> range:
    return range(frame - WINDOW, frame + WINDOW + 1)


def _states(lines: list[Line], shown: list[int]) -> list[Change]:
    """Lines of one object follow each other without a gap."""
    chains: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.start):
        name = line.words.rpartition(" ")[0]
        chain = next((c for c in chains if c[-1].words.rpartition(" ")[0] == name and c[-1].end == line.start), None)
        if chain is None:
            chains.append([line])
        else:
            chain.append(line)
    changes = []
    for chain in chains:
        ends = [Counter(_value(line) for f in _window(shown[at]) for line in chain if line.holds(f)) for at in (0, -1)]
        if all(ends):
            before, after = (end.most_common(1)[0][0] for end in ends)
            if description := _description(before, after, "state", None):
                changes.append(_change("state_change", description, chain[0].words.partition(":")[0]))
    return changes


def _value(line: Line) -> str:
    kind_and_value = line.words.partition(": ")[2]
    return kind_and_value.partition(" ")[2]


_PLACE = re.compile(r"(.*?) (?:is )?(under|on|inside|attached to|contains|covers|next to) (.*)")


def _places(lines: list[Line], shown: list[int]) -> list[Change]:
    pairs: dict[tuple[str, ...], list[Line]] = defaultdict(list)
    for line in lines:
        if match := _PLACE.fullmatch(line.words):
            pairs[match.groups()].append(line)
    first = min((line.start for line in lines), default=0)
    changes = []
    for (source, value, target), group in sorted(pairs.items()):
        ends = []
        for at in (0, -1):
            window = [frame for frame in _window(shown[at]) if frame >= first]
            held = sum(any(line.holds(frame) for line in group) for frame in window)
            ends.append(2 * held >= len(window))
        if ends[0] != ends[1]:
            changes.append(_change("relation_change", "new" if ends[1] else "lost", source, value, (target,)))
    return changes


def _contacts(lines: list[Line], shown: list[int]) -> list[Change]:
    changes = []
    for hand in ("left hand", "right hand"):
        own = [line for line in lines if line.words.startswith(f"{hand} ")]
        steps = []
        for keyframe in shown:
            seen: Counter[tuple[str, ...]] = Counter()
            for frame in _window(keyframe):
                holding = {line.words.removeprefix(f"{hand} ").split(" ", 1)[1] for line in own if line.holds(frame)}
                if holding:
                    seen[tuple(sorted(holding - {"nothing at all"}))] += 1
            if seen:
                steps.append(seen.most_common(1)[0][0])
        timeline = [step for step, _ in groupby(steps)]
        if timeline and not timeline[0]:
            del timeline[0]
        if len(timeline) > 1:
            changes += [_change("action_transition", "contact", hand, objects=step) for step in timeline]
    return changes


def _activities(lines: list[Line], shown: list[int]) -> list[Change]:
    at_keyframe = [{line.words for line in lines if line.holds(frame)} for frame in shown]
    changes, known = [], set()
    for before, after in pairwise(at_keyframe):
        ended, started = sorted(before - after), sorted(after - before)
        key = (tuple(ended), tuple(started))
        if (ended or started) and key not in known:
            known.add(key)
            for kind, names in (("ended", ended), ("started", started), ("continuing", sorted(before & after))):
                changes += [_change("activity_progression", kind, name) for name in names]
    return changes
