"""`run.json` and `sessions.jsonl` may come from anybody: their fields are used unchanged or refused in words."""

import json
import logging
import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from barista_bench.errors import BaristaError, DataError
from barista_bench.runs.run_folder import read_run
from barista_bench.runs.score.scoring import score
from tests.one_run import run
from tests.runs.made_logs import change_lines


@pytest.fixture(scope="session")
def a_run(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("described") / "run"
    prices = out.parent / "prices.yaml"
    prices.write_text("oracle: {input: 1.0, output: 2}")
    run(dataset, out, task="relations", model="oracle", repetitions=1, limit=3, prices=prices)
    return out


@pytest.fixture
def folder(a_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(a_run, tmp_path / "run"))


def described(folder: Path) -> Any:
    return json.loads((folder / "run.json").read_text())


def place(inside: Any, outer: str) -> Any:
    """The value at a dotted place."""
    for key in outer.split(".") if outer else ():
        inside = inside[key]
    return inside


def put(inside: Any, field: str, value: object) -> None:
    outer, _, last = field.rpartition(".")
    place(inside, outer)[last] = value


def test_the_records_of_a_run_are_read_unchanged(folder: Path) -> None:
    assert read_run(folder).model_dump() == described(folder)
    assert score(folder).results.timing.cost == 0.0


NAN, FAR = float("nan"), float("-inf")
WRONG: dict[str, tuple[object, ...]] = {
    "identity": ([],),
    "identity.task": (5,),
    "identity.task_version": ("1",),
    "identity.split": (None,),
    "identity.content_hash": (1,),
    "identity.generation": ([1],),
    "identity.generation.temperature": (NAN,),
    "identity.generation.max_new_tokens": (10**400,),
    "identity.model": (None,),
    "identity.model.name": ({}, "x" * 10_001),
    "identity.model.revision": ("x" * 10_001,),
    "identity.model.settings": ("x",),
    "identity.model.settings.dtype": (FAR, "x" * 10_001),
    "identity.model.box_format": ({"order": "zzz", "scale": 0},),
    "identity.model.box_format.scale": (0,),
    "identity.model.box_format.size": (1,),
    "name": (5, "two\nlines", "x" * 501),
    "repetitions": ("x", 0, True, 1001, 10**30, NAN),
    "prompts": ({"evil": 1},),
    "prompts.user": (None,),
    "prompts.more": ("x",),
    "prompts.sha256": ("x",),
    "prompts.wording": ("<b>ours</b>", ""),
    "protocol": ([1], "mine"),
    "data.limit": ("x", -1),
    "data.path": (None,),
    "data.root": (5,),
    "versions": ({"a": -FAR}, {"a": "1" * 10**6}, {"a": "1\x1b[2J"}),
    "barista_bench": ("1" * 10**6, "0.1\n"),
    "prices": ([1], {"input": "a", "output": "b"}),
    "prices.input": (NAN, 1e300),
    "prices.output": (-1,),
    "surprise": (1,),
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in WRONG.items() for value in values])
def test_a_field_that_cannot_be_used_is_named(folder: Path, field: str, value: object) -> None:
    changed = described(folder)
    put(changed, field, value)
    (folder / "run.json").write_text(json.dumps(changed))
    with pytest.raises(DataError, match=rf"run\.json: {field}.*: .*Fix") as error:
        score(folder)
    assert len(str(error.value)) < 1000


def keys(value: object, path: str = "") -> Iterator[str]:
    """The places of all fields that the schema itself names."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield f"{path}{key}"
        if key not in ("generation", "settings", "versions", "prices"):
            yield from keys(inner, f"{path}{key}.")


def test_every_field_that_is_missing_is_named(folder: Path) -> None:
    optional = {
        "name",
        "prices",
        "options",
        "imported",
        "prompts.extra",
        "prompts.wording",
        "training_videos",
        "trained_on",
        "run_answers",
    }
    optional |= {"data.part", "data.absolute_path", "data.absolute_root", "identity.prompts_hash", "identity.options"}
    whole = described(folder)
    places = set(keys(whole)) - optional
    assert len(places) > 20
    for field in places:
        changed = deepcopy(whole)
        outer, _, last = field.rpartition(".")
        del place(changed, outer)[last]
        (folder / "run.json").write_text(json.dumps(changed))
        with pytest.raises(DataError, match=rf"run\.json: {field}: .*Fix"):
            read_run(folder)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"[" * 100_000, b"\xff\xfe{}", b"9" * 5000, b'{"a":' * 100_000, b" " * (2**24 + 1)]
)
def test_a_file_that_is_no_description_is_refused(folder: Path, content: bytes) -> None:
    (folder / "run.json").write_bytes(content)
    with pytest.raises(DataError, match=r"run\.json: .*Fix"):
        score(folder)


def test_deeply_nested_settings_are_refused(folder: Path) -> None:
    deep = '{"a":' * 400 + "1" + "}" * 400
    text = json.dumps(described(folder)).replace('"settings": {}', f'"settings": {{"x": {deep}}}')
    (folder / "run.json").write_text(text)
    with pytest.raises(DataError, match=r"run\.json: identity\.model\.settings\.x: .*deep.*Fix"):
        score(folder)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_of_a_field_is_scored_or_refused_in_words(data: st.DataObject, a_run: Path, folder: Path) -> None:
    changed = described(a_run)
    put(changed, data.draw(st.sampled_from(sorted(keys(changed)))), data.draw(JSON))
    (folder / "run.json").write_text(json.dumps(changed))
    refusal = "Fix"
    try:
        score(folder)
    except BaristaError as error:
        refusal = str(error)
    assert "Fix" in refusal


@pytest.mark.parametrize(
    "seconds", ["-1", "NaN", "Infinity", "1e308", "1e999", "1000000001", "9" * 5000, '"1"', "\xff"]
)
def test_impossible_seconds_are_skipped(folder: Path, seconds: str, caplog: pytest.LogCaptureFixture) -> None:
    line = f'{{"seconds": {{"generate": {seconds}}}}}\n{{"seconds": {{"generate": 2}}}}\n'
    (folder / "sessions.jsonl").write_bytes(line.encode("latin-1"))
    with caplog.at_level(logging.WARNING):
        timing = score(folder).results.timing
    assert (timing.sessions, timing.seconds) == (1, {"generate": 2.0})
    assert "line 1 is not a session" in caplog.text


def test_a_run_that_took_almost_no_time_has_no_rate(folder: Path) -> None:
    (folder / "sessions.jsonl").write_text('{"seconds": {"generate": 5e-324}}\n')
    assert score(folder).results.timing.samples_per_second is None


def test_token_counts_that_no_answer_has_are_left_out_of_the_sums(folder: Path) -> None:
    counts = iter([(10**30, 3), (2**53 + 1, -5), (2, 2**53)])
    change_lines(folder / "samples.jsonl", lambda line: line | dict(zip(TOKENS, next(counts), strict=True)))
    timing = score(folder).results.timing
    assert (timing.input_tokens, timing.output_tokens) == (2, 3 + 2**53)
    assert timing.cost == pytest.approx((2 * 1.0 + (3 + 2**53) * 2.0) / 1e6)


TOKENS = ("input_tokens", "output_tokens")
