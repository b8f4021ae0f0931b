"""Write a built folder's files for the Hub: leaderboards, and the picture of the card."""

from __future__ import annotations

from pathlib import Path

import yaml
from PIL import ImageDraw

from barista_bench.benchmarks import get_benchmark, get_task
from barista_bench.core.leaderboards import EVAL_FILE, FRAMEWORK, OURS, RULES_FILE, SCALE, task_id
from barista_bench.data.dataset import open_examples
from barista_bench.data.manifest import PICTURE, BuiltDataset

_ON_TEST = " A task named ..._test is scored on the test videos only, for models that were trained on the others."
_WORDING = "Models are asked in our own words, unless a task's name ends in another wording's."
_PICTURE_WIDTH = 640


def write_hub_files(folder: Path, built: BuiltDataset) -> None:
    """Write `eval.yaml`, `leaderboard.yaml` and the picture into a folder that already has rows and a manifest.

    Each task gets a leaderboard over all videos, and another one over the test videos if there are any. If the
    release's wording is available, each leaderboard exists a second time, for models that run with this wording.
    """
    benchmark = get_benchmark(built.benchmark)
    tasks = [config for config in built.configs if config.content_hash]
    metrics = []
    for task in (get_task(benchmark.name, config.name) for config in tasks):
        metric = "mean score of a language-model judge" if task.primary.startswith("lexical_") else task.primary
        metrics.append(f"{task.name}: {metric} over {task.row_note}")
    wordings = [OURS, *([benchmark.released_texts.wording] if benchmark.released_texts else [])]
    boards, hashes = [], {}
    for config in tasks:
        for split in benchmark.leaderboards:
            # The name that `datasets` uses, for splits that have examples.
            name = "+".join(part for part in benchmark.published_split(split).split("+") if config.rows.get(part))
            if not name:
                continue
            content_hash = open_examples(folder, benchmark.name, config.name, split=split).content_hash
            for wording in wordings:
                board = task_id(config.name, split, built.protocol, wording)
                boards.append({"id": board, "config": config.name, "split": name})
                hashes[board] = content_hash
    evaluation = {
        "name": benchmark.title,
        "description": f"Vision-language models on egocentric video, evaluated by barista_bench. Values are {SCALE} "
        f"times the metric, the mean over repetitions. {'; '.join(metrics)}."
        f"{_ON_TEST if 'train' in benchmark.splits else ''} {_WORDING}",
        "evaluation_framework": FRAMEWORK,
        "tasks": boards,
    }
    for file, content in ((EVAL_FILE, evaluation), (RULES_FILE, {"content_hashes": hashes})):
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000)
        (folder / file).write_text(text, encoding="utf-8")
    _draw_picture(folder, benchmark.name, tasks[0].name)


def _draw_picture(folder: Path, benchmark: str, config: str) -> None:
    """Draw the last image of the first example as a model sees it, with the boxes of the question and the reference."""
    task, loaded = get_task(benchmark, config), open_examples(folder, benchmark, config)[0]
    images = loaded.images(task)
    image, last = images[-1], len(images) - 1
    pen = ImageDraw.Draw(image)
    for overlay in task.overlays(loaded.example, None):
        if overlay.image == last:
            pen.rectangle(overlay.box, outline="lime", width=max(2, image.width // 200))
    image.thumbnail((_PICTURE_WIDTH, _PICTURE_WIDTH))
    image.save(folder / PICTURE, quality=85)
