"""ViSTa (arXiv 2411.13211): models match videos with descriptions of sequences of actions."""

from barista_bench.benchmarks import Benchmark
from barista_bench.benchmarks.vista.matching import All, Minecraft, RealWorld, VirtualHome
from barista_bench.benchmarks.vista.paper_tables import paper_tables
from barista_bench.benchmarks.vista.release import open_release

TASKS = (VirtualHome, RealWorld, Minecraft, All)
"""The environments in the order of the paper, and all of them together."""

BENCHMARK = Benchmark(
    name="vista",
    title="ViSTa",
    description="Which description of a sequence of actions fits a video? In virtual homes, real rooms and Minecraft.",
    tasks=TASKS,
    licence="other",
    homepage="https://github.com/Eugleo/vista-dataset",
    citation="""@article{vista2024,
  title   = {ViSTa Dataset: Do vision-language models understand sequential tasks?},
  author  = {Wybitul, Evžen and Gunter, Evan Ryan and Seleznyov, Mikhail and Lindner, David},
  journal = {arXiv preprint arXiv:2411.13211},
  year    = {2024}
}""",
    video_file=lambda video_id: video_id,
    open_release=open_release,
    compares_sets=True,
    paper_tables=paper_tables,
)
