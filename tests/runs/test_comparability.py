"""One record decides whether two figures are comparable: every part of it counts, nothing else does."""

import json
from pathlib import Path
from typing import Any

import pytest

from barista_bench.errors import DataError
from barista_bench.hub.checks import leaderboard_name
from barista_bench.judging.results import read_judged
from barista_bench.runs.score.comparability import Comparability, differences, distinguishing_parts
from barista_bench.runs.score.results import Results, read_results, write_results
from tests.hub.made_results import judged, results

OTHERS: list[tuple[dict[str, Any], str]] = [
    ({"task": "grounding"}, "task"),
    ({"protocol": "paper"}, "protocol"),
    ({"wording": "ours v3"}, "wording"),
    ({"options": {"matcher": "exact"}}, "option matcher"),
    ({"split": "test"}, "split"),
    ({"limit": 10}, "limit"),
    ({"content_hash": "cd" * 32}, "examples"),
    ({"settings": {"structured_output": True}}, "structured output"),
]


@pytest.mark.parametrize(("changes", "name"), OTHERS, ids=[name for _, name in OTHERS])
def test_any_difference_of_the_record_separates_metrics_and_is_named(changes: dict[str, Any], name: str) -> None:
    first, other = results().comparability, results(**changes).comparability
    assert first != other
    assert name in differences(first, other)
    assert hash(other) == hash(results(**changes).comparability)
    if name != "task":
        assert all(name in words for words in distinguishing_parts([first, other]))
    assert differences(first, first) == {}


@pytest.mark.parametrize(
    "changes", [{"settings": {"dtype": "float32"}}, {"model": "a/other"}, {"revision": None}, {"values": (0.1, 0.2)}]
)
def test_circumstances_are_shown_beside_and_separate_no_metrics(changes: dict[str, Any]) -> None:
    assert results().comparability == results(**changes).comparability
    beside = results(**changes).circumstances
    assert {"temperature", "box order", "box scale", "repetitions"} <= set(beside)


@pytest.mark.parametrize(
    "changes",
    [
        {"judge": {"name": "other/judge", "revision": None, "settings": {}}},
        {"judge": {"name": "maker/judge", "revision": None, "settings": {"structured_output": True}}},
        {"rubric": {"version": 1, "sha256": "1" * 64, "wording": "ours v1", "criteria": ["correctness"]}},
        {"prompt_sha256": "1" * 64},
        {"steps_sha256": "1" * 64},
        {"generation": {"temperature": 1.0}},
        {"method": "released"},
    ],
)
def test_judged_metrics_are_comparable_only_under_the_same_judge(changes: dict[str, Any]) -> None:
    first = judged(results("referring"))
    content = {**first.model_dump(), **changes}
    other = type(first).model_validate(content)
    assert other.comparability != first.comparability
    assert other.comparability.answers == first.comparability.answers
    assert differences(first.comparability, other.comparability)


def test_more_draws_of_one_judge_and_other_steps_of_it_stay_comparable() -> None:
    first = judged(results("referring"), steps="generate")
    assert judged(
        results("referring"), steps="generate", verdicts_per_answer=9, steps_sha256="1" * 64
    ).comparability == (first.comparability)


def test_the_record_is_stored_with_the_metrics_and_a_file_that_contradicts_it_is_refused(tmp_path: Path) -> None:
    made = results(options={"matcher": "exact"}, limit=7)
    write_results(made, tmp_path / "results.json")
    stored = json.loads((tmp_path / "results.json").read_text())
    assert Comparability.model_validate(stored["comparability"]) == made.comparability
    assert read_results(tmp_path / "results.json") == made
    for spoilt in (
        {**stored, "protocol": "paper"},
        {**stored, "comparability": {**stored["comparability"], "limit": None}},
        {name: value for name, value in stored.items() if name != "comparability"},
    ):
        (tmp_path / "results.json").write_text(json.dumps(spoilt))
        with pytest.raises(DataError, match=r"comparability: does not match the scores.*Fix"):
            read_results(tmp_path / "results.json")


def test_a_judges_file_that_contradicts_its_record_is_refused(tmp_path: Path) -> None:
    made = judged(results("referring"))
    write_results(made, tmp_path / "judged.json")
    assert read_judged(tmp_path / "judged.json") == made
    stored = json.loads((tmp_path / "judged.json").read_text())
    (tmp_path / "judged.json").write_text(json.dumps({**stored, "judge": {**stored["judge"], "name": "a/better"}}))
    with pytest.raises(DataError, match="comparability: does not match the scores"):
        read_judged(tmp_path / "judged.json")


def named(**about: Any) -> str:
    made: Results = results(**about)
    return leaderboard_name(made.comparability)


def test_a_leaderboard_has_its_special_settings_in_its_name() -> None:
    assert named() == "relations"
    assert named(options={"matcher": "exact"}) == "relations_matcher-exact"
    assert named(options={"threshold": 0.5}, limit=20, split="test") == "relations_test_threshold-0-5_first-20"
