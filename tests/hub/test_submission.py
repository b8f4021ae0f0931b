"""From run folders to rows: the published values, and those that are never published."""

import json
from typing import Any

import jsonschema
import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries

from barista_bench.core.model_names import ABLATIONS, BASELINES
from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.files import all_files
from barista_bench.hub.submission import Submission, make_submission
from barista_bench.runs.score.results import Results
from tests.hub.made_results import DATASET, HASH, MODEL, TARGET, judged, metric, results, row, submission

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


def made(*runs: Results, allow_incomplete: bool = False, **target: str) -> Submission:
    return submission(*map(row, runs), allow_incomplete=allow_incomplete, **target)


def test_the_written_files_keep_the_documented_schemas_and_the_hub_client_reads_them() -> None:
    target = {"date": "2026-11-21T10:30:00Z", "source_url": "https://example.org/runs", "source_name": "Runs"}
    target["dataset_revision"] = "1" * 40
    files = all_files(made(results(), results("grounding", (0.12346,), None), **target))

    entries = yaml.safe_load(files.model[".eval_results/barista.yaml"])
    jsonschema.validate(entries, EVAL_RESULTS_SCHEMA)
    read = {entry.task_id: entry for entry in parse_eval_result_entries(entries)}
    assert {name: entry.value for name, entry in read.items()} == {"relations": 42.0, "grounding": 12.35}
    assert read["relations"].dataset_id == DATASET
    assert read["relations"].dataset_revision == "1" * 40
    assert read["relations"].date == "2026-11-21T10:30:00Z"
    assert read["relations"].source_url == "https://example.org/runs"

    card = ModelCard(files.model["README.md"].decode(), ignore_metadata_errors=False)
    index = {(r.dataset_config, r.dataset_split, r.metric_type): r.metric_value for r in card.data.eval_results or ()}
    assert index == {("relations", "train+test", "micro_f1"): 42.0, ("grounding", "train+test", "map"): 12.35}


def test_notes_hold_interval_runs_coverage_protocol_and_content_hash() -> None:
    (entry,) = made(results()).eval_results().root
    for part in ("95% interval 40 to 44", "3 repetition(s), sd 1", "300/300 samples scored", "protocol release", HASH):
        assert part in str(entry.notes)
    assert "INCOMPLETE" not in str(entry.notes)
    assert "NON-RELEASE" not in str(entry.notes)


def test_another_protocol_wording_or_split_has_separate_boards_and_is_marked() -> None:
    others = (results(split="test"), results(protocol="paper"), results(wording="release@4086ce5"))
    entries = made(results(), *others).eval_results().root
    notes = {entry.dataset.task_id: str(entry.notes) for entry in entries}
    assert set(notes) == {"relations", "relations_test", "relations_paper", "relations_release-4086ce5"}
    assert "split all, wording ours v2" in notes["relations"]
    assert "wording release@4086ce5" in notes["relations_release-4086ce5"]
    assert notes["relations_paper"].startswith("NON-RELEASE PROTOCOL paper")


def test_a_judges_metric_replaces_a_lexical_floor() -> None:
    floor = results("referring", (0.9, 0.9, 0.9))
    made_of_one = submission(row(floor, judged(floor)))
    (entry,) = made_of_one.eval_results().root
    assert entry.value == 61.0
    assert "maker/judge" in str(entry.notes)
    files = all_files(made_of_one)
    assert b"lexical" not in files.model["README.md"] + files.model[".eval_results/barista.yaml"]


def test_published_results_name_the_repository_and_hold_no_addresses_prices_or_paths() -> None:
    settings = {"dtype": "float16", "base_url": "https://inner.example", "extra_body": '{"user": "me"}'}
    floor = results("referring", model="served:/home/me/fruit", settings=settings)
    judge = judged(floor, "/home/me/models/judge-8b")
    files = all_files(submission(row(floor, judge), model_name="served:/home/me/fruit"))
    text = b"".join(files.results.values()) + b"".join(files.model.values())
    assert b"by judge-8b," in text
    for private in (b"inner.example", b"extra_body", b"/home/me", b"judge.example", b"12.5", b"3.5"):
        assert private not in text
    written = json.loads(files.results[f"results/{MODEL}/referring/results.json"])
    assert written["model"]["name"] == MODEL
    assert written["model"]["settings"] == {"dtype": "float16"}
    assert json.loads(files.results[f"results/{MODEL}/referring/judged.json"])["model"] == MODEL


def test_an_option_that_is_a_path_of_this_machine_is_refused() -> None:
    with pytest.raises(DataError, match=r"options.encoder: '/home/me/mpnet' is a path of this machine.*Fix"):
        made(results("grounding", options={"encoder": "/home/me/mpnet"}))
    files = all_files(made(results("grounding", options={"encoder": "garden/mpnet"})))
    assert b"garden/mpnet" in b"".join(files.results.values())


def test_text_that_is_too_long_for_the_hub_is_refused() -> None:
    with pytest.raises(DataError, match=r"submission: notes: .*at most.*Fix"):
        made(broken(results(), barista_bench="9" * 2000)).eval_results()


FLOOR = results("referring")
INCOMPLETE = {
    "7 of 300 samples missing": (row(results(missing=7)), "Fix.*--allow-incomplete"),
    "cut to 10 examples": (row(results(limit=10)), "Fix: run without --limit"),
    "30 of 300 answers not judged": (row(FLOOR, judged(FLOOR, unjudged=30)), "Fix: finish `barista-bench judge`"),
}


@pytest.mark.parametrize("said", INCOMPLETE)
def test_incomplete_runs_are_refused_and_marked_when_allowed(said: str) -> None:
    part, remedy = INCOMPLETE[said]
    assert part.gaps
    with pytest.raises(DataError, match=f"{said}.*{remedy}"):
        submission(part)
    (entry,) = submission(part, allow_incomplete=True).eval_results().root
    assert str(entry.notes).startswith(f"INCOMPLETE: {said}")


NO_MODELS = dict.fromkeys(sorted(BASELINES), "model.name: .* is a baseline")
NO_MODELS |= {f"{name}:{MODEL}": "sees less than the task shows" for name in sorted(ABLATIONS)}
NO_MODELS |= {"human:anna": "model.name: 'human:anna' is a person"}


@pytest.mark.parametrize(("name", "said"), NO_MODELS.items(), ids=NO_MODELS)
def test_baselines_ablations_and_people_are_not_submitted_as_models(name: str, said: str) -> None:
    with pytest.raises(DataError, match=f"{said}.*Fix"):
        made(results(model=name), model_name=name)


@pytest.mark.parametrize("judge", ["lexical", "oracle", "tiny"])
def test_a_judge_that_reads_nothing_is_refused(judge: str) -> None:
    floor = results("referring")
    with pytest.raises(DataError, match=r"judge.name: .* no number to publish.*Fix"):
        submission(row(floor, judged(floor, judge)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "garden/other"}, "model: "),
        ({"model_revision": "9" * 40}, "model_revision: "),
        ({"repetitions": 1}, "repetitions: "),
        ({"metrics": {}}, "no usable verdict"),
    ],
)
def test_verdicts_on_other_answers_are_refused(changes: dict[str, Any], said: str) -> None:
    floor = results("referring")
    with pytest.raises(DataError, match=rf"judges: .*{said}.*Fix.*judge"):
        submission(row(floor, judged(floor, **changes)))


def test_results_of_another_model_are_refused_but_not_those_of_another_engine() -> None:
    with pytest.raises(DataError, match=r"model.name: is 'garden/other', not 'garden/fruit-8b'.*Fix.*--model-name"):
        made(results(model="garden/other"))
    assert made(results(model="/ckpt/7"), model_name="/ckpt/7").rows
    for name in (f"served:{MODEL}", f"sam3:{MODEL}", f"predictions:{MODEL}", f"dual:{MODEL}", MODEL.upper()):
        assert made(results(model=name)).rows


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"revision": "9" * 40}, "model.revision: differs"),
        ({"settings": {"dtype": "float16"}}, "model.settings: differs"),
        ({"model": f"served:{MODEL}"}, "model.name: differs"),
    ],
)
def test_runs_of_different_models_are_refused_together(second: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=rf"{said}.*Fix"):
        made(results(), results("grounding", **second))


def test_one_leaderboard_has_one_value() -> None:
    with pytest.raises(DataError, match=r"relations is in relations already.*Fix"):
        made(results(), results(values=(0.9, 0.9, 0.9)))


def broken(results: Results, **changes: Any) -> Results:
    return results.model_copy(update=changes)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (broken(results(), metrics={}), "lacks the primary metric"),
        (broken(results(), metrics={"micro_f1": metric([42.0, 43.0, 41.0])}), "outside 0 to 1"),
        (results(content_hash="no hash"), "content_hash: is not a SHA-256"),
    ],
)
def test_results_that_contradict_themselves_are_refused(run: Results, said: str) -> None:
    with pytest.raises(DataError, match=rf"results.json: .*{said}.*Fix"):
        made(run)


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
def test_a_target_that_cannot_be_is_refused(target: dict[str, str], said: str) -> None:
    with pytest.raises(DataError, match=rf"submission: {said}.*Fix"):
        made(results(), **target)


def test_a_source_without_an_address_and_no_run_at_all_are_refused() -> None:
    with pytest.raises(ConfigError, match="--source-url"):
        made(results(), source_name="Somebody").eval_results()
    with pytest.raises(ConfigError, match="no run to submit"):
        make_submission([], TARGET)
