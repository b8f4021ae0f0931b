"""Tasks that BARISTA's graphs support beyond the six that are published: a suite of its own over the same videos."""

from barista_bench.benchmarks import Benchmark, TasksOnDemand, on_demand
from barista_bench.scene_graph.release import VIDEO_FILE

TASKS = TasksOnDemand(
    {
        "open_activity": "barista_bench.benchmarks.extended.open_activity:OpenActivity",
        "step_segmentation": "barista_bench.benchmarks.extended.step_segmentation:StepSegmentation",
        "anticipation": "barista_bench.benchmarks.extended.anticipation:Anticipation",
        "mask_tracking": "barista_bench.benchmarks.extended.mask_tracking:MaskTracking",
        "temporal_scene_graph": "barista_bench.benchmarks.extended.temporal_scene_graph:TemporalSceneGraph",
    }
)

BENCHMARK = Benchmark(
    name="extended",
    title="BARISTA extended",
    description="Further questions to BARISTA's scene graphs, in the model's own words and over time.",
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
    paper_tables=on_demand("barista_bench.benchmarks.extended.open_activity:paper_tables"),
    beside=(("barista", "activity"),),
)

__all__ = ["BENCHMARK", "TASKS"]
