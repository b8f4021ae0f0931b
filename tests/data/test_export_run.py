"""Runs in the layout of the released harness: imported runs are exported unchanged, and our runs with their figures."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from barista_bench.benchmarks import task_names
from barista_bench.cli import commands as cli
from barista_bench.core.example import Example
from barista_bench.data.folder import build
from barista_bench.errors import ConfigError, DataError
from barista_bench.interchange.exporting import export_run
from barista_bench.interchange.importing import ImportedRun, import_run
from barista_bench.judging.scoring import all_judged, score_judged
from barista_bench.judging.session import judge
from barista_bench.runs.run_folder import judge_folders
from barista_bench.runs.score.scoring import score
from tests.data.released_files import write_records
from tests.data.released_runs import answered, ours, prediction, right, run_folder
from tests.one_run import run

Records = list[dict[str, Any]]
FILES = (
    *("run_config.json", "benchmark_examples.jsonl", "benchmark_examples_source.txt", "predictions.jsonl"),
    *("errors.jsonl", "metrics.json", "summary.txt"),
)


def released(folder: Path, tmp_path: Path, examples: list[Example], said: Records) -> Path:
    """A whole released folder, made by the export; its files then play the files of the release."""
    import_run(run_folder(tmp_path / "bare", examples, said), tmp_path / "first", root=folder)
    edit(tmp_path / "first/released.jsonl", lambda kept: kept.get("values", {}).pop("task_result", None))
    export_run(tmp_path / "first", tmp_path / "theirs")
    return tmp_path / "theirs"


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for record in records:
        change(record)
    write_records(path, records)


def back_equals(theirs: Path, tmp_path: Path, root: Path | None = None) -> ImportedRun:
    """The folder stays equal when it is imported and exported again."""
    made = import_run(theirs, tmp_path / "imported", root=root)
    export_run(tmp_path / "imported", tmp_path / "back")
    for name in FILES:
        assert (tmp_path / "back" / name).read_text() == (theirs / name).read_text(), name
    return made


@pytest.mark.full
@pytest.mark.parametrize("name", task_names("barista"))
def test_a_released_folder_comes_back(name: str, six_frozen: Path, kitchen_release: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, name)
    said = [right(example, latency_ms=1.1 * index) for index, example in enumerate(examples)]
    said[1] |= {"raw_text": "", "error": "provider_error: Timeout: slow\nvery", "latency_ms": None, "usage": None}
    said[2] |= {"raw_text": "", "finish_reason": None, "provider_response_id": None}
    if name != "temporal_vqa":
        said[2]["error"] = "parse_error: could not parse response"
    random.Random(1).shuffle(said)
    theirs = released(kitchen_release, tmp_path, examples, said)
    assert [json.loads(line)["raw_text"] for line in (theirs / "predictions.jsonl").open()] == [
        record["raw_text"] for record in said
    ]
    made = back_equals(theirs, tmp_path, kitchen_release)
    assert made.other_results == made.other_metrics == ()


def test_fields_that_our_records_lack_survive_the_round_trip(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "activity")
    theirs = released(six_frozen, tmp_path, examples, [right(example) for example in examples])
    metrics = json.loads((theirs / "metrics.json").read_text())
    metrics |= {"wall_clock_ms": 12.5, "resumed_examples": 3, "concurrency": 8}
    (theirs / "metrics.json").write_text(json.dumps(metrics, indent=2, sort_keys=True) + "\n")
    (theirs / "benchmark_examples_source.txt").write_text("/data/frozen.jsonl\n")
    (theirs / "summary.txt").write_text("Run directory: /somewhere\nand nothing else")
    edit(theirs / "predictions.jsonl", lambda record: record.update(prompt_text=None, usage={"total_tokens": 9}))
    edit(
        theirs / "benchmark_examples.jsonl",
        lambda record: [frame.update(mp4_path=f"/data/{frame['mp4_path']}") for frame in record["frames"]],
    )
    back_equals(theirs, tmp_path)


def test_text_outside_utf8_survives_the_round_trip(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "temporal_vqa")
    scores = {"geval_accuracy_score": 0.5, "geval_accuracy_reason": "\ud800", "geval_mean_score": 0.5}
    said = [prediction(example, "a \ud83d b", task_result=scores) for example in examples]
    folder = run_folder(tmp_path / "theirs", examples, said)
    import_run(folder, tmp_path / "imported")
    export_run(tmp_path / "imported", tmp_path / "back")
    back = [json.loads(line) for line in (tmp_path / "back/predictions.jsonl").open()]
    assert [record["raw_text"] for record in back] == ["a \ud83d b"] * len(examples)
    assert back[0]["task_result"]["geval_accuracy_reason"] == "\ud800"


def judged_records(examples: list[Example]) -> Records:
    """A score each, none at all, and a criterion that the release does not know."""
    slow = "geval_error: Timeout: slow"
    given: list[tuple[float | None, dict[str, tuple[float | None, str]]]] = [
        (0.9, {"accuracy": (0.9, "near"), "completeness": (None, slow)}),
        (None, {"accuracy": (None, "unknown_criterion: accuracy")}),
        ((0.3 + 0.123456789) / 2, {"accuracy": (0.3, "far"), "completeness": (0.123456789, "half")}),
    ]
    records = [right(example) for example in examples]
    for record, (mean, criteria) in zip(records, given, strict=False):
        record["task_result"] = {"geval_mean_score": mean}
        for name, (value, reason) in criteria.items():
            record["task_result"] |= {f"geval_{name}_score": value, f"geval_{name}_reason": reason}
    return records


def test_scores_of_a_judge_become_verdicts_and_come_back(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "temporal_vqa")
    theirs = released(six_frozen, tmp_path, examples, judged_records(examples))
    made = back_equals(theirs, tmp_path, six_frozen)
    assert made.other_results == made.other_metrics == ()
    (judged,) = all_judged(score(tmp_path / "imported"))
    metrics = json.loads((theirs / "metrics.json").read_text())
    assert judged.results.judge.name == "gemini-3-flash"
    assert judged.results.coverage.answered == 3
    assert judged.results.metrics["mean"].mean == metrics["mean_geval_score"]
    assert judged.results.metrics["accuracy"].mean == metrics["mean_geval_accuracy"] == pytest.approx(0.6)
    assert judged.results.metrics["completeness"].mean == metrics["mean_geval_completeness"] == 0.123456789
    reasons = {verdict.text for verdicts in judged.verdicts.values() for verdict in verdicts if verdict.score is None}
    assert reasons == {"geval_error: Timeout: slow", "unknown_criterion: accuracy"}


@pytest.mark.parametrize("name", task_names("barista"))
def test_our_run_keeps_its_metrics(name: str, six_frozen: Path, kitchen_release: Path, tmp_path: Path) -> None:
    run(six_frozen, tmp_path / "ours", task=name, model="chance", repetitions=1)
    done = export_run(tmp_path / "ours", tmp_path / "released")
    assert sorted(path.name for path in (tmp_path / "released").iterdir()) == sorted(FILES)
    made = import_run(tmp_path / "released", tmp_path / "again", root=kitchen_release)
    assert (done.records, made.other_results, made.other_metrics) == (len(ours(six_frozen, name)), (), ())
    first, other = (score(tmp_path / folder).results for folder in ("ours", "again"))
    assert other.coverage == first.coverage
    if name == "referring":
        return  # its words are compared with our sentence, which released lines lack
    assert {k: v.repetitions for k, v in other.metrics.items()} == {k: v.repetitions for k, v in first.metrics.items()}


def test_marks_look_as_in_the_set(kitchen_release: Path, tmp_path: Path) -> None:
    look = {"mask_alpha": 0.25, "boundary_alpha": 0.75, "font_size": 14}
    build(kitchen_release, tmp_path / "barista", configs=["relations"], sampling={"limit": 2, **look}, cache=False)
    run(tmp_path / "barista", tmp_path / "ours", task="relations", model="chance", repetitions=1)
    export_run(tmp_path / "ours", tmp_path / "released")
    params = json.loads((tmp_path / "released/run_config.json").read_text())["task_params"]
    assert params == {"mask_alpha": 0.25, "alpha_segmentation_boundary": 0.75, "font_size": 14}


def test_a_run_on_a_part_of_a_set_is_refused(six_frozen: Path, tmp_path: Path) -> None:
    (tmp_path / "ids").write_text(ours(six_frozen, "activity")[0].example_id)
    run(six_frozen, tmp_path / "ours", task="activity", model="chance", example_ids=tmp_path / "ids")
    with pytest.raises(ConfigError, match=r"ours: is a part of a set"):
        export_run(tmp_path / "ours", tmp_path / "released")


def test_several_runs_are_several_folders(six_frozen: Path, tmp_path: Path) -> None:
    run(six_frozen, tmp_path / "ours", task="activity", model="chance", repetitions=3)
    done = export_run(tmp_path / "ours", tmp_path / "released")
    assert [folder.name for folder in done.folders] == ["repetition_0", "repetition_1", "repetition_2"]
    import_run(done.folders, tmp_path / "again")
    first, other = (score(tmp_path / folder).results.metrics["accuracy"].repetitions for folder in ("ours", "again"))
    assert first == other
    again = export_run(tmp_path / "again", tmp_path / "back")
    for folder, before in zip(again.folders, done.folders, strict=True):
        assert folder.name == before.name
        assert all((folder / name).read_bytes() == (before / name).read_bytes() for name in FILES)


def test_our_judged_run_keeps_its_scores_and_one_of_several_judges_must_be_named(
    six_frozen: Path, tmp_path: Path
) -> None:
    run(six_frozen, tmp_path / "ours", task="temporal_vqa", model="chance", repetitions=1)
    judge(tmp_path / "ours", "lexical")
    assert export_run(tmp_path / "ours", tmp_path / "released").judge == "lexical"
    import_run(tmp_path / "released", tmp_path / "again")
    (before,), (after,) = (all_judged(score(tmp_path / folder)) for folder in ("ours", "again"))
    assert after.results.judge.name == "lexical", "the one of the settings"
    means = [{name: metric.mean for name, metric in run.results.metrics.items()} for run in (before, after)]
    assert means[1] == pytest.approx(means[0])
    judge(tmp_path / "ours", "oracle")
    with pytest.raises(ConfigError, match=r"2 judges.*--judge"):
        export_run(tmp_path / "ours", tmp_path / "other")
    with pytest.raises(ConfigError, match="no judge 'nobody'"):
        export_run(tmp_path / "ours", tmp_path / "other", judge="nobody")
    folder = next(path.name for path in judge_folders(tmp_path / "ours") if path.name.startswith("oracle"))
    assert export_run(tmp_path / "ours", tmp_path / "other", judge=folder).judge == "oracle"


def test_a_run_judged_again_shows_the_new_scores(six_frozen: Path, tmp_path: Path) -> None:
    bare = answered(tmp_path / "bare", six_frozen, "temporal_vqa")
    (bare / "run_config.json").write_text(json.dumps({"task_params": {"geval_criteria": []}}))
    (bare / "summary.txt").write_text("Run directory: x\nG-Eval mean score (0-1): N/A (n=0)")
    import_run(bare, tmp_path / "run")
    folder = judge(tmp_path / "run", "oracle").folder
    mean = score_judged(score(tmp_path / "run"), folder).results.metrics["mean"].mean
    export_run(tmp_path / "run", tmp_path / "released")
    assert json.loads((tmp_path / "released/metrics.json").read_text())["mean_geval_score"] == pytest.approx(mean)
    assert f"G-Eval mean score (0-1): {mean:.4f} (n=" in (tmp_path / "released/summary.txt").read_text()
    assert json.loads((tmp_path / "released/run_config.json").read_text())["task_params"]["judge_model"] == "oracle"


def test_a_task_without_a_released_layout_is_refused(six_frozen: Path, tmp_path: Path) -> None:
    run(six_frozen, tmp_path / "paper", task="hand_object", model="chance", protocol="paper")
    with pytest.raises(ConfigError, match=r"paper's protocol.*--protocol release"):
        export_run(tmp_path / "paper", tmp_path / "released")
    assert not (tmp_path / "released").exists()


def test_a_damaged_sidecar_names_its_line(six_frozen: Path, tmp_path: Path) -> None:
    import_run(answered(tmp_path / "a", six_frozen, "activity"), tmp_path / "run")
    (tmp_path / "run/released.jsonl").write_text('{"repetition": 0}\n')
    with pytest.raises(DataError, match=r"released.jsonl: line 1: .*import again"):
        export_run(tmp_path / "run", tmp_path / "released")


def test_the_command_lists_its_written_files(six_frozen: Path, tmp_path: Path) -> None:
    run(six_frozen, tmp_path / "ours", task="activity", model="chance", repetitions=1)
    arguments = ["export", "run", str(tmp_path / "ours"), "--out", str(tmp_path / "released")]
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == 0, done.output
    assert f"activity: 6 records\nwrote {tmp_path / 'released'}" in done.output
    refused = CliRunner().invoke(cli.app, arguments)
    assert refused.exit_code == 1
    assert "is there already" in refused.output


@pytest.mark.parametrize("boxes", ["xyxy/pixels", "yxyx/1", "xyxy/500"])
def test_boxes_on_any_scale_keep_their_metrics(boxes: str, six_frozen: Path, tmp_path: Path) -> None:
    run(six_frozen, tmp_path / "ours", task="grounding", model="oracle", repetitions=1, box_format=boxes)
    export_run(tmp_path / "ours", tmp_path / "released")
    import_run(tmp_path / "released", tmp_path / "again")
    first, other = (score(tmp_path / folder).results for folder in ("ours", "again"))
    assert other.model.box_format == first.model.box_format
    assert other.metrics == first.metrics
