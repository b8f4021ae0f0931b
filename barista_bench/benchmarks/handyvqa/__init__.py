"""Define HanDyVQA (arXiv 2512.00885): actions of hands and objects in clips of five seconds, answered by options or
masks.
"""

from barista_bench.benchmarks import Benchmark
from barista_bench.benchmarks.handyvqa.choice_tasks import Action, Location, Objects, Parts, Process, State
from barista_bench.benchmarks.handyvqa.paper_tables import paper_tables, set_tables
from barista_bench.benchmarks.handyvqa.recorded_answers import read_mask_outputs, read_outputs
from barista_bench.benchmarks.handyvqa.release import open_release
from barista_bench.benchmarks.handyvqa.segmentation import RvosObjects, RvosParts

BENCHMARK = Benchmark(
    name="handyvqa",
    title="HanDyVQA",
    description="fine-grained hand-object dynamics: multiple-choice questions of six kinds, and segmentation",
    tasks=(Action, Process, Location, State, Parts, Objects, RvosObjects, RvosParts),
    licence="other",
    homepage="https://huggingface.co/datasets/aist-cvrt/HanDyVQA",
    citation="""@misc{handyvqa2025,
  title = {HanDyVQA: A Video QA Benchmark for Fine-Grained Hand-Object Interaction Dynamics},
  author = {Tateno, Masatoshi and Kato, Gido and Hara, Kensho and Kataoka, Hirokatsu and Sato, Yoichi and Yagi, Takuma},
  year = {2025},
  eprint = {2512.00885},
  archivePrefix = {arXiv}
}""",
    video_file=lambda video_id: video_id,
    open_release=open_release,
    formats={"handyvqa": read_outputs, "handyvqa_rvos": read_mask_outputs},
    compares_sets=True,
    paper_tables=paper_tables,
    set_tables=set_tables,
)
