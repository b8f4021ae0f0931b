"""Activity recognition (paper, sections 4.2.2 and A.3.1; released rules, upstream.md 1.8).

A few frames of one activity segment are shown, evenly spread; the model picks the segment's label out of lettered
choices. Scored by accuracy: an answer that cannot be read is wrong.

Where the sources differ or are silent:
* the paper does not say that segments which overlap another one are dropped; the release does, and so do we unless
  `protocol="paper"`;
* segments are half-open everywhere else, but here the release counts their `end` frame too (bisect_right, 1.2). Two
  segments that share nothing but that frame do not overlap;
* calls on the random generator are ours: the seed is the released string, the order in which it is used is unknown;
* `idx_<k>` of an id is the segment's row in the file.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, ClassVar, TypedDict, cast

from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE, frame_metadata, metadata_features
from barista_bench.benchmarks.barista.draws import choice_figures
from barista_bench.benchmarks.barista.frame_index import even_places
from barista_bench.benchmarks.barista.priors import class_counts
from barista_bench.benchmarks.barista.protocols import RULES
from barista_bench.benchmarks.parsing import MAX_ANSWER, MAX_STARTS
from barista_bench.benchmarks.pooling import Floats
from barista_bench.choices import read_scores
from barista_bench.graph_task import Candidate, GraphTask, Vocabulary
from barista_bench.metrics.choice_accuracy.scoring import choice_accuracy
from barista_bench.prompt import BoxFormat, ImagePart, Prompt, TextPart
from barista_bench.scene_graph import Segment, VideoGraph
from barista_bench.task import (
    Example,
    Explanation,
    ExplanationRow,
    Failure,
    Fields,
    FrameRef,
    Json,
    ParseError,
    Prediction,
    Sampling,
    Scored,
    SkippedExample,
    evidence_objects,
)

if TYPE_CHECKING:
    from datasets import Features

FEWEST_CHOICES = 4
"""A question with fewer choices is not asked."""

_TAIL = 500
"""Characters after `answer:` in which the choice must begin."""
_ANSWER = re.compile(r"\b(?:final )?answer:", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"<\s*CHOICE_ID\s*>|CHOICE_(?:ID_)?", re.IGNORECASE)
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_TAG = re.compile(r"<CHOICE_ID_([A-Za-z0-9_-]+)>", re.IGNORECASE)


class Choice(TypedDict):
    """`choice_id` is the letter shown; `class_id` and `verb` are for analysis and not shown."""

    choice_id: str
    class_id: str
    text: str
    verb: str


class Activity(GraphTask):
    benchmark = "barista"
    name = "activity"
    upstream_name = "activity_mcq"
    version = 1
    primary = "accuracy"
    sample_score = "accuracy"
    sampling = Sampling(limit=500, seed=42, frames=4, choices=25, per_class=20)
    sampling_uses = frozenset({"frames", "choices", "per_class"})
    prompt_package = PROMPT_PACKAGE
    row_note = "frames of one activity, its lettered choices, and the right one"
    protocol_rules = RULES[name]

    same_verb: ClassVar[int] = 4
    """Distractors that share the verb of the truth, if there are as many."""

    def features(self) -> Features:
        from datasets import Features, List, Value

        choice = dict.fromkeys(("choice_id", "class_id", "text", "verb"), Value("string"))
        return Features(
            {
                "inputs": {"choices": List(choice)},
                "target": {"choice_id": Value("string"), "class_id": Value("string")},
                "metadata": {
                    **metadata_features(),
                    "verb": Value("string"),
                    "segment_start": Value("int64"),
                    "segment_end": Value("int64"),
                    "segment_seconds": Value("float64"),
                    "same_verb_distractors": Value("int32"),
                },
                "evidence": {
                    "object_ids": List(Value("string")),
                    "activity_row": Value("int64"),
                    "relation_rows": List(Value("int64")),
                },
            }
        )

    def vocabulary(self, video: VideoGraph) -> Vocabulary:
        """(class id, name) pairs: the choices come from the classes of all videos."""
        named = ((segment.class_id, segment.name) for segment in video.activities() if _verb(segment.name))
        return tuple(dict.fromkeys((class_id, name) for class_id, name in named if class_id is not None))

    def candidates(self, video: VideoGraph, sampling: Sampling) -> Iterator[Candidate | SkippedExample]:
        """Segments by start: named, alone in their time (unless by the paper), long enough, inside `frame_range`."""
        first, stop = sampling.frame_range or (0, video.frame_count)
        segments = video.activities()
        # A segment without a class does not exist for the release (upstream.md 1.2); it is in no one's way.
        present = [segment for segment in segments if segment.class_id is not None]
        for segment in sorted(segments, key=lambda s: (s.start, s.end, s.row)):
            frames = _frames(video, segment)
            if frames.start < first or frames.stop > stop:
                continue
            if segment.class_id is None or not _verb(segment.name):
                what = "has no class" if segment.class_id is None else f"is called {segment.name!r}, not 'Verb noun'"
                yield SkippedExample(FrameRef(video.video_id, segment.start), f"activities[{segment.row}] {what}")
            elif len(frames) >= sampling.frames and (self.follows_paper or not _crowded(segment, present)):
                yield Candidate(video.video_id, _shown(frames, sampling)[0], segment.class_id, segment.row)

    def select(
        self, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: Sampling
    ) -> Iterator[Candidate | SkippedExample]:
        """Of each class at most `per_class`, in turn from each video that has it, if there are enough choices."""
        classes = len({class_id for class_id, _ in vocabulary})
        count = min(sampling.choices or classes, classes)
        for candidate in _capped(candidates, sampling.per_class):
            if count < FEWEST_CHOICES:
                frame = FrameRef(candidate.video_id, candidate.frame)
                yield SkippedExample(frame, f"{count} choices are fewer than {FEWEST_CHOICES}")
            else:
                yield candidate

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: Sampling
    ) -> Iterator[Example]:
        # Of several names of a class the first counts.
        names = dict(reversed(vocabulary))
        texts = _texts(names)
        verbs = {class_id: _verb(name) for class_id, name in names.items()}
        by_row = {segment.row: segment for segment in video.activities()}
        for candidate in candidates:
            yield self.stamped(self._example(video, by_row[candidate.item], texts, verbs, sampling))

    def _example(
        self,
        video: VideoGraph,
        segment: Segment,
        texts: Mapping[str, str],
        verbs: Mapping[str, str],
        sampling: Sampling,
    ) -> Example:
        class_id, frames = str(segment.class_id), _frames(video, segment)
        shown = _shown(frames, sampling)
        rng = random.Random(f"{sampling.seed}:{video.video_id}:{segment.start}:{segment.end}")  # noqa: S311
        drawn = _draw(class_id, verbs, sampling.choices or len(texts), self.same_verb, rng)
        choices = [
            Choice(choice_id=_letters(place), class_id=item, text=texts[item], verb=verbs[item])
            for place, item in enumerate(drawn)
        ]
        contacts = video.hand_contacts((frames.start, frames.stop))
        return Example(
            example_id=f"{self.upstream_name}:{video.video_id}:segment_{segment.start}_{segment.end}"
            f":class_{class_id}:idx_{segment.row}",
            benchmark=self.benchmark,
            task=self.name,
            label=texts[class_id],
            frames=tuple(FrameRef(video.video_id, frame) for frame in shown),
            inputs={"choices": cast("Json", choices)},
            target={"choice_id": _letters(drawn.index(class_id)), "class_id": class_id},
            metadata={
                **frame_metadata(video, shown[0]),
                "segment_start": segment.start,
                "segment_end": segment.end,
                "segment_seconds": len(frames) / video.video.fps if video.video.fps else 0.0,
                "verb": verbs[class_id],
                "same_verb_distractors": sum(verbs[item] == verbs[class_id] for item in drawn) - 1,
            },
            evidence={
                "object_ids": sorted({contact.object.id for contact in contacts}),
                "activity_row": segment.row,
                "relation_rows": sorted({contact.row for contact in contacts}),
            },
        )

    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        count = len(example.frames)
        choices = "\n".join(f"{choice['choice_id']}. {choice['text']}" for choice in _choices(example.inputs))
        system, user = self.prompts.fill(frame_count=str(count), last=str(count), choices=choices)
        return Prompt(system, (*map(ImagePart, range(count)), TextPart(user)))

    def choices(self, example: Example) -> Mapping[str, str]:
        return {choice["choice_id"]: choice["text"] for choice in _choices(example.inputs)}

    def parse(self, text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
        """The last `answer:` that is followed by a letter of the choices, else the last `<CHOICE_ID_x>` tag with one.

        Letters count in either case. What stands between (`CHOICE_`, the placeholder itself, punctuation) is passed
        over; the first word after it decides, so an `answer:` followed by a sentence says nothing. Of a model that
        scores the choices, the best one.
        """
        scores = read_scores(text, [choice["choice_id"] for choice in _choices(inputs)])
        if scores is not None:
            return Prediction({"choice_id": max(scores, key=lambda label: scores[label])})
        text = text[-MAX_ANSWER:]
        known = {choice["choice_id"].casefold(): choice["choice_id"] for choice in _choices(inputs)}
        ends = [match.end() for match in _ANSWER.finditer(text)]
        said = (_TOKEN.search(_PLACEHOLDER.sub("", text[end : end + _TAIL])) for end in reversed(ends[-MAX_STARTS:]))
        tags = reversed(_TAG.findall(text)[-MAX_STARTS:])
        for token in chain((match[0] for match in said if match), tags):
            if token.casefold() in known:
                return Prediction({"choice_id": known[token.casefold()]})
        return ParseError("no line `ANSWER: <letter>` names one of the choices")

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """1 for the right choice, 0 for another one or none."""
        right = prediction is not None and prediction.value["choice_id"] == example.target["choice_id"]
        return {"accuracy": float(right)}

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        """Accuracy over all samples, over the readable ones, by class and by verb, and what is mistaken for what."""
        figures = choice_accuracy(
            [None if s.prediction is None else str(s.prediction.value["choice_id"]) for s in samples],
            [str(s.example.target["choice_id"]) for s in samples],
            choices=[{choice["choice_id"]: choice["verb"] for choice in _choices(s.example.inputs)} for s in samples],
            classes=[s.example.label for s in samples],
        )
        for name in ("per_class", "per_verb"):
            for group in figures[name].values():
                group["support"] = group.pop("n")
        return _defined(figures)

    def resampled(self, samples: Sequence[Scored], weights: Floats) -> dict[str, Floats]:
        return choice_figures(
            [self.score(s.example, s.prediction)["accuracy"] == 1 for s in samples],
            [s.prediction is not None for s in samples],
            [s.example.label for s in samples],
            [1 / len(_choices(s.example.inputs)) for s in samples],
            weights,
        )

    def facets(self, example: Example) -> Fields:
        return {"activity": example.label}

    def failures(self, example: Example, prediction: Prediction | None) -> tuple[Failure, ...]:
        """What the chosen activity has otherwise than the true one, its verb or its object, or both."""
        if prediction is None:
            return self.unreadable(example)
        choices = {choice["choice_id"]: choice for choice in _choices(example.inputs)}
        truth, said = (choices[str(fields["choice_id"])] for fields in (example.target, prediction.value))
        if truth == said:
            return ()
        objects = evidence_objects(example)
        verb = (Failure("wrong_verb", objects),) if truth["verb"] != said["verb"] else ()
        noun = (Failure("wrong_object", objects),) if not verb or _noun(truth["text"]) != _noun(said["text"]) else ()
        return (*verb, *noun)

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        choices = {choice["choice_id"]: choice for choice in _choices(example.inputs)}
        truth = choices[str(example.target["choice_id"])]
        answered = choices.get(str(prediction.value["choice_id"])) if prediction else None
        if answered == truth:
            return Explanation((ExplanationRow("hit", f"{truth['choice_id']}: {truth['text']}"),))
        rows = [ExplanationRow("miss", f"{truth['choice_id']}: {truth['text']}")]
        if answered is not None:
            note = "same verb, another object" if answered["verb"] == truth["verb"] else "another verb"
            rows.append(ExplanationRow("wrong", f"{answered['choice_id']}: {answered['text']} ({note})"))
        return Explanation(tuple(rows))

    def reference_answer(self, example: Example, boxes: BoxFormat) -> str:
        return f"ANSWER: {example.target['choice_id']}"

    def random_answer(self, example: Example, rng: random.Random, boxes: BoxFormat) -> str:
        return f"ANSWER: {rng.choice(_choices(example.inputs))['choice_id']}"

    def prior_answer(self, example: Example, others: Sequence[Example], boxes: BoxFormat) -> str:
        """The choice that is the truth most often in other videos; at a tie the first by its text."""
        counts = class_counts(others)
        ranked = sorted(_choices(example.inputs), key=lambda choice: (-counts[choice["class_id"]], choice["text"]))
        return f"ANSWER: {ranked[0]['choice_id']}"


def _frames(video: VideoGraph, segment: Segment) -> range:
    """All frames that the release counts to a segment, its `end` included."""
    return range(segment.start, min(segment.end + 1, video.frame_count))


def _shown(frames: range, sampling: Sampling) -> list[int]:
    return [frames[place] for place in even_places(len(frames), sampling.frames)]


def _crowded(segment: Segment, segments: Iterable[Segment]) -> bool:
    """Whether any other segment shares time with this one."""
    return any(
        other.start < segment.end and other.end > segment.start for other in segments if other.row != segment.row
    )


def _capped(candidates: Sequence[Candidate], per_class: int | None) -> list[Candidate]:
    """Of each class the first from every video, then the second, ..., up to the cap; in the order given."""
    by_class: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, candidate in enumerate(candidates):
        by_class[candidate.group][candidate.video_id].append(place)
    kept: list[int] = []
    for by_video in by_class.values():
        rounds = chain.from_iterable(zip_longest(*by_video.values()))
        kept += [place for place in rounds if place is not None][:per_class]
    return [candidates[place] for place in sorted(kept)]


def _draw(class_id: str, verbs: Mapping[str, str], count: int, same_verb: int, rng: random.Random) -> list[str]:
    """The classes of one question, shuffled: the truth, distractors of its verb, and others of any verb."""
    others = [item for item in sorted(verbs) if item != class_id]
    alike = [item for item in others if verbs[item] == verbs[class_id]]
    drawn = rng.sample(alike, min(same_verb, len(alike), max(0, count - 1)))
    rest = [item for item in others if item not in set(drawn)]
    drawn += rng.sample(rest, max(0, min(count - 1 - len(drawn), len(rest))))
    drawn.append(class_id)
    rng.shuffle(drawn)
    return drawn


def _texts(names: Mapping[str, str]) -> dict[str, str]:
    """What a class is called in a question: its first name; classes that share a name show their id too."""
    times = Counter(names.values())
    return {class_id: name if times[name] == 1 else f"{name} ({class_id})" for class_id, name in sorted(names.items())}


def _verb(name: str) -> str:
    """The verb of a `Verb noun` label, in lower case; empty where there is no noun."""
    verb, _, noun = name.partition(" ")
    return verb.casefold() if noun.strip() else ""


def _noun(name: str) -> str:
    """All of a `Verb noun` label but the verb, in lower case."""
    return name.partition(" ")[2].strip().casefold()


def _letters(place: int) -> str:
    """A, B, ..., Z, AA, AB, ..."""
    name = ""
    place += 1
    while place:
        place, letter = divmod(place - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


def _defined(figures: Mapping[str, Json]) -> dict[str, Json]:
    """Without the figures that these samples leave undefined, e.g. shares of no wrong answers."""
    return {
        name: _defined(value) if isinstance(value, Mapping) else value
        for name, value in figures.items()
        if value is not None
    }


def _choices(inputs: Fields) -> list[Choice]:
    return cast("list[Choice]", inputs["choices"])
