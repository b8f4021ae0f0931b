"""Temporal visual question answering (paper, sections 4.2.2 and A.3.3; released rules, upstream.md 1.10).

Six frames of a clip and one question; the model answers in free text. What changes in the clip is read from the graph
(`change_detection.py`) and kept as evidence; the question and its reference answer are written by templates that cover
every change (`qa_templates.py`), or come from a cached file that a language model wrote. Until judges score the answer,
`lexical_f1` compares its words with the reference: a floor that must not be published as the paper's Accuracy or
Completeness (`lexical.py`). An empty answer scores 0; the release leaves it out of its mean.

Where the sources differ or are silent:
* the paper names Gemini 2.5 Flash Lite as generator in 4.2.2 and Gemini 2.5 Flash in A.3.3;
* ids are `visual_qa:<video>:clip_<i>:<category>`, since the released form is unknown;
* a clip that the video does not hold whole is passed over;
* the cap on each category is drawn as referring draws its own, with Random(f"{seed}:{category}").
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from barista_bench.benchmarks.barista.change_detection import (
    CATEGORIES,
    Category,
    Change,
    Clip,
    clips,
    detect_changes,
)
from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE, frame_metadata, metadata_features
from barista_bench.benchmarks.barista.free_text import domain_vocabulary, labelled
from barista_bench.benchmarks.barista.lexical import (
    NO_OVERLAP,
    Overlap,
    content_words,
    is_said,
    overlap,
    sample_figures,
    summary,
    unexpected,
)
from barista_bench.benchmarks.barista.qa_templates import (
    FEWEST_WORDS,
    CachedPairs,
    QaPair,
    describe_change,
    write_pair,
)
from barista_bench.prompt import BoxFormat, ImagePart, Prompt, TextPart
from barista_bench.prompt_sets import PromptTexts
from barista_bench.scene_graph import SceneGraph, VideoGraph
from barista_bench.task import (
    Example,
    Explanation,
    ExplanationRow,
    Fields,
    FrameRef,
    Json,
    ParseError,
    Prediction,
    Sampling,
    Scored,
    SkippedExample,
    Task,
)

if TYPE_CHECKING:
    from datasets import Features

_ROWS: dict[Category, str] = {
    "state_change": "attribute_rows",
    "action_transition": "relation_rows",
    "relation_change": "relation_rows",
    "activity_progression": "activity_rows",
}
"""Which part of the file the rows of a category's changes count in."""


class TemporalVQA(Task):
    """`pairs` are cached question-answer pairs (`qa_templates.load_qa_pairs`) to use instead of the templates."""

    benchmark = "barista"
    name = "temporal_vqa"
    upstream_name = "visual_qa"
    version = 1
    primary = "lexical_f1"
    sample_score = "lexical_f1"
    sampling = Sampling(limit=300, seed=42, frames=6, spacing=24, per_class=100)
    sampling_uses = frozenset({"frames", "spacing", "per_class"})
    prompt_package = PROMPT_PACKAGE

    def __init__(self, prompts: PromptTexts | None = None, *, pairs: CachedPairs | None = None) -> None:
        super().__init__(prompts)
        self.pairs = pairs

    def features(self) -> Features:
        from datasets import Features, List, Value

        rows = {name: List(Value("int64")) for name in sorted(set(_ROWS.values()))}
        change = {
            **dict.fromkeys(("category", "kind", "subject", "value"), Value("string")),
            **dict.fromkeys(("objects", "object_ids"), List(Value("string"))),
            "rows": List(Value("int64")),
            **dict.fromkeys(("start", "end"), Value("int64")),
        }
        return Features(
            {
                "inputs": {"question": Value("string"), "n_frames": Value("int32")},
                "target": {"answer": Value("string"), "category": Value("string")},
                "metadata": {**metadata_features(), "clip_index": Value("int32"), "writer": Value("string")},
                "evidence": {"object_ids": List(Value("string")), **rows, "changes": List(change)},
            }
        )

    def examples(self, graph: SceneGraph, sampling: Sampling) -> Iterator[Example | SkippedExample]:
        found: list[Example] = []
        for video in sampling.selected(graph):
            for clip in clips(video, sampling):
                for item in self._of_clip(video, clip):
                    if isinstance(item, SkippedExample):
                        yield item
                    else:
                        found.append(item)
        yield from _capped(found, sampling)

    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        count = cast("int", example.inputs["n_frames"])
        system, user = self.prompts.fill(count=str(count), question=str(example.inputs["question"]))
        return Prompt(system, (*(ImagePart(index) for index in range(count)), TextPart(user)))

    def images(self, example: Example, frames: Sequence[NDArray[np.uint8]]) -> tuple[Image.Image, ...]:
        return tuple(Image.fromarray(frame) for frame in frames)

    def parse(self, text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
        """The last line labelled `Answer:`, else the whole text. Never a parse failure, as released."""
        return Prediction({"answer": labelled(text, "answer")})

    def score(self, example: Example, prediction: Prediction | None) -> dict[str, float]:
        """`lexical_f1`, `lexical_precision` and `lexical_recall`; no readable or an empty answer scores 0."""
        return sample_figures(_overlap(example, prediction) if prediction else NO_OVERLAP)

    def aggregate(self, samples: Sequence[Scored]) -> dict[str, Json]:
        scores = [_overlap(s.example, s.prediction) if s.prediction else None for s in samples]
        return summary(scores, (str(s.example.target["category"]) for s in samples), "per_category")

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        """By words alone: a change is a hit where all its content words are said, whatever they are said of."""
        said = str(prediction.value["answer"]) if prediction else ""
        texts = dict.fromkeys(describe_change(change) for change in _changes(example))
        rows = [ExplanationRow("hit" if is_said(text, said) else "miss", text) for text in texts]
        wrong = unexpected(said, str(example.target["answer"]), str(example.inputs["question"]))
        extra = [ExplanationRow("wrong", f"not in the reference: {word}") for word in wrong]
        return Explanation((*sorted(rows, key=lambda row: row.verdict == "miss"), *extra))

    def reference_answer(self, example: Example, boxes: BoxFormat) -> str:
        return f"Answer: {' '.join(str(example.target['answer']).split())}"

    def random_answer(self, example: Example, rng: random.Random, boxes: BoxFormat) -> str:
        first, second, third = rng.sample(sorted(domain_vocabulary()), 3)
        happens = rng.choice(("was opened", "was closed", "is now on the table", "started extracting", "is put down"))
        return f"Answer: The {first} {happens}, a hand touches the {second}, and then the {third} is moved away."

    def _of_clip(self, video: VideoGraph, clip: Clip) -> Iterator[Example | SkippedExample]:
        cached = self.pairs.get((video.video_id, clip.index)) if self.pairs is not None else None
        if self.pairs is not None and cached is None:
            return
        changes = detect_changes(video, clip)
        if cached is None:
            pairs = [write_pair(category, found) for category, found in changes.items()]
        elif tuple(cached["frame_indices"]) != clip.keyframes:
            reason = f"pairs of clip {clip.index} are about other frames: {cached['frame_indices']}"
            yield SkippedExample(FrameRef(video.video_id, clip.keyframes[0]), reason)
            return
        else:
            pairs = sorted(cached["qa_pairs"], key=lambda pair: CATEGORIES.index(pair["category"]))
        for pair in pairs:
            reason = _unusable(pair, changes)
            if reason:
                yield SkippedExample(FrameRef(video.video_id, clip.keyframes[0]), f"clip {clip.index}: {reason}")
            else:
                writer = "template" if cached is None else "cached"
                yield _example(video, clip, pair, changes[pair["category"]], writer)


def _unusable(pair: QaPair, changes: dict[Category, list[Change]]) -> str:
    """Why a pair does not become an example; empty where it does."""
    if pair["category"] not in changes:
        return f"a pair about {pair['category']}, of which the graph has none here"
    words = len(pair["answer"].split())
    if words < FEWEST_WORDS:
        return f"the answer has {words} words; the release drops those under {FEWEST_WORDS}"
    return "" if content_words(pair["answer"]) else "the answer says nothing that could be compared"


def _example(video: VideoGraph, clip: Clip, pair: QaPair, changes: list[Change], writer: str) -> Example:
    category = pair["category"]
    rows: dict[str, Json] = {name: [] for name in sorted(set(_ROWS.values()))}
    rows[_ROWS[category]] = sorted({row for change in changes for row in change["rows"]})
    return Example(
        example_id=f"{TemporalVQA.upstream_name}:{video.video_id}:clip_{clip.index}:{category}",
        benchmark=TemporalVQA.benchmark,
        task=TemporalVQA.name,
        label=category,
        frames=tuple(FrameRef(video.video_id, frame) for frame in clip.keyframes),
        inputs={"question": pair["question"], "n_frames": len(clip.keyframes)},
        target={"answer": pair["answer"], "category": category},
        metadata={**frame_metadata(video, clip.keyframes[0]), "clip_index": clip.index, "writer": writer},
        evidence={
            "object_ids": list(dict.fromkeys(item for change in changes for item in change["object_ids"])),
            **rows,
            "changes": cast("Json", changes),
        },
    )


def _capped(found: Sequence[Example], sampling: Sampling) -> list[Example]:
    """At most `per_class` examples of each category, drawn by the seed, in their old order."""
    by_category: dict[str, list[int]] = defaultdict(list)
    for position, example in enumerate(found):
        by_category[example.label].append(position)
    kept: list[int] = []
    for category, positions in by_category.items():
        if sampling.per_class is not None:
            random.Random(f"{sampling.seed}:{category}").shuffle(positions)  # noqa: S311  (reproducible sampling)
        kept += positions[: sampling.per_class]
    return [found[position] for position in sorted(kept)]


def _overlap(example: Example, prediction: Prediction) -> Overlap:
    answer, reference = str(prediction.value["answer"]), str(example.target["answer"])
    return overlap(answer, reference, asked=str(example.inputs["question"]))


def _changes(example: Example) -> list[Change]:
    return cast("list[Change]", example.evidence["changes"])
