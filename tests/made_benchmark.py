"""A small benchmark for tests: its release is one JSON file of questions, asked in two steps, and it has options.

A question is `{"id", "video", "split", "words": [...], "answer"}`; `video` is a file below the media's root. The model
first describes, and then, in a new conversation, chooses a word.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from barista_bench.benchmarks import Benchmark, RecordedAnswer, RecordedAnswers
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.deriving import Release, ReleaseTask
from barista_bench.core.display import Explanation
from barista_bench.core.example import (
    Example,
    Fields,
    FrameRef,
    Json,
    ParseError,
    Prediction,
    Scored,
    SkippedExample,
    read_scores,
)
from barista_bench.core.options import EvenSampling, Option, Sampling
from barista_bench.core.prompt import ImagePart, Prompt, PromptTexts, TextPart
from barista_bench.core.statistics import SumStatistics, fraction
from barista_bench.errors import DataError
from barista_bench.files.paths import confine
from barista_bench.media.frame_choice import evenly_spaced
from barista_bench.media.video.readers import video_facts
from barista_bench.scene_graph import Problem

if TYPE_CHECKING:
    from datasets import Features

PROMPTS = PromptTexts(
    1, "Look closely.", "Describe this.", "0" * 64, {"choose": "You said: {said}. Choose of {words}."}
)


@dataclass(frozen=True)
class WordRelease:
    root: Path
    videos: Path
    problems: Sequence[Problem] = ()

    def video_path(self, video_id: str) -> Path:
        return confine(self.videos, video_id)

    def questions(self) -> list[dict[str, Json]]:
        records: list[dict[str, Json]] = json.loads((self.root / "questions.json").read_text(encoding="utf-8"))
        return records


class Words(ReleaseTask):
    benchmark = "words"
    name = "choose"
    upstream_name = "choose_words"
    version = 1
    primary = "accuracy"
    sample_score = "correct"
    sampling = EvenSampling(frames=2)
    prompt_package = "none"
    row_note = "frames, and words of which one is right"
    answer_note = "a word"
    breakdown_keys = ("split", "colour")
    options = {  # noqa: RUF012
        "steps": Option(2, "questions asked", "prompt", choices=(1, 2)),
        "case": Option(True, "whether case counts", "scores"),
    }

    def __init__(self, prompts: PromptTexts | None = None, **settings: object) -> None:
        super().__init__(prompts or PROMPTS, **settings)  # type: ignore[arg-type]

    def features(self) -> Features:
        from datasets import Features, List, Value

        text = Value("string")
        return Features(
            {
                "inputs": {"words": List(text)},
                "target": {"answer": text},
                "metadata": {"split": text, "colour": text},
                "evidence": {"row": Value("int32")},
            }
        )

    def examples(self, release: Release, sampling: Sampling) -> Iterator[Example | SkippedExample]:
        assert isinstance(release, WordRelease)
        for row, question in enumerate(release.questions()):
            video = str(question["video"])
            try:
                count = video_facts(release.video_path(video)).frame_count
            except DataError as error:
                yield SkippedExample(FrameRef(video, 0), str(error))
                continue
            yield Example(
                example_id=f"words:{question['id']}",
                benchmark=self.benchmark,
                task=self.name,
                label=str(question["answer"]),
                frames=tuple(FrameRef(video, index) for index in evenly_spaced(count, sampling.frames)),
                inputs={"words": question["words"]},
                target={"answer": question["answer"]},
                metadata={"split": question["split"], "colour": "red"},
                evidence={"row": row},
            )

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        system, user = self.prompts.fill()
        return Prompt(system, (*(ImagePart(index) for index in range(len(example.frames))), TextPart(user)))

    def follow_up(self, example: Example, answers: tuple[str, ...], box_format: BoxFormat) -> Prompt | None:
        done = len(answers) >= int(self.chosen["steps"] or 1)
        if done or read_scores(answers[-1], list(self.choices(example))) is not None:
            return None
        return Prompt(
            "", (TextPart(self.prompts.text("choose", said=answers[-1], words=str(example.inputs["words"]))),)
        )

    def choices(self, example: Example) -> Mapping[str, str]:
        words = example.inputs["words"]
        assert isinstance(words, list)
        return {str(word): f"this is {word}" for word in words}

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        words = inputs["words"]
        assert isinstance(words, list)
        scores = read_scores(text, [str(word) for word in words])
        if scores is not None:
            return Prediction({"word": max(scores, key=lambda word: scores[word])})
        said = text.strip().removeprefix("It is ")
        return Prediction({"word": said}) if said in words or said.lower() in words else ParseError("no word of these")

    def statistics(self, samples: Sequence[Scored]) -> SumStatistics:
        rows = [{"right": float(self._is_right(s.example, s.prediction))} for s in samples]
        accuracy = {"accuracy": "correct"}
        return SumStatistics(
            rows, lambda sums: {"accuracy": fraction(sums["right"], sums["n"])}, sample_scores=accuracy
        )

    def _is_right(self, example: Example, prediction: Prediction | None) -> bool:
        given = str(prediction.value["word"]) if prediction else None
        if given is not None and not self.chosen["case"]:
            given = given.lower()
        return given == example.target["answer"]

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        return Explanation(())

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        return f"It is {example.target['answer']}"

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        return rng.choice(list(self.choices(example)))


def read_recorded(path: Path) -> list[RecordedAnswers]:
    """Lines `{"id", "words", "answer", "said"}`."""
    examples, answers = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        name = f"words:{record['id']}"
        fields: list[Fields] = [
            {"words": record["words"]},
            {"answer": record["answer"]},
            {"split": "test", "colour": "blue"},
        ]
        examples.append(Example(name, "words", "choose", record["answer"], (FrameRef("none", 0),), *fields, {"row": 0}))
        answers.append(RecordedAnswer(name, 0, record["said"]))
    return [RecordedAnswers("somebody", Words, tuple(examples), tuple(answers))]


def open_release(root: Path, videos: Path | None) -> WordRelease:
    return WordRelease(root, videos or root)


WORDS = ("cup", "tap", "lid")
"""What questions of the tests' own choose from."""
"""What its card says of it, as a file of dataset_cards/about does."""

BENCHMARK = Benchmark(
    name="words",
    title="Words",
    description="A word for each video.",
    tasks=(Words,),
    licence="cc0-1.0",
    homepage="https://example.org",
    citation="@misc{words}",
    video_file=lambda video_id: video_id,
    open_release=open_release,
    formats={"said": read_recorded},
)
