"""Wordings of questions. Their forms are in `wordings.yaml`, and are assigned independently of the answer."""

from __future__ import annotations

import functools
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from itertools import cycle, product
from typing import Any

import msgspec

from barista_bench.core.example import content_seed
from barista_bench.files.reading import load_yaml
from barista_bench.generate.candidates import Item
from barista_bench.scene_graph.graph_words import third_person

JOIN_TWO = " and then "
"""The separator between two phrases if there are only two."""
_ALTERNATIVES = re.compile(r"\[([^\]]*)\]")
Slots = Mapping[str, Any]


class Phrases(tuple[str, ...]):
    """Phrases for one slot. Each phrase begins with a verb and says what a person does.

    The format spec has the separator between three or more phrases, then a bar, then the separator before the last
    phrase.

    >>> phrases = Phrases(("open it", "fix it", "go"))
    >>> f"she {phrases:, then |, and finally }", f"she {Phrases(phrases[:2]):, |, and finally }"
    ('she opens it, then fixes it, and finally goes', 'she opens it and then fixes it')
    """

    def __format__(self, spec: str) -> str:
        between, _, last = spec.partition("|")
        *before, ending = map(third_person, self)
        last = last if len(before) > 1 else JOIN_TWO
        return f"{between.join(before)}{last if before else ''}{ending}"


@functools.cache
def wording_forms(wording: str) -> tuple[str, ...]:
    """Return all forms of a wording, which is named `family/key` in the file. The plain form comes first."""
    family, _, key = wording.partition("/")
    return tuple(dict.fromkeys(form for template in _templates()[family][key] for form in _expansions(template)))


@functools.cache
def _templates() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    content = load_yaml(resources.files(__package__).joinpath("wordings.yaml").read_bytes(), "wordings.yaml")
    return msgspec.convert(content, dict[str, dict[str, tuple[str, ...]]])


def _expansions(template: str) -> Iterable[str]:
    """Return the texts of a template for every choice of its alternatives.

    >>> list(_expansions("[What|Which thing] is [it|that]?"))
    ['What is it?', 'What is that?', 'Which thing is it?', 'Which thing is that?']
    """
    fixed, alternatives = _ALTERNATIVES.split(template)[::2], _ALTERNATIVES.findall(template)
    for chosen in product(*(text.split("|") for text in alternatives)):
        yield "".join(part for pair in zip(fixed, (*chosen, ""), strict=True) for part in pair)


def fill_form(form: str, slots: Slots) -> str:
    """Return a form as a sentence with its slots filled."""
    text = form.format_map(slots)
    return text[:1].upper() + text[1:]


def plain_text(wording: str, slots: Slots) -> str:
    """Return a question in the plain form of its wording."""
    return fill_form(wording_forms(wording)[0], slots)


def shuffled_forms(wording: str, seed: int) -> list[str]:
    order = list(wording_forms(wording))
    random.Random(content_seed("wording", seed, wording)).shuffle(order)  # noqa: S311
    return order


def assign_forms(items: Sequence[Item], seed: int) -> list[Item]:
    """Return the items with forms of their questions assigned in turn, answer by answer.

    Each form is used about equally often for every answer, and for every place of the right choice.
    """
    by_wording: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        by_wording[item.candidate.wording].append(item)
    by_id = {item.id: item for item in items}
    for wording, members in by_wording.items():
        members.sort(key=lambda item: (item.candidate.answer_class, item.correct, content_seed("form", seed, item.id)))
        for item, form in zip(members, cycle(shuffled_forms(wording, seed)) if wording else (), strict=False):
            question = fill_form(form, item.candidate.slots)
            candidate = msgspec.structs.replace(item.candidate, question=question, form=form)
            by_id[item.id] = msgspec.structs.replace(item, candidate=candidate)
    return [by_id[item.id] for item in items]
