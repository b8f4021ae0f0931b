"""Matches and scores activities that a model names in its own words.

A name means the right activity if its similarity to the right name is at least `threshold` and no other class of the
set is more similar. A name that has exactly the words of another class means that class, however similar the two
classes are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

from barista_bench.benchmarks.barista.activity import named_activities
from barista_bench.benchmarks.lexical import content_words
from barista_bench.benchmarks.name_matching import NameMatcher, matching_options
from barista_bench.core.deriving import GraphTask, Vocabulary
from barista_bench.core.display import AnswerFailure, Explanation
from barista_bench.core.example import Example, Fields, Prediction, Scored, Target, TypedFields, evidence_objects
from barista_bench.core.options import Option, SamplingT
from barista_bench.core.remembering import remember
from barista_bench.core.statistics import SumStatistics, mean_statistics
from barista_bench.scene_graph import VideoGraph
from barista_bench.scene_graph.domain import load_domain

MAX_NAME = 200
"""Maximum number of characters of an answered name."""


class NamedActivity(Target):
    """A reference: the activity's name (`Verb noun`), its class, and the sorted names of all classes of the set."""

    activity: str
    class_id: str
    classes: list[str]


class Guesses(TypedFields):
    """A prediction: names of activities, the most likely first."""

    activities: list[str]


@lru_cache(maxsize=10_000)
def name_words(name: str) -> tuple[str, ...]:
    """Return the words of a name without case, articles and plural endings, or the text itself if no words remain.

    >>> name_words("Grasp the cups."), name_words("it")
    (('grasp', 'cup'), ('it',))
    """
    return tuple(content_words(name)) or (name.strip().casefold(),)


@dataclass(frozen=True, slots=True)
class ActivityMatcher(NameMatcher):
    """Matches names to activities.

    The matcher `synonyms` also accepts the domain's synonyms of verb and noun.
    """

    def means(self, names: Sequence[str], reference: NamedActivity) -> list[bool]:
        """Return, for each name, whether it means the right activity. Raises ConfigError if the encoder is missing."""
        classes = [reference.activity, *(name for name in reference.classes if name != reference.activity)]
        similarities = self.similarities(names, [[name] for name in classes])
        is_right = ((similarities[:, 0] >= self.threshold) & (similarities[:, 0] >= similarities.max(axis=1))).tolist()
        for index, name in enumerate(names):
            namesakes = [other for other in classes if name_words(other) == name_words(name)]
            is_right[index] = reference.activity in namesakes if namesakes else is_right[index]
        return is_right

    def _is_same(self, name: str, right: Sequence[str]) -> bool:
        (verb, *noun), (true_verb, *true_noun) = name_words(name), name_words(right[0])
        if self.matcher == "exact" or not noun or not true_noun:
            return (verb, noun) == (true_verb, true_noun)
        domain = load_domain()
        return domain.same_verb(verb, true_verb) and domain.same_noun(" ".join(noun), " ".join(true_noun))


class NamedActivityTask(GraphTask[SamplingT]):
    """A task that asks for activities in the model's own words."""

    benchmark = "extended"
    prompt_package = "barista_bench.benchmarks.extended"
    options: ClassVar[Mapping[str, Option]] = matching_options(
        "synonyms",
        "how activities are compared: by sentence embeddings, synonyms, or exactly (the same content words, stemmed)",
    )
    target_type = NamedActivity
    layers = ("activities",)
    guesses: ClassVar[Mapping[str, int]]
    """Maps each score to a number of first guesses. The score is the share of samples with a right one among them."""

    @cached_property
    def matcher(self) -> ActivityMatcher:
        """Return the matcher that the options select."""
        return ActivityMatcher.of(self.chosen)

    def vocabulary(self, video: VideoGraph, sampling: SamplingT) -> Vocabulary:
        """Return (class id, name) pairs of the sampled videos."""
        segments = named_activities(video) if sampling.is_selected(video) else []
        return tuple(dict.fromkeys((str(segment.class_id), segment.name) for segment in segments))

    @staticmethod
    def reference(class_id: str, vocabulary: Vocabulary) -> NamedActivity:
        """Return the target of a class. If a class has several names, the first name counts."""
        names = dict(reversed(vocabulary))
        return NamedActivity(names[class_id], class_id, sorted(set(names.values())))

    def statistics(self, samples: Sequence[Scored]) -> SumStatistics:
        """Return the scores of `guesses`. An unreadable answer is wrong."""
        answers = [(_answered_names(sample.prediction), NamedActivity.of(sample.example)) for sample in samples]
        self.matcher.prepare((names, [reference.classes]) for names, reference in answers)
        is_right = [self.matcher.means(names, reference) for names, reference in answers]
        return mean_statistics(
            [{metric: float(any(hits[:count])) for metric, count in self.guesses.items()} for hits in is_right],
            [sample.prediction is not None for sample in samples],
            tables=lambda _: {"recognition": self.matcher.description},
        )

    def as_target(self, example: Example, prediction: Prediction) -> NamedActivity:
        """Return the first answered name as a target.

        A name that belongs to no class has no competing classes, so only its similarity counts.
        """
        first, classes = _answered_names(prediction)[0], NamedActivity.of(example).classes
        namesake = next((name for name in classes if name_words(name) == name_words(first)), None)
        return NamedActivity(namesake or first, "", classes if namesake else [first])

    def facets(self, example: Example) -> Fields:
        return {"activity": example.label}

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """Explain with the right guess. Without one, explain with the missed reference and the wrong first guess."""
        reference, names = NamedActivity.of(example), _answered_names(prediction)
        is_right = self.matcher.means(names, reference)
        hit = is_right.index(True) if any(is_right) else None
        hits = [] if hit is None else [f"{reference.activity}: guess {hit + 1}, {names[hit]!r}"]
        return Explanation.of(
            hits, [] if hits else [reference.activity], map(repr, names[:1] if is_right[:1] == [False] else [])
        )

    def mistakes(self, example: Example, prediction: Prediction) -> Iterable[AnswerFailure]:
        """Yield failures for the wrong words of the first guess (verb, object or both), unless some guess is right."""
        reference, names = NamedActivity.of(example), _answered_names(prediction)
        if not any(self.matcher.means(names, reference)):
            answered, true, objects = name_words(names[0]), name_words(reference.activity), evidence_objects(example)
            yield from [AnswerFailure("wrong_verb", objects)] if answered[0] != true[0] else []
            yield from [AnswerFailure("wrong_object", objects)] if answered[1:] != true[1:] else []


def _answered_names(prediction: Prediction | None) -> list[str]:
    return Guesses.read(prediction.value).activities if prediction else []


def made_up_names() -> list[str]:
    """Return every verb of the domain with every object category. Blind answers are drawn from these names."""
    domain = load_domain()
    return [f"{verb} {noun}" for verb in sorted(set().union(*domain.verbs)) for noun in sorted(domain.categories)]


@remember
def usual_activities(examples: Sequence[Example]) -> list[str]:
    """Return the names of right activities, the most frequent first. Ties are sorted by name.

    Without examples, return `Grasp cup`.
    """
    counts = Counter(NamedActivity.of(example).activity for example in examples)
    return sorted(counts, key=lambda name: (-counts[name], name)) or ["Grasp cup"]
