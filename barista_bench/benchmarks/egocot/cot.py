"""EgoCoT-Bench (arXiv 2605.19559): a lettered choice, and the reasons for choosing it.

Given frames of one egocentric video, a question and lettered choices, the model reasons in steps that name times,
objects, hands and places. Then it gives a letter. The score is accuracy, a strict match of the letter. Judges of
reasoning score the rationale (`rationale`; R and SCR). Without a judge, `evidence_check.py` checks the rationale's
claims against the annotations.

The sources leave some points open. This package decides them as follows:

* A question has 16 evenly spaced frames, including the first and the last; `frames` or `rate` change the number. The
  prompt writes their times in the format of the annotations.
* `kinds/choice_reading.py` finds the letter in free text. An unreadable answer is wrong and has no rationale.
* Aggregation pools samples, which reproduces the published tables (docs/upstream/egocot.md).

References of the public test split are hidden. You can run this split and submit the answers (`submission.py`), but you
cannot score them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from barista_bench.aids.task_aids import TaskAids
from barista_bench.benchmarks.egocot.answers import read_answer, strip_numbers
from barista_bench.benchmarks.egocot.claim_statistics import ClaimStatistics, sample_row
from barista_bench.benchmarks.egocot.evidence import EvidenceBase
from barista_bench.benchmarks.egocot.evidence_check import ClaimFinding, RationaleCheck, check_rationale
from barista_bench.benchmarks.egocot.items import (
    CotAnswer,
    CotInputs,
    CotItem,
    CotMetadata,
    CotTarget,
    ItemEvidence,
    clock_text,
)
from barista_bench.benchmarks.egocot.question_evidence import question_evidence
from barista_bench.benchmarks.egocot.release import EgocotRelease
from barista_bench.benchmarks.kinds.choice import NO_CHOICE, ChoiceTask, LetteredChoice
from barista_bench.benchmarks.lexical import word_overlap
from barista_bench.core.boxes import BoxFormat, as_xyxy
from barista_bench.core.deriving import Release, ReleaseTask
from barista_bench.core.display import AnswerFailure, Explanation, FailureKind, Overlay, Rationale
from barista_bench.core.example import (
    Example,
    Fields,
    FrameRef,
    ParseError,
    Prediction,
    Scored,
    SkippedExample,
    evidence_objects,
)
from barista_bench.core.frame_times import FrameTimes
from barista_bench.core.options import Count, Rate, Sampling
from barista_bench.core.prompt import Prompt
from barista_bench.core.remembering import remember
from barista_bench.core.statistics import Row
from barista_bench.errors import DataError
from barista_bench.media.frame_choice import at_rate, evenly_spaced
from barista_bench.media.video.readers import VideoFacts, video_facts

_NEAR_SECONDS = 0.5
"""Maximum number of seconds between a box and the frame on which the box is drawn."""
_FAILURES: Mapping[str, FailureKind] = {
    "time": "wrong_time",
    "object": "wrong_object",
    "hand": "wrong_hand",
    "relation": "wrong_relation",
    "region": "wrong_attribute",
    "state": "wrong_attribute",
    "action": "wrong_verb",
    "order": "wrong_time",
    "cause": "wrong_relation",
}


@dataclass(frozen=True, slots=True)
class CotSampling(Sampling):
    """The frames of a video that a question shows.

    Args:
        frames: number of frames of an example, evenly spaced; ignored if `rate` is given.
        rate: frames per second, evenly spaced.
        max_frames: maximum number of frames per example, evenly thinned; None for no limit.
    """

    frames: Count = 16
    rate: Rate | None = None
    max_frames: Count | None = None


class Cot(ChoiceTask, ReleaseTask[CotSampling]):
    benchmark = "egocot"
    name = "cot"
    upstream_name = "egocot"
    version = 3
    sampling = CotSampling()
    prompt_package = "barista_bench.benchmarks.egocot"
    row_note = "frames of a video, a question, its lettered choices, and the right one with its reasons"
    answer_note = "steps of reasoning, and the letter of a choice"
    right_key = "answer"
    breakdown_keys = ("split", "group", "subtask", "source")

    inputs_type = CotInputs
    target_type = CotTarget
    metadata_type = CotMetadata
    evidence_type = ItemEvidence
    # not for state retrospection, since visible coffee tells whether a cup was full
    aids = TaskAids(default=("objects",), views=(), suits=lambda example: example.metadata.get("subtask") != "SR")

    def examples(self, release: Release, sampling: CotSampling) -> Iterator[Example | SkippedExample]:
        """Yield examples by video, then by qid. Raises DataError if the release is not EgoCoT-Bench's."""
        if not isinstance(release, EgocotRelease):
            raise DataError(f"{release.root}: is not a release of EgoCoT-Bench. Fix: open it with egocot.open_release")
        for item in release.items.values():
            yield self._example(release, item, sampling)

    def _example(self, release: EgocotRelease, item: CotItem, sampling: CotSampling) -> Example | SkippedExample:
        start = FrameRef(item.media_id, 0)
        try:
            path = release.video_path(item.media_id)
            if not path.exists():
                return SkippedExample(start, release.absence_text(item.media_id))
            facts = video_facts(path)
            frames = _shown_frames(facts, sampling)
        except DataError as error:
            return SkippedExample(start, str(error))
        return example_of(item, release, facts, frames)

    def frame_times(self, example: Example) -> FrameTimes | None:
        """Return the frames whose times the prompt names."""
        times = super().frame_times(example)
        seconds = CotInputs.of(example).times
        return times and replace(times, indices=tuple(round(second * times.fps) for second in seconds))

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        inputs = CotInputs.of(example)
        return self.prompts.prompt(
            len(inputs.times),
            frame_count=str(len(inputs.times)),
            times="\n".join(f"frame {number}: {clock_text(time)}" for number, time in enumerate(inputs.times, start=1)),
            question=inputs.question,
            choices="\n".join(f"{label}. {text}" for label, text in inputs.texts.items()),
            letters=", ".join(inputs.texts),
        )

    def image_captions(self, example: Example) -> tuple[str, ...]:
        times = CotInputs.of(example).times
        return tuple(
            f"frame {f.frame_index}, {clock_text(time)}" for f, time in zip(example.frames, times, strict=True)
        )

    def choices(self, example: Example) -> Mapping[str, str]:
        return CotInputs.of(example).texts

    def correct_choices(self, example: Example) -> Sequence[str]:
        answer = CotTarget.of(example).answer
        return () if answer is None else (answer,)

    def answered_choices(self, prediction: Prediction) -> Sequence[str]:
        return (CotAnswer.read(prediction.value).answer,)

    def has_answer(self, example: Example) -> bool:
        return CotTarget.of(example).answer is not None

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Return the letter and the rationale by the rules of `answers.py`. A missing rationale is not a failure."""
        answer = read_answer(text, CotInputs.read(inputs).texts)
        if answer is None:
            return NO_CHOICE
        return Prediction(answer.write())

    def statistics(self, samples: Sequence[Scored]) -> ClaimStatistics:
        """Return accuracy, and the verdicts on the claims of rationales. Raises DataError if a reference is hidden."""
        return ClaimStatistics([self._row(sample.example, sample.prediction) for sample in samples])

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """Return the sample's scores, or none if the reference is hidden.

        A sample with a hidden reference can only be submitted.
        """
        return super().score(example, prediction) if self.has_answer(example) else {}

    def check(self, example: Example, prediction: Prediction) -> RationaleCheck:
        """Check the rationale of an answer against the example's evidence.

        The result is cached for failures and explanations. Raises DataError if the reference is hidden, since the
        reference tells what the question is about.
        """
        answer = CotAnswer.read(prediction.value)
        return _rationale_check(example, answer.answer, answer.reasoning)

    @staticmethod
    def evidence_base(example: Example) -> EvidenceBase:
        """Return the evidence for checking an example's rationales. Raises DataError if the reference is hidden."""
        inputs, metadata = CotInputs.of(example), CotMetadata.of(example)
        return question_evidence(
            ItemEvidence.of(example),
            inputs.question,
            inputs.texts,
            known_answer(example),
            size=(metadata.width, metadata.height) if metadata.width and metadata.height else None,
            duration=metadata.seconds or None,
        )

    def _row(self, example: Example, prediction: Prediction | None) -> Row:
        right, evidence = known_answer(example), self.evidence_base(example)
        answer = CotAnswer.read(prediction.value) if prediction else None
        check = self.check(example, prediction) if prediction else None
        metadata = CotMetadata.of(example)
        rationale = strip_numbers(answer.reasoning) if answer else ""
        reasoning = "\n".join(CotTarget.of(example).reasoning)
        return sample_row(
            {"per_group": metadata.group, "per_subtask": metadata.subtask},
            check,
            is_right=answer is not None and answer.answer == right,
            has_reasoning=answer is not None and bool(answer.reasoning),
            expected_count=(check or check_rationale("", evidence, answer=right)).expected_count,
            lexical_f1=word_overlap(rationale, reasoning, question=CotInputs.of(example).question).f1,
        )

    def rationale(self, example: Example, prediction: Prediction) -> Rationale:
        """Return the sample in the form for judges of reasoning. Raises DataError if the reference is hidden."""
        inputs, answer, right = CotInputs.of(example), CotAnswer.read(prediction.value), known_answer(example)
        choices = {label: f"{label}. {text}" for label, text in inputs.texts.items()}
        return Rationale(
            question="\n".join((inputs.question, *choices.values())),
            correct_answer=choices[right],
            reference_reasoning="\n".join(CotTarget.of(example).reasoning),
            answer=choices[answer.answer],
            reasoning=answer.reasoning,
        )

    def mistakes(self, example: Example, prediction: Prediction) -> Iterable[AnswerFailure]:
        """Return a failure for a wrong letter, and one for every kind of claim that the evidence contradicts."""
        objects = evidence_objects(example)
        wrong = [] if prediction.value["answer"] == known_answer(example) else [AnswerFailure("wrong_option", objects)]
        findings = self.check(example, prediction).findings
        kinds = dict.fromkeys(
            _FAILURES[finding.claim.kind] for finding in findings if finding.verdict == "contradicted"
        )
        return (*wrong, *(AnswerFailure(kind, objects) for kind in kinds))

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """Explain the letter first, then the claims. Supported claims are hits, and contradicted claims are wrong."""
        choices, right = self.choices(example), known_answer(example)
        reference = f"{right}: {choices[right]}"
        if prediction is None:
            return Explanation.of(misses=[reference])
        letter = CotAnswer.read(prediction.value).answer
        findings = self.check(example, prediction).findings
        supported = [_finding_text(finding) for finding in findings if finding.verdict == "supported"]
        contradicted = [_finding_text(finding) for finding in findings if finding.verdict == "contradicted"]
        if letter == right:
            return Explanation.of([reference, *supported], wrong=contradicted)
        return Explanation.of(supported, [reference], [f"{letter}: {choices[letter]}", *contradicted])

    def overlays(self, example: Example, prediction: Prediction | None) -> tuple[Overlay, ...]:
        """Return the boxes that the evidence focuses on, each on the frame nearest in time.

        Without focused boxes, return all boxes.
        """
        evidence = ItemEvidence.of(example)
        times = np.array(CotInputs.of(example).times)
        labels = {target.object_id: target.label for target in evidence.objects}
        boxes = []
        for item in evidence.focused_boxes or evidence.boxes:
            nearest = int(np.argmin(np.abs(times - item.time)))
            if abs(float(times[nearest]) - item.time) <= _NEAR_SECONDS:
                label = f"{labels.get(item.object_id, '')} {clock_text(item.time)}"
                boxes.append(Overlay(nearest, as_xyxy(item.box), "reference", label))
        return tuple(dict.fromkeys(boxes))

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        """Return the reference reasoning and the right letter. Raises DataError if the reference is hidden."""
        steps = [f"{n}. {step}" for n, step in enumerate(CotTarget.of(example).reasoning, start=1)]
        return "\n".join((*steps, f"ANSWER: {known_answer(example)}"))

    def prior_weight(self, example: Example, other: Example, count: int) -> int:
        """Return a weight that depends on the subtask.

        One question of the same subtask outweighs any number of questions of other subtasks.
        """
        return count + 1 if other.label == example.label else 1


def example_of(
    item: CotItem, release: EgocotRelease, facts: VideoFacts | None = None, frames: Sequence[int] = (0,)
) -> Example:
    """Return the example of an item.

    Without `facts`, sizes and times are 0, and frames are only named.
    """
    entry = release.manifest.get(item.media_id)
    times = [round(float(facts.seconds[frame]), 3) for frame in frames] if facts else [0.0 for _ in frames]
    return Cot.new_example(
        f"egocot:{item.qid}",
        item.media_id,
        frames,
        label=item.subtask.code,
        inputs=CotInputs(item.question, [LetteredChoice(label, text) for label, text in item.choices.items()], times),
        target=CotTarget(item.answer, list(item.reasoning)),
        metadata=CotMetadata(
            split=item.split,
            group=item.subtask.group,
            subtask=item.subtask.code,
            source=entry.dataset if entry else "unknown",
            frame_count=facts.frame_count if facts else 0,
            width=facts.width if facts else 0,
            height=facts.height if facts else 0,
            fps=facts.fps if facts else 0.0,
            seconds=facts.duration if facts else 0.0,
        ),
        evidence=msgspec.structs.replace(item.evidence, **release.graph_columns(item.qid)),
    )


def known_answer(example: Example) -> str:
    """Return the letter of the right choice. Raises DataError if the letter is hidden, as in the public test split."""
    answer = CotTarget.of(example).answer
    if answer is None:
        raise DataError(
            f"{example.example_id}: its answer is hidden (split {example.metadata['split']}): it cannot be scored. "
            "Fix: score the split dev, and write a submission file of the split test for the benchmark's authors "
            "(`barista-bench publish answers`)"
        )
    return answer


def _shown_frames(facts: VideoFacts, sampling: CotSampling) -> tuple[int, ...]:
    if sampling.rate is None:
        indices = evenly_spaced(facts.frame_count, sampling.frames)
    else:
        indices = at_rate(facts, sampling.rate)
    if sampling.max_frames is not None:
        indices = tuple(indices[index] for index in evenly_spaced(len(indices), sampling.max_frames))
    if not facts.has_times:
        raise DataError(f"{facts.path}: the times of its frames are not known. Fix: give the video file")
    return indices


def _finding_text(finding: ClaimFinding) -> str:
    return f"{finding.claim.kind}: {finding.text} ({finding.reason})"


@remember
def _rationale_check(example: Example, answer: str, reasoning: str) -> RationaleCheck:
    return check_rationale(reasoning, Cot.evidence_base(example), answer=answer)
