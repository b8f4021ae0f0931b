"""Reads the texts of generated items without the package, and compares them with the statements behind them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tests.generate.raw_descriptions import PLACE_WORDS, plain
from tests.generate.raw_video import DOMAIN, SIDES, RawVideo, Row
from tests.generate.raw_words import Said, function_of, same_noun

FAMILIES: Mapping[str, Any] = DOMAIN["families"]
HAND = r"(?P<side>left|right) hand is touching the (?P<name>.+)"
HANDS = {"Both hands": [*SIDES], "Only the left hand": ["left"], "Only the right hand": ["right"], "Neither hand": []}
AT_END = "(?:at the end|in the end|by the end|finally)"
ALWAYS = "(?:in this clip|all the time|the whole time|all through the clip|throughout|from beginning to end)"
FINALLY = "(?:in the end|at the end|at the end of the clip|when the clip ends|once the hands are done|by the end)"

Reader = Callable[[RawVideo, Said, str, str], bool]


BEGINS, ENDS = r"begins|starts|beginning|start|first moment", r"ends|is over|end|last moment|close"
ACTS = r"(?:first, |first of all, |in th\w+ (?:clip|video), )?(?:the person|someone|a person) (?:first )?"
JOINTS = r",? and (?:then|finally) |, then |, "


def unsaid(video: RawVideo, item: Mapping[str, Any]) -> Iterator[str]:
    """Texts of an item's choices that differ from their statements."""
    if item["subtask"] == "location":
        frame = item["choices"][0]["statement"]["frame"]
        is_start = frame - item["span"][0] < item["span"][1] - frame
        if [bool(re.search(rf"\b({words})\b", item["question"])) for words in (BEGINS, ENDS)] != [
            is_start,
            not is_start,
        ]:
            yield f"{item['id']}: {item['question']} does not ask for frame {frame}"
    for choice in item["choices"]:
        if not reads(video, choice["statement"], choice["text"], item["question"]):
            yield f"{item['id']}: {item['question']} {choice['text']!r} does not say {choice['statement']}"


def reads(video: RawVideo, said: Said, text: str, question: str) -> bool:
    name = function_of(said)
    name = {"placed": "located", "fills": "named", "touched_in_clip": "named"}.get(name, name)
    reader: Reader = globals()[name]
    return reader(video, said, text.rstrip("."), question)


# Words


def is_named(video: RawVideo, words: str, item: str) -> bool:
    """Whether words are a name of an object; with a whole, that it is a part of or belongs to that."""
    head, _, owner = plain(words.lower().removeprefix("the ")).partition(" of the ")
    wholes = [whole for part, whole in video.places if part == item]
    return head in video.labels(item) and (not owner or any(owner in video.labels(whole) for whole in wholes))


def is_state(words: str, value: str) -> bool:
    """Whether words are how some family says a value."""
    sayings = {value}
    for name in ("egocot", "handyvqa"):
        sayings |= {said for key, said in FAMILIES[name]["states"].items() if f" {key}".endswith(f" {value}")}
    kinds = [FAMILIES["vista"]["states"], *FAMILIES["vista"]["changes"].values()]
    sayings |= {states.get(value) for by_kind in kinds for states in by_kind.values()}
    return words.lower() in sayings


def is_action(video: RawVideo, words: str, name: str) -> bool:
    """Whether words, their verb in any form, are an activity or step that the graph calls `name`."""
    noun = name.lower().partition(" ")[2]
    verb = DOMAIN["activities"].get(name.lower(), name.lower()).removesuffix(noun).strip()
    if said_ready := re.fullmatch(r"(?:get|gets|getting) (.+) ready", words.lower()):
        words = f"prepare {said_ready[1]}"
    phrases = {verb, FAMILIES["vista"]["phrases"].get(verb, verb), FAMILIES["egocot"]["verbs"].get(verb, verb)}
    things = {label for item, kind in video.category.items() if kind == noun for label in video.labels(item)}
    nouns = {noun or "something", noun, FAMILIES["vista"]["nouns"].get(noun, noun), *things}
    said = without_articles(words.lower())
    participle = FAMILIES["handyvqa"]["doing"].get(verb, "")
    heads = {form for phrase in phrases for form in forms(phrase)} | {participle}
    return said in {without_articles(f"{head} {noun}".strip()) for head in heads for noun in nouns}


def without_articles(words: str) -> str:
    return re.sub(r"\b(the|an?) ", "", words)


def forms(phrase: str) -> set[str]:
    """A verb phrase, and its form for a person."""
    verb, _, rest = phrase.partition(" ")
    verbs = {verb, f"{verb}s", f"{verb}es", f"{verb.removesuffix('y')}ies"}
    return {f"{form} {rest}".strip() for form in verbs}


def is_time(video: RawVideo, words: str, frame: int) -> bool:
    minutes, _, seconds = words.partition(":")
    return abs(60 * int(minutes) + float(seconds) - frame / video.fps) < 0.0051


def times(text: str) -> list[str]:
    return re.findall(r"\d\d:\d\d\.\d\d", text)


def any_of(video: RawVideo, said: Said, text: str, question: str) -> bool:
    return all_of(video, said, text, question)


def is_interval(video: RawVideo, text: str, start: int, last: int) -> bool:
    stated = times(text)
    return len(stated) == 2 and is_time(video, stated[0], start) and is_time(video, stated[1], last)


def mentions(video: RawVideo, question: str, item: str) -> bool:
    """Whether a question has a name of an object in it."""
    place = "(?:leftmost |middle |rightmost )?"
    labels = map(re.escape, video.labels(item))
    return any(re.search(rf"\bthe {place}{label}\b", question, re.IGNORECASE) for label in labels)


def is_then(video: RawVideo, question: str, frame: int) -> bool:
    """Whether a question is about a frame: by the clock, or during the only activity of its name."""
    if times(question):
        return is_time(video, times(question)[0], frame)
    said = re.search(r"person (?:is|was) (.+?)(?:[,:?]|$)", question)
    rows = [row for row in video.actions if said and is_action(video, said[1], row.label)]
    return len(rows) == 1 and rows[0].start <= frame < rows[0].end


# Hands


def is_moment(video: RawVideo, said: Said, text: str) -> bool:
    """Whether a text is exactly the moment of a statement."""
    return text.startswith("At ") and is_time(video, text.removeprefix("At "), said["frame"])


def touches(video: RawVideo, said: Said, text: str, question: str) -> bool:
    if re.search("one of these|which of these (moments|times)", question):
        is_side = re.findall("(left|right) hand", question) == [said["side"]]
        return is_side and is_moment(video, said, text) and mentions(video, question, said["object"])
    match = re.fullmatch(f"the {HAND}", text, re.IGNORECASE)
    if match:
        return match["side"] == said["side"] and is_named(video, match["name"], said["object"])
    is_asked = re.findall("(left|right) hand", question) == [said["side"]] and is_then(video, question, said["frame"])
    return is_asked and is_named(video, text, said["object"])


def hand_is_on(video: RawVideo, said: Said, text: str, question: str) -> bool:
    if said["contact"] is None:
        return re.findall("(left|right) hand", question) == [said["side"]] and is_named(video, text, said["object"])
    return text == f"In the {said['side']} hand" and mentions(video, question, said["object"])


def hands_do(video: RawVideo, said: Said, text: str, question: str) -> bool:
    both = re.fullmatch(r"Both hands are (\w+) (the .+)", text)
    if both:
        action = [said["left"], said["right"]]
        return action[0] == action[1] and is_deed(video, both[1], both[2], action[0])
    match = re.fullmatch(r"The left hand is (\w+)(.*), and the right hand is (\w+)(.*)", text)
    assert match, text
    return is_deed(video, match[1], match[2], said["left"]) and is_deed(video, match[3], match[4], said["right"])


def is_deed(video: RawVideo, verb: str, words: str, action: list[str] | None) -> bool:
    if action is None:
        return (verb, words) == ("free", "")
    return verb == DOMAIN["contacts"][action[0]]["doing"] and is_named(video, words.strip(), action[1])


def all_of(video: RawVideo, said: Said, text: str, question: str) -> bool:
    parts = said["parts"]
    kinds = [part["says"] for part in parts]
    if text in HANDS:
        is_said = HANDS[text] == [part["side"] for part in parts if part["says"] == "Touches"]
        is_asked = all(is_then(video, question, p["frame"]) and mentions(video, question, p["object"]) for p in parts)
        return is_said and is_asked and [part["side"] for part in parts] == [*SIDES]
    if kinds == ["AwayFrom", "Touches"] and text.startswith("Between "):
        away, on = (part["frame"] for part in parts)
        words = "(?:begin|start) to touch the" if away < on else "stop(?:s|ped)? touching the"
        is_asked = re.search(rf"the {parts[0]['side']} hand {words}", question, re.IGNORECASE) is not None
        is_interval_said = is_interval(video, text, min(away, on), max(away, on))
        return is_asked and is_interval_said and mentions(video, question, parts[0]["object"])
    if kinds == ["Touches", "Touches"] and len(times(question)) == 2:
        return touches_in_turn(video, parts, text, question)
    two = re.fullmatch(f"the {HAND.replace('(.+)', '(.+?)')}, and the right hand is touching (?P<other>.+)", text, re.I)
    both = re.fullmatch("both hands are touching (?P<name>.+)", text, re.IGNORECASE)
    if kinds == ["Touches", "Touches"] and (match := two or both):
        names = [match["name"], (two or match)["other"] if two else match["name"]]
        said_names = all(is_named(video, name, part["object"]) for name, part in zip(names, parts, strict=True))
        is_when = all(is_then(video, question, part["frame"]) for part in parts)
        return said_names and is_when and [part["side"] for part in parts] == ["left", "right"]
    if set(kinds) == {"Touches"}:
        return all(touches(video, part, text, question) and is_then(video, question, part["frame"]) for part in parts)
    if kinds == ["InStep", "InStep"]:
        steps = re.findall(r'"(.+?)"', question)
        is_said = all(is_action(video, words, part["step"]) for words, part in zip(steps, parts, strict=True))
        return is_said and is_interval(video, text, parts[0]["frame"], parts[1]["frame"])
    if text == "None of these":
        is_when = all(is_then(video, question, part["frame"]) for part in parts)
        return is_when and all(f"{part['side']} hand" in question for part in parts) and set(kinds) == {"AwayFrom"}
    value, hand = parts
    match = re.fullmatch(r"(The .+?) is (.+), and the (left|right) hand is (touching|not touching) it", text)
    assert match, text
    sides = re.findall("(left|right) hand", question)
    return (
        is_named(video, match[1], value["object"])
        and is_state(match[2], value["value"])
        and {"touching": "Touches", "not touching": "AwayFrom"}[match[4]] == hand["says"]
        and [match[3]] == sides == [hand["side"]]
        and all(is_then(video, question, p["frame"]) and mentions(video, question, p["object"]) for p in parts)
    )


def touches_in_turn(video: RawVideo, parts: list[Said], text: str, question: str) -> bool:
    """The thing that one hand touches at one time, and the thing that it or the other hand touches later."""
    sides = re.findall("(left|right) hand", question)
    match = re.fullmatch(r"First (the .+), then (the .+)", text)
    names = list(match.groups()) if match else [text.removesuffix(" both times")] * 2
    return (
        sides in ([parts[0]["side"]], [part["side"] for part in parts])
        and len({part["side"] for part in parts}) == len(sides)
        and all(is_time(video, time, part["frame"]) for time, part in zip(times(question), parts, strict=True))
        and all(is_named(video, name, part["object"]) for name, part in zip(names, parts, strict=True))
    )


def precedes(video: RawVideo, said: Said, text: str, question: str) -> bool:
    names = text.split(", then ")
    is_asked = all(mentions(video, question, item) for item in said["objects"])
    return is_asked and all(is_named(video, name, item) for name, item in zip(names, said["objects"], strict=True))


# States and places


def changes(video: RawVideo, said: Said, text: str, question: str) -> bool:
    first = "(?:at first|in the beginning|at the start)"
    in_turn = rf"{first}, (the .+) is (.+), and {AT_END} it is (.+)"
    at_once = rf"(the .+?) is (.+) {first} and (.+) {AT_END}"
    effect = re.fullmatch(in_turn, text, re.IGNORECASE) or re.fullmatch(at_once, text, re.IGNORECASE)
    if effect:
        is_first = is_named(video, effect[1], said["object"]) and is_state(effect[2], said["before"])
        return is_first and is_state(effect[3].removeprefix("still "), said["after"])
    if said["before"] == said["after"]:
        match = re.fullmatch(rf"(?:.+, )?(the .+?) is (.+?)( {ALWAYS})?", text, re.IGNORECASE)
        assert match, text
        return is_named(video, match[1], said["object"]) and is_state(match[2], said["after"])
    match = re.search(r"from (.+) to (.+?)\?", question)
    assert match, question
    before, after = match.groups()
    is_said = mentions(video, question, said["object"]) and is_state(before, said["before"])
    return is_said and is_state(after, said["after"]) and is_interval(video, text, said["start"], said["end"] - 1)


def has_value(video: RawVideo, said: Said, text: str, question: str) -> bool:
    """A state or colour at a moment, or the moment of a state, of the object in the question or under a hand."""
    is_meant = mentions(video, question, said["object"]) or "hand" in question
    if text.startswith("At "):
        asked = re.sub(r" at one of these.*|\?$", "", question)
        states = {asked.partition(f" {label} ")[2] for label in video.labels(said["object"])}
        states |= {asked.rpartition(f" {verb} ")[2] for verb in ("is", "was")}
        states |= {state.removeprefix("is ").removeprefix("was ") for state in states}
        return is_meant and any(is_state(state, said["value"]) for state in states) and is_moment(video, said, text)
    return is_meant and is_state(text, said["value"]) and is_time(video, times(question)[-1], said["frame"])


def state_sequence(video: RawVideo, said: Said, text: str, question: str) -> bool:
    words = [text.removesuffix(" throughout")] if text.endswith("throughout") else text[6:].split(", then ")
    said_values = zip(words, said["values"], strict=False)
    is_all = len(words) == len(said["values"])
    return (
        is_all
        and mentions(video, question, said["object"])
        and all(is_state(w.removesuffix(" again"), v) for w, v in said_values)
    )


def next_state(video: RawVideo, said: Said, text: str, question: str) -> bool:
    match = re.fullmatch(r"(The .+?) is (.+)", text)
    assert match, text
    is_when = is_time(video, times(question)[0], said["frame"])
    return is_when and is_named(video, match[1], said["object"]) and is_state(match[2], said["value"])


def unjoined(video: RawVideo, said: Said, text: str, question: str) -> bool:
    return " not " in text and located(video, said, text.replace(" not ", " "), question)


def leftmost_at_end(video: RawVideo, said: Said, text: str, question: str) -> bool:
    kind = re.search(
        r"the (.+) that (?:is|was) leftmost at first is (still|no longer) the leftmost", text, re.IGNORECASE
    )
    is_kind = kind is not None and all(is_named(video, f"the {kind[1]}", item) for item in said["objects"])
    return is_kind and kind is not None and (kind[2] == "still") is said["stays"]


def lies_towards(video: RawVideo, said: Said, text: str, question: str) -> bool:
    """The place of an object relative to another at one time, or to its own earlier place at a later time."""
    since = re.findall(r"its place at ([\d:.]+\d)", question)
    here, *there = [*times(re.sub(r"its place at \S+", "", question)), *since]
    is_when = is_time(video, here, said["frame"]) and all(is_time(video, time, said["since"]) for time in there)
    compared = re.search(r"(?:with|to) (the .+?)(?:,|\?| at \d)", question)
    is_compared = bool(there) if said["object"] == said["other"] else said["frame"] == said["since"]
    is_compared = is_compared and (
        bool(there) or (compared is not None and is_named(video, compared[1], said["other"]))
    )
    labels = "|".join(map(re.escape, video.labels(said["object"])))
    is_asked = bool(re.search(rf"where in the (?:picture|frame) is the (?:{labels})", question, re.IGNORECASE))
    return text.lower() == said["direction"] and is_when and is_compared and is_asked


def located(video: RawVideo, said: Said, text: str, question: str) -> bool:
    where = PLACE_WORDS[said["predicate"]]
    if re.search("one of these|which of these (moments|times)", question):
        asked = re.search(rf" ({'|'.join(map(re.escape, where))}) (the .+?)(?:\?| at one)", question)
        is_asked = asked is not None and is_named(video, asked[2], said["other"])
        is_asked = is_asked and mentions(video, question, said["object"])
        return is_asked and is_moment(video, said, text)
    ends_up = re.fullmatch(rf"(?:.+, )?(the .+?) (?:ends up|is) (.+?) (the .+?)( {FINALLY})?", text, re.IGNORECASE)
    if ends_up:
        name, words, other = ends_up.groups()[:3]
        return words in where and is_named(video, name, said["object"]) and is_named(video, other, said["other"])
    words, _, other = text.lower().partition(" the ")
    return words in where and mentions(video, question, said["object"]) and is_named(video, other, said["other"])


def in_part(video: RawVideo, said: Said, text: str, question: str) -> bool:
    if text != f"In the {said['part']}" or not is_time(video, times(question)[-1], said["frame"]):
        return False
    # The given facts say which object a hand touches; the proof reads them.
    is_by_hand = re.search("(left|right) hand", question) is not None and len(times(question)) == 2
    return is_by_hand or mentions(video, question, said["object"])


def named(video: RawVideo, said: Said, text: str, question: str) -> bool:
    return is_named(video, text, said["object"])


# Actions and steps


def does(video: RawVideo, said: Said, text: str, question: str) -> bool:
    asked = re.search(r"person (?:is|was) (.+?)(?: at one|\?)|was the person (.+?)\?|is the person (.+?)\?", question)
    if text.startswith("At ") and asked:
        return is_action(video, next(filter(None, asked.groups())), said["action"]) and is_moment(video, said, text)
    return is_action(video, text.removeprefix("The person is "), said["action"])


def in_step(video: RawVideo, said: Said, text: str, question: str) -> bool:
    step = re.search(r'"(.+?)"', question)
    if step:
        return is_action(video, step[1], said["step"]) and is_moment(video, said, text)
    return is_action(video, text, said["step"]) and is_time(video, times(question)[0], said["frame"])


def next_action(video: RawVideo, said: Said, text: str, question: str) -> bool:
    if said_next := re.search(r'"(.+?)"', question):
        return is_action(video, said_next[1], said["action"]) and is_moment(video, said, text)
    since = re.search(r"(?:begin|start)(?:ning|ing|s)? to (.+?)[,.?]", question)
    if since:
        rows = [row for row in video.actions if is_action(video, since[1], row.label)]
        is_when = [row.start for row in rows] == [said["frame"]]
    else:
        is_when = is_time(video, times(question)[0], said["frame"])
    return is_action(video, text, said["action"]) and is_when


def brings_about(video: RawVideo, said: Said, text: str, question: str) -> bool:
    act, change = re.fullmatch(r"The person (.+), (and|which) (.+)", text).group(1, 3)  # type: ignore[union-attr]
    match = re.fullmatch(r"(the .+) goes from (.+) to (.+)", change)
    if match:
        is_result = is_named(video, match[1], said["object"]) and is_state(match[3], said["after"])
        first = match[2]
    else:
        first = re.fullmatch(r"was (.+) until then", change)[1]  # type: ignore[index]
        is_result = any(act.lower().endswith(f" {label}") for label in video.labels(said["object"]))
    return (
        is_result
        and is_state(first, said["before"])
        and is_action(video, act, said["action"])
        and is_interval(video, question, said["start"], said["end"] - 1)
    )


def depicts(video: RawVideo, said: Said, text: str, question: str) -> bool:
    steps = re.split(JOINTS, re.sub(rf"^{ACTS}", "", text, flags=re.IGNORECASE))
    if len(steps) != len(said["actions"]):
        return False
    for at in range(len(steps)):
        if re.search(r"\bit\b", steps[at]):
            pair = said["actions"][max(0, at - 1) : at + 1]
            nouns, things = {name.partition(" ")[2].lower() for name in pair}, [done_to(video, name) for name in pair]
            if len(nouns) != 1 or len(set.union(*things)) != 1:
                return False
            steps[at] = re.sub(r" it\b", "", steps[at]) + f" the {steps[at - 1].rpartition(' the ')[2]}"
    return all(is_action(video, step, action) for step, action in zip(steps, said["actions"], strict=True))


def done_to(video: RawVideo, action: str) -> set[str]:
    """The objects of an action: things that hands touch during it and that its noun fits, or all that its noun fits."""
    noun = action.partition(" ")[2].lower()
    named = {item for item in video.category if any(same_noun(noun, label) for label in video.labels(item))}
    rows = [row for row in video.actions if row.label == action]
    return set().union(*(_touched(video, row, named) or named for row in rows)) or named


def _touched(video: RawVideo, row: Row, named: Iterable[str]) -> set[str]:
    contacts = [(item, touch) for item in named for side in SIDES for touch in video.touching(side, item)]
    return {item for item, touch in contacts if touch.start < row.end and touch.end > row.start}
