"""Write docs/fidelity.md: the comparisons with the released BARISTA code, how many are equal, and why others differ.

    make fidelity BARISTA_SHARED=../shared

The comparisons are the tests with the fixture `golden`. They record what they compare, and fail at any difference. The
page also shows what `--protocol paper` changes for the same answers. It names the pack and the versions of the tasks.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the comparisons are tests, which are not installed

from barista_bench.benchmarks import get_benchmark, get_task, task_class  # noqa: E402
from barista_bench.benchmarks.barista.relation_answers import mark_order  # noqa: E402
from barista_bench.benchmarks.barista.released_sets import released_sampling  # noqa: E402
from barista_bench.core.boxes import BoxFormat  # noqa: E402
from barista_bench.core.deriving import GraphTask  # noqa: E402
from barista_bench.core.example import Example, ParseError, Prediction  # noqa: E402
from barista_bench.core.options import rules_of  # noqa: E402
from barista_bench.data.frozen import read_frozen  # noqa: E402
from barista_bench.data.plan import plan_task  # noqa: E402
from barista_bench.media.set_of_mark import Mark, draw_marks  # noqa: E402
from barista_bench.scene_graph import SceneGraph  # noqa: E402

PAGE = ROOT / "docs" / "fidelity.md"
EXCEPTIONS = ROOT / "docs" / "upstream" / "exceptions.md"
TESTS = (
    *("tests/benchmarks/test_golden_images.py", "tests/benchmarks/test_golden_answers.py"),
    "tests/data/test_golden_frozen.py",
    *("tests/benchmarks/test_golden_changes.py", "tests/benchmarks/test_temporal_vqa.py"),
    "tests/generate/test_questions.py",
)
ANSWERED = {
    "grounding": ("grounding", "default"),
    "hand_object": ("hand_object", "caps_a"),
    "referring": ("referring", "caps_a"),
    "activity": ("activity_mcq", "default"),
    "relations": ("relation_extraction", "caps_a"),
}
"""Maps each task to its name in the pack, and to the set with the questions of its answers."""
TASKS = get_benchmark("barista").task_names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="the folder of golden/barista and real")
    shared = parser.parse_args().shared.resolve()
    pack = shared / "golden" / "barista"
    if not (pack / "README.md").is_file():
        parser.error(f"{pack}: no golden outputs here. Fix: name their folder")
    versions = {name: get_task("barista", name).version for name in TASKS}
    PAGE.write_text(page(compare(shared), effects(pack), digest(pack), versions), encoding="utf-8")


def compare(shared: Path) -> dict[tuple[str, str], int]:
    """Run the tests, and return the number of equal comparisons by task and kind. A difference fails a test."""
    with tempfile.TemporaryDirectory() as scratch:
        notes = Path(scratch) / "notes.json"
        environment = {**os.environ, "FIDELITY_NOTES": str(notes), "BARISTA_SHARED": str(shared)}
        subprocess.run([sys.executable, "-m", "pytest", "-q", *TESTS], cwd=ROOT, env=environment, check=True)
        counts: Counter[tuple[str, str]] = Counter()
        for task, what, count in json.loads(notes.read_text(encoding="utf-8")):
            counts[task, what] += count
    return counts


def digest(pack: Path) -> str:
    """Return the SHA-256 of the names and contents of the pack's files."""
    contents = hashlib.sha256()
    for path in sorted(path for path in pack.rglob("*") if path.is_file()):
        contents.update(f"{path.relative_to(pack)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return contents.hexdigest()


def effects(pack: Path) -> dict[str, dict[str, str]]:
    """Return, by task and effect, what `--protocol paper` changes for the pack's own questions and answers."""
    graph = SceneGraph(pack.parents[1] / "real")
    changed: dict[str, dict[str, str]] = defaultdict(dict)
    for task, (upstream, config) in ANSWERED.items():
        release, paper = (
            build_examples(graph, pack, task, upstream, config, protocol) for protocol in ("release", "paper")
        )
        same = sum(release[name].inputs == paper[name].inputs for name in release.keys() & paper.keys())
        changed[task]["examples"] = f"{len(release)} and {len(paper)} examples, {same} the same"
        changed[task] |= answer_effects(pack, task, upstream, release)
    questions = read_frozen(pack / "frozen" / "caps_b" / "visual_qa.jsonl")
    by_id = {example.example_id: example for example in questions}
    changed["temporal_vqa"] = answer_effects(pack, "temporal_vqa", "visual_qa", by_id)
    changed["relations"]["images"] = f"{mark_effect(pack, graph):.1%} of the pixels of marked frames"
    changed["hand_object"]["prompt"] = "every prompt: the request is left out"
    return changed


def build_examples(
    graph: SceneGraph, pack: Path, task: str, upstream: str, config: str, protocol: str
) -> dict[str, Example]:
    stated = json.loads((pack / "frozen" / config / "config.json").read_text(encoding="utf-8"))["config"][upstream]
    params = {"shuffle_seed": stated["shuffle_seed"], "limit": stated["limit"]}
    made = get_task("barista", task, options={"protocol": protocol})
    assert isinstance(made, GraphTask)
    sampling = released_sampling(task, stated["task_params"], **params)
    plan = plan_task(graph, made, sampling, dict.fromkeys(graph.video_ids, "test"))
    return {example.example_id: example for example in plan.examples}


def answers(pack: Path, upstream: str, *, failed: bool = False) -> Iterator[dict[str, Any]]:
    """Return the answers of a task or, with `failed`, the provider errors."""
    for line in (pack / "answers" / f"{upstream}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if (row["error"] or "").startswith("provider_error") == failed:
            yield row


def answer_effects(pack: Path, task: str, upstream: str, examples: dict[str, Example]) -> dict[str, str]:
    """Count the answers that the two protocols read differently, and the answers that they only score differently."""
    release, paper = (get_task("barista", task, options={"protocol": protocol}) for protocol in ("release", "paper"))
    total, parsed, scored, alike = 0, 0, 0, 0
    for row in answers(pack, upstream):
        example, box_format = examples[row["example_id"]], BoxFormat(row.get("order") or "xyxy", 1000)
        mine, theirs = (kind.parse(row["raw_text"], example.inputs, box_format) for kind in (release, paper))
        total += 1
        if meaning(mine) != meaning(theirs):
            parsed += 1
            continue
        alike += 1
        said = mine if isinstance(mine, Prediction) else None
        scored += release.score(example, said) != paper.score(example, said)
    errors = sum(1 for _ in answers(pack, upstream, failed=True)) if release.counts_provider_errors else 0
    return {
        "parsing": f"{parsed} of {total} answers are read differently",
        "scores": f"{scored} of {alike} answers that are read alike are scored differently"
        + (f"; {errors} provider errors are scored only by the release" if errors else ""),
    }


def meaning(parsed: Prediction | ParseError) -> object:
    """Return the compared part of an answer, without its spelling and without the reason of a parse error."""
    if isinstance(parsed, ParseError):
        return None
    return {name: value for name, value in parsed.value.items() if name != "written"}


def mark_effect(pack: Path, graph: SceneGraph) -> float:
    """Return the fraction of pixels that differ between the release's marks and the paper's marks."""
    fractions = []
    for drawn in json.loads((pack / "marks" / "index.json").read_text(encoding="utf-8")):
        video = graph[drawn["video_id"]]
        marks = [Mark(n, video.mask(item)) for n, item in enumerate(mark_order(video, drawn["frame_index"]), start=1)]
        size = (video.video.width, video.video.height)
        grey = np.full((size[1], size[0], 3), 128, np.uint8)
        dark, bright = (np.asarray(draw_marks(grey, marks, size, darken_inside=inside)) for inside in (True, False))
        fractions.append(float((dark != bright).any(axis=2).mean()))
    return float(np.mean(fractions))


def page(
    counts: dict[tuple[str, str], int], changed: dict[str, dict[str, str]], pack: str, versions: dict[str, int]
) -> str:
    compared = [f"| `{task}` | {what} | {counts[task, what]} | {counts[task, what]} |" for task, what in sorted(counts)]
    rules = {task: rules_of(task_class("barista", task).options) for task in TASKS}
    effect_rows = [
        f"| `{task}` | {effect} | {'; '.join(r.rule for r in rules[task] if r.changes == effect)} | {said} |"
        for task in TASKS
        for effect, said in changed.get(task, {}).items()
        if any(rule.changes == effect for rule in rules[task])
    ]
    return "\n".join(
        [
            "# Fidelity to the released BARISTA code",
            "",
            "This page is written by `make fidelity`; do not edit it. `--protocol release`, the default, follows the",
            "released code (Ramblr-GmbH/BARISTA @ 4086ce5). We compared its outputs with ours, on real clips and on",
            "difficult made-up ones, with many settings. Everything in the table is equal, to the last digit or byte",
            "where the table states it, with the exceptions below. The comparison does not cover the texts of the",
            "released prompts: see [prompt_files.md](prompt_files.md).",
            "",
            "## Compared",
            "",
            "| task | items | compared | equal |",
            "|---|---|---|---|",
            *compared,
            "",
            EXCEPTIONS.read_text(encoding="utf-8").strip(),
            "",
            "## What the paper's protocol changes",
            "",
            "`release` follows the released code even where it is odd; `paper` follows the paper, or the rule that we",
            "consider right. The table shows the effect of each kind of rule on the same questions and answers:",
            "",
            "| task | effect | rules | measured |",
            "|---|---|---|---|",
            *effect_rows,
            "",
            "## Versions compared",
            "",
            f"These results hold for the golden outputs with SHA-256 `{pack}`, and for these versions of the tasks:",
            "",
            "| task | version |",
            "|---|---|",
            *(f"| `{name}` | {version} |" for name, version in versions.items()),
            "",
        ]
    )


if __name__ == "__main__":
    main()
