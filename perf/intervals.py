"""What intervals cost: CPU seconds for all 95% intervals of a task's figures, run folder by run folder.

    python perf/intervals.py RUN_FOLDER [RUN_FOLDER ...]

Samples of a small run are repeated under new video names until there are enough: 1,000 examples in 100 videos, three
runs.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

from barista_bench.core.task import FrameRef
from barista_bench.runs.score.samples import ScoredSample, counted_samples, intervals
from barista_bench.runs.score.scoring import score

EXAMPLES, VIDEOS, RUNS = 1000, 100, 3


def enlarged(samples: list[ScoredSample]) -> list[ScoredSample]:
    """EXAMPLES examples over VIDEOS videos, each with RUNS runs."""
    first = [sample for sample in samples if sample.record.run == 0]
    made = []
    for index in range(EXAMPLES):
        sample = first[index % len(first)]
        frames = tuple(FrameRef(f"video_{index % VIDEOS:03d}", ref.frame_index) for ref in sample.example.frames)
        example = replace(sample.example, example_id=f"{index}", frames=frames)
        for run in range(RUNS):
            record = type(sample.record)(
                **{**{f: getattr(sample.record, f) for f in sample.record.__struct_fields__}, "run": run}
            )
            made.append(ScoredSample(example, record, sample.prediction, sample.scores))
    return made


def main() -> None:
    for folder in sys.argv[1:]:
        run = score(folder)
        samples = enlarged(list(run.samples))
        start = time.process_time()
        figures = intervals(counted_samples(run.task, samples))
        seconds = time.process_time() - start
        print(f"{run.task.name:14} {len(samples)} samples, {len(figures)} figures: {seconds:.2f} CPU s")


if __name__ == "__main__":
    main()
