"""The lettered choices of an activity question: how they are sampled, ordered and named."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count, product
from string import ascii_uppercase

from barista_bench.core.example import Inputs, Target, TypedFields
from barista_bench.core.options import Count, Index, Sampling


class ActivityChoice(TypedFields):
    """`choice_id` is the letter in the prompt. `class_id` and `verb` serve analysis; the prompt does not show them."""

    choice_id: str
    class_id: str
    text: str
    verb: str


@dataclass(frozen=True, slots=True)
class ActivitySampling(Sampling):
    """The sampling of questions about activities.

    Args:
        frames: number of frames of an example.
        per_class: maximum number of examples per activity class; None keeps all.
        choices: number of choices of a question; None offers all classes.
        same_verb: number of distractors that share the verb of the right choice, if enough exist.
    """

    per_class: Count | None = None
    frames: Count = 1
    choices: Count | None = None
    same_verb: Index = 0


def sample_choices(
    class_id: str, names: Mapping[str, str], sampling: ActivitySampling, rng: random.Random
) -> list[ActivityChoice]:
    """Return the choices of one question, including the reference, in the order of the prompt.

    `names` maps the ids of all classes to names. If several choices share a name, their texts also give the class ids.
    """
    class_ids = _pick_classes(class_id, {item: released_verb(name) for item, name in names.items()}, sampling, rng)
    times = Counter(names[item] for item in class_ids)
    letters = ("".join(letters) for length in count(1) for letters in product(ascii_uppercase, repeat=length))
    return [
        ActivityChoice(letter, item, name if times[name] == 1 else f"{name} ({item})", group_verb(name))
        for letter, item, name in zip(letters, class_ids, map(names.__getitem__, class_ids), strict=False)
    ]


def _pick_classes(class_id: str, verbs: Mapping[str, str], sampling: ActivitySampling, rng: random.Random) -> list[str]:
    """Return the classes of one question in random order: the reference, distractors with its verb, and other classes.

    The random generator is called in the same order as in the release.
    """
    others = [item for item in sorted(verbs) if item != class_id]
    same_verb = [item for item in others if verbs[item] == verbs[class_id]]
    other_verbs = [item for item in others if verbs[item] != verbs[class_id]]
    rng.shuffle(same_verb)
    rng.shuffle(other_verbs)
    sampled = [*same_verb, *other_verbs]
    if sampling.choices is not None:
        wrong = sampling.choices - 1
        first = min(sampling.same_verb, len(same_verb), wrong)
        pool = [*same_verb[first:], *other_verbs]
        rng.shuffle(pool)
        sampled = [*same_verb[:first], *pool][:wrong]
    sampled.append(class_id)
    if len(sampled) > 1:
        rng.shuffle(sampled)
    return sampled


def released_verb(name: str) -> str:
    """Return the verb by which choices are sampled from a `Verb noun` label; empty if the label begins with a blank."""
    return name.split(" ", 1)[0]


def group_verb(name: str) -> str:
    """Return the verb by which scores are grouped; it is never empty.

    >>> group_verb("Pour milk"), group_verb(" Pour milk")
    ('Pour', 'Pour')
    """
    return next(iter(name.split()), name)


class ActivityInputs(Inputs):
    choices: list[ActivityChoice]


class ActivityTarget(Target):
    choice_id: str
    class_id: str
