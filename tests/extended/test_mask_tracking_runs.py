"""Mask tracking from a built set to the gap between a tracker's file and the masks of the first frame."""

import json
from pathlib import Path

import pytest

from barista_bench import evaluate
from barista_bench.benchmarks.extended.mask_tracking import TrackMasks
from barista_bench.data.dataset import ExampleSet, open_examples
from barista_bench.data.folder import build
from barista_bench.errors import ConfigError
from barista_bench.stats.baselines import baseline_gaps


@pytest.fixture
def examples(small_kitchen: Path, tmp_path: Path) -> ExampleSet:
    folder = tmp_path / "extended"
    sampling = {"mask_tracking": {"limit": 4, "spacing": 20}}
    build(small_kitchen, folder, benchmark="extended", configs=["mask_tracking"], sampling=sampling, cache=False)
    return open_examples(folder, "extended", "mask_tracking")


def test_a_trackers_file_is_scored_beside_copied_first_masks(examples: ExampleSet, tmp_path: Path) -> None:
    lines = [json.dumps({"format": "barista_bench.predictions/1", "box_format": "xyxy/pixels", "model": "tracker"})]
    for example in examples.examples:
        followed = [mask.write() for mask in TrackMasks.of(example).masks if mask.frame < 5]
        lines.append(json.dumps({"example_id": example.example_id, "value": {"masks": followed}}))
    file = tmp_path / "tracker.jsonl"
    file.write_text("\n".join(lines))
    models = f"predictions:{file}", "copy_first_mask", "oracle"
    folder = tmp_path / "extended"
    runs = [
        run
        for number, model in enumerate(models)
        for run in evaluate(folder, model, task="mask_tracking", runs=1, out=tmp_path / str(number)).runs
    ]
    tracker, copied, oracle = (run.results.figures["J_and_F"].mean for run in runs)
    assert copied < tracker < oracle == 1
    gaps = [gap for gap in baseline_gaps(runs) if gap.model.startswith("predictions")]
    assert [gap.kind for gap in gaps] == ["copy_first_mask"]
    assert gaps[0].comparison.difference == pytest.approx(tracker - copied)


def test_only_questions_with_masks_have_masks_to_copy(small_kitchen: Path, tmp_path: Path) -> None:
    folder = tmp_path / "barista"
    build(small_kitchen, folder, configs=["relations"], sampling={"relations": {"limit": 2}}, cache=False)
    with pytest.raises(ConfigError, match="barista/relations gives no masks to copy"):
        evaluate(folder, "copy_first_mask", task="relations", out=tmp_path / "run")
