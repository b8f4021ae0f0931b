"""From nothing to a report in under a minute: `barista-bench demo`. Without torch: embedded models answer from records.

It renders a toy kitchen, builds BARISTA's tasks from its scene graphs and computes `chance`, `prior` and `oracle`. The
package contains the embedded models' answers to exactly these examples (`scripts/record_demo.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from barista_bench.api import evaluate
from barista_bench.data.folder import build
from barista_bench.errors import DataError
from barista_bench.mini import write_kitchen
from barista_bench.reporting import write_report
from barista_bench.runs.score.scoring import ScoredRun

VIDEOS, WIDTH, HEIGHT, FPS, SEED = 9, 480, 270, 10, 0
"""The kitchen's; width and height in pixels, frames a second."""
SAMPLING = {"limit": 16, "relations": {"frame_step": 100}, "referring": {"frame_step": 20}}
"""Maximum number of examples per task, and frames between them."""
SETTINGS = {"task": "all", "repetitions": 1, "temperature": 0.0, "max_new_tokens": 192, "progress": False}
COMPUTED = ("oracle", "chance", "prior")
RECORDED = ("kitchen", "kitchen_early", "text_only:kitchen")
HASHES = Path(__file__).parent / "examples.json"
"""Content hashes of the examples that the recorded answers are to, by task."""
_REMEDY = "run scripts/record_demo.py of this version's repository, which asks the models again"


def answers_file(model: str) -> Path:
    """Return the recorded answers of an embedded model."""
    return HASHES.with_name(f"{model.replace(':', '-')}.jsonl")


def recorded_model(model: str) -> str:
    """Return a model's recorded answers as `--model` takes them: answers of an ablation stay an ablation.

    >>> recorded_model("text_only:kitchen").startswith("text_only:predictions:")
    True
    """
    ablation, colon, _ = model.rpartition(":")
    return f"{ablation}{colon}predictions:{answers_file(model)}"


def make_examples(out: Path, *, num_proc: int = 2, progress: bool = False) -> dict[str, str]:
    """Render the kitchen into `<out>/kitchen`, build its tasks into `<out>/data` and return their content hashes."""
    write_kitchen(
        out / "kitchen",
        videos=VIDEOS,
        width=WIDTH,
        height=HEIGHT,
        fps=FPS,
        seed=SEED,
        num_proc=num_proc,
        progress=progress,
    )
    built = build(out / "kitchen", out / "data", sampling=SAMPLING, cache=False)
    return {config.name: config.content_hash for config in built.configs if config.content_hash}


def demo(
    out: Path, *, num_proc: int = 2, progress: bool = False, tell: Callable[[str], None] = lambda line: None
) -> Path:
    """Make kitchen, data, runs and report below `out`; return the page of the report.

    Args:
        out: folder to make them in. Results of an earlier call are replaced, except the runs, which are kept.
        num_proc: number of processes that render.
        tell: receives one line per step.

    Raises:
        ConfigError: `out` holds other content in one of these folders.
        DataError: the recorded answers belong to other examples than this version makes.
    """
    tell(f"rendering {VIDEOS} videos of a toy kitchen, and making questions of their scene graphs")
    content_hashes = make_examples(out, num_proc=num_proc, progress=progress)
    recorded = json.loads(HASHES.read_text(encoding="utf-8"))
    if different := [name for name in content_hashes if recorded.get(name) != content_hashes[name]]:
        raise DataError(f"{HASHES}: answers to other examples of {', '.join(different)}. Fix: {_REMEDY}")
    runs: list[ScoredRun] = []
    for model in (*RECORDED, *COMPUTED):
        tell(f"scoring {model}{' (recorded answers)' if model in RECORDED else ''}")
        name = recorded_model(model) if model in RECORDED else model
        runs += evaluate(out / "data", name, out=out / "runs" / model.replace(":", "-"), **SETTINGS).runs
    tell("writing the report")
    page, _ = write_report(runs, out / "report", title="A toy kitchen: what the embedded models see")
    return page
