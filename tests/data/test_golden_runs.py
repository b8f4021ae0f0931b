"""Run folders that the released code wrote: in, scored, and out again to the letter."""

import json
from pathlib import Path

import pytest

from barista_bench.interchange.exporting import export_run
from barista_bench.interchange.importing import import_run
from barista_bench.judging.scoring import all_judged
from barista_bench.runs.score.scoring import score
from tests.conftest import Compared

NAMES = (
    *("activity_mcq", "activity_mcq_resumed", "grounding", "hand_object", "referring", "referring_judged"),
    *("relation_extraction", "visual_qa", "visual_qa_judged"),
)
SAME_METRICS = {
    "activity_mcq": {"accuracy": "accuracy"},
    "activity_mcq_resumed": {"accuracy": "accuracy"},
    "grounding": {name: name for name in ("map", "map_50", "map_small", "mar_1", "mar_100")},
    "hand_object": {"recall": "interaction_recall", "precision": "interaction_precision", "hand_iou": "hand_iou"},
    "relation_extraction": {name: name for name in ("micro_precision", "micro_recall", "micro_f1", "mean_example_f1")},
}
"""Our figure to the key of metrics.json."""


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_of_the_release_has_its_metrics_and_comes_back_to_the_letter(
    name: str, golden: Path, real_release: Path, tmp_path: Path, compared: Compared
) -> None:
    theirs = golden / "runs" / name
    made = import_run(theirs, tmp_path / "run", root=real_release)
    assert (made.kept_failures, made.new_failures, made.other_results, made.other_metrics) == ((), (), (), ())
    export_run(tmp_path / "run", tmp_path / "back")
    files = sorted(path.name for path in theirs.iterdir())
    assert sorted(path.name for path in (tmp_path / "back").iterdir()) == files
    for file in files:
        assert (tmp_path / "back" / file).read_bytes() == (theirs / file).read_bytes(), file
    metrics, values = json.loads((theirs / "metrics.json").read_text()), score(tmp_path / "run").results.metrics
    for our_name, key in SAME_METRICS.get(name, {}).items():
        assert values[our_name].mean == pytest.approx(metrics[key], abs=1e-12), key
    compared(made.task, "files of run folders imported and exported, every byte", len(files))


@pytest.mark.parametrize("name", ["referring_judged", "visual_qa_judged"])
def test_released_judges_have_results(
    name: str, golden: Path, real_release: Path, tmp_path: Path, compared: Compared
) -> None:
    made = import_run(golden / "runs" / name, tmp_path / "run", root=real_release)
    metrics = json.loads((golden / "runs" / name / "metrics.json").read_text())
    (judged,) = all_judged(score(tmp_path / "run"))
    assert judged.results.judge.name == "stub-model"
    assert judged.results.metrics["mean"].mean == metrics["mean_geval_score"]
    for criterion in judged.results.rubric.criteria:
        assert judged.results.metrics[criterion].mean == metrics[f"mean_geval_{criterion}"]
        scored = [
            verdict for verdicts in judged.verdicts.values() for verdict in verdicts if verdict.criterion == criterion
        ]
        assert sum(verdict.score is not None for verdict in scored) == metrics[f"geval_{criterion}_count"]
        compared(made.task, "judged criteria of imported runs", 1)
