"""Collect the words of scene graphs with counts and first places, and derive verb forms."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from operator import attrgetter
from typing import NamedTuple

from barista_bench.scene_graph.domain import Side
from barista_bench.scene_graph.scene_graph import SceneGraph
from barista_bench.scene_graph.video_graph import UNNAMED, Attribute, Segment, VideoGraph

MOST_PLACES = 3
"""Maximum number of places that are stored for a word."""
KIND = "type"
"""Attribute type that names the kind of an object."""
Word = tuple[str, ...]
"""The kind of a word and the word itself: ("verb", "pour"), ("value", "state", "open")."""


class WordPlace(NamedTuple):
    """The place of a word: a frame of a video, a description of the place, and the ids of the described objects."""

    video_id: str
    frame: int
    text: str
    objects: tuple[str, ...] = ()


PlaceOf = Callable[..., WordPlace]
"""A function that returns the place of a frame and of objects on that frame."""


class GraphWords:
    """The words of scene graphs. Each word has a count, and its first `MOST_PLACES` places on separate frames."""

    def __init__(self) -> None:
        self.counts: Counter[Word] = Counter()
        self.places: dict[Word, tuple[WordPlace, ...]] = {}

    def add(self, word: Word, *places: WordPlace, count: int = 1) -> None:
        self.counts[word] += count
        by_frame: dict[tuple[str, int], WordPlace] = {}
        for place in (*self.places.get(word, ()), *places):
            by_frame.setdefault((place.video_id, place.frame), place)
        self.places[word] = tuple(by_frame.values())[:MOST_PLACES]

    def merge(self, other: GraphWords) -> None:
        for word, count in other.counts.items():
            self.add(word, *other.places[word], count=count)

    def rank_words(self, *kind: str) -> list[Word]:
        """Return the words of a kind, most frequent first. The results do not contain the kind."""
        rows = [(word, count) for word, count in self.counts.items() if word[: len(kind)] == kind]
        return [word[len(kind) :] for word, _ in sorted(rows, key=lambda row: (-row[1], row[0]))]

    def note(self, *word: str) -> str:
        return f"{self.counts[word]} x, {self.places[word][0].text}"


def words_of(video: VideoGraph) -> GraphWords:
    """Return the words of one video.

    For a word with a time, the place states the time in seconds. Synonyms and exclusions are counted by how often they
    occur.
    """
    words = GraphWords()
    fps = video.video.fps or 1.0

    def place(frame: int, *objects: str) -> WordPlace:
        return WordPlace(video.video_id, frame, f"{video.video_id} at {frame / fps:.1f} s", objects)

    for number, item in enumerate(video.objects):
        frames = video.frames_of(number)
        frame = int(frames[0]) if len(frames) else 0
        words.add(("category", item.category), WordPlace(video.video_id, frame, video.video_id, (item.id,)))
    for relation in video.relations():
        source_kind = "hand" if hand_side(relation.source.category) else "thing"
        ends = relation.source.id, relation.target.id
        words.add(("relation", source_kind, relation.type, relation.value), place(relation.start, *ends))
    attributes = list(video.attributes())
    for value in attributes:
        words.add(("value", value.type, value.value), place(value.start, value.object.id))
        words.add(("has", value.object.category.lower(), value.type, value.value), place(value.start))
    activities = sorted(video.activities(), key=lambda row: (row.start, row.end, row.name))
    for row in activities:
        verb, noun = _verb_noun(row)
        words.add(("verb", verb), place(row.start))
        if noun:
            words.add(("noun", noun), place(row.start))
    for first, second in combinations(activities, 2):
        verbs = sorted({_verb_noun(first)[0], _verb_noun(second)[0]})
        is_together = max(first.start, second.start) < min(first.end, second.end)
        if is_together and len(verbs) == 2 and _verb_noun(first)[1] == _verb_noun(second)[1]:
            words.add(("alike verbs", *verbs), place(second.start))
    _add_values(words, attributes, activities, place)
    _add_touched_names(words, video, activities, place)
    return words


def hand_side(category: str) -> Side | None:
    """Return the side of a category that names a hand, such as "left hand"."""
    parts = set(re.findall(r"[a-z]+", category.casefold()))
    return next((side for side in ("left", "right") if {side, "hand"} <= parts), None)


_PREPOSITIONS = ("to", "into", "in", "on", "onto", "from", "with", "of")
_ARTICLES = ("the", "a", "an")
PARTICLES = ("up", "down", "off", "out", "away", "back", "over", "around", "together", "apart", "aside", "on", "in")
"""Words that belong to the preceding verb, if they are no preposition of a noun."""


def verb_and_noun(name: str) -> tuple[str, str]:
    """Return the verb and the noun of an activity or step, in lower case. The verb has no ending.

    >>> verb_and_noun("Open milk carton"), verb_and_noun("Pick up mug"), verb_and_noun("Turn off machine")
    (('open', 'milk carton'), ('pick', 'mug'), ('turn off', 'machine'))
    >>> verb_and_noun("Cutting lemon"), verb_and_noun("reaches for lid"), verb_and_noun("Putting down")
    (('cut', 'lemon'), ('reach', 'lid'), ('put', ''))
    >>> verb_and_noun("Handing over butter"), verb_and_noun("Turn on machine"), verb_and_noun("Turn on")
    (('hand over', 'butter'), ('turn', 'on machine'), ('turn on', ''))
    """
    verb, _, noun = name.strip().lower().partition(" ")
    verb = base_form(verb)
    particle, _, rest = noun.partition(" ")
    phrase = f"{verb} {particle}"
    if spoken_form(verb) == phrase:
        return verb, rest
    is_particle = particle in PARTICLES and not (rest and particle in _PREPOSITIONS)
    return (phrase, rest) if is_particle else (verb, noun)


_NEEDS_NO_OBJECT = re.compile(
    r"((clean|tid[iy]|wash|stand|sit)\w* (up|down)|(go|look|step|turn|walk)\w* (around|away|back))$"
)


def action_phrase(form: str, noun: str) -> str:
    """Return an action in words: a form of its verb and its noun, with articles. {} in the form is the noun's place.

    >>> action_phrase("pouring", "milk into mug"), action_phrase("turn", "on machine"), action_phrase("stirring", "")
    ('pouring the milk into the mug', 'turn on the machine', 'stirring')
    >>> action_phrase("get {} ready", "cup"), action_phrase("reach for", ""), action_phrase("cleaning up", "")
    ('get the cup ready', 'reach for something', 'cleaning up')
    >>> action_phrase("pour over", "bowl"), action_phrase("put", "bread in oven"), action_phrase("walking around", "")
    ('pour over the bowl', 'put the bread in the oven', 'walking around')
    """
    is_whole = bool(noun) or " " not in form or _NEEDS_NO_OBJECT.match(form) is not None
    text, before = "" if is_whole else " something", ""
    for word in noun.split():
        begins_name = not before or before in (*_PREPOSITIONS, *PARTICLES)
        text += " the" if begins_name and word not in (*_PREPOSITIONS, *PARTICLES, *_ARTICLES) else ""
        text, before = f"{text} {word}", word
    return form.replace(" {}", text) if " {}" in form else form + text


def _verb_noun(row: Segment) -> tuple[str, str]:
    return verb_and_noun(row.name)


def _add_values(
    words: GraphWords, attributes: Sequence[Attribute], activities: Sequence[Segment], place: PlaceOf
) -> None:
    by_attribute: dict[tuple[str, str], list[Attribute]] = defaultdict(list)
    for value in attributes:
        by_attribute[value.object.id, value.type].append(value)
    for (_, kind), values in by_attribute.items():
        rows = sorted(values, key=attrgetter("start", "end", "value"))
        for before, after in pairwise(rows):
            if before.value == after.value:
                continue
            if after.start >= before.end:
                words.add(("exclusive", kind, *sorted((before.value, after.value))), place(after.start))
            for row in activities:
                if row.start <= after.start < row.end:
                    words.add(("cause", after.value, _verb_noun(row)[0]), place(after.start))
        for first, second in combinations(rows, 2):
            if first.value != second.value and max(first.start, second.start) < min(first.end, second.end):
                words.add(("at once", kind, *sorted((first.value, second.value))), place(second.start))


def _add_touched_names(words: GraphWords, video: VideoGraph, activities: Sequence[Segment], place: PlaceOf) -> None:
    """Add the nouns of activities that are not annotated names.

    Each noun is stored with the category of the only thing that hands touch during the activity.

    If hands touch several things, or a thing without a category, the meaning is unclear and nothing is added.
    """
    names = {item.category.lower() for item in video.objects}
    names |= {value.value.lower() for value in video.attributes() if value.type == KIND}
    hand_relations = [relation for relation in video.relations() if hand_side(relation.source.category)]
    for row in activities:
        noun = _verb_noun(row)[1]
        touched = {r.target.category.lower() for r in hand_relations if r.start < row.end and r.end > row.start}
        if noun and noun not in names and len(touched) == 1 and UNNAMED not in touched:
            words.add(("named", noun, *touched), place(row.start))


def survey_words(graph: SceneGraph) -> GraphWords:
    """Return the words of all videos. One video at a time is read."""
    words = GraphWords()
    for video_id in graph.video_ids:
        words.merge(words_of(graph[video_id]))
    return words


# Forms of verbs


def base_form(word: str) -> str:
    """Return a verb without its ending.

    >>> [base_form(word) for word in ("holds", "holding", "presses", "carries", "cut", "putting", "wiping", "tasting")]
    ['hold', 'hold', 'press', 'carry', 'cut', 'put', 'wipe', 'taste']
    """
    head, _, tail = word.partition(" ")
    if re.search(r"[aeiouy].*ing$", head):
        stem = head[:-3]
        if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "flsz":
            stem = stem[:-1]
        elif re.search(
            r"([aeiou][cgsuz]|[aeioulr]v|n[cs]|[^aeiou]([aiou][dkpt]|[aou]r)|[bcdfgkptz]l|[tpw]ast|chang|rrang)$", stem
        ):
            stem += "e"
    elif head.endswith("ies"):
        stem = f"{head[:-3]}y"
    elif head.endswith(("sses", "shes", "ches", "xes")):
        stem = head[:-2]
    else:
        stem = head[:-1] if head.endswith("s") and not head.endswith("ss") else head
    return f"{stem} {tail}".strip()


def participle(verb: str) -> str:
    """Return the present participle of a verb. A consonant after one short vowel is doubled, and a silent e is dropped.

    >>> [participle(verb) for verb in ("pour", "put", "place", "stir", "open", "tie", "free", "fix")]
    ['pouring', 'putting', 'placing', 'stirring', 'opening', 'tying', 'freeing', 'fixing']
    """
    head, _, tail = verb.partition(" ")
    if head.endswith("ie"):
        head = f"{head[:-2]}y"
    elif head.endswith("e") and not head.endswith(("ee", "oe", "ye")):
        head = head[:-1]
    elif re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", head):
        head += head[-1]
    return f"{head}ing {tail}".strip()


SPOKEN = {
    "look": "look at",
    "pick": "pick up",
    "point": "point at",
    "put": "put down",
    "reach": "reach for",
    "set": "set down",
    "throw": "throw away",
}
"""Verbs that need another word before the noun, since people do not "pick the lemon"."""


def spoken_form(verb: str) -> str:
    """Return a verb in the form that is written before a noun.

    >>> spoken_form("reach"), participle(spoken_form("pick")), spoken_form("pour")
    ('reach for', 'picking up', 'pour')
    """
    return SPOKEN.get(verb, verb)


_IRREGULAR = {
    "bring": "brought",
    "break": "broken",
    "cut": "cut",
    "get": "got",
    "grind": "ground",
    "hold": "held",
    "lay": "laid",
    "put": "put",
    "set": "set",
    "shake": "shaken",
    "take": "taken",
    "tear": "torn",
    "throw": "thrown",
}
"""Past participles that no rule makes."""


def past_participle(verb: str) -> str:
    """Return the past participle of a verb. It describes a thing after the action.

    >>> [past_participle(verb) for verb in ("pour", "place", "stir", "carry", "pick up", "cut", "turn")]
    ['poured', 'placed', 'stirred', 'carried', 'picked up', 'cut', 'turned']
    """
    head, _, tail = verb.partition(" ")
    if head in _IRREGULAR:
        done = _IRREGULAR[head]
    elif head.endswith("e"):
        done = f"{head}d"
    elif re.search(r"[^aeiou]y$", head):
        done = f"{head[:-1]}ied"
    else:
        done = f"{participle(head).removesuffix('ing')}ed"
    return f"{done} {tail}".strip()


def third_person(verb: str) -> str:
    """Return a verb, or a phrase that begins with one, in the third person.

    >>> third_person("press the button"), third_person("carry the cup"), third_person("clean up")
    ('presses the button', 'carries the cup', 'cleans up')
    """
    head, _, tail = verb.partition(" ")
    if re.search(r"[^aeiou]y$", head):
        head = f"{head[:-1]}ie"
    return f"{head}{'es' if head.endswith(('s', 'sh', 'ch', 'x', 'z', 'o')) else 's'} {tail}".strip()
