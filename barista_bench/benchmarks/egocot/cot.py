"""EgoCoT-Bench (arXiv 2605.19559): a choice, and the reasons for it.

Frames of one egocentric video, a question and lettered choices; the model reasons in steps that name times, objects,
hands and places, and gives a letter. Scored by accuracy, a strict match of the letter; judges of reasoning score the
rationale (`rationale`; R and SCR), and `evidence_check.py` holds its claims against the annotations without a judge.

What the sources do not say, and what is done here:
* how many frames models saw: 16, evenly spread, the first and the last among them; `frames` or `rate` change it. Their
  times are written as the annotations write theirs;
* how the letter is found in free text: `answers.py`. An answer that cannot be read is wrong, and its rationale missing;
* aggregation pools samples (upstream.md 5: what reproduces the published tables).

Answers of the public test split are hidden: it can be run and submitted (`submission.py`), and never scored.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from barista_bench.benchmarks.barista.lexical import overlap
from barista_bench.benchmarks.egocot.answers import read_answer, unnumbered
from barista_bench.benchmarks.egocot.clock import clock
from barista_bench.benchmarks.egocot.columns import (
    answer_of,
    choices_of,
    evidence_columns,
    evidence_of,
    features,
    inputs_of,
)
from barista_bench.benchmarks.egocot.evidence import EvidenceBase
from barista_bench.benchmarks.egocot.evidence_check import Checked, Finding, check_rationale
from barista_bench.benchmarks.egocot.grounded import CheckedSample, figures, resampled_figures
from barista_bench.benchmarks.egocot.item_evidence import item_evidence
from barista_bench.benchmarks.egocot.items import Item, ItemEvidence
from barista_bench.benchmarks.egocot.release import EgocotRelease
from barista_bench.benchmarks.pooling import Floats
from barista_bench.core.prompt import BoxFormat, ImagePart, Prompt, TextPart
from barista_bench.core.release_task import Release, ReleaseTask
from barista_bench.core.task import (
    Example,
    Explanation,
    ExplanationRow,
    Failure,
    FailureKind,
    Fields,
    FrameRef,
    Json,
    Overlay,
    ParseError,
    Prediction,
    Rationale,
    Sampling,
    Scored,
    SkippedExample,
    evidence_objects,
)
from barista_bench.errors import DataError
from barista_bench.media.frame_choice import at_rate, evenly_spaced
from barista_bench.media.video.facts import VideoFacts, video_facts

if TYPE_CHECKING:
    from datasets import Features

_NEAR = 0.5
"""Seconds between a box and the frame that it is drawn on."""
_KEPT = 2**14
"""Checked rationales that are kept: three runs over the whole benchmark."""
_FAILURES: Mapping[str, FailureKind] = {
    "time": "wrong_time",
    "object": "wrong_object",
    "hand": "wrong_hand",
    "relation": "wrong_relation",
    "region": "wrong_attribute",
}


class Cot(ReleaseTask):
    benchmark = "egocot"
    name = "cot"
    upstream_name = "egocot"
    version = 1
    primary = "accuracy"
    sample_score = "accuracy"
    sampling = Sampling(frames=16)
    sampling_uses = frozenset({"frames", "rate", "max_frames"})
    prompt_package = "barista_bench.benchmarks.egocot"
    row_note = "frames of a video, a question, its lettered choices, and the right one with its reasons"
    breakdown_keys = ("split", "group", "subtask", "source")

    def features(self) -> Features:
        return features()

    def examples(self, release: Release, sampling: Sampling) -> Iterator[Example | SkippedExample]:
        """By video, then by qid.

        Raises:
            DataError: the release is not one of EgoCoT-Bench.
        """
        if not isinstance(release, EgocotRelease):
            raise DataError(f"{release.root}: is no release of EgoCoT-Bench. Remedy: open it with egocot.open_release")
        for item in release.items.values():
            yield self._example(release, item, sampling)

    def _example(self, release: EgocotRelease, item: Item, sampling: Sampling) -> Example | SkippedExample:
        start = FrameRef(item.media_id, 0)
        try:
            path = release.video_path(item.media_id)
            if not path.exists():
                return SkippedExample(start, release.missing(item.media_id))
            facts = video_facts(path)
            shown = _shown(facts, sampling)
        except DataError as error:
            return SkippedExample(start, str(error))
        return example_of(item, release, facts, shown)

    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        times = [float(str(time)) for time in _sequence(example.inputs["times"])]
        choices = choices_of(example.inputs)
        system, user = self.prompts.fill(
            frame_count=str(len(times)),
            times="\n".join(f"frame {place}: {clock(time)}" for place, time in enumerate(times, start=1)),
            question=str(example.inputs["question"]),
            choices="\n".join(f"{label}. {text}" for label, text in choices.items()),
            letters=", ".join(choices),
        )
        return Prompt(system, (*map(ImagePart, range(len(times))), TextPart(user)))

    def image_captions(self, example: Example) -> tuple[str, ...]:
        times = [clock(float(str(time))) for time in _sequence(example.inputs["times"])]
        return tuple(f"frame {f.frame_index}, {time}" for f, time in zip(example.frames, times, strict=True))

    def choices(self, example: Example) -> Mapping[str, str]:
        return choices_of(example.inputs)

    def parse(self, text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
        """Letter and rationale by the rules of `answers.py`; no rationale is no failure."""
        found = read_answer(text, choices_of(inputs))
        if found is None:
            return ParseError("no line `ANSWER: <letter>` names one of the choices")
        return Prediction({"answer": found.letter, "reasoning": found.reasoning})

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """`accuracy`; counts of the rationale's claims; `lexical_f1`, its word overlap with the reference, a floor.

        Nothing where the answer is hidden: such a sample can be submitted, and `aggregate` refuses it.
        """
        if answer_of(example) is None:
            return {}
        sample = self._checked(example, prediction)
        counts = sample.counts()
        reference = "\n".join(map(str, _sequence(example.target["reasoning"])))
        said = str(prediction.value["reasoning"]) if prediction else ""
        return {
            "accuracy": float(sample.right),
            "lexical_f1": overlap(unnumbered(said), reference, asked=str(example.inputs["question"])).f1,
            **{name: float(counts[name]) for name in ("claims", "supported", "contradicted", "unverifiable")},
        }

    def has_answer(self, example: Example) -> bool:
        return answer_of(example) is not None

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        """`grounded.figures`. Raises DataError where an answer is hidden."""
        return figures([self._checked(s.example, s.prediction) for s in samples])

    def resampled(self, samples: Sequence[Scored], weights: Floats) -> dict[str, Floats]:
        return resampled_figures([self._checked(s.example, s.prediction) for s in samples], weights)

    def check(self, example: Example, prediction: Prediction) -> Checked:
        """The rationale of an answer against the example's evidence.

        Raises:
            DataError: the answer is hidden, and with it what the question is about.
        """
        return _check(_asked(example), str(prediction.value["reasoning"]), str(prediction.value["answer"]))

    @staticmethod
    def evidence_base(example: Example) -> EvidenceBase:
        """What an example's rationales are held against. Raises DataError where the answer is hidden."""
        return _base(_asked(example))

    def _checked(self, example: Example, prediction: Prediction | None) -> CheckedSample:
        right = known_answer(example)
        checked = self.check(example, prediction) if prediction else None
        to_say = (checked or _check(_asked(example), "", right)).to_say
        return CheckedSample(
            group=str(example.metadata["group"]),
            subtask=str(example.metadata["subtask"]),
            right=prediction is not None and prediction.value["answer"] == right,
            reasoned=prediction is not None and bool(prediction.value["reasoning"]),
            checked=checked,
            to_say=to_say,
        )

    def rationale(self, example: Example, prediction: Prediction) -> Rationale:
        """Raises DataError where the answer is hidden."""
        choices, right = choices_of(example.inputs), known_answer(example)
        said = str(prediction.value["answer"])
        asked = "\n".join((str(example.inputs["question"]), *(f"{label}. {text}" for label, text in choices.items())))
        return Rationale(
            question=asked,
            correct_answer=f"{right}. {choices[right]}",
            reference_reasoning="\n".join(map(str, _sequence(example.target["reasoning"]))),
            answer=f"{said}. {choices[said]}",
            reasoning=str(prediction.value["reasoning"]),
        )

    def failures(self, example: Example, prediction: Prediction | None) -> tuple[Failure, ...]:
        """A wrong letter, and every kind of claim that the evidence contradicts."""
        if prediction is None:
            return self.unreadable(example)
        objects = evidence_objects(example)
        wrong = [] if prediction.value["answer"] == known_answer(example) else [Failure("wrong_option", objects)]
        kinds = dict.fromkeys(
            _FAILURES[finding.claim.kind] for finding in _contradicted(self.check(example, prediction))
        )
        return (*wrong, *(Failure(kind, objects) for kind in kinds))

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """The letter first, then the claims: supported ones as hits, contradicted ones as wrong."""
        choices, right = choices_of(example.inputs), known_answer(example)
        truth = f"{right}: {choices[right]}"
        if prediction is None:
            return Explanation((ExplanationRow("miss", truth),))
        said = str(prediction.value["answer"])
        findings = self.check(example, prediction).findings
        good = [ExplanationRow("hit", _row_text(one)) for one in findings if one.verdict == "supported"]
        bad = [ExplanationRow("wrong", _row_text(one)) for one in findings if one.verdict == "contradicted"]
        if said == right:
            return Explanation((ExplanationRow("hit", truth), *good, *bad))
        answered = ExplanationRow("wrong", f"{said}: {choices[said]}")
        return Explanation((*good, ExplanationRow("miss", truth), answered, *bad))

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """The boxes that the evidence has in focus, or else all of its boxes, on the frame nearest in time."""
        evidence = evidence_of(example)
        times = np.array([float(str(time)) for time in _sequence(example.inputs["times"])])
        labels = {target.object_id: target.label for target in evidence.objects}
        found = []
        for box in dict.fromkeys(evidence.focused_boxes or evidence.boxes):
            nearest = int(np.argmin(np.abs(times - box.time)))
            if abs(float(times[nearest]) - box.time) <= _NEAR:
                found.append(Overlay(nearest, box.box, "truth", f"{labels.get(box.object_id, '')} {clock(box.time)}"))
        return tuple(found)

    def reference_answer(self, example: Example, boxes: BoxFormat) -> str:
        """The reference reasoning and the right letter. Raises DataError where they are hidden."""
        steps = [f"{number}. {step}" for number, step in enumerate(_sequence(example.target["reasoning"]), start=1)]
        return "\n".join((*steps, f"ANSWER: {known_answer(example)}"))

    def random_answer(self, example: Example, rng: random.Random, boxes: BoxFormat) -> str:
        """A letter, without a reason: there is none."""
        return f"ANSWER: {rng.choice(list(choices_of(example.inputs)))}"

    def prior_answer(self, example: Example, others: Sequence[Example], boxes: BoxFormat) -> str:
        """The letter that is right most often in other videos, in questions of its subtask first; else the first."""
        choices = choices_of(example.inputs)
        counts: Counter[str] = Counter()
        for other in others:
            letter = answer_of(other)
            if letter is not None:
                # Any number of other subtasks weighs less than one question of the same.
                counts[letter] += len(others) + 1 if other.label == example.label else 1
        return f"ANSWER: {max(choices, key=lambda label: (counts[label], -list(choices).index(label)))}"


def example_of(
    item: Item, release: EgocotRelease, facts: VideoFacts | None = None, shown: Sequence[int] = (0,)
) -> Example:
    """The example of an item. Without `facts` its media are not at hand: sizes and times are 0, frames only named."""
    entry = release.manifest.get(item.media_id)
    times = [round(float(facts.seconds[frame]), 3) for frame in shown] if facts else [0.0 for _ in shown]
    return Example(
        example_id=f"egocot:{item.qid}",
        benchmark=Cot.benchmark,
        task=Cot.name,
        label=item.subtask.code,
        frames=tuple(FrameRef(item.media_id, frame) for frame in shown),
        inputs=inputs_of(item, times),
        target={"answer": item.answer, "reasoning": list(item.reasoning)},
        metadata={
            "split": item.split,
            "group": item.subtask.group,
            "subtask": item.subtask.code,
            "source": entry.dataset if entry else "unknown",
            "frame_count": facts.frame_count if facts else 0,
            "width": facts.width if facts else 0,
            "height": facts.height if facts else 0,
            "fps": facts.fps if facts else 0.0,
            "seconds": facts.duration if facts else 0.0,
        },
        evidence=evidence_columns(item.evidence),
    )


class _Asked(NamedTuple):
    """All of an example that its evidence is made of."""

    evidence: ItemEvidence
    question: str
    choices: tuple[tuple[str, str], ...]
    right: str
    size: tuple[float, float] | None
    duration: float | None


def _asked(example: Example) -> _Asked:
    width, height, duration = (float(str(example.metadata[name])) for name in ("width", "height", "seconds"))
    return _Asked(
        evidence_of(example),
        str(example.inputs["question"]),
        tuple(choices_of(example.inputs).items()),
        known_answer(example),
        (width, height) if width and height else None,
        duration or None,
    )


# Every breakdown asks for the same samples anew.
@lru_cache(maxsize=_KEPT)
def _base(asked: _Asked) -> EvidenceBase:
    choices = dict(asked.choices)
    return item_evidence(asked.evidence, asked.question, choices, asked.right, size=asked.size, duration=asked.duration)


@lru_cache(maxsize=_KEPT)
def _check(asked: _Asked, text: str, letter: str) -> Checked:
    return check_rationale(text, _base(asked), answer=letter)


def known_answer(example: Example) -> str:
    """The letter of the right choice.

    Raises:
        DataError: it is hidden, as in the public test split.
    """
    answer = answer_of(example)
    if answer is None:
        raise DataError(
            f"{example.example_id}: its answer is hidden (split {example.metadata['split']}): it cannot be scored. "
            "Remedy: score the split dev, and write a submission file of the split test for the benchmark's authors "
            "(`barista-bench submission`)"
        )
    return answer


def _shown(facts: VideoFacts, sampling: Sampling) -> tuple[int, ...]:
    if sampling.rate is None:
        chosen = evenly_spaced(facts.frame_count, sampling.frames)
    else:
        chosen = at_rate(facts, sampling.rate)
    if sampling.max_frames is not None:
        chosen = tuple(chosen[place] for place in evenly_spaced(len(chosen), sampling.max_frames))
    if not facts.timed:
        raise DataError(f"{facts.path}: the times of its frames are not known. Remedy: give the video file")
    return chosen


def _contradicted(checked: Checked) -> list[Finding]:
    return [finding for finding in checked.findings if finding.verdict == "contradicted"]


def _row_text(finding: Finding) -> str:
    return f"{finding.claim.kind}: {finding.text} ({finding.reason})"


def _sequence(value: Json) -> Sequence[Json]:
    assert isinstance(value, list | tuple), "columns are checked against their features"
    return value
