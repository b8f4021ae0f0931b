"""Run folders of the released harness become our runs, with the release's verdicts and its scores."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from barista_bench.benchmarks import get_task, task_names
from barista_bench.cli import commands as cli
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example
from barista_bench.core.status import Status
from barista_bench.errors import BaristaError, ConfigError, DataError
from barista_bench.interchange.importing import import_run
from barista_bench.reporting import write_report
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.scoring import score
from tests.data.released_runs import GEMINI, QWEN, answered, ours, prediction, right, run_folder
from tests.one_run import run
from tests.runs.made_logs import read_folder


@pytest.mark.parametrize("name", task_names("barista"))
def test_right_answers_of_the_harness_score_one(
    name: str, six_frozen: Path, kitchen_release: Path, tmp_path: Path
) -> None:
    count = len(ours(six_frozen, name))
    made = import_run(answered(tmp_path / "theirs", six_frozen, name), tmp_path / "run", root=kitchen_release)
    assert (made.task, made.repetitions, made.unanswered, dict(made.statuses)) == (name, 1, 0, {Status.OK: count})
    shutil.rmtree(tmp_path / "theirs")  # which is not needed any more
    results = score(tmp_path / "run").results
    # The reference sentence of referring is made again from the released reference.
    least = 0.7 if name == "referring" else 1.0
    assert results.metrics[results.primary].mean >= least - 1e-9
    assert results.coverage.is_complete
    assert (results.model.name, results.generation) == ("gemini-3-flash", {"temperature": 0.7, "max_new_tokens": 4096})
    assert (results.timing.input_tokens, results.timing.output_tokens) == (1000 * count, 20 * count)
    assert results.timing.seconds == {"latency": 1.5 * count}
    assert "never kept" not in (tmp_path / "run/run.json").read_text()


def test_a_key_among_the_settings_of_a_released_run_is_not_taken_over(six_frozen: Path, tmp_path: Path) -> None:
    source = answered(tmp_path / "a", six_frozen, "activity")
    key = "sk-planted-0123456789abcdef"
    model = {"temperature": 0.5, "api_key_env": key, "base_url": f"https://me:{key}@host/v1", "project": key}
    (source / "run_config.json").write_text(json.dumps({"model": model}))
    import_run(source, tmp_path / "run")
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert any(b"0.5" in path.read_bytes() for path in files)
    assert not any(key.encode() in path.read_bytes() for path in files)


def test_an_imported_run_is_described_and_reported_like_ours(
    six_frozen: Path, kitchen_release: Path, tmp_path: Path
) -> None:
    import_run(answered(tmp_path / "a", six_frozen, "hand_object"), tmp_path / "theirs", root=kitchen_release)
    run(six_frozen, tmp_path / "ours", task="hand_object", model="oracle")
    imported, written = read_run(tmp_path / "theirs"), read_run(tmp_path / "ours")
    assert imported.identity.options == imported.options == {}
    assert [source.folder for source in imported.imported] == ["a"]
    assert written.imported == []
    for page in write_report([score(tmp_path / "theirs")], tmp_path / "report", samples=2):
        assert "gemini-3-flash" in page.read_text()


def test_every_outcome_has_its_status_and_score(six_frozen: Path, kitchen_release: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "relations")
    assert len(examples) >= 5
    answers = [get_task("barista", "relations").reference_answer(e, GEMINI) for e in examples]
    predictions = [
        prediction(examples[0], answers[0]),
        prediction(examples[1], "no idea", error="parse_error: no JSON array"),
        prediction(examples[2], None, error="provider_error: 503 overloaded"),
        prediction(examples[3], answers[3], finish_reason="FinishReason.MAX_TOKENS"),
        prediction(examples[4], "", finish_reason="SAFETY", error="parse_error: empty"),
    ]
    made = import_run(run_folder(tmp_path / "a", examples, predictions), tmp_path / "run", root=kitchen_release)
    records = {record.example_id: record for record in read_folder(tmp_path / "run")}
    statuses = [records[example.example_id].status for example in examples[:5]]
    assert statuses == [Status.OK, Status.PARSE_ERROR, Status.INFRA_ERROR, Status.TRUNCATED, Status.REFUSED]
    assert made.unanswered == len(examples) - 5

    # By the release: tuples pooled, a failure adds its reference, and so does a provider's error.
    def reference(example: Example) -> Counter[str]:
        return Counter(json.dumps(item, sort_keys=True) for item in example.target["relations"])  # type: ignore[union-attr]

    hits = sum((reference(examples[0]) + reference(examples[3])).values())
    wanted = hits + sum((reference(examples[1]) + reference(examples[2]) + reference(examples[4])).values())
    metrics = score(tmp_path / "run").results.metrics
    assert metrics["micro_precision"].mean == 1.0
    assert metrics["micro_recall"].mean == pytest.approx(hits / wanted)


def test_an_imported_verdict_of_the_release_overrides_our_parser(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "activity")
    first, second, *others = examples
    said = [right(first, error="parse_error: strict"), prediction(second, "the third one"), *map(right, others)]
    made = import_run(run_folder(tmp_path / "a", examples, said), tmp_path / "run")
    assert (made.kept_failures, made.new_failures) == ((first.example_id,), (second.example_id,))
    metrics = score(tmp_path / "run").results.metrics
    assert metrics["accuracy"].mean == pytest.approx(1 - 2 / len(examples))


@pytest.mark.parametrize(
    ("model", "provider", "box_format"),
    [
        ("gemini-3-flash", "gemini", GEMINI),
        ("gpt-5.4-mini", "openai", GEMINI),
        ("google/gemma-4-31b-it", "openai_compatible", GEMINI),
        ("Qwen/Qwen3.5-27B", "openai_compatible", QWEN),
        ("finetuned-42", "qwen", QWEN),
    ],
)
def test_boxes_are_read_in_the_order_of_the_family(
    model: str, provider: str, box_format: BoxFormat, six_frozen: Path, tmp_path: Path
) -> None:
    theirs = answered(tmp_path / "a", six_frozen, "grounding", box_format, model=model, provider=provider)
    import_run(theirs, tmp_path / "run")
    assert score(tmp_path / "run").results.metrics["map"].mean == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("params", "box_format"),
    [
        ({}, GEMINI),
        ({"bbox_format": "xyxy"}, QWEN),
        ({"bbox_format": "xyxy", "bbox_scale": 500}, BoxFormat("xyxy", 500)),
    ],
)
def test_boxes_are_read_by_the_settings_for_any_family(
    params: dict[str, Any], box_format: BoxFormat, six_frozen: Path, tmp_path: Path
) -> None:
    folder = answered(tmp_path / "a", six_frozen, "grounding", box_format, model="llava", provider="vllm")
    (folder / "run_config.json").write_text(json.dumps({"task_params": params}))
    import_run(folder, tmp_path / "run")
    assert score(tmp_path / "run").results.metrics["map"].mean > 0.9


def test_a_safety_block_that_was_read_all_the_same_counts(six_frozen: Path, tmp_path: Path) -> None:
    blocked = answered(tmp_path / "a", six_frozen, "activity", finish_reason="FinishReason.SAFETY")
    assert import_run(blocked, tmp_path / "run").statuses == {Status.OK: 6}
    assert score(tmp_path / "run").results.metrics["accuracy"].mean == 1.0


def test_an_unknown_architecture_needs_its_box_format(six_frozen: Path, tmp_path: Path) -> None:
    folder = answered(tmp_path / "a", six_frozen, "grounding", QWEN, model="llava", provider="vllm")
    with pytest.raises(ConfigError, match=r"llava.*--box-format"):
        import_run(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    import_run(folder, tmp_path / "run", box_format=QWEN)
    assert score(tmp_path / "run").results.metrics["map"].mean == pytest.approx(1.0)


def test_several_folders_are_several_runs(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "activity")
    folders = [
        answered(tmp_path / "seed1", six_frozen, "activity"),
        run_folder(tmp_path / "seed2", examples, [prediction(example, "none") for example in examples]),
    ]
    made = import_run(folders, tmp_path / "run")
    metric = score(tmp_path / "run").results.metrics["accuracy"]
    assert (made.repetitions, metric.repetitions) == (2, [1.0, 0.0])
    other = run_folder(tmp_path / "other", examples[1:], [right(example) for example in examples[1:]])
    with pytest.raises(ConfigError, match=r"other: has examples .*seed1 has"):
        import_run([folders[0], other], tmp_path / "mixed")


BROKEN: list[tuple[Callable[[list[dict[str, Any]]], object], str]] = [
    (lambda p: p.append(p[0]), "line 7: .* repeats"),
    (lambda p: p[1].update(example_id="other"), "line 2: example_id is not one of the examples'"),
    (lambda p: p[1].update(model="another"), "line 2: model is 'another'"),
    (lambda p: p[1].update(provider=None), "line 2: provider is None"),
    (lambda p: p[2].update(task_name="grounding"), "line 3: task_name is 'grounding'"),
    (lambda p: p[0].update(error="oops"), "line 1: error is neither"),
    (lambda p: p[0].update(raw_text=7), "line 1: no prediction"),
    (lambda p: p[0].pop("example_id"), "line 1: no prediction"),
    (lambda p: p.clear(), "is empty"),
    (lambda p: [r.update(task_name="grounding") for r in p], "answers grounding, its examples are of activity"),
    (lambda p: [r.update(task_name="juggling") for r in p], "no task 'juggling' of barista"),
]


@pytest.mark.parametrize(("damage", "what"), BROKEN)
def test_records_that_cannot_be_one_run_are_refused_and_nothing_is_left_behind(
    damage: Callable[[list[dict[str, Any]]], object], what: str, six_frozen: Path, tmp_path: Path
) -> None:
    examples = ours(six_frozen, "activity")
    said = [right(example) for example in examples]
    damage(said)
    folder = run_folder(tmp_path / "theirs", examples, said)
    with pytest.raises(BaristaError, match=what):
        import_run(folder, tmp_path / "out" / "run")
    assert not (tmp_path / "out").exists() or list((tmp_path / "out").iterdir()) == []


def test_a_refusal_names_every_line(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "activity")
    said = [right(example) for example in examples]
    for record in said[1:4]:
        record["model"] = "another"
    said[5]["raw_text"] = 7
    folder = run_folder(tmp_path / "theirs", examples, [*said, said[0]])
    with pytest.raises(DataError, match=r"line 2-4: model is 'another'.*line 6: no prediction.*line 7: .*repeats"):
        import_run(folder, tmp_path / "run")


@pytest.mark.parametrize(
    ("result", "what"),
    [
        ({"geval_accuracy_score": 7}, "geval_accuracy_score is neither"),
        ({"geval_accuracy_score": True}, "geval_accuracy_score is neither"),
        ({"geval_accuracy_score": 0.7, "geval_accuracy_reason": None}, "geval_accuracy_reason is not text"),
    ],
)
def test_scores_of_no_judge_are_refused(result: dict[str, Any], what: str, six_frozen: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"line 1-6: task_result.{what}"):
        import_run(answered(tmp_path / "a", six_frozen, "temporal_vqa", task_result=result), tmp_path / "run")


def test_files_that_are_missing_are_named(six_frozen: Path, tmp_path: Path) -> None:
    folder = answered(tmp_path / "theirs", six_frozen, "activity")
    frozen = folder / "benchmark_examples.jsonl"
    frozen.rename(tmp_path / "elsewhere.jsonl")
    with pytest.raises(DataError, match=r"benchmark_examples.jsonl: missing"):
        import_run(folder, tmp_path / "run")
    assert import_run(folder, tmp_path / "run", examples=tmp_path / "elsewhere.jsonl").task == "activity"
    with pytest.raises(ConfigError, match="is there already"):
        import_run(folder, tmp_path / "run", examples=tmp_path / "elsewhere.jsonl")


def test_the_command_takes_several_folders_and_reports_its_findings(six_frozen: Path, tmp_path: Path) -> None:
    family = {"model": "llava", "provider": "vllm"}
    folders = [str(answered(tmp_path / name, six_frozen, "grounding", QWEN, **family)) for name in ("one", "two")]
    arguments = ["run", "import", *folders, "--out", str(tmp_path / "run")]
    refused = CliRunner().invoke(cli.app, arguments)
    assert refused.exit_code == 1
    assert "--box-format" in refused.output
    assert CliRunner().invoke(cli.app, [*arguments, "--box-format", "xy"]).exit_code == 1
    done = CliRunner().invoke(cli.app, [*arguments, "--box-format", "xyxy/1000"])
    assert done.exit_code == 0, done.output
    assert "grounding: 2 repetition(s), ok 12, 0 without a record" in done.output
    scored = CliRunner().invoke(cli.app, ["score", str(tmp_path / "run")])
    assert "map 1.000 ± 0.000 over 2 repetition(s)" in scored.output


def test_absurd_counts_of_tokens_are_left_out_of_the_sums(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "activity")
    absurd = [{"input_tokens": 10**30, "output_tokens": 7}, {"input_tokens": 5, "output_tokens": -3}]
    said = [right(example, usage=usage) for example, usage in zip(examples[1::-1], absurd, strict=True)]
    import_run(run_folder(tmp_path / "a", examples, said), tmp_path / "run")
    scored = score(tmp_path / "run")
    names = [sample.example.example_id for sample in scored.samples]
    assert names == [record["example_id"] for record in said], "samples keep the order of the records"
    timing = scored.results.timing
    assert (timing.input_tokens, timing.output_tokens) == (5, 7)


@pytest.mark.parametrize(
    ("file", "content", "what"),
    [
        *(
            ("run_config.json", {"model": {name: value}}, f"run_config.json: .*model.{name}")
            for name in ("temperature", "max_output_tokens")
            for value in (float("nan"), float("-inf"), 10**400)
        ),
        *(
            ("run_config.json", {"task_params": params}, r"run_config.json: .*task_params.bbox_(format|scale)")
            for params in ({"bbox_format": "zyxw"}, {"bbox_scale": 0}, {"bbox_scale": "1000"})
        ),
        ("run_config.json", '{"model": {"temperature": 1e999}}', "run_config.json: .*model.temperature"),
        ("metrics.json", {"wall_clock_ms": "soon"}, r"metrics.json: .*wall_clock_ms"),
        ("metrics.json", [], r"metrics.json: is not an object"),
        ("run_config.json", {"model": []}, r"run_config.json: .*model"),
        ("run_config.json", {"task_params": {"geval_criteria": "all"}}, r"run_config.json: .*geval_criteria"),
        ("run_config.json", {"task_params": {"judge_model": 7}}, r"run_config.json: .*judge_model"),
    ],
)
def test_files_beside_records_are_checked(
    file: str, content: object, what: str, six_frozen: Path, tmp_path: Path
) -> None:
    folder = answered(tmp_path / "a", six_frozen, "grounding")
    (folder / file).write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(DataError, match=f"{what}.*Fix"):
        import_run(folder, tmp_path / "run")


def test_files_that_lack_almost_everything_are_taken(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "activity")
    keys = ("example_id", "task_name", "model", "raw_text")
    bare = [{key: record[key] for key in keys} for record in map(right, examples)]
    folder = run_folder(tmp_path / "a", examples, bare)
    for file in ("metrics.json", "run_config.json"):
        (folder / file).write_text("{}")
    (folder / "summary.txt").write_text("")
    made = import_run(folder, tmp_path / "run", box_format=GEMINI)
    assert made.statuses == {Status.OK: 6}
