"""Proof of generated statements from a raw annotation file. Shares with the generator but the JSON that it writes.

Each kind of statement has one function with its name. The function follows the docstring of the kind, not its code:
`proved(video, statement)` is True where the file proves the statement, False where it proves the contrary, else None.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

from tests.generate import raw_proof_sequences as sequences
from tests.generate.raw_video import DOMAIN, SIDES, RawVideo, Row
from tests.generate.raw_words import (
    Said,
    Truth,
    both,
    exclusive_values,
    exclusive_words,
    function_of,
    other_action,
    same_noun,
    same_value,
    same_verb,
)


def proved(video: RawVideo, said: Said) -> Truth:
    name = function_of(said)
    name = {"placed": "located", "unique": "named", "clearly_named": "named", "unmistakable": "named"}.get(name, name)
    rule: Callable[[RawVideo, Said], Truth] = getattr(sequences, name, None) or globals()[name]
    return rule(video, said)


def seen(video: RawVideo, said: Said) -> Truth:
    return True if video.seen(said["object"], said["frame"]) else None


def touches(video: RawVideo, said: Said) -> Truth:
    side, item, frame, contact = said["side"], said["object"], said["frame"], said.get("contact")
    rows, hand = video.touching(side, item), video.hands[side]
    now = {row.label for row in rows if row.start <= frame < row.end}
    is_clear = len(hand) == 1 and video.seen(hand[0], frame) and video.seen(item, frame)
    if now and is_clear and video.whole(rows, frame, *hand, item) and video.meet(hand[0], item, frame):
        return _contact(now, contact)
    if video.near(rows, frame, frame + 1) or not is_clear:
        return None
    return False if video.apart(hand[0], item, frame) else None


def _contact(now: set[str], contact: str | None) -> Truth:
    if contact is None or contact in now:
        return True
    return False if any(exclusive_words("contacts", contact, label) for label in now) else None


def away_from(video: RawVideo, said: Said) -> Truth:
    truth = touches(video, said)
    return None if truth is None else not truth


def hand_is_on(video: RawVideo, said: Said) -> Truth:
    side, item, frame, hands = said["side"], said["object"], said["frame"], video.hands[said["side"]]
    rows = video.touching(side, item)
    now = {row.label for row in rows if row.start <= frame < row.end}
    if now and len(hands) == 1 and video.seen(hands[0], frame) and video.meet(hands[0], item, frame):
        clear = sum(video.seen(item, at) for at in said["shown"]) >= 2
        return _contact(now, said.get("contact")) if clear and video.whole(rows, frame, *hands, item) else None
    if not video.near(rows, frame, frame + 1) and video.seen(item, frame) and len(hands) == 1:
        return False if video.gone(hands[0], frame) or video.apart(hands[0], item, frame) else None
    return None


def hands_do(video: RawVideo, said: Said) -> Truth:
    truths = []
    for side in SIDES:
        action = said[side]
        if action is not None:
            rest = {"side": side, "contact": action[0], "object": action[1]}
            truths.append(hand_is_on(video, {**rest, "frame": said["frame"], "shown": said["shown"]}))
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


def touched_in_clip(video: RawVideo, said: Said) -> Truth:
    item, start, end = said["object"], said["start"], said["end"]
    rows = {side: video.touching(side, item) for side in SIDES}
    if any(video.near(rows[side], start, end) for side in SIDES):
        on = any(
            row.start <= frame < row.end and video.seen(hand, frame) and video.meet(hand, item, frame)
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


def nothing_else_touched(video: RawVideo, said: Said) -> Truth:
    named = said["objects"]
    things = set(video.category) - video.is_hand
    touched = {i for i in things for s in SIDES if video.near(video.touching(s, i), said["start"], said["end"])}
    for item in things:
        met = [
            frame
            for frame in said["shown"]
            if any(
                video.on(h, frame) and video.on(item, frame) and not video.apart(h, item, frame) for h in video.is_hand
            )
        ]
        joined = any(
            {item, object_id} == set(pair) and row.start < said["end"] and row.end > said["start"]
            for object_id in named
            for pair, rows in video.places.items()
            for row in rows
        )
        if len(met) >= len(said["shown"]) / 2 and not joined:
            touched.add(item)
    return (
        all(any(item == object_id or video.is_part(item, object_id) for object_id in named) for item in touched) or None
    )


def hand_at_work(video: RawVideo, said: Said) -> Truth:
    noun = said["action"].lower().partition(" ")[2]
    named = [item for item in video.category if any(same_noun(noun, name) for name in video.labels(item))]
    seen = [
        frame
        for frame in said["frames"]
        if any(video.seen(hand, frame) for hand in video.is_hand) and any(video.seen(item, frame) for item in named)
    ]
    return len(seen) >= 2 or None


def masked(video: RawVideo, said: Said) -> Truth:
    marks = [video.mask(item, at) for at in said["frames"] for item in said["objects"] if video.on(item, at)]
    return (len(said["frames"]) >= 2 and all(mask.any() for mask in marks)) or None


# States and places


def has_value(video: RawVideo, said: Said) -> Truth:
    item, kind, value, frame = said["object"], said["type"], said["value"], said["frame"]
    if _is_blurred(video, item, kind, frame):
        return None
    by_label: dict[str, list[Row]] = {}
    for row in video.values.get((item, kind), ()):
        by_label.setdefault(row.label, []).append(row)
    now = [label for label, rows in by_label.items() if video.whole(rows, frame, item)]
    if any(same_value(kind, label, value) for label in now):
        return True
    if _goes_on(video, item, value, *video.around(frame)):
        return None
    return False if any(exclusive_values(kind, label, value) for label in now) else None


def _is_blurred(video: RawVideo, item: str, kind: str, frame: int) -> bool:
    """Whether a value that is reached by degrees begins within a second, another one being there before."""
    rows = video.values.get((item, kind), ())
    begins = [
        row.start
        for row in rows
        if row.label in DOMAIN["gradual"].get(kind, ())
        and any(
            exclusive_values(kind, other.label, row.label) and 0 <= row.start - other.end <= video.gap for other in rows
        )
    ]
    return any(abs(frame - start) <= round(video.fps) for start in begins)


def _goes_on(video: RawVideo, item: str, value: str, *frames: int) -> bool:
    """Whether an activity or step says that hands are bringing a value about, or that they keep at it."""
    now = [row for row in (*video.actions, *video.steps) if any(row.start <= frame < row.end for frame in frames)]
    named = [row.label.lower().partition(" ") for row in now]
    verbs = DOMAIN["ongoing"].get(value, ())
    return any(verb in verbs and any(same_noun(noun, n) for n in video.labels(item)) for verb, _, noun in named)


def changes(video: RawVideo, said: Said) -> Truth:
    item, kind, start, last = said["object"], said["type"], said["start"], said["end"] - 1
    at = {"object": item, "type": kind}
    first = has_value(video, {**at, "value": said["before"], "frame": start})
    end = has_value(video, {**at, "value": said["after"], "frame": last})
    if first is not True or end is not True:
        return both(first, end)
    rows = sorted(video.values[item, kind], key=lambda row: row[1:])
    turns = [b for a, b in pairwise(rows) if exclusive_values(kind, a.label, b.label) and start < b.start <= last]
    if said["before"] != said["after"]:
        return len(turns) == 1 or None
    return not turns


def state_sequence(video: RawVideo, said: Said) -> Truth:
    """The values on every frame of the clip, in order, must be the stated values."""
    item, kind, start, end = said["object"], said["type"], said["start"], said["end"]
    rows = sorted(
        (r for r in video.values.get((item, kind), ()) if r.start < end and r.end > start), key=lambda r: r[1:]
    )
    course: list[str] = []
    for row in rows:
        if not course or not same_value(kind, course[-1], row.label):
            course.append(row.label)
    if not course or _is_blurred(video, item, kind, start) or _is_blurred(video, item, kind, end - 1):
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


def located(video: RawVideo, said: Said) -> Truth:
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


def unjoined(video: RawVideo, said: Said) -> Truth:
    truth = located(video, said)
    return None if truth is None else not truth


def in_part(video: RawVideo, said: Said) -> Truth:
    mark = video.marks[said["object"]].get(said["frame"])
    if mark is None:
        return None
    x, y, width, height = mark["bbox"]
    across, down = (x + width / 2) / video.width, (y + height / 2) / video.height
    down_words = "upper" if down < 0.5 else "lower"
    across_words = "left" if across < 0.5 else "right"
    if min(abs(across - 0.5), abs(down - 0.5)) >= 0.12:
        is_corner = said["part"].split()[-1] in ("left", "right") and said["part"].split()[0] in ("upper", "lower")
        return said["part"] == f"{down_words} {across_words}" if is_corner else None
    if max(abs(across - 0.5), abs(down - 0.5)) < 0.3:
        return None
    is_high_or_low = abs(down - 0.5) > abs(across - 0.5)
    return said["part"] == (f"{down_words} center" if is_high_or_low else f"middle {across_words}")


def lies_towards(video: RawVideo, said: Said) -> Truth:
    item, other = said["object"], said["other"]
    marks = video.marks[item].get(said["frame"]), video.marks[other].get(said["since"])
    if marks[0] is None or marks[1] is None:
        return None
    (left, top, wide, high), (left_2, top_2, wide_2, high_2) = marks[0]["bbox"], marks[1]["bbox"]
    is_beside = left + wide <= left_2 or left_2 + wide_2 <= left
    is_over = top + high <= top_2 or top_2 + high_2 <= top
    if item != other and not (is_beside or is_over):
        return None
    across, down = (2 * left + wide - 2 * left_2 - wide_2) / 2, (2 * top + high - 2 * top_2 - high_2) / 2
    ways = {"lower down" if down > 0 else "higher up": abs(down) / video.height}
    ways["further right" if across > 0 else "further left"] = abs(across) / video.width
    clear = [way for way, share in ways.items() if share >= 0.12]
    if len(clear) == 2:
        return said["direction"] == " and ".join(ways) if " and " in said["direction"] else None
    is_straight = min(abs(across), abs(down)) <= 0.4 * max(abs(across), abs(down))
    is_longer = bool(clear) and (clear[0].startswith("further") == (abs(across) > abs(down)))
    if not clear or not is_straight or not is_longer or " and " in said["direction"]:
        return None
    return said["direction"] == clear[0]


def next_state(video: RawVideo, said: Said) -> Truth:
    at = {key: said[key] for key in ("object", "type", "value")}
    before = has_value(video, {**at, "frame": said["frame"]})
    after = has_value(video, {**at, "frame": said["until"]})
    if before is not False or after is None:
        return None
    rows = video.values[said["object"], said["type"]]
    comes = any(
        same_value(said["type"], r.label, said["value"]) and said["frame"] < r.start <= said["until"] for r in rows
    )
    return (True if comes else None) if after else (None if comes else False)


# Actions and steps


def under_way(video: RawVideo, rows: Sequence[Row], frame: int) -> list[Row]:
    """The rows that hold around a frame. The video may begin or end in the middle of a row."""
    begun = [row for row in rows if row.start + video.margin <= frame or row.start == 0]
    return [row for row in begun if frame < row.end - video.margin or row.end == video.count]


def does(video: RawVideo, said: Said) -> Truth:
    name, frame = said["action"], said["frame"]
    now = under_way(video, video.actions, frame)
    if any(row.label == name for row in now):
        return True
    near = [row for row in video.actions if row.start - video.gap <= frame < row.end + video.gap]
    return False if now and all(other_action(video, name, row.label, frame) for row in near) else None


def next_action(video: RawVideo, said: Said) -> Truth:
    name, frame = said["action"], said["frame"]
    later = [row for row in video.actions if row.start > frame]
    if not later:
        return None
    first = [row for row in later if row.start - later[0].start <= video.margin]
    goes_on = does(video, {"action": name, "frame": said["until"]})
    if len(first) == 1 and first[0].label == name:
        return goes_on
    is_other = all(other_action(video, name, row.label, row.start + video.margin) for row in first)
    return False if is_other and goes_on is False else None


def in_step(video: RawVideo, said: Said) -> Truth:
    frame = said["frame"]
    now = {row.label for row in under_way(video, video.steps, frame)}
    if len(now) != 1:
        return None
    if said["step"] in now:
        return True
    spans = [row for row in video.steps if row.label == said["step"]]
    if any(same_verb(said["step"].lower().split()[0], label.lower().split()[0]) for label in now):
        return None
    return False if spans and not video.near(spans, frame, frame + 1) else None


def precedes(video: RawVideo, said: Said) -> Truth:
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


def brings_about(video: RawVideo, said: Said) -> Truth:
    truth = changes(video, said)
    if truth is not True:
        return truth
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


def all_of(video: RawVideo, said: Said) -> Truth:
    return both(*(proved(video, part) for part in said["parts"]))


def any_of(video: RawVideo, said: Said) -> Truth:
    denied = both(*(None if (truth := proved(video, part)) is None else not truth for part in said["parts"]))
    return None if denied is None else not denied


def only_during(video: RawVideo, said: Said) -> Truth:
    """No other action in the video has a verb and a noun that could mean the activity."""
    verb, _, noun = said["action"].lower().partition(" ")
    rows = [
        row
        for row in video.actions
        if same_verb(verb, row.label.lower().partition(" ")[0]) and same_noun(noun, row.label.lower().partition(" ")[2])
    ]
    return [(row.label, row.start, row.end) for row in rows] == [(said["action"], said["start"], said["end"])] or None
