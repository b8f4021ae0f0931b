"""BARISTA (arXiv 2605.12074): zero-shot tasks derived from one scene graph of coffee-making videos."""

from barista_bench.benchmarks import Benchmark, FrozenFormat, ReleasedTexts, TasksOnDemand, on_demand
from barista_bench.benchmarks.barista.common import RELEASED_WORDING
from barista_bench.scene_graph.release import VIDEO_FILE

TASKS = TasksOnDemand(
    {
        "grounding": "barista_bench.benchmarks.barista.grounding:Grounding",
        "hand_object": "barista_bench.benchmarks.barista.hand_object:HandObject",
        "referring": "barista_bench.benchmarks.barista.referring:Referring",
        "activity": "barista_bench.benchmarks.barista.activity:Activity",
        "relations": "barista_bench.benchmarks.barista.relations:Relations",
        "temporal_vqa": "barista_bench.benchmarks.barista.temporal_vqa:TemporalVQA",
    }
)
"""Tasks in the order of the paper."""

BENCHMARK = Benchmark(
    name="barista",
    title="BARISTA",
    description="Egocentric coffee making with a scene graph on every frame.",
    tasks=TASKS,
    licence="cc-by-nc-4.0",
    homepage="https://arxiv.org/abs/2605.12074",
    citation="""@article{barista2026,
  title   = {BARISTA: A Multi-Task Egocentric Benchmark for Compositional Visual Understanding},
  journal = {arXiv preprint arXiv:2605.12074},
  year    = {2026}
}""",
    video_file=lambda video_id: f"{video_id}/{VIDEO_FILE}",
    splits=("train", "test"),
    leaderboards=("all", "test"),
    frozen_format=FrozenFormat(
        read=on_demand("barista_bench.benchmarks.barista.frozen_line_reader:import_example"),
        write=on_demand("barista_bench.benchmarks.barista.released_sets:released_record"),
        parameters=on_demand("barista_bench.benchmarks.barista.released_sets:released_parameters"),
        identity=on_demand("barista_bench.benchmarks.barista.released_sets:question_identity"),
    ),
    released_texts=ReleasedTexts(
        differences=on_demand("barista_bench.benchmarks.barista.released_wording:released_differences"),
        wording=RELEASED_WORDING,
    ),
    vocabulary=on_demand("barista_bench.scene_graph.domain:domain_vocabulary"),
)

__all__ = ["BENCHMARK", "TASKS"]
