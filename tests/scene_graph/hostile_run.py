"""Runs `validate`, `show stats` and `build` over a release, each in a separate process, and prints their time and
memory.

    python -m tests.scene_graph.hostile_run RELEASE

One line of JSON a step: its name, the outcome, and the most memory that its process held. The parent imports everything
once and starts no thread, so that forking is safe.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.measuring import measured


def main(root: Path) -> None:
    os.environ |= {"HF_HOME": tempfile.mkdtemp(dir=root.parent), "HF_HUB_OFFLINE": "1"}
    logging.disable(logging.WARNING)
    from barista_bench.benchmarks import get_benchmark
    from barista_bench.data.folder import build
    from barista_bench.scene_graph import SceneGraph, statistics_files, validate
    from barista_bench.scene_graph.statistics import statistics

    assert statistics_files.write_statistics

    def validated() -> dict[str, Any]:
        found = validate(root)
        return {"usable": [video.video_id for video in found.videos], "errors": found.errors}

    def counted() -> dict[str, Any]:
        counts = statistics(SceneGraph(root))
        return {"usable": counts.videos, "lost": counts.unusable_videos}

    def built(benchmark: str) -> dict[str, Any]:
        made = build(root, root.parent / f"{root.name}-{benchmark}", benchmark=benchmark)
        frozen = [path.read_text().splitlines() for path in sorted((made.folder / "frozen").glob("*.jsonl"))]
        ids = [example["example_id"] for lines in frozen for example in map(json.loads, lines)]
        return {"lost": made.lost_videos, "good": sum(":good:" in name for name in ids)}

    steps: dict[str, Callable[[], Any]] = {"validate": validated, "stats": counted}
    for benchmark in ("barista", "extended"):
        assert get_benchmark(benchmark).tasks
        steps[benchmark] = lambda benchmark=benchmark: built(benchmark)
    for name, step in steps.items():
        print(json.dumps({"step": name, **measured(step)}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
