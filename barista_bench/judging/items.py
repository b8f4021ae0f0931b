"""What there is to judge in a run: its answers, each distinct one once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from barista_bench.core.prompt import BoxFormat
from barista_bench.core.task import Example, Judged, Prediction, Status, Task
from barista_bench.runs.log.keys import digest
from barista_bench.runs.score.samples import ScoredSample
from barista_bench.runs.score.scoring import ScoredRun


@dataclass(frozen=True, slots=True)
class JudgeItem:
    """One distinct answer.

    Args:
        item: digest of question, reference and answer.
        figures: the task's own scores of the answer, for the judge `lexical`.
        perfect: the answer is the reference's own, for the judge `oracle`.
    """

    item: str
    judged: Judged
    figures: dict[str, float]
    perfect: bool


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """A finished sample of a run, and its item; None where there is no answer that could be judged."""

    sample: ScoredSample
    item: JudgeItem | None


def judged_samples(run: ScoredRun) -> list[JudgedSample]:
    """All finished samples in the order of the run's examples; equal answers share one item.

    A sample without a readable answer, and one whose answer is empty, has no item: like the release, judging leaves it
    out of means, and unlike it, counts it in the coverage.
    """
    info = run.results.model.box_format
    boxes = BoxFormat(info.order, info.scale)
    seen: dict[str, JudgeItem] = {}
    found = []
    for sample in run.samples:
        if sample.record.status is Status.INFRA_ERROR:
            continue
        item = _item(run.task, boxes, sample)
        found.append(JudgedSample(sample, seen.setdefault(item.item, item) if item else None))
    return found


def distinct(samples: Sequence[JudgedSample]) -> list[JudgeItem]:
    """Every item once, in the order of the samples."""
    return list({one.item.item: one.item for one in samples if one.item}.values())


def _item(task: Task, boxes: BoxFormat, sample: ScoredSample) -> JudgeItem | None:
    judged = task.judged(sample.example, sample.prediction) if sample.prediction else None
    if judged is None or not judged.answer.strip():
        return None
    perfect = judged.answer == _own_answer(task, boxes, sample.example)
    return JudgeItem(digest("item", asdict(judged)), judged, dict(sample.scores), perfect)


def _own_answer(task: Task, boxes: BoxFormat, example: Example) -> str | None:
    """The truth as the task's parser reads it out of a model's answer."""
    parsed = task.parse(task.reference_answer(example, boxes), example.inputs, boxes)
    judged = task.judged(example, parsed) if isinstance(parsed, Prediction) else None
    return judged.answer if judged else None
