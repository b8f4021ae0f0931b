"""`build --layout release`: frozen sets as the benchmark's own harness reads them.

    <out>/<task_name>.jsonl          the frozen lines, in the order drawn
    <out>/<task_name>.config.json    task_params, shuffle_seed and limit that they were drawn with

No video is touched: the released harness decodes frames when it runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from barista_bench.benchmarks import get_benchmark
from barista_bench.data.frozen import released_line
from barista_bench.data.plan import Plan
from barista_bench.errors import ConfigError


def write_released(plans: Iterable[Plan], folder: Path) -> list[Path]:
    """The files of all plans; `folder` is there.

    Raises:
        ConfigError: the benchmark's release freezes no examples, or has no parameter for something in the sampling.
    """
    written = []
    for plan in plans:
        task, benchmark = plan.task, get_benchmark(plan.task.benchmark)
        if benchmark.released_parameters is None:
            raise ConfigError(f"{benchmark.name}: its release freezes no examples. Remedy: use the layout ours")
        params = dict(benchmark.released_parameters(task.name, plan.sampling))
        lines = [released_line(example, task.frozen_question(example)) for example in plan.examples]
        frozen = folder / f"{task.upstream_name}.jsonl"
        frozen.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        config = {
            "task": task.upstream_name,
            "task_params": params,
            "shuffle_seed": plan.sampling.seed,
            "limit": plan.sampling.limit,
        }
        described = frozen.with_suffix(".config.json")
        described.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8", newline="\n")
        written += [frozen, described]
    return written
