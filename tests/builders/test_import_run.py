"""Run folders of the released harness become runs of ours, with the release's verdicts and its scores."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from barista_bench import cli
from barista_bench.benchmarks import get_task, task_names
from barista_bench.builders.frozen import read_frozen
from barista_bench.errors import BaristaError, ConfigError, DataError
from barista_bench.prompt import BoxFormat
from barista_bench.reporting import write_report
from barista_bench.running.imported import import_run
from barista_bench.running.log import read_folder
from barista_bench.running.run_folder import read_run
from barista_bench.running.runner import run
from barista_bench.running.scoring import score
from barista_bench.task import Example, Status
from tests.builders.released_files import UPSTREAM_NAMES, released_record, write_records

GEMINI, QWEN = BoxFormat("yxyx", 1000), BoxFormat("xyxy", 1000)


def ours(folder: Path, name: str) -> list[Example]:
    return list(read_frozen(folder / f"frozen/{name}.jsonl"))


def prediction(example: Example, text: str | None, **changes: Any) -> dict[str, Any]:
    return {
        "example_id": example.example_id,
        "task_name": UPSTREAM_NAMES[example.task],
        "model": "gemini-3-flash",
        "provider": "gemini",
        "raw_text": text,
        "error": None,
        "latency_ms": 1500.0,
        "usage": {"input_tokens": 1000, "output_tokens": 20, "thinking_tokens": 5},
        "metadata": {},
        "task_result": None,
        "label": example.label,
        "finish_reason": "STOP",
        "provider_response_id": "abc",
        "prompt_text": "asked in their words",
        **changes,
    }


def run_folder(path: Path, examples: list[Example], predictions: list[dict[str, Any]]) -> Path:
    path.mkdir(parents=True)
    write_records(path / "benchmark_examples.jsonl", map(released_record, examples))
    write_records(path / "predictions.jsonl", predictions)
    settings = {"provider_config": {"temperature": 0.7, "max_output_tokens": 4096}, "api_key": "never kept"}
    (path / "run_config.json").write_text(json.dumps(settings))
    return path


def right(example: Example, boxes: BoxFormat = GEMINI, **changes: Any) -> dict[str, Any]:
    return prediction(example, get_task("barista", example.task).reference_answer(example, boxes), **changes)


@pytest.mark.parametrize("name", task_names("barista"))
def test_right_answers_of_the_released_harness_score_one(
    name: str, six_frozen: Path, kitchen_release: Path, tmp_path: Path
) -> None:
    examples = ours(six_frozen, name)
    folder = run_folder(tmp_path / "theirs", examples, [right(example) for example in examples])
    made = import_run(folder, tmp_path / "run", root=kitchen_release)
    assert (made.task, made.runs, made.unanswered, dict(made.statuses)) == (name, 1, 0, {Status.OK: len(examples)})
    results = score(tmp_path / "run").results
    # The sentence that referring is compared with is made anew from the released reference.
    least = 0.7 if name == "referring" else 1.0
    assert results.figures[results.primary].mean >= least - 1e-9
    assert results.coverage.complete
    assert (results.model.name, results.generation) == ("gemini-3-flash", {"temperature": 0.7, "max_new_tokens": 4096})
    assert (results.timing.input_tokens, results.timing.output_tokens) == (1000 * len(examples), 20 * len(examples))
    assert results.timing.seconds == {"latency": 1.5 * len(examples)}
    assert "never kept" not in (tmp_path / "run/run.json").read_text()


def test_an_imported_run_is_described_as_a_run_of_ours(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "activity")
    import_run(run_folder(tmp_path / "a", examples, [right(example) for example in examples]), tmp_path / "theirs")
    run(six_frozen, tmp_path / "ours", task="activity", model="oracle")
    imported, own = read_run(tmp_path / "theirs"), read_run(tmp_path / "ours")
    assert imported["identity"].keys() == own["identity"].keys()
    assert imported["identity"]["options"] == imported["options"] == {}
    assert imported.keys() - own.keys() == {"imported"}
    assert own.keys() - imported.keys() == {"prices"}


def test_every_outcome_gets_its_status_and_scores_as_released(
    six_frozen: Path, kitchen_release: Path, tmp_path: Path
) -> None:
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
    found = [records[example.example_id].status for example in examples[:5]]
    assert found == [Status.OK, Status.PARSE_ERROR, Status.INFRA_ERROR, Status.TRUNCATED, Status.REFUSED]
    assert made.unanswered == len(examples) - 5

    # By the release: tuples pooled, a failure adds its truth; infrastructure is left out (our one departure).
    def truth(example: Example) -> Counter[str]:
        return Counter(json.dumps(item, sort_keys=True) for item in example.target["relations"])  # type: ignore[union-attr]

    hits = sum((truth(examples[0]) + truth(examples[3])).values())
    wanted = hits + sum((truth(examples[1]) + truth(examples[4])).values())
    figures = score(tmp_path / "run").results.figures
    assert figures["micro_precision"].mean == 1.0
    assert figures["micro_recall"].mean == pytest.approx(hits / wanted)


def test_a_verdict_of_the_release_stands_where_our_parser_is_kinder(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "activity")
    said = [right(examples[0], error="parse_error: strict"), *map(right, examples[1:])]
    made = import_run(run_folder(tmp_path / "a", examples, said), tmp_path / "run")
    assert made.kept_failures == (examples[0].example_id,)
    figures = score(tmp_path / "run").results.figures
    assert figures["accuracy"].mean == pytest.approx(1 - 1 / len(examples))


def test_an_answer_that_only_the_release_could_read_is_named(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "activity")
    said = [prediction(examples[0], "the third one"), *map(right, examples[1:])]
    made = import_run(run_folder(tmp_path / "a", examples, said), tmp_path / "run")
    assert made.new_failures == (examples[0].example_id,)


@pytest.mark.parametrize(
    ("model", "provider", "boxes"),
    [
        ("gemini-3-flash", "gemini", GEMINI),
        ("gpt-5.4-mini", "openai", GEMINI),
        ("google/gemma-4-31b-it", "openai_compatible", GEMINI),
        ("Qwen/Qwen3.5-27B", "openai_compatible", QWEN),
        ("finetuned-42", "qwen", QWEN),
    ],
)
def test_boxes_are_read_in_the_order_of_the_family(
    model: str, provider: str, boxes: BoxFormat, six_frozen: Path, tmp_path: Path
) -> None:
    examples = ours(six_frozen, "grounding")
    said = [right(example, boxes, model=model, provider=provider) for example in examples]
    import_run(run_folder(tmp_path / "a", examples, said), tmp_path / "run")
    assert score(tmp_path / "run").results.figures["map"].mean == pytest.approx(1.0)


def test_an_unknown_family_needs_its_box_format_said(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "grounding")
    said = [right(example, QWEN, model="llava", provider="vllm") for example in examples]
    folder = run_folder(tmp_path / "a", examples, said)
    with pytest.raises(ConfigError, match=r"llava.*--box-format"):
        import_run(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    import_run(folder, tmp_path / "run", box_format=QWEN)
    assert score(tmp_path / "run").results.figures["map"].mean == pytest.approx(1.0)


def test_several_folders_are_several_runs(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "activity")
    folders = [
        run_folder(tmp_path / "seed1", examples, [right(example) for example in examples]),
        run_folder(tmp_path / "seed2", examples, [prediction(example, "none") for example in examples]),
    ]
    made = import_run(folders, tmp_path / "run")
    figure = score(tmp_path / "run").results.figures["accuracy"]
    assert (made.runs, figure.runs) == (2, [1.0, 0.0])
    other = run_folder(tmp_path / "other", examples[1:], [right(example) for example in examples[1:]])
    with pytest.raises(ConfigError, match=r"other: has content_hash .*seed1 has"):
        import_run([folders[0], other], tmp_path / "mixed")


@pytest.mark.usefixtures("undrawn")
def test_an_imported_run_is_reported(six_frozen: Path, kitchen_release: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "hand_object")
    folder = run_folder(tmp_path / "theirs", examples, [right(example) for example in examples])
    import_run(folder, tmp_path / "run", root=kitchen_release)
    html, markdown = write_report([score(tmp_path / "run")], tmp_path / "report", samples=2)
    assert "gemini-3-flash" in markdown.read_text()
    assert "gemini-3-flash" in html.read_text()


def test_a_new_folder_needs_nothing_of_the_old_one(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "activity")
    folder = run_folder(tmp_path / "theirs", examples, [right(example) for example in examples])
    import_run(folder, tmp_path / "run")
    for file in folder.iterdir():
        file.unlink()
    assert score(tmp_path / "run").results.figures["accuracy"].mean == 1.0


BROKEN: list[tuple[Callable[[list[dict[str, Any]]], object], str]] = [
    (lambda p: p.append(p[0]), "line 7: .* repeats"),
    (lambda p: p[1].update(example_id="other"), "line 2: 'other' is none of the examples"),
    (lambda p: p[1].update(model="another"), "line 2: model is 'another'"),
    (lambda p: p[1].update(provider=None), "line 2: provider is None"),
    (lambda p: p[2].update(task_name="grounding"), "line 3: task_name is 'grounding'"),
    (lambda p: p[0].update(error="oops"), "line 1: error is 'oops'"),
    (lambda p: p[0].update(raw_text=7), "line 1: no prediction"),
    (lambda p: p[0].pop("example_id"), "line 1: no prediction"),
    (lambda p: p.clear(), "is empty"),
    (lambda p: [one.update(task_name="grounding") for one in p], "answers grounding, its examples are of activity"),
    (lambda p: [one.update(task_name="juggling") for one in p], "no task 'juggling' of barista"),
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


def test_files_that_are_missing_are_named(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "activity")
    folder = run_folder(tmp_path / "theirs", examples, [right(example) for example in examples])
    frozen = folder / "benchmark_examples.jsonl"
    frozen.rename(tmp_path / "elsewhere.jsonl")
    with pytest.raises(DataError, match=r"benchmark_examples.jsonl: missing"):
        import_run(folder, tmp_path / "run")
    assert import_run(folder, tmp_path / "run", examples=tmp_path / "elsewhere.jsonl").task == "activity"
    with pytest.raises(ConfigError, match="is there already"):
        import_run(folder, tmp_path / "run", examples=tmp_path / "elsewhere.jsonl")


def test_the_command_takes_several_folders_and_says_what_it_found(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "grounding")
    said = [right(example, QWEN, model="llava", provider="vllm") for example in examples]
    folders = [str(run_folder(tmp_path / name, examples, said)) for name in ("one", "two")]
    arguments = ["import-run", *folders, "--out", str(tmp_path / "run")]
    refused = CliRunner().invoke(cli.app, arguments)
    assert refused.exit_code == 1
    assert "--box-format" in refused.output
    assert CliRunner().invoke(cli.app, [*arguments, "--box-format", "xy"]).exit_code == 1
    done = CliRunner().invoke(cli.app, [*arguments, "--box-format", "xyxy/1000"])
    assert done.exit_code == 0, done.output
    assert f"grounding: 2 run(s), ok {2 * len(examples)}, 0 without a record" in done.output
    scored = CliRunner().invoke(cli.app, ["score", str(tmp_path / "run")])
    assert "map 1.000 ± 0.000 over 2 run(s)" in scored.output


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", "9" * 400])
@pytest.mark.parametrize("name", ["temperature", "max_output_tokens"])
def test_settings_that_are_no_usual_numbers_are_refused(
    name: str, value: str, six_frozen: Path, tmp_path: Path
) -> None:
    examples = ours(six_frozen, "activity")
    folder = run_folder(tmp_path / "a", examples, [right(example) for example in examples])
    (folder / "run_config.json").write_text(f'{{"provider_config": {{"{name}": {value}}}}}')
    with pytest.raises(DataError, match=rf"run_config.json: {name} .*Remedy"):
        import_run(folder, tmp_path / "run")


def test_absurd_counts_of_tokens_are_left_out_of_the_sums(six_frozen: Path, tmp_path: Path) -> None:
    examples = ours(six_frozen, "activity")
    absurd = [{"input_tokens": 10**30, "output_tokens": 7}, {"input_tokens": 5, "output_tokens": -3}]
    said = [right(example, usage=usage) for example, usage in zip(examples[:2], absurd, strict=True)]
    import_run(run_folder(tmp_path / "a", examples, said), tmp_path / "run")
    timing = score(tmp_path / "run").results.timing
    assert (timing.input_tokens, timing.output_tokens) == (5, 7)
