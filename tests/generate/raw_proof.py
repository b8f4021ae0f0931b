"""Proof of generated statements from a raw annotation file. Shares with the generator but the JSON that it writes.

Each kind of statement has a function of its own here, after what its docstring means by it, not after its code:
`proved(video, statement)` is True where the file proves it, False where the file proves the contrary, else None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations, pairwise
from typing import Any

from tests.generate.raw_video import DOMAIN, SIDES, RawVideo, Row

Said = Mapping[str, Any]
Truth = bool | None


def proved(video: RawVideo, said: Said) -> Truth:
    return RULES[said["says"]](video, said)


def both(*truths: Truth) -> Truth:
    return False if False in truths else None if None in truths else True


# How words relate, from the domain file


def exclusive_values(kind: str, first: str, second: str) -> bool:
    words = DOMAIN["attributes"].get(kind, {})
    if any({first, second} == set(pair) for pair in words.get("compatible", ())):
        return False
    for dimension in words.get("dimensions", ()):
        at = [n for value in (first, second) for n, entry in enumerate(dimension) if value in _entry(entry)]
        if len(at) == 2:
            return at[0] != at[1]
    return False


def same_value(kind: str, first: str, second: str) -> bool:
    dimensions = DOMAIN["attributes"].get(kind, {}).get("dimensions", ())
    return first == second or any({first, second} <= set(_entry(e)) for d in dimensions for e in d)


def _entry(entry: Any) -> list[str]:
    return [entry] if isinstance(entry, str) else list(entry)


def exclusive_words(section: str, first: str, second: str) -> bool:
    words = DOMAIN[section]
    return second in words.get(first, {}).get("excludes", ()) or first in words.get(second, {}).get("excludes", ())


def other_action(video: RawVideo, said: str, recorded: str, frame: int) -> bool:
    """Whether what is recorded cannot be called what is said."""
    (verb, _, noun), (verb_2, _, noun_2) = said.lower().partition(" "), recorded.lower().partition(" ")
    contacts = {words["do"] for words in DOMAIN["contacts"].values()}
    if verb in contacts and any(
        same_noun(noun, name)
        for side in SIDES
        for item in video.category
        if video.near(video.touching(side, item), frame, frame + 1)
        for name in video.labels(item)
    ):
        return False
    if verb == verb_2:
        return not same_noun(noun, noun_2)
    return not same_verb(verb, verb_2)


def same_verb(first: str, second: str) -> bool:
    if [first, second] in DOMAIN["opposites"] or [second, first] in DOMAIN["opposites"]:
        return False
    return first == second or any(first in group and second in group for group in DOMAIN["verbs"])


def same_noun(first: str, second: str) -> bool:
    def fits(group: list[str], name: str) -> bool:
        return any(name == word or name.endswith(f" {word}") for word in group)

    same = first == second or first.endswith(f" {second}") or second.endswith(f" {first}")
    return same or any(fits(group, first) and fits(group, second) for group in DOMAIN["nouns"])


# What is to be seen


def _seen(video: RawVideo, said: Said) -> Truth:
    return True if video.seen(said["object"], said["frame"]) else None


def could_mean(video: RawVideo, name: str, item: str) -> bool:
    """Whether somebody who says `name` can mean an object: by one of its names, or the end of one."""
    return any(label == name or label.endswith(f" {name}") for label in video.labels(item))


def unique(video: RawVideo, name: str, item: str, frames: Iterable[int]) -> bool:
    """`name`, as a text has it, with or without the whole that it belongs to."""
    head, _, owner = name.partition(" of the ")
    for other in set(video.category) - {item} - video.is_hand:
        if could_mean(video, head, other) and any(video.on(other, frame) for frame in frames):
            if not owner:
                return False
            wholes = [w for w in video.category if (other, w) in video.places and could_mean(video, owner, w)]
            if wholes:
                return False
    return True


def _touches(video: RawVideo, said: Said) -> Truth:
    side, item, frame, contact = said["side"], said["object"], said["frame"], said.get("contact")
    rows, hand = video.touching(side, item), video.hands[side]
    now = {row.label for row in rows if row.start <= frame < row.end}
    is_clear = len(hand) == 1 and video.seen(hand[0], frame) and video.seen(item, frame)
    if now and is_clear and video.whole(rows, frame, *hand, item):
        return _contact(now, contact)
    if video.near(rows, frame, frame + 1) or not is_clear:
        return None
    return False if video.apart(hand[0], item, frame) else None


def _contact(now: set[str], contact: str | None) -> Truth:
    if contact is None or contact in now:
        return True
    return False if any(exclusive_words("contacts", contact, label) for label in now) else None


def _away(video: RawVideo, said: Said) -> Truth:
    truth = _touches(video, said)
    return None if truth is None else not truth


def _hand_on(video: RawVideo, said: Said) -> Truth:
    side, item, frame, hands = said["side"], said["object"], said["frame"], video.hands[said["side"]]
    rows = video.touching(side, item)
    now = {row.label for row in rows if row.start <= frame < row.end}
    if now and len(hands) == 1 and video.seen(hands[0], frame) and video.on(item, frame):
        clear = sum(video.seen(item, at) for at in said["shown"]) >= 2
        return _contact(now, said.get("contact")) if clear and video.whole(rows, frame, *hands, item) else None
    if not video.near(rows, frame, frame + 1) and video.seen(item, frame) and len(hands) == 1:
        return False if video.gone(hands[0], frame) or video.apart(hands[0], item, frame) else None
    return None


def _hands_do(video: RawVideo, said: Said) -> Truth:
    truths = []
    for side in SIDES:
        deed = said[side]
        if deed is not None:
            rest = {"side": side, "contact": deed[0], "object": deed[1]}
            truths.append(_hand_on(video, {**rest, "frame": said["frame"], "shown": said["shown"]}))
        else:
            truths.append(_idle(video, side, said["frame"]))
    return both(*truths)


def _idle(video: RawVideo, side: str, frame: int) -> Truth:
    things = set(video.category) - video.is_hand
    near = [item for item in things if video.near(video.touching(side, item), frame, frame + 1)]
    hands = video.hands[side]
    if near:
        now = any(row.start <= frame < row.end for item in near for row in video.touching(side, item))
        return False if now and len(hands) == 1 and video.seen(hands[0], frame) else None
    if len(hands) != 1 or video.gone(hands[0], frame):
        return True if all(video.gone(hand, frame) for hand in hands) else None
    return True if all(video.apart(hands[0], i, frame) for i in things if video.on(i, frame)) else None


def _touched_in_clip(video: RawVideo, said: Said) -> Truth:
    item, start, end = said["object"], said["start"], said["end"]
    rows = {side: video.touching(side, item) for side in SIDES}
    if any(video.near(rows[side], start, end) for side in SIDES):
        on = any(
            row.start <= frame < row.end and video.seen(hand, frame)
            for side in SIDES
            for hand in video.hands[side]
            for row in rows[side]
            for frame in said["shown"]
        )
        return True if on and sum(video.seen(item, frame) for frame in said["shown"]) >= 2 else None
    moments = range(start, end)
    hands = [hand for side in SIDES for hand in video.hands[side]]
    meets = any(
        not video.apart(hand, item, at) for at in moments for hand in hands if video.on(hand, at) and video.on(item, at)
    )
    return False if not meets and any(video.seen(item, at) for at in moments) else None


def _nothing_else(video: RawVideo, said: Said) -> Truth:
    named = said["objects"]
    things = set(video.category) - video.is_hand
    touched = {i for i in things for s in SIDES if video.near(video.touching(s, i), said["start"], said["end"])}
    return all(any(item == own or video.is_part(item, own) for own in named) for item in touched) or None


def _hand_at_work(video: RawVideo, said: Said) -> Truth:
    noun = said["action"].lower().partition(" ")[2]
    named = [item for item in video.category if any(same_noun(noun, name) for name in video.labels(item))]
    seen = [
        frame
        for frame in said["frames"]
        if any(video.seen(hand, frame) for hand in video.is_hand) and any(video.seen(item, frame) for item in named)
    ]
    return len(seen) >= 2 or None


def _masked(video: RawVideo, said: Said) -> Truth:
    marks = [video.mask(item, at) for at in said["frames"] for item in said["objects"] if video.on(item, at)]
    return (len(said["frames"]) >= 2 and all(mask.any() for mask in marks)) or None


# States and places


def _has_value(video: RawVideo, said: Said) -> Truth:
    item, kind, value, frame = said["object"], said["type"], said["value"], said["frame"]
    by_label: dict[str, list[Row]] = {}
    for row in video.values.get((item, kind), ()):
        by_label.setdefault(row.label, []).append(row)
    now = [label for label, rows in by_label.items() if video.whole(rows, frame, item)]
    if any(same_value(kind, label, value) for label in now):
        return True
    if _goes_on(video, item, value, *video.around(frame)):
        return None
    return False if any(exclusive_values(kind, label, value) for label in now) else None


def _goes_on(video: RawVideo, item: str, value: str, *frames: int) -> bool:
    """Whether an activity or step says that somebody is bringing a value about, or at it."""
    now = [row for row in (*video.actions, *video.steps) if any(row.start <= frame < row.end for frame in frames)]
    named = [row.label.lower().partition(" ") for row in now]
    verbs = DOMAIN["ongoing"].get(value, ())
    return any(verb in verbs and any(same_noun(noun, n) for n in video.labels(item)) for verb, _, noun in named)


def _changes(video: RawVideo, said: Said) -> Truth:
    item, kind, start, last = said["object"], said["type"], said["start"], said["end"] - 1
    at = {"object": item, "type": kind}
    first = _has_value(video, {**at, "value": said["before"], "frame": start})
    end = _has_value(video, {**at, "value": said["after"], "frame": last})
    if first is not True or end is not True:
        return both(first, end)
    rows = sorted(video.values[item, kind], key=lambda row: row[1:])
    turns = [b for a, b in pairwise(rows) if exclusive_values(kind, a.label, b.label) and start < b.start <= last]
    if said["before"] != said["after"]:
        return len(turns) == 1 or None
    return not turns


def _course(video: RawVideo, said: Said) -> Truth:
    """The values on every frame of the clip, one after the other, must be those that are said."""
    item, kind, start, end = said["object"], said["type"], said["start"], said["end"]
    rows = sorted(
        (r for r in video.values.get((item, kind), ()) if r.start < end and r.end > start), key=lambda r: r[1:]
    )
    course: list[str] = []
    for row in rows:
        if not course or not same_value(kind, course[-1], row.label):
            course.append(row.label)
    if not course:
        return None
    said_values = list(said["values"])
    if len(course) == len(said_values) and all(
        same_value(kind, a, b) for a, b in zip(course, said_values, strict=True)
    ):
        return True
    ends = exclusive_values(kind, said_values[0], course[0]) or exclusive_values(kind, said_values[-1], course[-1])
    never = any(all(exclusive_values(kind, value, label) for label in course) for value in said_values)
    if _goes_on(video, item, said_values[-1], end - 1):
        return False if exclusive_values(kind, said_values[0], course[0]) else None
    stays = len(said_values) == 1 and any(exclusive_values(kind, said_values[0], label) for label in course)
    return False if ends or never or stays else None


def _located(video: RawVideo, said: Said) -> Truth:
    item, predicate, other, frame = said["object"], said["predicate"], said["other"], said["frame"]
    by_label: dict[str, list[Row]] = {}
    for row in video.places.get((item, other), ()):
        by_label.setdefault(row.label, []).append(row)
    now = {label for label, rows in by_label.items() if video.whole(rows, frame, item, other)}
    if predicate in now:
        return True
    if any(exclusive_words("places", predicate, label) for label in now):
        return False
    linked = [*video.places.get((item, other), ()), *video.places.get((other, item), ())]
    if video.near(linked, frame, frame + 1) or video.is_part(item, other) or not video.seen(item, frame):
        return None
    if said["says"] == "Placed" and video.gone(other, frame):
        return False
    return False if video.apart(item, other, frame) else None


def _in_quarter(video: RawVideo, said: Said) -> Truth:
    mark = video.marks[said["object"]].get(said["frame"])
    if mark is None:
        return None
    x, y, width, height = mark["bbox"]
    across, down = (x + width / 2) / video.width, (y + height / 2) / video.height
    if min(abs(across - 0.5), abs(down - 0.5)) < 0.12:
        return None
    is_there = (across < 0.5) == (said["across"] == "left") and (down < 0.5) == (said["down"] == "upper")
    return is_there


def _next_state(video: RawVideo, said: Said) -> Truth:
    at = {key: said[key] for key in ("object", "type", "value")}
    before = _has_value(video, {**at, "frame": said["frame"]})
    after = _has_value(video, {**at, "frame": said["until"]})
    if before is not False or after is None:
        return None
    rows = video.values[said["object"], said["type"]]
    comes = any(
        same_value(said["type"], r.label, said["value"]) and said["frame"] < r.start <= said["until"] for r in rows
    )
    return (True if comes else None) if after else (None if comes else False)


# Actions and steps


def _does(video: RawVideo, said: Said) -> Truth:
    name, frame, margin = said["action"], said["frame"], video.margin
    now = [row for row in video.actions if row.start + margin <= frame < row.end - margin]
    if any(row.label == name for row in now):
        return True
    near = [row for row in video.actions if row.start - video.gap <= frame < row.end + video.gap]
    return False if now and all(other_action(video, name, row.label, frame) for row in near) else None


def _next_action(video: RawVideo, said: Said) -> Truth:
    name, frame = said["action"], said["frame"]
    later = [row for row in video.actions if row.start > frame]
    if not later:
        return None
    first = [row for row in later if row.start - later[0].start <= video.margin]
    goes_on = _does(video, {"action": name, "frame": said["until"]})
    if len(first) == 1 and first[0].label == name:
        return goes_on
    is_other = all(other_action(video, name, row.label, row.start + video.margin) for row in first)
    return False if is_other and goes_on is False else None


def _in_step(video: RawVideo, said: Said) -> Truth:
    frame, margin = said["frame"], video.margin
    now = {row.label for row in video.steps if row.start + margin <= frame < row.end - margin}
    if len(now) != 1:
        return None
    if said["step"] in now:
        return True
    spans = [row for row in video.steps if row.label == said["step"]]
    if any(same_verb(said["step"].lower().split()[0], label.lower().split()[0]) for label in now):
        return None
    return False if spans and not video.near(spans, frame, frame + 1) else None


def _precedes(video: RawVideo, said: Said) -> Truth:
    starts = []
    for item in said["objects"]:
        rows = sorted(row.start for side in SIDES for row in video.touching(side, item))
        if not rows:
            return None
        starts.append(rows[0])
    gaps = [after - before for before, after in pairwise(starts)]
    if all(gap > video.margin for gap in gaps):
        return True
    return False if any(gap < -video.margin for gap in gaps) else None


def _brings_about(video: RawVideo, said: Said) -> Truth:
    changes = _changes(video, said)
    if changes is not True:
        return changes
    rows = video.values[said["object"], said["type"]]
    turns = [row.start for row in rows if said["start"] < row.start < said["end"] and row.label == said["after"]]
    (turn,) = turns[:1] or [None]
    if turn is None:
        return None
    near = [row for row in video.actions if row.start <= turn + video.margin and row.end > turn - video.margin]
    causes = {row.label for row in near if row.label.partition(" ")[0].lower() in said["verbs"]}
    if said["action"] in causes:
        return True if len(causes) == 1 else None
    return False if causes and all(other_action(video, said["action"], cause, turn) for cause in causes) else None


def _all_of(video: RawVideo, said: Said) -> Truth:
    return both(*(proved(video, part) for part in said["parts"]))


# ViSTa and ToG-Bench


def _depicts(video: RawVideo, said: Said) -> Truth:
    actions, spans = said["actions"], said["spans"]
    if len(actions) == len(spans) and all(
        any(row.label == name and row.start <= start and end <= row.end for row in video.actions)
        for name, (start, end) in zip(actions, spans, strict=True)
    ):
        return True
    # Wrong, if the recorded activities cannot be read, in order, as those that are said.
    waiting = list(actions)
    for start, end in spans:
        ongoing = {
            verb
            for rows in video.values.values()
            for row in rows
            if row.start < end and row.end > start
            for verb in DOMAIN["ongoing"].get(row.label, ())
        }
        inside = [row for row in video.actions if row.start < end and row.end > start]
        if not inside:
            return None
        for row in inside:
            middle = (max(start, row.start) + min(end, row.end)) // 2
            while waiting and (
                waiting[0].partition(" ")[0].lower() in ongoing
                or not other_action(video, waiting[0], row.label, middle)
            ):
                waiting.pop(0)
    return None if not waiting else False


def _continues(video: RawVideo, said: Said) -> Truth:
    last, first = said["last"], said["first"]
    if 0 < first - last <= video.gap:
        return True

    def held(frame: int) -> set[tuple[str, str]]:
        pairs = [(side, item) for side in SIDES for item in set(video.category) - video.is_hand]
        return {(s, i) for s, i in pairs if video.covered(video.touching(s, i), frame, *video.hands[s], i)}

    if held(last) != held(first):
        return None
    used = {
        item
        for side in SIDES
        for item in video.category
        if any(r.start < said["end"] and r.end > first for r in video.touching(side, item))
    }
    return all(_left_alike(video, item, last, first) for item in used) or None


def _left_alike(video: RawVideo, item: str, last: int, first: int) -> bool:
    """No recorded state or place of an object at one of the frames is contradicted at the other."""
    for (thing, kind), rows in video.values.items():
        if thing == item:
            at = [{r.label for r in rows if r.start <= frame < r.end} for frame in (last, first)]
            if any(exclusive_values(kind, a, b) for a in at[0] for b in at[1]):
                return False
    for (thing, _), rows in video.places.items():
        if thing == item:
            at = [{r.label for r in rows if r.start <= frame < r.end} for frame in (last, first)]
            if at[0] != at[1] and not any(video.covered(rows, f, item) for f in (last, first)):
                return False
    return True


def _as_left(video: RawVideo, said: Said) -> Truth:
    near = 0 < said["first"] - said["last"] <= video.gap
    return near or all(_left_alike(video, item, said["last"], said["first"]) for item in said["objects"]) or None


def _nothing_inside(video: RawVideo, said: Said) -> Truth:
    for (_, other), rows in video.places.items():
        inside = [row for row in rows if row.label == said["predicate"]]
        if other == said["object"] and any(row.start < said["end"] and row.end > said["start"] for row in inside):
            return None
    return True


def _alone(video: RawVideo, said: Said) -> Truth:
    others = [i for i in video.category if i != said["object"] and could_mean(video, said["kind"], i)]
    step = max(1, round(video.fps / 4))
    moments = range(said["start"] // step * step + step, said["end"], step)
    return not any(video.on(other, frame) for other in others for frame in moments) or None


def _kinds_in_view(video: RawVideo, kinds: list[str]) -> list[str]:
    return [item for item in video.category if video.marks[item] and video.labels(item) & set(kinds)]


def _fillable(video: RawVideo, said: Said) -> Truth:
    return len(_kinds_in_view(video, said["kinds"])) == 1 or None


def _none_in_view(video: RawVideo, said: Said) -> Truth:
    return not _kinds_in_view(video, said["kinds"]) or None


def _fills(video: RawVideo, said: Said) -> Truth:
    # A slot of something that hands bring about holds the thing's own name, with what it belongs to.
    kinds = {kind.partition(" of the ")[0] for kind in said["kinds"]}
    return bool(video.labels(said["object"]) & kinds)


def _not_parts(video: RawVideo, said: Said) -> Truth:
    return not any(video.is_part(a, b) for a, b in combinations(said["objects"], 2))


def _trackable(video: RawVideo, said: Said) -> Truth:
    return any(video.seen(said["object"], frame) for frame in video.marks[said["object"]])


def _brought_about(video: RawVideo, said: Said) -> Truth:
    item, frame, other = said["object"], said["frame"], said["other"]
    rows = video.places.get((item, other), []) if other else video.values.get((item, "state"), [])
    begins = any(row.label == said["value"] and row.start == frame for row in rows)
    used = any(r.start - video.gap <= frame <= r.end + video.gap for side in SIDES for r in video.touching(side, item))
    return (begins and used) or None


def _touched_during(video: RawVideo, said: Said) -> Truth:
    rows = [row for side in SIDES for row in video.touching(side, said["object"])]
    return any(min(r.end, said["end"]) - max(r.start, said["start"]) > video.margin for r in rows) or None


def _in_words(video: RawVideo, said: Said) -> Truth:
    verb = said["action"].lower().partition(" ")[0]
    return (
        verb in DOMAIN["families"]["handyvqa"]["doing"] and any(r.label == said["action"] for r in video.actions)
    ) or None


def _named(video: RawVideo, said: Said) -> Truth:
    """Whether an object has a name, with or without what it belongs to, that means nothing else on the frames."""
    item = said["object"]
    frames = said.get("frames", range(video.count))
    wholes = [label for (part, whole) in video.places if part == item for label in video.labels(whole)]
    names = [f"{name}{end}" for name in video.labels(item) for end in ("", *(f" of the {whole}" for whole in wholes))]
    return any(unique(video, name, item, frames) for name in names) or None


RULES: Mapping[str, Callable[[RawVideo, Said], Truth]] = {
    "Seen": _seen, "Unique": _named, "ClearlyNamed": _named, "Unmistakable": _named, "AllOf": _all_of,
    "Touches": _touches, "AwayFrom": _away, "HandOn": _hand_on, "HandsDo": _hands_do, "HandAtWork": _hand_at_work,
    "TouchedInClip": _touched_in_clip, "TouchedDuring": _touched_during, "NothingElseTouched": _nothing_else,
    "Masked": _masked, "HasValue": _has_value, "Changes": _changes, "Course": _course, "Located": _located,
    "Placed": _located, "InQuarter": _in_quarter, "NextState": _next_state, "Does": _does, "InWords": _in_words,
    "NextAction": _next_action, "InStep": _in_step, "Precedes": _precedes, "BringsAbout": _brings_about,
    "Depicts": _depicts, "Continues": _continues, "AsLeft": _as_left, "NothingInside": _nothing_inside,
    "AloneInView": _alone, "Fillable": _fillable, "NoneInView": _none_in_view, "Fills": _fills, "NotParts": _not_parts,
    "Trackable": _trackable, "BroughtAbout": _brought_about,
}  # fmt: skip
