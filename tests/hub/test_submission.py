"""From run folders to rows: what is published, and what never is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.checks import ABLATIONS, BASELINES
from barista_bench.hub.files import all_files
from barista_bench.hub.submission import Submission, make_submission
from barista_bench.judging.results import JudgeInfo
from barista_bench.running.results import Results
from tests.hub.made_results import DATASET, HASH, MODEL, TARGET, figure, judged, results, run_folder
from tests.running.test_diff import DESCRIBED

LOCAL_JUDGE = JudgeInfo(name="/home/me/models/judge-8b", revision=None, settings={})
EVAL_RESULTS_SCHEMA = {
    # Transcribed from the Hub's documentation of `.eval_results`, apart from our own models.
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["dataset", "value"],
        "additionalProperties": False,
        "properties": {
            "dataset": {
                "type": "object",
                "required": ["id", "task_id"],
                "additionalProperties": False,
                "properties": {k: {"type": "string"} for k in ("id", "task_id", "revision")},
            },
            "value": {"type": "number"},
            "verifyToken": {"type": "string"},
            "date": {"type": "string"},
            "source": {
                "type": "object",
                "required": ["url"],
                "additionalProperties": False,
                "properties": {k: {"type": "string"} for k in ("url", "name", "user", "org")},
            },
            "notes": {"type": "string"},
        },
    },
}
EVAL_FILE_SCHEMA = {
    "type": "object",
    "required": ["name", "description", "evaluation_framework", "tasks"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "description": {"type": "string"},
        "evaluation_framework": {"type": "string"},
        "tasks": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["id"],
                "additionalProperties": False,
                "properties": {k: {"type": "string"} for k in ("id", "config", "split")},
            },
        },
    },
}


def made(tmp_path: Path, *runs: Results, **options: Any) -> Submission:
    folders = [run_folder(tmp_path / "runs", run, name=str(number)) for number, run in enumerate(runs)]
    return make_submission(folders, {**TARGET, **options.pop("target", {})}, **options)


# ------------------------------------------------------------------------------------------------ what is published


def test_what_is_written_keeps_to_the_documented_schemas_and_the_hub_client_reads_it(tmp_path: Path) -> None:
    target = {"date": "2026-11-21T10:30:00Z", "source_url": "https://example.org/runs", "source_name": "Runs"}
    target["dataset_revision"] = "1" * 40
    files = all_files(made(tmp_path, results(), results("grounding", (0.12346,), None), target=target))

    entries = yaml.safe_load(files.model[".eval_results/barista.yaml"])
    jsonschema.validate(entries, EVAL_RESULTS_SCHEMA)
    read = {one.task_id: one for one in parse_eval_result_entries(entries)}
    assert {name: one.value for name, one in read.items()} == {"relations": 42.0, "grounding": 12.35}
    assert read["relations"].dataset_id == DATASET
    assert read["relations"].dataset_revision == "1" * 40
    assert read["relations"].date == "2026-11-21T10:30:00Z"
    assert read["relations"].source_url == "https://example.org/runs"

    card = ModelCard(files.model["README.md"].decode(), ignore_metadata_errors=False)
    index = {(r.dataset_config, r.dataset_split, r.metric_type): r.metric_value for r in card.data.eval_results or ()}
    assert index == {("relations", "train+test", "micro_f1"): 42.0, ("grounding", "train+test", "map"): 12.35}

    dataset = yaml.safe_load(files.dataset["eval.yaml"])  # type: ignore[arg-type]
    jsonschema.validate(dataset, EVAL_FILE_SCHEMA)
    told = {task["id"]: (task["config"], task["split"]) for task in dataset["tasks"]}
    assert {"relations", "grounding"} <= set(told)
    assert told["relations"] == ("relations", "train+test")
    assert told["relations_test"] == ("relations", "test")
    assert len(told) == 2 * len(BENCHMARKS["barista"].tasks)


def test_notes_hold_interval_runs_coverage_protocol_and_content_hash(tmp_path: Path) -> None:
    (entry,) = made(tmp_path, results()).eval_results().root
    for part in ("95% interval 40 to 44", "3 run(s), sd 1", "300/300 samples scored", "protocol release", HASH):
        assert part in str(entry.notes)
    assert "INCOMPLETE" not in str(entry.notes)
    assert "NON-RELEASE" not in str(entry.notes)


def test_another_protocol_and_another_split_have_boards_of_their_own_and_are_marked(tmp_path: Path) -> None:
    found = made(tmp_path, results(), results(split="test"), results(protocol="paper")).eval_results().root
    told = {one.dataset.task_id: str(one.notes) for one in found}
    assert set(told) == {"relations", "relations_test", "relations_paper"}
    assert told["relations_paper"].startswith("NON-RELEASE PROTOCOL paper")


def test_a_judges_figure_stands_for_a_lexical_floor(tmp_path: Path) -> None:
    floor = results("referring", (0.9, 0.9, 0.9))
    folder = run_folder(tmp_path, floor, judged(floor), judged(floor, "lexical", 0.9))
    submission = make_submission([folder], TARGET)
    (entry,) = submission.eval_results().root
    assert entry.value == 61.0
    assert "maker/judge" in str(entry.notes)
    files = all_files(submission)
    assert b"lexical" not in files.model["README.md"] + files.model[".eval_results/barista.yaml"]


def test_published_results_name_the_repository_and_hold_no_addresses_prices_or_paths(tmp_path: Path) -> None:
    settings = {"dtype": "float16", "base_url": "https://inner.example", "extra_body": '{"user": "me"}'}
    floor = results("referring", model="served:/home/me/fruit", settings=settings)
    folder = run_folder(tmp_path, floor, judged(floor))
    files = all_files(make_submission([folder], {**TARGET, "model_name": "served:/home/me/fruit"}))
    text = b"".join(files.results.values()) + b"".join(files.model.values())
    for private in (b"inner.example", b"extra_body", b"/home/me", b"judge.example", b"12.5", b"3.5"):
        assert private not in text
    told = json.loads(files.results[f"results/{MODEL}/referring/results.json"])
    assert told["model"]["name"] == MODEL
    assert told["model"]["settings"] == {"dtype": "float16"}
    assert json.loads(files.results[f"results/{MODEL}/referring/judged.json"])["model"] == MODEL


def test_the_folder_of_a_local_judge_is_not_published(tmp_path: Path) -> None:
    floor = results("referring")
    folder = run_folder(tmp_path, floor, judged(floor).model_copy(update={"judge": LOCAL_JUDGE}), name="local")
    files = all_files(make_submission([folder], TARGET))
    text = b"".join(files.results.values()) + b"".join(files.model.values())
    assert b"/home/me" not in text
    assert b"by judge-8b," in text


def test_text_that_is_too_long_for_the_hub_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"submission: notes: .*at most.*Remedy"):
        made(tmp_path, broken(results(), barista_bench="9" * 2000)).eval_results()


def test_an_incomplete_run_is_taken_when_told_and_says_so(tmp_path: Path) -> None:
    (entry,) = made(tmp_path, results(missing=7), allow_incomplete=True).eval_results().root
    assert str(entry.notes).startswith("INCOMPLETE: 7 of 300 samples missing")


# ------------------------------------------------------------------------------------------------ what is refused


def test_incomplete_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"results.json: coverage: 293 of 300 .*Remedy.*--allow-incomplete"):
        made(tmp_path, results(missing=7))


def test_a_run_cut_by_limit_is_refused_and_marked_when_allowed(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    described = {**DESCRIBED, "data": {"path": "barista", "root": None, "limit": 10}}
    (folder / "run.json").write_text(json.dumps(described))
    with pytest.raises(DataError, match=r"run.json: data.limit: only 10 examples.*Remedy"):
        make_submission([folder], TARGET)
    (entry,) = make_submission([folder], TARGET, allow_incomplete=True).eval_results().root
    assert str(entry.notes).startswith("INCOMPLETE: cut to 10 examples")


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_baselines_are_no_models(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"model.name: .* is a baseline.*Remedy"):
        made(tmp_path, results(model=name), target={"model_name": name})


@pytest.mark.parametrize("name", sorted(ABLATIONS))
def test_ablations_are_no_models(tmp_path: Path, name: str) -> None:
    full = f"{name}:{MODEL}"
    with pytest.raises(DataError, match=r"sees less than the task shows.*Remedy"):
        made(tmp_path, results(model=full), target={"model_name": full})


def test_the_names_of_baselines_and_ablations_are_those_of_the_runner() -> None:
    from barista_bench.models import ablations
    from barista_bench.running import model_names

    assert {*model_names.SCRIPTED, "tiny"} == BASELINES
    assert set(ablations.ABLATIONS) == ABLATIONS


def test_a_floor_without_a_judge_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"lexical_f1 counts shared words.*Remedy.*judge"):
        made(tmp_path, results("temporal_vqa"))


@pytest.mark.parametrize("judge", ["lexical", "oracle", "tiny"])
def test_a_judge_that_reads_nothing_is_refused(tmp_path: Path, judge: str) -> None:
    floor = results("referring")
    folder = run_folder(tmp_path, floor, judged(floor, judge))
    for wanted in (None, judge):
        with pytest.raises(DataError, match=r"judge.name: .* no number to publish.*Remedy"):
            make_submission([folder], TARGET, judge=wanted)


def test_two_judges_need_a_choice(tmp_path: Path) -> None:
    floor = results("referring")
    folder = run_folder(tmp_path, floor, judged(floor), judged(floor, "other/judge", 0.2))
    with pytest.raises(DataError, match=r"several judges. Remedy: give --judge, one of maker--judge, other--judge"):
        make_submission([folder], TARGET)
    (entry,) = make_submission([folder], TARGET, judge="other/judge").eval_results().root
    assert entry.value == 20.0
    with pytest.raises(DataError, match=r"has no judge 'nobody'.*Remedy"):
        make_submission([folder], TARGET, judge="nobody")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "garden/other"}, "model: "),
        ({"model_revision": "9" * 40}, "model_revision: "),
        ({"runs": 1}, "runs: "),
        ({"figures": {}}, "no usable verdict"),
    ],
)
def test_verdicts_on_other_answers_are_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    floor = results("referring")
    folder = run_folder(tmp_path, floor, judged(floor, **changes))
    with pytest.raises(DataError, match=rf"judges/maker--judge/results.json: .*{said}.*Remedy.*judge"):
        make_submission([folder], TARGET)


def test_missing_verdicts_are_refused_and_marked_when_allowed(tmp_path: Path) -> None:
    floor = results("referring")
    folder = run_folder(tmp_path, floor, judged(floor, unjudged=30))
    with pytest.raises(DataError, match=r"270 of 300 answers are judged.*Remedy"):
        make_submission([folder], TARGET)
    (entry,) = make_submission([folder], TARGET, allow_incomplete=True).eval_results().root
    assert str(entry.notes).startswith("INCOMPLETE: 30 of 300 answers not judged")


def test_results_of_another_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"model.name: is 'garden/other', not 'garden/fruit-8b'.*Remedy.*--model-name"):
        made(tmp_path, results(model="garden/other"))
    assert made(tmp_path / "told", results(model="/ckpt/7"), target={"model_name": "/ckpt/7"}).rows


@pytest.mark.parametrize("name", [f"served:{MODEL}", f"sam3:{MODEL}", f"predictions:{MODEL}", MODEL.upper()])
def test_a_model_is_known_however_it_was_run(tmp_path: Path, name: str) -> None:
    assert made(tmp_path, results(model=name)).rows


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"revision": "9" * 40}, "model.revision: differs"),
        ({"settings": {"dtype": "float16"}}, "model.settings: differs"),
        ({"model": f"served:{MODEL}"}, "model.name: differs"),
    ],
)
def test_runs_of_different_models_are_refused_together(tmp_path: Path, second: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=rf"{said}.*Remedy"):
        made(tmp_path, results(), results("grounding", **second))


def test_one_leaderboard_has_one_value(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"relations stands in .*/0 already.*Remedy"):
        made(tmp_path, results(), results(values=(0.9, 0.9, 0.9)))


def broken(results: Results, **changes: Any) -> Results:
    return results.model_copy(update=changes)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (broken(results(), figures={}), "lacks the primary figure"),
        (broken(results(), figures={"micro_f1": figure([42.0, 43.0, 41.0])}), "outside 0 to 1"),
        (
            broken(results(), figures={"micro_f1": figure([0.4, 0.4]).model_copy(update={"mean": 0.9})}),
            "not the mean of its runs",
        ),
        (broken(results(), figures={"micro_f1": figure([0.4] * 3, 0.5, 0.3)}), "interval"),
        (broken(results(), figures={"micro_f1": figure([0.4] * 5)}), "values of 5 runs out of 3"),
        (broken(results(), runs=4), "coverage.expected: is 300"),
        (broken(results(), primary="accuracy", figures={"accuracy": figure([0.4] * 3)}), "task_version"),
        (results(content_hash="no hash"), "content_hash: is no SHA-256"),
        (
            broken(results(), coverage=results().coverage.model_copy(update={"answered": 301})),
            "301 answered of 300",
        ),
    ],
)
def test_results_that_contradict_themselves_are_refused(tmp_path: Path, run: Results, said: str) -> None:
    with pytest.raises(DataError, match=rf"results.json: .*{said}.*Remedy"):
        made(tmp_path, run)


def test_results_of_an_older_task_version_are_refused(tmp_path: Path) -> None:
    old = results()
    old = broken(old, dataset=old.dataset.model_copy(update={"task_version": 0}))
    with pytest.raises(DataError, match=r"task_version: was scored as version 0.*Remedy"):
        made(tmp_path, old)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no results here"),
        (b"{", "JSON"),
        (b'{"schema_version": 1}', "Field required"),
        (b"[" * 10_000, "Invalid"),
    ],
)
def test_a_folder_without_readable_results_is_refused(tmp_path: Path, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / "results.json").write_bytes(content)
    with pytest.raises(DataError, match=rf"results.json: .*{said}.*Remedy"):
        make_submission([tmp_path], TARGET)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({"model_repo": "fruit-8b"}, "model_repo.*namespace/name"),
        ({"model_repo": "a/../../etc"}, "model_repo"),
        ({"dataset_repo": "garden/BAR ISTA"}, "dataset_repo"),
        ({"dataset_revision": "main"}, "dataset_revision"),
        ({"date": "yesterday"}, "date.*ISO 8601"),
        ({"source_url": "ftp://example.org"}, "source_url"),
    ],
)
def test_a_target_that_cannot_be_is_refused(tmp_path: Path, target: dict[str, str], said: str) -> None:
    with pytest.raises(DataError, match=rf"submission: {said}.*Remedy"):
        made(tmp_path, results(), target=target)


def test_a_source_without_an_address_and_no_run_at_all_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--source-url"):
        made(tmp_path, results(), target={"source_name": "Somebody"}).eval_results()
    with pytest.raises(ConfigError, match="no run to submit"):
        make_submission([], TARGET)


def test_a_task_that_this_package_lacks_is_refused(tmp_path: Path) -> None:
    told = results()
    told = broken(told, dataset=told.dataset.model_copy(update={"task": "juggling"}))
    with pytest.raises(ConfigError, match=r"no task 'juggling' of barista.*Remedy"):
        made(tmp_path, told)
