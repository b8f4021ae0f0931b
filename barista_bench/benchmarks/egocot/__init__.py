"""EgoCoT-Bench (arXiv 2605.19559): is the right answer right for the right reason?"""

from barista_bench.benchmarks import Benchmark
from barista_bench.benchmarks.egocot.cot import Cot
from barista_bench.benchmarks.egocot.paper_tables import paper_tables, set_tables
from barista_bench.benchmarks.egocot.records import media_file
from barista_bench.benchmarks.egocot.release import open_release
from barista_bench.benchmarks.egocot.submission import recorded_submissions, submission_lines, write_submission

BENCHMARK = Benchmark(
    name="egocot",
    title="EgoCoT-Bench",
    description="Choices about what hands do in egocentric videos, and whether the reasons given for them are true.",
    tasks=(Cot,),
    licence="cc-by-nc-4.0",
    homepage="https://huggingface.co/datasets/DStardust/EgoCoT-Bench",
    citation="""@article{egocotbench2026,
  title   = {EgoCoT-Bench: Benchmarking Grounded and Verifiable Operation-Centric Chain-of-Thought Reasoning for MLLMs},
  journal = {arXiv preprint arXiv:2605.19559},
  year    = {2026}
}""",
    video_file=media_file,
    splits=("dev", "test"),
    leaderboards=("dev",),
    open_release=open_release,
    formats={"egocot_submission": recorded_submissions},
    paper_tables=paper_tables,
    set_tables=set_tables,
    submission=lambda samples, path: write_submission(submission_lines(samples), path),
)
