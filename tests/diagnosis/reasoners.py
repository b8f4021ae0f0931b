"""Answers from the text of aids: exact reasoners, which should score 1, and literal copiers, which should gain nothing.

Reasoners read the text, and where a task asks a level the truth of that level; never pixels, nor else the target.
"""

import json
import re
from collections import Counter, defaultdict
from itertools import groupby, pairwise

from barista_bench.aids.facts import THE_OBJECT
from barista_bench.benchmarks.barista.change_detection import Change, _description
from barista_bench.benchmarks.barista.qa_templates import write_pair
from barista_bench.benchmarks.barista.reference_text import FrameFacts, Link, Property, one_sentence
from barista_bench.benchmarks.lexical import content_words
from barista_bench.core.boxes import BoxFormat, write_box, xywh_to_xyxy
from barista_bench.core.example import Example
from barista_bench.core.task import Task
from barista_bench.scene_graph import SceneObject
from barista_bench.scene_graph.domain import load_domain

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
            said[name, value, is_source] += 1  # of several things of a name, each is told of in turn
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


def copies(task: Task, example: Example, text: str) -> dict[str, str]:
    """The answers of literal copiers, by name."""
    lines = [match["words"] for line in text.splitlines() if (match := _LINE.fullmatch(line))]
    items = [line.partition(": ")[2] if line.startswith(("mark ", "item ")) else line for line in lines]
    frequent = Counter(items).most_common(1)[0][0] if items else ""
    said = {"first": items[0] if items else "", "last": items[-1] if items else "", "frequent": frequent}
    if task.name == "relations":
        legend = example.inputs["objects"]
        label = example.inputs["vocabulary"][0]
        answers = {}
        for name, item in said.items():
            marks = [each["mark"] for each in legend if each["category"] == item] or [legend[0]["mark"]]
            others = [each["mark"] for each in legend if each["mark"] not in marks] or [0]
            kinds = {"relation_type": label["relation_type"], "value": label["values"][0]}
            answers[name] = json.dumps([{"source_id": marks[0], "target_id": others[0], **kinds}])
        return answers
    if choices := task.choices(example):

        def nearest(words: str) -> str:
            counts = Counter(content_words(words))
            return max(choices, key=lambda label: sum(counts[word] for word in set(content_words(choices[label]))))

        return {name: task.answer_text([nearest(item)], example) for name, item in {**said, "overlap": text}.items()}
    label = "Description" if task.name == "referring" else "Answer"
    return {name: f"{label}: {item}" for name, item in {**said, "all": " ".join(items)}.items()}
