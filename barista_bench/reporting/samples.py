"""Collect the samples of a report: each question, the answers of all models, and the reasons for their scores."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import NamedTuple

from barista_bench.core.display import ExplanationRow, OverlayKind
from barista_bench.core.example import Example, Fields, FrameRef, Json, Prediction
from barista_bench.core.guarding import attempt
from barista_bench.core.prompt import Prompt, TextPart
from barista_bench.core.task import Task
from barista_bench.reporting.aided import AidedAnswers, DiagnosisFolders, aided_answers, causes_of
from barista_bench.reporting.judges import SampleVerdicts
from barista_bench.runs.score.samples import ScoredSample
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.scene_graph import Rle
from barista_bench.stats.breakdowns import answer_failures, grouping_values
from barista_bench.tables import words

MAX_BOXES = 100
MAX_GROUP = 120
MAX_MASK = 20_000
MAX_PIXELS = 4_000_000
MAX_PROMPT = 20_000
MAX_QUESTION = 200
MAX_STEPS = 20
MAX_FRAMES_NAMED = 8
FAR = 1e5
"""Maximum coordinate in pixels. Drawing programs fail on coordinates far beyond the image."""


class DrawnMask(NamedTuple):
    """A mask: height and width in pixels, and COCO's compressed run lengths. It is stretched over the image."""

    height: int
    width: int
    counts: str


DrawnBox = tuple[int, OverlayKind, str, tuple[float, float, float, float], DrawnMask | None]
"""Image, kind, label, [x0, y0, x1, y1] in pixels of the image that the model saw, and the mask in the box."""


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """One answer of one repetition. `scores` are in the order of the section's score names, or None if not scored.

    `parsed` is the parsed answer as JSON, or empty if parsing failed. `boxes` are the answered boxes. `failures` are
    the answer's kinds of failure. `earlier` holds the answers to earlier questions if the task asks in several steps.
    `verdicts` pairs a judge and criterion with the verdict in words. `aided` holds titles and texts of the same
    question with aids.
    """

    repetition: int
    status: str
    error: str
    text: str | None
    reasoning: str
    scores: tuple[float | None, ...]
    facts: tuple[tuple[str, str], ...]
    rows: tuple[ExplanationRow, ...]
    parsed: str = ""
    boxes: tuple[DrawnBox, ...] = ()
    verdicts: tuple[tuple[str, str], ...] = ()
    failures: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    aided: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """All answers of one model to one example, and the mean scores over repetitions."""

    means: tuple[float | None, ...]
    answers: tuple[ShownAnswer, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One example, as the browser shows it. `index` is its position in the example set.

    `question` is the prompt's line with the question. `boxes` holds the boxes of the question and the reference.
    `groups` holds the values by which samples can be filtered, as in breakdowns.
    """

    section: int
    index: int
    example_id: str
    label: str
    frames: tuple[FrameRef, ...]
    captions: tuple[str, ...]
    boxes: tuple[DrawnBox, ...]
    question: str
    prompt: str
    reference: str
    metadata: tuple[tuple[str, str], ...]
    evidence: tuple[tuple[str, str], ...]
    models: tuple[ModelAnswers, ...]
    groups: Mapping[str, tuple[str, ...]]

    @property
    def where(self) -> str:
        """Return the frames in words. Of many frames, only the first few and the last are named."""
        videos = []
        for video, frames in groupby(self.frames, key=lambda frame: frame.video_id):
            numbers = [str(frame.frame_index) for frame in frames]
            if len(numbers) > MAX_FRAMES_NAMED:
                numbers = [*numbers[: MAX_FRAMES_NAMED - 2], "…", f"{numbers[-1]} ({len(numbers)} in all)"]
            videos.append(f"{video} · frame{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}")
        return "; ".join(videos)


def spread_positions(count: int, most: int) -> list[int]:
    """Return `most` evenly spread positions in range(count).

    >>> spread_positions(10, 4), spread_positions(3, 60)
    ([0, 2, 5, 7], [0, 1, 2])
    """
    return [position * count // most for position in range(most)] if most < count else list(range(count))


def score_names(runs: Sequence[ScoredRun]) -> tuple[str, ...]:
    """Return the names of a sample's scores. Lists of samples show the first score."""
    names = list(dict.fromkeys(name for run in runs for sample in run.samples for name in sample.scores))
    first = runs[0].task.sample_score
    return (first, *(name for name in names if name != first))


def section_samples(
    section: int,
    runs: Sequence[ScoredRun],
    max_samples: int,
    max_text: int,
    verdicts: Sequence[SampleVerdicts],
    diagnosed: DiagnosisFolders,
) -> tuple[Sample, ...]:
    """Return evenly spread examples with the answers of all models. Answers are cut at `max_text` characters.

    `verdicts` holds the judges' texts on the samples of each run.
    """
    examples = runs[0].examples
    names, folders = score_names(runs), [diagnosed.get(run.folder, ()) for run in runs]
    causes = [causes_of(run.task.name, own) for run, own in zip(runs, folders, strict=True)]
    beside = [aided_answers(run, own, max_text) for run, own in zip(runs, folders, strict=True)]
    by_example: list[dict[str, list[ScoredSample]]] = [defaultdict(list) for _ in runs]
    for run, samples_of in zip(runs, by_example, strict=True):
        for sample in run.samples:
            samples_of[sample.example.example_id].append(sample)
    samples = []
    for index in spread_positions(len(examples.examples), max_samples):
        example = examples.examples[index]
        answers = [
            _model_answers(run, samples_of[example.example_id], names, max_text, run_verdicts, aided)
            for run, samples_of, run_verdicts, aided in zip(runs, by_example, verdicts, beside, strict=True)
        ]
        shown = _sample(section, index, runs[0], example, tuple(answers), max_text)
        named = tuple(dict.fromkeys(cause for each in causes for cause in each.get(example.example_id, ())))
        groups = {"cause of the error": named or ("none named",)} if any(causes) else {}
        samples.append(replace(shown, groups={**shown.groups, **groups}))
    return tuple(samples)


def _sample(
    section: int, index: int, run: ScoredRun, example: Example, answers: tuple[ModelAnswers, ...], max_text: int
) -> Sample:
    """Return a sample. Its prompt uses the first model's box format.

    Other models were asked with the same prompt in their own box format.
    """
    task, box_format = run.task, run.results.model.box_format.format
    prompt = attempt(task, "prompt", example, lambda: task.prompt(example, box_format), None)
    return Sample(
        section=section,
        index=index,
        example_id=example.example_id,
        label=example.label,
        frames=example.frames,
        captions=attempt(task, "image_captions", example, lambda: task.image_captions(example), ()),
        boxes=_overlays(task, example, None),
        question=_cut(asking_line(prompt), MAX_QUESTION) if prompt else "",
        prompt=_cut(prompt.as_text(), MAX_PROMPT) if prompt else "",
        reference=_cut(_indented_json(example.target), max_text),
        metadata=_named_texts(example.metadata),
        evidence=_named_texts(example.evidence),
        models=answers,
        groups={name: groups for name, value in grouping_values(example, task).items() if (groups := _groups(value))},
    )


def asking_line(prompt: Prompt) -> str:
    r"""Return the question's line after the images: the last line with a question mark, or else the last line.

    >>> from barista_bench.core.prompt import ImagePart, Prompt, TextPart
    >>> asking_line(Prompt("", (ImagePart(0), TextPart("Two frames.\nQuestion: What is it?\nA. a cup"))))
    'What is it?'
    """
    texts = [part.text for part in prompt.joined_parts if isinstance(part, TextPart)]
    lines = [line.strip() for line in (texts[-1] if texts else "").splitlines() if line.strip()]
    line = next((line for line in reversed(lines) if "?" in line), lines[-1] if lines else "")
    return re.sub(r"^(question:|-)\s*", "", line, flags=re.IGNORECASE)


def _groups(value: Json) -> tuple[str, ...]:
    """Return the values by which a sample can be filtered: words, integers, or a list of these.

    Fractions are left out.
    """
    if isinstance(value, list | tuple):
        return tuple(dict.fromkeys(group for item in value for group in _groups(item)))
    if isinstance(value, bool | int) or (isinstance(value, str) and value):
        return (_cut(str(value), MAX_GROUP),)
    return ()


def _overlays(task: Task, example: Example, prediction: Prediction | None) -> tuple[DrawnBox, ...]:
    """Return the boxes of an answer, or the boxes of the question and the reference if `prediction` is None.

    Only finite boxes can be drawn. At most `MAX_BOXES` are returned, since a broken model can repeat itself.
    """
    overlays = attempt(task, "overlays", example, lambda: task.overlays(example, prediction), ())
    shown_overlays = [overlay for overlay in overlays if prediction is None or overlay.kind == "predicted"]
    return tuple(
        (each.image, each.kind, _cut(each.label, MAX_GROUP), _drawable_box(each.box), _drawable_mask(each.mask))
        for each in shown_overlays[:MAX_BOXES]
        if all(math.isfinite(number) for number in each.box)
    )


def _drawable_mask(rle: Rle | None) -> DrawnMask | None:
    """Return a mask that can be drawn. A mask as ragged as noise is left out, and only its box is drawn."""
    if rle is None or len(rle.counts) > MAX_MASK or rle.size[0] * rle.size[1] > MAX_PIXELS:
        return None
    return DrawnMask(*rle.size, rle.counts)


def _drawable_box(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """Return the box, rounded to a tenth of a pixel. It must be near enough to the image to be drawn."""
    x0, y0, x1, y1 = (round(min(max(number, -FAR), FAR), 1) for number in box)
    return x0, y0, x1, y1


def _indented_json(value: Fields) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


def _model_answers(
    run: ScoredRun,
    samples: Sequence[ScoredSample],
    names: Sequence[str],
    max_text: int,
    verdicts: SampleVerdicts,
    aided: AidedAnswers,
) -> ModelAnswers:
    answers = tuple(
        replace(
            _answer(run.task, sample, names, max_text, verdicts.get(sample.name, ())), aided=aided.get(sample.name, ())
        )
        for sample in samples
    )
    means = []
    for column in range(len(names)):
        scores = [score for answer in answers if (score := answer.scores[column]) is not None]
        means.append(math.fsum(scores) / len(scores) if scores else None)
    return ModelAnswers(tuple(means), answers)


def _answer(
    task: Task, sample: ScoredSample, names: Sequence[str], max_text: int, verdicts: tuple[tuple[str, str], ...]
) -> ShownAnswer:
    record, is_counted = sample.record, sample.is_counted
    return ShownAnswer(
        repetition=record.repetition,
        status=str(record.status),
        error=_cut(record.error or "", max_text),
        text=None if record.text is None else _cut(record.text, max_text),
        reasoning=_cut(record.reasoning or "", max_text),
        scores=tuple(_round_finite(sample.scores.get(name)) if is_counted else None for name in names),
        facts=_facts(sample),
        rows=_explanation_rows(task, sample, max_text) if is_counted else (),
        parsed=_cut(_indented_json(sample.prediction.value), max_text) if sample.prediction else "",
        boxes=_overlays(task, sample.example, sample.prediction) if sample.prediction else (),
        verdicts=verdicts,
        failures=tuple(dict.fromkeys(failure.kind for failure in answer_failures(task, sample))) if is_counted else (),
        earlier=tuple(_cut(text, max_text) for text in (record.earlier or ())[:MAX_STEPS]),
    )


def _explanation_rows(task: Task, sample: ScoredSample, max_text: int) -> tuple[ExplanationRow, ...]:
    """Return explanation rows up to the maximum length of an answer, since a broken model can repeat itself forever."""
    example, prediction = sample.example, sample.prediction
    rows = attempt(task, "explain", example, lambda: task.explain(example, prediction).rows, ())
    lengths = accumulate(len(row.text) + 20 for row in rows)
    return tuple(row for row, length in zip(rows, lengths, strict=True) if length <= max_text)


def _facts(sample: ScoredSample) -> tuple[tuple[str, str], ...]:
    record, prediction = sample.record, sample.prediction
    facts: dict[str, object] = {
        "finish reason": record.finish_reason,
        "input tokens": record.input_tokens,
        "cached tokens": record.cached_tokens,
        "output tokens": record.output_tokens,
        "thinking tokens": record.thinking_tokens,
        "seconds": f"{record.seconds:.2f}",
        "note": sample.oddity,
        "invalid entries dropped": prediction.dropped if prediction and prediction.dropped else None,
    }
    return tuple((name, str(value)) for name, value in facts.items() if value is not None)


def _named_texts(fields: Mapping[str, Json]) -> tuple[tuple[str, str], ...]:
    return tuple((words(name), _format_value(value)) for name, value in fields.items())


def _format_value(value: Json) -> str:
    """Format a JSON value for readers: lists with commas, mappings as JSON."""
    if isinstance(value, str):
        return value or "–"
    if isinstance(value, list | tuple):
        return ", ".join(_format_value(item) for item in value) or "–"
    return f"{value:g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def _round_finite(score: float | None) -> float | None:
    """Return the rounded score.

    NaN and infinities become None, since JSON lacks them and the browser could not read them.
    """
    return round(score, 6) if score is not None and math.isfinite(score) else None


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[… {len(text) - limit:,} more characters are left out of this report]"
