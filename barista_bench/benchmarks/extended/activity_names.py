"""Which activity a model means that names it in words of its own.

An answer means the true activity if it is at least `threshold` like its name, and no more like that of another class of
the set. An answer that is another class's name word for word means that class, however alike the two are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import ClassVar, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from barista_bench.benchmarks.barista.activity import named_activities
from barista_bench.benchmarks.barista.common import remembered
from barista_bench.benchmarks.barista.lexical import content_words
from barista_bench.benchmarks.sentence_similarity import DEFAULT_ENCODER, sentence_encoder
from barista_bench.core.deriving import GraphTask, Sampling, Vocabulary
from barista_bench.core.example import TypedFields
from barista_bench.core.options import Option
from barista_bench.core.task import Example, Fields
from barista_bench.scene_graph import VideoGraph
from barista_bench.scene_graph.domain import load_domain

Matcher: TypeAlias = Literal["synonyms", "exact", "embeddings"]
Words: TypeAlias = tuple[str, ...]
THRESHOLD = 0.6


class NamedActivity(TypedFields):
    """A true activity: `Verb noun`, its class, and the names of all classes of the set, sorted."""

    activity: str
    class_id: str
    classes: list[str]


def name_words(text: str) -> Words:
    """The words of a name without case, articles and plural endings; the text itself where it has no other words.

    >>> name_words("Grasp the cups."), name_words("it")
    (('grasp', 'cup'), ('it',))
    """
    return tuple(content_words(text)) or (text.strip().casefold(),)


@lru_cache(maxsize=100_000)
def are_synonyms(answer: Words, name: Words) -> bool:
    """Whether both could be said of one action: by the domain's words, verbs and nouns each could."""
    domain = load_domain()
    nouns = " ".join(answer[1:]), " ".join(name[1:])
    return answer == name or (all(nouns) and domain.same_verb(answer[0], name[0]) and domain.same_noun(*nouns))


@dataclass(frozen=True, slots=True)
class ActivityMatcher:
    """A way to compare names.

    `exact`: the words are the same. `synonyms`: or verb and noun could each be said instead (`are_synonyms`).
    `embeddings`: the cosine of the names' sentence embeddings.
    """

    matcher: Matcher
    threshold: float
    encoder: str

    def means(self, answers: Sequence[str], truth: NamedActivity) -> list[bool]:
        """Whether each answer means the true activity. Raises ConfigError without the encoder."""
        names = [truth.activity, *(name for name in truth.classes if name != truth.activity)]
        alike = self._likeness(answers, names)
        return ((alike[:, 0] >= self.threshold) & (alike[:, 0] >= alike.max(axis=1))).tolist()

    def prepare(self, texts: Iterable[str]) -> None:
        """Embed many names together: far faster than one by one."""
        if self.matcher == "embeddings":
            sentence_encoder(self.encoder).embed(sorted(set(map(_plain, texts))))

    @property
    def description(self) -> Fields:
        """How names are compared, for results; `revision` is None where they are not embedded."""
        is_embedded = self.matcher == "embeddings"
        return {
            "matcher": self.matcher,
            "threshold": self.threshold,
            "encoder": self.encoder if is_embedded else None,
            "revision": sentence_encoder(self.encoder).revision if is_embedded else None,
        }

    def _likeness(self, answers: Sequence[str], names: Sequence[str]) -> NDArray[np.float64]:
        """(answers, names) from -1 to 1."""
        pairs = list(product(map(name_words, answers), map(name_words, names)))
        shape = len(answers), len(names)
        exact = np.array([answer == name for answer, name in pairs], dtype=np.float64).reshape(shape)
        if self.matcher == "exact" or not answers:
            return exact
        if self.matcher == "embeddings":
            alike = sentence_encoder(self.encoder).similarity([*map(_plain, answers)], [*map(_plain, names)])
        else:
            alike = np.array([are_synonyms(*pair) for pair in pairs], dtype=np.float64).reshape(shape)
        return np.where(exact.any(axis=1, keepdims=True), exact, alike)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


class NamedActivityTask(GraphTask):
    """A task that asks for an activity in the model's own words."""

    benchmark = "extended"
    prompt_package = "barista_bench.benchmarks.extended"
    options: ClassVar[dict[str, Option]] = {
        "matcher": Option(
            "synonyms",
            "how names are compared: by groups of words that replace each other, exactly, or by sentence embeddings",
            changes="scores",
            choices=("synonyms", "exact", "embeddings"),
        ),
        "threshold": Option(
            THRESHOLD,
            "least similarity of two names for one thing; a choice of ours",
            changes="scores",
            low=0.01,
            high=1.0,
        ),
        "encoder": Option(
            DEFAULT_ENCODER, "sentence encoder of matcher=embeddings: a folder or a Hub id", changes="scores"
        ),
    }
    target_type = NamedActivity

    @cached_property
    def matcher(self) -> ActivityMatcher:
        """How names are compared, as the options say."""
        return ActivityMatcher(
            cast("Matcher", self.option("matcher")),
            cast("float", self.option("threshold")),
            cast("str", self.option("encoder")),
        )

    def vocabulary(self, video: VideoGraph, sampling: Sampling) -> Vocabulary:
        """(class id, name) pairs of the sampled videos."""
        if not sampling.selects(video):
            return ()
        return tuple(dict.fromkeys((str(segment.class_id), segment.name) for segment in named_activities(video)))

    @staticmethod
    def truth(class_id: str, vocabulary: Vocabulary) -> NamedActivity:
        """The target of a class. Of several names of a class the first counts."""
        names = dict(reversed(vocabulary))
        return NamedActivity(names[class_id], class_id, sorted(set(names.values())))


def made_up_names() -> list[str]:
    """Every verb of the domain with every object category: what answers without looking are drawn from."""
    domain = load_domain()
    verbs: Collection[str] = {verb for group in domain.verbs for verb in group}
    return [f"{verb} {noun}" for verb in sorted(verbs) for noun in sorted(domain.categories)]


@remembered
def usual_activities(examples: Sequence[Example]) -> list[str]:
    """Names of true activities, the most frequent first; at a tie by name."""
    counts = Counter(NamedActivity.read(example.target).activity for example in examples)
    return sorted(counts, key=lambda name: (-counts[name], name))
