"""Define ToG-Bench (arXiv 2512.03666): the objects that an instruction needs in egocentric video, with times and
places.
"""

from barista_bench.benchmarks import Benchmark
from barista_bench.benchmarks.tog_bench.paper_tables import paper_tables, set_tables
from barista_bench.benchmarks.tog_bench.release import open_release, video_file
from barista_bench.benchmarks.tog_bench.t_stvg import TSTVG

BENCHMARK = Benchmark(
    name="tog_bench",
    title="ToG-Bench",
    description="Task-oriented spatio-temporal grounding: the objects that an instruction takes, when and where",
    tasks=(TSTVG,),
    licence="other",
    homepage="https://github.com/qaxuDev/ToG-Bench",
    citation="""@misc{togbench2025,
  title = {ToG-Bench: Task-Oriented Spatio-Temporal Grounding in Egocentric Videos},
  year = {2025},
  eprint = {2512.03666},
  archivePrefix = {arXiv}
}""",
    video_file=video_file,
    open_release=open_release,
    paper_tables=paper_tables,
    set_tables=set_tables,
)
