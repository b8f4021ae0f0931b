"""Tasks that BARISTA's graphs support beyond the six published tasks: a separate suite over the same videos."""

from barista_bench.benchmarks import Benchmark, TasksOnDemand, on_demand
from barista_bench.benchmarks.barista import BENCHMARK as barista

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
    licence=barista.licence,
    homepage=barista.homepage,
    citation=barista.citation,
    video_file=barista.video_file,
    splits=barista.splits,
    leaderboards=barista.leaderboards,
    paper_tables=on_demand("barista_bench.benchmarks.extended.open_activity:paper_tables"),
    extra_table_tasks=(("barista", "activity"),),
)

__all__ = ["BENCHMARK", "TASKS"]
