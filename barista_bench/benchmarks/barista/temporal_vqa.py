"""Temporal visual question answering (paper, sections 4.2.2 and A.3.3; released rules, upstream.md 1.10).

Six frames of a clip and one question; the model answers in free text. What changes in the clip is read from the graph
(`change_detection.py`) and kept as evidence; the question and its reference answer are written by templates that cover
every change (`qa_templates.py`), or come from a cached file that a language model wrote. Judges score the answer
(`judged`, `rubrics/temporal_vqa.yaml`). Without them, `lexical_f1` compares its words with the reference: a floor that
must not be published as the paper's Accuracy or Completeness (`lexical.py`). An empty answer scores 0; the release
leaves it out of its mean.

Where the sources differ or are silent:
* the paper drops no short answers, and reads all that follows the last `Answer:`: so does `protocol="paper"`;
* the paper names Gemini 2.5 Flash Lite as generator in 4.2.2 and Gemini 2.5 Flash in A.3.3;
* ids are `visual_qa:<video>:clip_<i>:<category>`, since the released form is unknown;
* a clip that the video does not hold whole is passed over;
* the cap on each category is drawn as referring draws its own, with Random(f"{seed}:{category}").
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, cast

from barista_bench.benchmarks.barista.change_detection import (
    CATEGORIES,
    Category,
    Change,
    Clip,
    clips,
    detect_changes,
)
from barista_bench.benchmarks.barista.common import capped, frame_metadata, metadata_features
from barista_bench.benchmarks.barista.free_text import after_last, domain_vocabulary, labelled
from barista_bench.benchmarks.barista.lexical import content_words, overlap
from barista_bench.benchmarks.barista.lexical_task import Compared, Fact, LexicalTask
from barista_bench.benchmarks.barista.priors import answers_by_question
from barista_bench.benchmarks.barista.protocols import RULES
from barista_bench.benchmarks.barista.qa_templates import (
    FEWEST_WORDS,
    CachedPairs,
    QaPair,
    describe_change,
    load_qa_pairs,
    read_writer,
    write_pair,
)
from barista_bench.graph_task import Candidate, Vocabulary
from barista_bench.prompt import BoxFormat, ImagePart, Prompt, TextPart
from barista_bench.prompt_sets import PromptTexts
from barista_bench.scene_graph import VideoGraph
from barista_bench.task import (
    Example,
    Fields,
    FrameRef,
    Json,
    Judged,
    ParseError,
    Prediction,
    ProtocolName,
    Sampling,
    SkippedExample,
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


class _Question(NamedTuple):
    """A usable pair, the changes that it is about, and who wrote it."""

    pair: QaPair
    changes: list[Change]
    writer: str


class TemporalVQA(LexicalTask):
    """`pairs` are cached question-answer pairs (`qa_templates.load_qa_pairs`) to use instead of the templates.

    `Sampling.pairs` names a folder of them instead; who wrote those stands in the examples' metadata.
    """

    name = "temporal_vqa"
    upstream_name = "visual_qa"
    version = 1
    answer_field = "answer"
    sampling = Sampling(limit=300, seed=42, frames=6, spacing=24, per_class=100)
    sampling_uses = frozenset({"frames", "spacing", "per_class", "pairs"})
    row_note = "frames of a clip, and a question about what changes in it"
    protocol_rules = RULES[name]

    def __init__(
        self,
        prompts: PromptTexts | None = None,
        *,
        protocol: ProtocolName = "release",
        options: Mapping[str, object] | None = None,
        pairs: CachedPairs | None = None,
    ) -> None:
        super().__init__(prompts, protocol=protocol, options=options)
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

    def candidates(self, video: VideoGraph, sampling: Sampling) -> Iterator[Candidate | SkippedExample]:
        """A clip's question-answer pairs; clips follow each other without overlap."""
        for clip in clips(video, sampling):
            first = FrameRef(video.video_id, clip.keyframes[0])
            for question in self._questions(video, clip, sampling):
                if isinstance(question, str):
                    yield SkippedExample(first, question)
                else:
                    yield Candidate(video.video_id, first.frame_index, question.pair["category"], clip.index)

    def select(
        self, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: Sampling
    ) -> Iterator[Candidate]:
        yield from capped(candidates, sampling)

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: Sampling
    ) -> Iterator[Example]:
        of_index = {clip.index: clip for clip in clips(video, sampling)}
        for index, group in groupby(candidates, key=lambda candidate: candidate.item):
            found = [item for item in self._questions(video, of_index[index], sampling) if not isinstance(item, str)]
            by_category = {question.pair["category"]: question for question in found}
            for candidate in group:
                question = by_category[cast("Category", candidate.group)]
                yield self.stamped(_example(video, of_index[index], question))

    def prompt(self, example: Example, boxes: BoxFormat) -> Prompt:
        count = cast("int", example.inputs["n_frames"])
        system, user = self.prompts.fill(count=str(count), question=str(example.inputs["question"]))
        return Prompt(system, (*(ImagePart(index) for index in range(count)), TextPart(user)))

    def parse(self, text: str, inputs: Fields, boxes: BoxFormat) -> Prediction | ParseError:
        """The last line labelled `Answer:`, else the whole text. Never a parse failure, as released.

        For the paper it is all that follows the last `Answer:`, wherever that stands.
        """
        return Prediction({"answer": after_last(text, "answer:") if self.follows_paper else labelled(text, "answer")})

    def judged(self, example: Example, prediction: Prediction) -> Judged:
        return Judged(str(example.inputs["question"]), str(example.target["answer"]), self.said(prediction))

    def facets(self, example: Example) -> Fields:
        return {"category": str(example.target["category"])}

    def compared(self, example: Example) -> Compared:
        return Compared(str(example.target["answer"]), asked=str(example.inputs["question"]))

    def facts(self, example: Example) -> list[Fact]:
        changes = cast("list[Change]", example.evidence["changes"])
        return [
            Fact(text, text, tuple(change["object_ids"])) for change in changes for text in [describe_change(change)]
        ]

    def reference_answer(self, example: Example, boxes: BoxFormat) -> str:
        return f"Answer: {' '.join(str(example.target['answer']).split())}"

    def random_answer(self, example: Example, rng: random.Random, boxes: BoxFormat) -> str:
        first, second, third = rng.sample(sorted(domain_vocabulary()), 3)
        happens = rng.choice(("was opened", "was closed", "is now on the table", "started extracting", "is put down"))
        return f"Answer: The {first} {happens}, a hand touches the {second}, and then the {third} is moved away."

    def prior_answer(self, example: Example, others: Sequence[Example], boxes: BoxFormat) -> str:
        """The most typical answer of other videos to this question, or to the one most like it by its words.

        Without other videos, `Nothing changes.`
        """
        question, known = str(example.inputs["question"]), answers_by_question(others)
        alike = max(sorted(known), key=lambda asked: (asked == question, overlap(asked, question).f1), default=None)
        answer = known[alike] if alike is not None else "Nothing changes."
        return f"Answer: {' '.join(answer.split())}"

    def _questions(self, video: VideoGraph, clip: Clip, sampling: Sampling) -> Iterator[_Question | str]:
        """The usable questions about a clip by category, and for each of the others why it is not."""
        known, writer = (self.pairs, "cached") if sampling.pairs is None else _written(sampling.pairs)
        cached = known.get((video.video_id, clip.index)) if known is not None else None
        if known is not None and cached is None:
            return
        changes = detect_changes(video, clip)
        if cached is None:
            pairs = [write_pair(category, found) for category, found in changes.items()]
        elif tuple(cached["frame_indices"]) != clip.keyframes:
            yield f"pairs of clip {clip.index} are about other frames: {cached['frame_indices']}"
            return
        else:
            pairs = sorted(cached["qa_pairs"], key=lambda pair: CATEGORIES.index(pair["category"]))
        for pair in pairs:
            reason = _unusable(pair, changes, 0 if self.follows_paper else FEWEST_WORDS)
            if reason:
                yield f"clip {clip.index}: {reason}"
            else:
                yield _Question(pair, changes[pair["category"]], "template" if cached is None else writer)


@lru_cache(maxsize=4)
def _written(folder: str) -> tuple[CachedPairs, str]:
    return load_qa_pairs(folder), read_writer(folder)


def _unusable(pair: QaPair, changes: dict[Category, list[Change]], fewest_words: int) -> str:
    """Why a pair does not become an example; empty where it does."""
    if pair["category"] not in changes:
        return f"a pair about {pair['category']}, of which the graph has none here"
    words = len(pair["answer"].split())
    if words < fewest_words:
        return f"the answer has {words} words; the release drops those under {fewest_words}"
    return "" if content_words(pair["answer"]) else "the answer says nothing that could be compared"


def _example(video: VideoGraph, clip: Clip, question: _Question) -> Example:
    pair, changes, writer = question
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
