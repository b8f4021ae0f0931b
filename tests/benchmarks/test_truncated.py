"""Answers cut inside their JSON: the paper's protocol reads them, and never more than they contain."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from barista_bench.benchmarks import get_task
from barista_bench.benchmarks.parsing import MAX_REPAIRED, cut_array, cut_object
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import ParseError, Prediction

SIZE: dict[str, Any] = {"frame_width": 1000, "frame_height": 1000}
GRID = BoxFormat()
FIELDS = {"relations": "relations", "hand_object": "interactions", "grounding": "boxes"}
TASKS = {name: get_task("barista", name, options={"protocol": "paper"}) for name in FIELDS}
RELEASED = {name: get_task("barista", name) for name in FIELDS}

grid_box = st.lists(st.integers(0, 1000), min_size=4, max_size=4)
marks = "```", "</think>"  # the end of a fence or of reasoning, wherever it is
words = st.text(max_size=8).filter(lambda text: not any(mark in text for mark in marks)) | st.sampled_from(
    ["a}]", '"}, {"', "on, off", "\\", "[{", "it's", "</b>"]
)
ENTRIES = {
    "relations": st.fixed_dictionaries(
        {"source_id": st.integers(1, 99), "target_id": st.integers(1, 99), "relation_type": words, "value": words}
    ),
    "hand_object": st.fixed_dictionaries(
        {
            "hand_type": st.sampled_from(["left", "right", "both"]),
            "object_box": grid_box,
            "hand_boxes": st.lists(grid_box, min_size=1, max_size=2),
        }
    ),
    "grounding": grid_box,
}
ONE: dict[str, Any] = {
    "relations": {"source_id": 1, "target_id": 2, "relation_type": "position", "value": "on"},
    "hand_object": {"hand_type": "left", "object_box": [1, 2, 3, 4], "hand_boxes": [[5, 6, 7, 8]]},
    "grounding": [10, 20, 30, 40],
}


def answer(name: str, entries: list[Any]) -> str:
    return json.dumps({"bboxes": entries} if name == "grounding" else entries, ensure_ascii=False)


def read(name: str, text: str) -> list[Any] | None:
    parsed = TASKS[name].parse(text, SIZE, GRID)
    return None if isinstance(parsed, ParseError) else parsed.value[FIELDS[name]]  # type: ignore[return-value]


@pytest.mark.parametrize("name", FIELDS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_cut_answer_gives_the_first_entries_of_the_whole_and_all_that_were_complete(
    name: str, data: st.DataObject
) -> None:
    entries = data.draw(st.lists(ENTRIES[name], min_size=1, max_size=4))
    text = answer(name, entries)
    before = data.draw(st.sampled_from(["", "```json\n", "<think>[{ hm</think>"]))
    whole = read(name, text)
    assert whole is not None
    assert len(whole) == len(entries)
    cut = data.draw(st.integers(0, len(text)))
    recovered = read(name, before + text[:cut]) or []
    assert recovered == whole[: len(recovered)]
    # All but the last bracket of the entries up to there have been written: they are complete.
    closing = "]}" if name == "grounding" else "]"
    complete = 0
    for count in range(1, len(entries) + 1):
        written = answer(name, entries[:count]).removesuffix(closing)
        complete = count if len(written) <= cut else complete
    assert len(recovered) == complete


@pytest.mark.parametrize("name", FIELDS)
def test_an_entry_that_was_cut_is_dropped_and_counted(name: str) -> None:
    text = answer(name, [ONE[name], ONE[name]])
    opened = text.index(json.dumps(ONE[name])) + len(json.dumps(ONE[name])) + 2
    for cut in range(opened + 1, len(text) - (3 if name == "grounding" else 2)):
        parsed = TASKS[name].parse(text[:cut], SIZE, GRID)
        assert isinstance(parsed, Prediction), text[:cut]
        assert (len(parsed.value[FIELDS[name]]), parsed.dropped) == (1, 1), text[:cut]  # type: ignore[arg-type]
    parsed = TASKS[name].parse(text[: opened - 1], SIZE, GRID)
    assert isinstance(parsed, Prediction)
    assert parsed.dropped == 0, "after the comma nothing more was begun"


@pytest.mark.parametrize("name", ["relations", "hand_object"])
def test_only_our_parser_reads_a_truncated_answer(name: str) -> None:
    text = answer(name, [ONE[name], ONE[name]])[:-5]
    assert isinstance(RELEASED[name].parse(text, SIZE, GRID), ParseError)
    assert read(name, text) is not None


def test_the_release_still_reads_the_numbers_of_a_box_that_breaks_off() -> None:
    text = '{"bboxes": [[1, 2, 3, 4], [5, 6, 700, 80'
    released = RELEASED["grounding"].parse(text, SIZE, GRID)
    assert isinstance(released, Prediction)
    assert released.value["boxes"] == [[1, 2, 3, 4], [5, 6, 700, 80]]
    assert TASKS["grounding"].parse(text, SIZE, GRID) == Prediction({"boxes": [[1, 2, 3, 4]]}, dropped=1)


@pytest.mark.parametrize(
    ("scores", "kept", "dropped"),
    [("[0.5, 0.25]", [0.5, 0.25], 0), ("[0.5, 0.2", None, 1), ("[0.5, 0.25", None, 1), ("[0.5", None, 1)],
)
def test_confidences_that_were_cut_are_not_used(scores: str, kept: list[float] | None, dropped: int) -> None:
    parsed = TASKS["grounding"].parse(
        f'{{"bboxes": [[1, 2, 3, 4], [5, 6, 7, 8]], "scores": {scores}, "n": 1', SIZE, GRID
    )
    if not scores.endswith("]"):
        parsed = TASKS["grounding"].parse(f'{{"bboxes": [[1, 2, 3, 4], [5, 6, 7, 8]], "scores": {scores}', SIZE, GRID)
    assert isinstance(parsed, Prediction)
    assert (parsed.value.get("scores"), parsed.dropped) == (kept, dropped)


@pytest.mark.parametrize("name", ["relations", "hand_object"])
@pytest.mark.parametrize(
    "broken",
    [
        "[{one}, {{'b': 2}}]",
        "[{one}, {{'b': 2",
        "[{one},, {one}",
        "[{one} {one}",
        "<think>[{one}, {{",
        "[{one}; [",
        "{one}",
    ],
)
def test_malformed_answers_and_thoughts_are_not_repaired(name: str, broken: str) -> None:
    assert read(name, broken.format(one=json.dumps(ONE[name]))) is None


def test_an_array_that_closed_before_is_not_the_cut_one() -> None:
    assert cut_array('[{"a": 1}] or [{"a": 2}, {"a": 3') == cut_array('[{"a": 2}, {"a": 3')
    assert cut_array('[{"a": 1}]') is None
    assert cut_object('Boxes: {"bboxes": [[1, 2, 3, 4], [', "bboxes") is None, "the release reads no object in prose"


def test_only_the_short_end_of_a_cut_answer_is_repaired() -> None:
    array = cut_array("[" + '{"a": 1}, ' * 50_000 + '{"a": 2')
    assert array is not None
    assert (len(array.entries), array.unfinished) == (50_000, 1)
    assert cut_array('[{"a": 1}, {"a": "' + "x" * MAX_REPAIRED) is None


@pytest.mark.full
@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize(
    "hostile",
    [
        "[" * 900 + "1," * 450_000,
        "[" * 900 + '"' + "a" * 999_000,
        "[" * 900 + "1," * 450_000 + "9" * 5_000,
        ("[" + " " * 2_000) * 400 + "1," * 50_000 + "[" * 2_000,
        "[ " * 500_000,
        "\n" * 990_000 + "[x " * 3_000,
        "[{" * 500_000,
        '[{"a":' * 160_000,
        '[{"a": 1}, ' + '"{", ' * 200_000,
        '[{"a": 1}, ' + '["{", ' * 600,
        '[{"a": 1}, [' + '"{",' * 950,
        '[{"a": 1}, {"b": "' + '{"a":' * 700,
        '[{"a": 1}, {"b": "' + '\\"' * 1_900,
        '{"bboxes": [[1, 2, 3, 4], ' + '"{",' * 950,
        '{"bboxes": [' * 80_000,
        '{"bboxes": [[1, 2, 3, 4]], ' + '"a": "{", ' * 390,
        '{"bboxes": [[1, 2, 3, 4]], "a": [' + '"\'", "{", ' * 390,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_a_megabyte_of_any_shape_costs_little(name: str, hostile: str) -> None:
    assert len(hostile) <= 1_100_000
    start = time.process_time()
    TASKS[name].parse(hostile, SIZE, GRID)
    assert time.process_time() - start < 4, "linear: a second or so; it was 33"
