"""Temporal visual question answering (paper, sections 4.2.2 and A.3.3, and the released code).

The model sees six frames of a clip and one question, and answers in free text. The changes in the clip are read from
the graph (`change_detection.py`) and saved as evidence. Templates write the question and a reference that states every
change (`qa_templates.py`). Alternatively, question and reference come from files that a language model wrote
(`TemporalSampling.pairs`). Judges score the answer (`judged`, `rubrics/temporal_vqa.yaml`). Without judges,
`lexical_f1` compares its words with the reference: a lower bound that must not be published as the paper's Accuracy or
Completeness (`kinds/text.py`). An empty answer scores 0, while the release leaves it out of its mean.

Questions are sampled before they are written. One generator draws up to `per_class` questions of each category over all
videos. Files already hold a sample, and all their pairs are used. Differences between release and paper are in
`protocols.yaml`.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, cast

from msgspec import Meta

from barista_bench.aids.views import VIEWS
from barista_bench.benchmarks.barista.change_detection import Category, Change, changes_domain, detect_changes
from barista_bench.benchmarks.barista.clip_aids import TemporalAids
from barista_bench.benchmarks.barista.clips import ClipArrays, ClipSampling, clip_span, clips
from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE
from barista_bench.benchmarks.barista.qa_templates import (
    ClipPairs,
    QaPair,
    changes_to_tell,
    describe_change,
    read_pairs,
    read_writer,
    write_pair,
)
from barista_bench.benchmarks.kinds.frames import FrameMetadata, frame_metadata
from barista_bench.benchmarks.kinds.text import ComparedTexts, ReferenceFact, TextTask
from barista_bench.benchmarks.lexical import after_label, after_last, content_words, most_typical_text, word_overlap
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.deriving import Candidate, Vocabulary
from barista_bench.core.display import JudgedSample
from barista_bench.core.example import (
    Evidence,
    Example,
    Fields,
    FrameRef,
    Inputs,
    Int64,
    Json,
    ParseError,
    Prediction,
    SkippedExample,
    Target,
)
from barista_bench.core.options import Count, packaged_protocol
from barista_bench.core.prompt import Prompt
from barista_bench.core.remembering import remember
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.scene_graph import VideoGraph
from barista_bench.scene_graph.domain import domain_vocabulary

_ROWS = {
    "state_change": "attribute_rows",
    "action_transition": "relation_rows",
    "relation_change": "relation_rows",
    "activity_progression": "activity_rows",
}
"""The evidence field for the rows of a category's changes."""


class TemporalInputs(Inputs):
    question: str
    n_frames: int


class TemporalTarget(Target):
    """The category is one of `CATEGORIES`, but pairs from other sources may have other values."""

    answer: str
    category: str


class TemporalMetadata(FrameMetadata):
    """The clip's index (its first frame), its keyframes, and the writer of the question."""

    clip_index: int
    qa_index: int
    original_frame_indices: list[int]
    writer: str


class TemporalEvidence(Evidence):
    """Rows of the annotation file, and the changes that the answer states."""

    object_ids: list[str]
    activity_rows: list[Int64]
    attribute_rows: list[Int64]
    relation_rows: list[Int64]
    changes: list[Change]


@dataclass(frozen=True, slots=True)
class TemporalSampling(ClipSampling):
    """The sampling of questions about changes in a clip.

    Args:
        sampling_seed: seed for sampling the questions over all videos; None takes `seed`.
        per_class: maximum number of examples per kind of change; None keeps all.
        max_frames: maximum number of frames per example, evenly thinned; None keeps all keyframes.
        domain: file of a domain's values (`default`: coffee making). Every change between two values that exclude each
            other counts. None uses only the changes that the release names.
        pairs: folder of questions that a model wrote (`barista-bench generate questions`); None uses templates.
    """

    sampling_seed: int | None = None
    per_class: Count | None = None
    max_frames: Count | None = None
    domain: Annotated[str, Meta(min_length=1)] | None = None
    pairs: str | None = None


class TemporalVQA(TextTask[TemporalSampling]):
    """Asks what changes within a clip.

    `TemporalSampling.pairs` names a folder of question-answer pairs that replace the templates. The examples' metadata
    name the writer of the pairs.
    """

    benchmark = "barista"
    prompt_package = PROMPT_PACKAGE
    name = "temporal_vqa"
    upstream_name = "visual_qa"
    version = 2
    answer_field = "answer"
    sampling = TemporalSampling(limit=300, seed=42, frames=6, spacing=24, per_class=100, max_frames=6)
    row_note = "frames of a clip, and a question about what changes in it"
    answer_note = "free text"
    options = packaged_protocol(PROMPT_PACKAGE, name)

    inputs_type = TemporalInputs
    target_type = TemporalTarget
    metadata_type = TemporalMetadata
    aids = TemporalAids(
        default=("moment", "zoom", "objects", "states", "relations", "activities"), optional=("marks",), views=VIEWS
    )
    evidence_type = TemporalEvidence
    layers = ("attributes", "relations", "activities")

    def span(self, video: VideoGraph, candidate: Candidate, sampling: TemporalSampling) -> tuple[int, int]:
        return clip_span(video, candidate.item, sampling) if sampling.pairs is None else (0, video.frame_count)

    def candidates(self, video: VideoGraph, sampling: TemporalSampling) -> Iterator[Candidate | SkippedExample]:
        """Yield a clip's categories of changes, or the pairs written about the clip.

        `item` is the clip's first frame, or the line of the file. `numbers` holds the position among the clip's pairs.
        """
        if sampling.pairs is not None:
            yield from _written_pairs(video, sampling, read_pairs(sampling.pairs, video.video_id))
            return
        for keyframes in clips(video, sampling):
            first = _select_frames(keyframes, sampling.max_frames)[0]
            changes = detect_changes(ClipArrays(video, keyframes), changes_domain(sampling.domain))
            numbers = {category: number for number, category in enumerate(sorted(changes))}
            for category in changes:
                yield Candidate(video.video_id, first, category, keyframes[0], (numbers[category],))

    def select(
        self, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: TemporalSampling
    ) -> Iterator[Candidate]:
        """Yield the sampled candidates of each category, sorted by clip and category.

        Written pairs are already sampled and are all yielded.
        """
        if sampling.pairs is not None:
            yield from candidates
            return
        groups: dict[str, list[Candidate]] = {}
        for candidate in candidates:
            groups.setdefault(candidate.group, []).append(candidate)
        generator = sampling.generator(sampling.sampling_seed)
        sampled = []
        for group in groups.values():
            generator.shuffle(group)
            sampled += group[: sampling.per_class]
        sampled.sort(key=lambda candidate: (candidate.video_id, candidate.item, candidate.group))
        for _, clip_candidates in groupby(sampled, key=lambda candidate: (candidate.video_id, candidate.item)):
            for number, candidate in enumerate(clip_candidates):
                yield candidate._replace(numbers=(number,))

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: TemporalSampling
    ) -> Iterator[Example]:
        if sampling.pairs is None:
            clip_pairs, writer = None, "template"
            frames = {keyframes[0]: keyframes for keyframes in clips(video, sampling)}
        else:
            clip_pairs, writer = read_pairs(sampling.pairs, video.video_id), read_writer(sampling.pairs, video.video_id)
            frames = {line: _frames_in_video(video, clip) for line, clip in enumerate(clip_pairs)}
        changes: dict[int, dict[Category, list[Change]]] = {}
        for candidate in candidates:
            item, (number,), category = candidate.item, candidate.numbers, cast("Category", candidate.group)
            if item not in changes:
                changes[item] = detect_changes(ClipArrays(video, frames[item]), changes_domain(sampling.domain))
            evidence = changes[item].get(category, [])
            pair = write_pair(category, evidence) if clip_pairs is None else clip_pairs[item]["qa_pairs"][number]
            metadata: Fields = {
                "clip_index": item if clip_pairs is None else clip_pairs[item]["clip_index"],
                "qa_index": number,
                "original_frame_indices": list(frames[item]),
                "writer": writer,
            }
            shown_frames = _select_frames(frames[item], sampling.max_frames)
            yield _example(video, shown_frames, pair, evidence, metadata)

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        inputs = TemporalInputs.of(example)
        return self.prompts.prompt(inputs.n_frames, count=str(inputs.n_frames), question=inputs.question)

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        """Return the last line labelled `Answer:`, else the complete text.

        As in the release, there are no parse failures. Under the paper's protocol, return all text after the last
        `Answer:` anywhere.
        """
        answer = after_last(text, "answer:") if self.follows_paper else after_label(text, "answer")
        return Prediction({"answer": answer})

    def show_to_judge(self, example: Example, prediction: Prediction) -> JudgedSample:
        inputs, target = TemporalInputs.of(example), TemporalTarget.of(example)
        return JudgedSample(inputs.question, target.answer, self.text_of(prediction))

    def facets(self, example: Example) -> Fields:
        return {"category": self.category(example)}

    def as_target(self, example: Example, prediction: Prediction) -> TemporalTarget | None:
        text = self.text_of(prediction)
        return TemporalTarget(text, self.category(example)) if text else None

    def comparison(self, example: Example) -> ComparedTexts:
        inputs = TemporalInputs.of(example)
        return ComparedTexts(TemporalTarget.of(example).answer, question=inputs.question)

    def category(self, example: Example) -> str:
        return TemporalTarget.of(example).category

    def facts(self, example: Example) -> list[ReferenceFact]:
        changes = changes_to_tell(TemporalEvidence.of(example).changes)
        return [
            ReferenceFact(text, text, tuple(change.object_ids))
            for change in changes
            for text in [describe_change(change)]
        ]

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        return f"Answer: {' '.join(TemporalTarget.of(example).answer.split())}"

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        first, second, third = rng.sample(sorted(domain_vocabulary()), 3)
        happens = rng.choice(("was opened", "was closed", "is now on the table", "started extracting", "is put down"))
        return f"Answer: The {first} {happens}, a hand touches the {second}, and then the {third} is moved away."

    def prior_answer(self, example: Example, others: Sequence[Example], box_format: BoxFormat) -> str:
        """Return the most typical answer of other videos to this question, or else to the most similar question.

        Similarity counts common words. Without other videos, return `Nothing changes.`
        """
        question, answers = TemporalInputs.of(example).question, answers_by_question(others)
        nearest = max(
            sorted(answers), key=lambda other: (other == question, word_overlap(other, question).f1), default=None
        )
        answer = answers[nearest] if nearest is not None else "Nothing changes."
        return f"Answer: {' '.join(answer.split())}"


@remember
def answers_by_question(examples: Sequence[Example]) -> dict[str, str]:
    """Map each question, word for word, to the most typical answer."""
    answers: dict[str, list[str]] = defaultdict(list)
    for example in examples:
        answers[TemporalInputs.of(example).question].append(TemporalTarget.of(example).answer)
    return {question: most_typical_text(texts, set(content_words(question))) for question, texts in answers.items()}


def _written_pairs(
    video: VideoGraph, sampling: TemporalSampling, clips: Sequence[ClipPairs]
) -> Iterator[Candidate | SkippedExample]:
    """Yield the pairs of a file, in its order, if their clip lies entirely in the sampled frame range."""
    low, high = sampling.frame_range or (0, video.frame_count)
    for line, clip in enumerate(clips):
        frames, where = _frames_in_video(video, clip), f"clip {clip['clip_index']}"
        if not frames:
            yield SkippedExample(FrameRef(video.video_id, 0), "its frames are not in the video", where)
        elif low <= min(frames) and max(frames) < high:
            first = FrameRef(video.video_id, _select_frames(frames, sampling.max_frames)[0])
            for number, pair in enumerate(clip["qa_pairs"]):
                if pair["question"].strip() and pair["answer"].strip():
                    yield Candidate(video.video_id, first.frame_index, pair["category"], line, (number,))
                else:
                    yield SkippedExample(first, "lacks question or answer", f"{where}: pair {number}")


def _frames_in_video(video: VideoGraph, clip: ClipPairs) -> tuple[int, ...]:
    """Return those frames of a written clip that exist in the video."""
    return tuple(frame for frame in clip["frame_indices"] if frame < video.frame_count)


def _select_frames(frames: tuple[int, ...], limit: int | None) -> tuple[int, ...]:
    """Return up to `limit` evenly spaced frames. A single frame is the middle frame by the release's rule."""
    if limit is None or len(frames) <= limit:
        return frames
    return (frames[len(frames) // 2],) if limit == 1 else tuple(frames[i] for i in evenly_spaced(len(frames), limit))


def _example(
    video: VideoGraph, frames: tuple[int, ...], pair: QaPair, changes: Sequence[Change], metadata: Fields
) -> Example:
    category = pair["category"]
    rows: dict[str, Json] = {name: [] for name in sorted(set(_ROWS.values()))}
    if changes:
        rows[_ROWS[category]] = sorted({row for change in changes for row in change.rows})
    id_parts = ("clip", metadata["clip_index"]), ("frames", f"{frames[0]}_{frames[-1]}"), ("qa", metadata["qa_index"])
    parts = [TemporalVQA.upstream_name, video.video_id, *(f"{name}_{value}" for name, value in id_parts)]
    return TemporalVQA.new_example(
        ":".join([*parts, category] if category else parts),
        video.video_id,
        frames,
        label=category,
        inputs=TemporalInputs(pair["question"], len(frames)),
        target=TemporalTarget(pair["answer"], category),
        metadata={**frame_metadata(video, frames[0]), **metadata},
        evidence={
            "object_ids": list(dict.fromkeys(item for change in changes for item in change.object_ids)),
            **rows,
            "changes": [change.write() for change in changes],
        },
    )
