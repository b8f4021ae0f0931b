"""Proof of what ViSTa's and ToG-Bench's items say, as `raw_proof.py` has it."""

from itertools import combinations

from tests.generate.raw_descriptions import is_told_apart
from tests.generate.raw_video import DOMAIN, SIDES, RawVideo
from tests.generate.raw_words import Said, Truth, could_mean, exclusive_values, other_action, unique


def depicts(video: RawVideo, said: Said) -> Truth:
    actions, spans = said["actions"], said["spans"]
    if len(actions) == len(spans) and all(
        any(row.label == name and row.start <= start and end <= row.end for row in video.actions)
        for name, (start, end) in zip(actions, spans, strict=True)
    ):
        return True
    # Wrong, if the recorded activities cannot be read, in order, as the stated ones.
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


def continues(video: RawVideo, said: Said) -> Truth:
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
    return all(left_alike(video, item, last, first) for item in used) or None


def left_alike(video: RawVideo, item: str, last: int, first: int) -> bool:
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


def as_left(video: RawVideo, said: Said) -> Truth:
    near = 0 < said["first"] - said["last"] <= video.gap
    return near or all(left_alike(video, item, said["last"], said["first"]) for item in said["objects"]) or None


def nothing_inside(video: RawVideo, said: Said) -> Truth:
    for (_, other), rows in video.places.items():
        inside = [row for row in rows if row.label == said["predicate"]]
        if other == said["object"] and any(row.start < said["end"] and row.end > said["start"] for row in inside):
            return None
    return True


def leftmost_at_end(video: RawVideo, said: Said) -> Truth:
    """By the boxes of both frames; at every moment all of the objects, and no other of their kind, are annotated."""
    step = max(1, round(video.fps / 4))
    moments = [said["start"], said["end"] - 1, *range(said["start"] // step * step + step, said["end"], step)]
    kind = [item for item in video.category if could_mean(video, said["kind"], item)]
    if any({item for item in kind if video.on(item, frame)} != set(said["objects"]) for frame in moments):
        return None
    ends = []
    for frame in moments[:2]:
        boxes = sorted((video.marks[item][frame]["bbox"], item) for item in said["objects"])
        (x, _, width, _), first = boxes[0]
        if any(x + width > box[0] + box[2] / 2 for box, _ in boxes[1:]):
            return None
        ends.append(first)
    return (ends[0] == ends[1]) is said["stays"]


def alone_in_view(video: RawVideo, said: Said) -> Truth:
    others = [i for i in video.category if i != said["object"] and could_mean(video, said["kind"], i)]
    step = max(1, round(video.fps / 4))
    moments = range(said["start"] // step * step + step, said["end"], step)
    return not any(video.on(other, frame) for other in others for frame in moments) or None


def kinds_in_view(video: RawVideo, kinds: list[str]) -> list[str]:
    return [item for item in video.category if video.marks[item] and video.labels(item) & set(kinds)]


def fillable(video: RawVideo, said: Said) -> Truth:
    return len(kinds_in_view(video, said["kinds"])) == 1 or None


def none_in_view(video: RawVideo, said: Said) -> Truth:
    return not kinds_in_view(video, said["kinds"]) or None


def fills(video: RawVideo, said: Said) -> Truth:
    # A slot for the result of hands holds the thing's name, with its owner.
    kinds = {kind.partition(" of the ")[0] for kind in said["kinds"]}
    held = [row for side in SIDES for row in video.touching(side, said["object"]) if row.label == "holds"]
    return bool(video.labels(said["object"]) & kinds) or ("held" in kinds and bool(held))


def not_parts(video: RawVideo, said: Said) -> Truth:
    return not any(video.is_part(a, b) for a, b in combinations(said["objects"], 2))


def trackable(video: RawVideo, said: Said) -> Truth:
    return any(video.seen(said["object"], frame) for frame in video.marks[said["object"]])


def handled(video: RawVideo, said: Said) -> Truth:
    items = [item for item in video.category if item == said["object"] or video.is_part(item, said["object"])]
    rows = [row for item in items for side in SIDES for row in video.touching(side, item)]
    return any(row.end - row.start > video.margin for row in rows) or None


def brought_about(video: RawVideo, said: Said) -> Truth:
    item, frame, other = said["object"], said["frame"], said["other"]
    rows = video.places.get((item, other), []) if other else video.values.get((item, "state"), [])
    begins = any(row.label == said["value"] and row.start == frame for row in rows)
    used = any(r.start - video.gap <= frame <= r.end + video.gap for side in SIDES for r in video.touching(side, item))
    return (begins and used) or None


def touched_during(video: RawVideo, said: Said) -> Truth:
    rows = [row for side in SIDES for row in video.touching(side, said["object"])]
    return any(min(r.end, said["end"]) - max(r.start, said["start"]) > video.margin for r in rows) or None


def named(video: RawVideo, said: Said) -> Truth:
    """Whether an object has a name, with or without its owner, that fits no other object on the frames."""
    item = said["object"]
    frames = said.get("frames", range(video.count))
    if said.get("description"):
        shown = [frame for frame in frames if "frames" in said or frame % round(video.fps) == 0]
        return is_told_apart(video, item, said["description"], shown) or None
    wholes = [label for (part, whole) in video.places if part == item for label in video.labels(whole)]
    names = [f"{name}{end}" for name in video.labels(item) for end in ("", *(f" of the {whole}" for whole in wholes))]
    return any(unique(video, name, item, frames) for name in names) or None
