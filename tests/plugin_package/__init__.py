"""A foreign package: a benchmark with one task over any scene graph, and a model that gives one answer."""

import random
from collections.abc import Iterator, Sequence

from barista_bench.benchmarks import Benchmark
from barista_bench.benchmarks.kinds.frames import FrameMetadata, FrameSampling, frame_metadata
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.deriving import Candidate, GraphTask, Vocabulary
from barista_bench.core.display import Explanation
from barista_bench.core.example import Evidence, Example, Fields, Inputs, ParseError, Prediction, Scored, Target
from barista_bench.core.prompt import Prompt
from barista_bench.core.statistics import SumStatistics, mean_statistics
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.ask.catalog import ModelKind
from barista_bench.scene_graph import VideoGraph


class Asked(Inputs):
    frame: int


class Touch(Target):
    touch: str


class Touching(Evidence):
    object_ids: list[str]


class Open(GraphTask[FrameSampling]):
    benchmark, name, upstream_name, version = "kettle", "open", "open", 1
    prompt_package = "kettle_bench"
    row_note, answer_note = "a frame, and whether a hand touches anything", "yes or no"
    sampling = FrameSampling(limit=100, frame_step=25)
    inputs_type, target_type, metadata_type, evidence_type = Asked, Touch, FrameMetadata, Touching
    primary = sample_score = "accuracy"

    def candidates(self, video: VideoGraph, sampling: FrameSampling) -> Iterator[Candidate]:
        return (Candidate(video.video_id, frame) for frame in sampling.frame_indices(video))

    def build(
        self, video: VideoGraph, candidates: Sequence[Candidate], vocabulary: Vocabulary, sampling: FrameSampling
    ) -> Iterator[Example]:
        for frame in (candidate.frame for candidate in candidates):
            touched = sorted({contact.object.id for contact in video.hand_contacts(frame)})
            yield self.new_example(
                f"open:{video.video_id}:{frame}",
                video.video_id,
                [frame],
                label="yes" if touched else "no",
                inputs=Asked(frame),
                target=Touch("yes" if touched else "no"),
                metadata=frame_metadata(video, frame),
                evidence=Touching(touched),
            )

    def prompt(self, example: Example, box_format: BoxFormat) -> Prompt:
        return self.prompts.prompt(1)

    def parse(self, text: str, inputs: Fields, box_format: BoxFormat) -> Prediction | ParseError:
        word = text.strip().casefold()
        return Prediction({"touch": word}) if word in ("yes", "no") else ParseError("is neither yes nor no")

    def reference_answer(self, example: Example, box_format: BoxFormat) -> str:
        return str(example.target["touch"])

    def random_answer(self, example: Example, rng: random.Random, box_format: BoxFormat) -> str:
        return rng.choice(("yes", "no"))

    def statistics(self, samples: Sequence[Scored]) -> SumStatistics:
        right = [s.prediction is not None and s.prediction.value == s.example.target for s in samples]
        return mean_statistics([{"accuracy": float(hit)} for hit in right], [s.prediction is not None for s in samples])

    def explain(self, example: Example, prediction: Prediction | None) -> Explanation:
        reference, answer = example.target["touch"], prediction.value["touch"] if prediction else None
        return (
            Explanation.of([str(reference)])
            if answer == reference
            else Explanation.of((), [str(reference)], [str(answer)])
        )


BENCHMARK = Benchmark(
    name="kettle",
    title="Kettle",
    description="Whether hands touch anything.",
    tasks=(Open,),
    licence="mit",
    homepage="https://example.org",
    citation="",
    video_file="{}/video.mp4".format,
)
PARROT = ModelKind(lambda settings, rest, tasks: ScriptedModel(f"parrot:{rest}", lambda example_id, seed: rest))
