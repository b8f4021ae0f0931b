"""`compare settings` names exactly the changes between two run folders."""

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from barista_bench.core.status import Status
from barista_bench.errors import ConfigError, DataError
from barista_bench.runs.diff import KINDS, ScoreChange, SettingChange, as_text, diff
from barista_bench.runs.score.scoring import score
from tests.one_run import run
from tests.runs.diff_kit import DESCRIBED, SAMPLES, changed, make, sample, scored


def counted(difference: Any) -> dict[str, int]:
    return {kind: count for kind, count in difference.counts.items() if count}


def test_a_run_does_not_differ_from_its_copy_in_another_order(tmp_path: Path) -> None:
    shuffled = list(SAMPLES)
    random.Random(0).shuffle(shuffled)
    difference = diff(make(tmp_path / "a"), make(tmp_path / "b", shuffled))
    assert difference.is_same
    assert (difference.samples, difference.common) == ((24, 24), 24)
    assert (difference.left_out, difference.settings) == ((0, 0), ())
    assert "Samples: 24 and 24, 24 in both, all the same" in as_text(difference)
    assert "Settings: all the same" in as_text(difference)


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("identity content_hash", "d" * 64, "identity.content_hash"),
        ("identity task_version", 2, "identity.task_version"),
        ("identity generation temperature", 0, "identity.generation.temperature"),
        ("identity model revision", "abc", "identity.model.revision"),
        ("identity model box_format scale", 1, "identity.model.box_format.scale"),
        ("prompts sha256", "1" * 64, "prompts.sha256"),
        ("versions torch", "2.12", "versions.torch"),
        ("data limit", 5, "data.limit"),
        ("repetitions", 4, "repetitions"),
        ("protocol", "paper", "protocol"),
    ],
)
def test_a_setting_that_differs_is_named_with_both_values(tmp_path: Path, field: str, value: Any, name: str) -> None:
    *outer, last = field.split()

    def change(described: dict[str, Any]) -> None:
        for part in outer:
            described = described[part]
        described[last] = value

    old = DESCRIBED
    for part in field.split():
        old = old[part]
    difference = diff(make(tmp_path / "a"), make(tmp_path / "b", change=change))
    assert difference.settings == (SettingChange(name, json.dumps(old), json.dumps(value)),)
    assert counted(difference) == {}
    assert not difference.is_same
    assert f"{name}: " in as_text(difference)


def test_absent_settings_and_values_of_other_types_differ(tmp_path: Path) -> None:
    def change(described: dict[str, Any]) -> None:
        del described["versions"]["torch"]
        described["identity"]["model"]["settings"] = {"a.b": True}

    def change_back(described: dict[str, Any]) -> None:
        described["identity"]["model"]["settings"] = {"a": {"b": 1}}

    difference = diff(make(tmp_path / "a", change=change), make(tmp_path / "b", change=change_back))
    assert difference.settings == (
        SettingChange("identity.model.settings.a.b", None, "1"),
        SettingChange("identity.model.settings.a.b", "true", None),
        SettingChange("versions.torch", None, '"2.11"'),
    )
    assert "versions.torch: (nothing) -> " in as_text(difference)


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ({"text": "no"}, {"answer": 1}),
        ({"prompt": "other", "media": "another", "text": "no"}, {"prompt": 3, "media": 3}),
        ({"fingerprint": "of another task version"}, {"input": 3}),
        ({"prompt": "", "media": "", "fingerprint": "of another task version"}, {"input": 3}),
        ({"status": Status.TRUNCATED}, {"status": 1}),
        ({"status": Status.PARSE_ERROR, "text": "?"}, {"status": 1, "answer": 1}),
        ({"status": Status.INFRA_ERROR, "text": None}, {"status": 1}),
        ({"reasoning": "because"}, {"reasoning": 1}),
        ({"seconds": 9.0, "rank": 3, "batch_size": 7}, {}),
    ],
)
def test_differing_samples_are_counted_by_kind_of_difference(
    tmp_path: Path, values: dict[str, Any], kinds: dict[str, int]
) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b", changed(5, **values))
    for difference in (diff(a, b), diff(b, a)):
        assert counted(difference) == kinds
        for kind, count in kinds.items():
            places = [("e01", run) for run in range(3 - count, 3)]
            assert [(s.example_id, s.repetition) for s in difference.first_samples[kind]] == places  # type: ignore[index]
    assert difference.is_same is not bool(kinds)
    if "answer" in kinds:
        (shown,) = diff(a, b).first_samples["answer"]
        assert (shown.first, shown.second) == ("yes", values["text"])


def test_records_of_another_run_are_left_out_and_counted(tmp_path: Path) -> None:
    strange = [
        msgspec.structs.replace(sample("e00"), key="of another model"),
        sample("e01", repetition=3),
        sample("e01"),
    ]
    difference = diff(make(tmp_path / "a", strange), make(tmp_path / "b", [sample("e01")]))
    assert (difference.samples, difference.left_out, difference.common) == ((1, 1), (2, 0), 1)
    assert "left out" in as_text(difference)


def test_only_the_first_samples_are_shown_in_their_order_for_any_order_of_the_log(tmp_path: Path) -> None:
    samples = [sample(f"e{number:02}", text="no") for number in range(30)]
    shuffled = list(samples)
    random.Random(1).shuffle(shuffled)
    yes = make(tmp_path / "yes", [sample(f"e{number:02}") for number in range(30)])
    difference = diff(yes, make(tmp_path / "first", samples), show=3)
    again = diff(yes, make(tmp_path / "other", shuffled), show=3)
    assert difference.counts["answer"] == 30
    assert [record.example_id for record in difference.first_samples["answer"]] == ["e00", "e01", "e02"]
    assert difference.first_samples == again.first_samples
    assert "and 27 more" in as_text(difference)
    assert as_text(difference).replace("/first", "/other") == as_text(again)
    assert diff(yes, tmp_path / "first", show=0).first_samples["answer"] == ()
    with pytest.raises(ConfigError, match="show is -1"):
        diff(yes, yes, show=-1)


def test_metrics_that_changed_are_counted_with_both_means(tmp_path: Path) -> None:
    first = scored(
        {("e0", 0): {"f1": 0.5, "n": 1}, ("e0", 1): {"f1": 0.1}, ("e1", 0): None, ("e2", 0): {"f1": None, "x": 1}}
    )
    second = scored(
        {("e2", 0): {"f1": 1, "x": 2}, ("e1", 0): {"f1": 9}, ("e0", 1): {"f1": 0.1}, ("e0", 0): {"f1": 1.0, "n": 1}}
    )
    difference = diff(make(tmp_path / "a", scores=first), make(tmp_path / "b", scores=second))
    assert difference.scores == (
        ScoreChange("f1", 2, 1, 0.3, 0.55),
        ScoreChange("n", 1, 0, 1.0, 1.0),
        ScoreChange("x", 1, 1, 1.0, 2.0),
    )
    assert counted(difference) == {"score": 2}
    assert [(s.example_id, s.first, s.second) for s in difference.first_samples["score"]] == [
        ("e0", "f1 0.5", "f1 1"),
        ("e2", "x 1", "x 2"),
    ]
    assert "f1: 1 of 2 changed, mean 0.3 -> 0.55" in as_text(difference)


def test_scores_of_only_one_run_are_not_compared(tmp_path: Path) -> None:
    difference = diff(make(tmp_path / "a", scores=scored({("e0", 0): {"f1": 1.0}})), make(tmp_path / "b"))
    assert difference.scores is None
    assert "not both runs are scored" in as_text(difference)


@pytest.mark.parametrize(
    "line", ["{", '{"example_id": "e"}', '{"example_id": "e", "repetition": 0, "scores": {"f": "1"}}']
)
def test_a_damaged_score_file_is_an_error(tmp_path: Path, line: str) -> None:
    a = make(tmp_path / "a", scores=scored({("e0", 0): {"f1": 1.0}}))
    with (a / "scores.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DataError, match=r"scores.jsonl: line 2: .*score the run again"):
        diff(make(tmp_path / "b", scores=[]), a)


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no run here"):
        diff(make(tmp_path / "a"), tmp_path / "empty")


def test_texts_of_models_cannot_control_the_terminal(tmp_path: Path) -> None:
    hostile = "\x1b[2J\x9b31m\r\n\u202e\ud800 grün 机器"
    a = make(tmp_path / "a", [sample("\x1b]0;id\x07", text=hostile.replace("\ud800", "?"))])
    text = as_text(diff(a, make(tmp_path / "b", [sample("\x1b]0;id\x07")])))
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "\\x1b[2J" in text
    assert "grün 机器" in text


def test_long_answers_are_shown_where_they_part(tmp_path: Path) -> None:
    a = make(tmp_path / "a", [sample("e", text="x" * 5000 + "cup" + "y" * 5000)])
    text = as_text(diff(a, make(tmp_path / "b", [sample("e", text="x" * 5000 + "can" + "y" * 5000)])))
    [line] = [line for line in text.splitlines() if "e repetition 0" in line]
    assert "cup" in line
    assert "can" in line
    assert len(line) < 250


EXAMPLES = ("a", "b", "c", "d")
ANSWERS = st.fixed_dictionaries(
    {
        "text": st.sampled_from(["yes", "no"]),
        "status": st.sampled_from([Status.OK, Status.INFRA_ERROR, Status.TRUNCATED]),
    }
)
QUESTIONS = st.fixed_dictionaries({"prompt": st.sampled_from(["", "p", "q"]), "media": st.sampled_from(["", "m", "n"])})


@st.composite
def sides(draw: st.DrawFn) -> dict[tuple[str, int], dict[str, Any]]:
    """Questions and answers, by example and run; all runs ask the same question of an example."""
    asked = {name: draw(QUESTIONS) for name in EXAMPLES}
    answers = draw(st.dictionaries(st.tuples(st.sampled_from(EXAMPLES), st.integers(0, 2)), ANSWERS))
    return {key: answer | asked[key[0]] for key, answer in answers.items()}


@settings(deadline=None)
@given(sides(), sides())
def test_every_count_equals_a_plain_comparison(
    tmp_path_factory: pytest.TempPathFactory, first: dict[Any, Any], second: dict[Any, Any]
) -> None:
    folder = tmp_path_factory.mktemp("diff")
    made = [
        make(folder / name, [sample(*key, **values) for key, values in side.items()])
        for name, side in (("a", first), ("b", second))
    ]
    expected = dict.fromkeys(KINDS, 0)
    expected |= {"only_first": len(first.keys() - second.keys()), "only_second": len(second.keys() - first.keys())}
    for key in first.keys() & second.keys():
        a, b = first[key], second[key]
        prompt = a["prompt"] != b["prompt"] and "" not in (a["prompt"], b["prompt"])
        media = a["media"] != b["media"] and "" not in (a["media"], b["media"])
        asked = (a["prompt"], a["media"]) != (b["prompt"], b["media"])
        expected["prompt"] += prompt
        expected["media"] += media
        expected["input"] += asked and not prompt and not media
        expected["status"] += a["status"] != b["status"]
        finished = Status.INFRA_ERROR not in (a["status"], b["status"])
        expected["answer"] += finished and not asked and a["text"] != b["text"]
    difference = diff(*made)
    assert difference.counts == expected
    assert difference.common == len(first.keys() & second.keys())
    assert sum(difference.statuses.values()) == expected["status"]


def test_two_real_runs_differ_in_the_changed_settings_and_their_results(dataset: Path, tmp_path: Path) -> None:
    for name, changes in (("oracle", {}), ("chance", {"model": "chance"}), ("two", {"repetitions": 2})):
        run(dataset, tmp_path / name, **{"model": "oracle", **changes})
        score(tmp_path / name)
    assert diff(tmp_path / "oracle", tmp_path / "oracle").is_same
    difference = diff(tmp_path / "oracle", tmp_path / "chance")
    assert [setting.name for setting in difference.settings] == ["identity.model.name"]
    assert (difference.samples, difference.common, difference.left_out) == ((72, 72), 72, (0, 0))
    assert {kind for kind, count in difference.counts.items() if count} <= {"answer", "status", "score"}
    assert difference.counts["answer"] > 50
    assert difference.counts["score"] > 50
    assert difference.scores is not None
    assert all(score.samples == 72 for score in difference.scores)
    fewer = diff(tmp_path / "oracle", tmp_path / "two")
    assert [setting.name for setting in fewer.settings] == ["repetitions"]
    assert counted(fewer) == {"only_first": 24}
