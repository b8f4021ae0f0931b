"""Reading answers: the shapes that models give, and what none of them may do."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks.kinds.spans import MAX_INTERVALS, MAX_SPAN, SNAP, read_time, snap_to_grid
from barista_bench.benchmarks.name_matching import plain_name
from barista_bench.benchmarks.tog_bench import TSTVG, answers
from barista_bench.benchmarks.tog_bench.answers import MAX_BOXES, MAX_NAME
from barista_bench.benchmarks.tog_bench.release import MAX_OBJECTS
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import ParseError, Prediction
from tests import answering

TASK = TSTVG(options={"matcher": "exact"})
GRID = BoxFormat()
INPUTS: dict[str, Any] = {
    "instruction": "Go.",
    "times": [0.0, 4.0, 8.0],
    "frame_width": 500,
    "frame_height": 200,
    "duration": 9.5,
}


def read(answer: object, box_format: BoxFormat = GRID) -> Prediction:
    return answering.read(TASK, answer, INPUTS, box_format)


def objects(answer: object, box_format: BoxFormat = GRID) -> dict[str, Any]:
    entries: Any = read(answer, box_format).value["objects"]
    return {item["name"]: item for item in entries}


def named(**more: object) -> dict[str, object]:
    return {"explicit_object": ["sink"], "implicit_object": ["faucet"], **more}


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["sink", "faucet"], ["sink", "faucet"]),
        ("sink", ["sink"]),
        ("sink, faucet; water tap", ["sink", "faucet", "water tap"]),
        ([{"name": "sink"}, {"object": "faucet"}], ["sink", "faucet"]),
        ({"category": "sink"}, ["sink"]),
        ("None", []),
        (["", "n/a", None], []),
        (None, []),
        (["desk   lamp"], ["desk lamp"]),
    ],
)
def test_names_are_read_from_text_lists_and_objects(given: object, names: list[str]) -> None:
    assert list(objects({"explicit_object": given, "implicit_object": []})) == names


def test_a_name_counts_once_and_an_entry_without_a_name_counts_as_dropped() -> None:
    parsed = read({"explicit_object": ["sink", "Sink", 5], "implicit_object": ["SINK", "tap"]})
    assert [item["name"] for item in parsed.value["objects"]] == ["sink", "tap"]
    assert parsed.dropped == 3


@pytest.mark.parametrize(
    "given",
    [
        [{"object": "sink", "start": 4, "end": 8.5}],
        [{"object": "SINK", "start": "4.0 s", "end": "8.5 seconds"}],
        [{"name": "sink", "start_time": "00:04", "end_time": "0:00:08.5"}],
        [{"object": "sink", "interval": [4, 8.5]}],
        [{"object": "sink", "intervals": [["00:04", "8.5s"]]}],
        [{"object": "the sink", "time": "4.0 - 8.5"}],
        [{"object": "sink", "time": "frame 2 to 8.5"}],
        {"sink": [4, 8.5]},
        {"sink": [[4, 8.5]]},
        {"sink": {"start": 4, "end": 8.5}},
        {"sink": [{"begin": 4, "stop": 8.5}]},
        {"object": "sink", "start": 4, "end": 8.5},
        [{"sink": [4, 8.5]}],
    ],
)
def test_an_interval_is_read_in_many_shapes(given: object) -> None:
    assert objects(named(temporal_grounding=given))["sink"]["intervals"] == [[4.0, 8.5]]


@pytest.mark.parametrize("given", [[4, 8.5], [[4, 8.5]], {"start": 4, "end": 8.5}, "4 - 8.5", ["0:04", "8.5s"]])
def test_an_interval_without_a_name_is_the_only_objects(given: object) -> None:
    assert objects({"explicit_object": "sink", "temporal_grounding": given})["sink"]["intervals"] == [[4.0, 8.5]]


def test_an_object_may_have_several_intervals_and_boxes_and_an_interval_may_be_a_moment() -> None:
    spans = [{"object": "sink", "start": 0, "end": 1}, {"object": "sink", "intervals": [[3, 4], "6-7", [8, 8]]}]
    track = [
        {"object": "sink", "time": 4, "boxes": [[0, 0, 10, 10], [20, 20, 30, 30]]},
        {"object": "sink", "time": 5.12345, "box": [0, 0, 10, 10]},
    ]
    entries = objects(named(temporal_grounding=spans, spatial_tracking=track))
    assert entries["sink"]["intervals"] == [[0, 1], [3, 4], [6, 7], [8, 8]]
    assert [box["timestamp"] for box in entries["sink"]["boxes"]] == [4.0, 4.0, 5.123], "in milliseconds"
    assert {name: item["kind"] for name, item in entries.items()} == {"sink": "explicit", "faucet": "implicit"}


def test_intervals_without_names_go_to_the_objects_in_order_only_where_there_is_one_for_each() -> None:
    entries = objects(named(temporal_grounding=[[0, 1], [2, 3]]))
    assert [item["intervals"] for item in entries.values()] == [[[0, 1]], [[2, 3]]]
    three = read(named(temporal_grounding=[[0, 1], [2, 3], [4, 5]]))
    assert three.dropped == 3


@pytest.mark.parametrize("around", [lambda inner: [inner], lambda inner: {"time": inner}], ids=["list", "mapping"])
@pytest.mark.parametrize(("depth", "intervals"), [(4, [[4.0, 8.5]]), (5, [])])
def test_intervals_are_looked_for_four_deep(
    depth: int, intervals: list[list[float]], around: Callable[[object], object]
) -> None:
    nested: object = [4, 8.5]
    for _ in range(depth):
        nested = around(nested)
    entry = objects(named(temporal_grounding={"sink": nested}))["sink"]
    assert (entry["intervals"], entry["malformed"]) == (intervals, not intervals)


@pytest.mark.parametrize(("length", "intervals"), [(MAX_SPAN, [[4.0, 8.5]]), (MAX_SPAN + 1, [])])
def test_an_interval_is_read_out_of_a_text_of_bounded_length(length: int, intervals: list[list[float]]) -> None:
    text = f"{'4'.ljust(MAX_SPAN // 2)}-{'8.5'.rjust(length - MAX_SPAN // 2 - 1)}"
    entry = objects(named(temporal_grounding={"sink": text}))["sink"]
    assert (entry["intervals"], entry["malformed"]) == (intervals, not intervals)


@pytest.mark.parametrize("broken", [[8, 4], "soon", {"start": 1}, ["x", 2], [[1, 2], [5, 4]], 3, float("inf")])
def test_a_broken_interval_spoils_only_the_intervals_of_its_object_and_is_reported(broken: object) -> None:
    given = [
        {"object": "sink", "start": 0, "end": 1},
        {"object": "sink", "interval": broken},
        {"object": "faucet", "start": 0, "end": 1},
    ]
    entry = objects(named(temporal_grounding=given))
    assert (entry["sink"]["intervals"], entry["sink"]["malformed"]) == ([], True)
    assert (entry["faucet"]["intervals"], entry["faucet"]["malformed"]) == ([[0, 1]], False)


@given(st.one_of(st.text(max_size=80), st.floats(), st.integers(), st.none(), st.booleans(), st.lists(st.integers())))
def test_negative_and_endless_times_are_not_read(value: object) -> None:
    time = read_time(value, [0.0, 4.0])
    assert time is None or 0 <= time <= 1e12


def test_numbers_of_frames_count_those_shown_from_1() -> None:
    assert [read_time(f"Frame {n}", [0.0, 4.0, 8.0]) for n in range(5)] == [None, 0.0, 4.0, 8.0, None]


@given(st.lists(st.integers(0, 1000), unique=True).map(sorted), st.floats(0, 1100))
def test_a_time_snaps_to_the_nearest_of_the_grid_and_to_none_far_away(grid: list[int], time: float) -> None:
    nearest = snap_to_grid(time, [float(g) for g in grid])
    near = [g for g in grid if abs(g - time) <= SNAP]
    assert nearest == (min(near, key=lambda g: abs(g - time)) if near else round(time, 3))


@pytest.mark.parametrize(
    "given",
    [
        [{"object": "sink", "time": 4.0, "box": [100, 250, 500, 1000]}],
        [{"object": "sink", "timestamp": "00:04", "bbox": [100, 250, 500, 1000]}],
        [{"object": "sink", "frame": 2, "bbox_2d": [100, 250, 500, 1000]}],
        [{"object": "sink", "frame": "2", "box": [[100, 250, 500, 1000]]}],
        [{"object": "sink", "time": "frame 2", "boxes": [[100, 250, 500, 1000]]}],
        [{"object": "sink", "boxes": [{"time": 4, "box": [100, 250, 500, 1000]}]}],
        [{"object": "sink", "tracking": {"4.0": [100, 250, 500, 1000]}}],
        {"sink": {"4.0": [100, 250, 500, 1000]}},
        {"sink": [{"time": 4, "box": [100, 250, 500, 1000]}]},
        {"object": "sink", "time": 4, "box": [100, 250, 500, 1000]},
    ],
)
def test_a_box_is_read_in_many_shapes(given: object) -> None:
    sink_ = objects(named(spatial_tracking=given))["sink"]
    assert sink_["boxes"] == [{"timestamp": 4.0, "box": [50.0, 50.0, 250.0, 200.0]}]
    assert not sink_["malformed"]


@pytest.mark.parametrize(
    "broken",
    [
        {"time": 0, "box": [1, 2, 3]},
        {"time": 0, "box": [9, 9, 1, 1]},
        {"time": 0, "box": "left"},
        {"time": 0, "box": [1, 2, 3, "4"]},
        {"time": 0, "box": [0, 0, float("inf"), 1]},
        {"time": 0, "box": [0, 0, 10**400, 1]},
        {"time": 0, "box": [True, False, True, True]},
        {"time": "soon", "box": [0, 0, 1, 1]},
        {"frame": 9, "box": [0, 0, 1, 1]},
        {"box": [0, 0, 1, 1]},
    ],
)
def test_a_broken_box_is_left_out_and_spoils_no_other(broken: dict[str, object]) -> None:
    good = {"object": "sink", "time": 4, "box": [0, 0, 10, 10]}
    sink_ = objects(named(spatial_tracking=[{"object": "sink", **broken}, good]))["sink"]
    assert [entry["timestamp"] for entry in sink_["boxes"]] == [4.0]
    assert sink_["malformed"]


def test_a_frame_without_a_box_is_not_broken() -> None:
    sink_ = objects(named(spatial_tracking=[{"object": "sink", "time": 0, "box": None}]))["sink"]
    assert (sink_["boxes"], sink_["malformed"]) == ([], False)


def test_entries_of_objects_that_were_not_named_are_dropped() -> None:
    given = named(temporal_grounding=[{"object": "lamp", "start": 0, "end": 1}])
    assert read(given).dropped == 1


def test_the_last_object_with_the_fields_counts_with_any_text_around_it() -> None:
    text = (
        f"<think>{json.dumps(named(explicit_object=['a']))}</think> Like {json.dumps({'explicit_object': ['b']})}, but"
    )
    assert list(objects(f"{text} rather\n{json.dumps(named())}\nDone.")) == ["sink", "faucet"]
    assert list(objects(f"Sure!\n```json\n{json.dumps(named())}\n```")) == ["sink", "faucet"]


@pytest.mark.parametrize(
    "text", ["", "sink", "[]", "{}", '{"temporal_grounding": []}', '["explicit_object"]', "{" * 99999]
)
def test_an_answer_without_the_fields_that_name_objects_is_a_parse_error(text: str) -> None:
    assert isinstance(TASK.parse(text, INPUTS, GRID), ParseError)


def test_an_answer_that_breaks_off_counts_as_far_as_its_entries_are_complete() -> None:
    track = [{"object": "sink", "time": t, "box": [0, 0, 100, 100]} for t in (0, 4, 8)]
    text = json.dumps(named(temporal_grounding=[{"object": "sink", "start": 0, "end": 8}], spatial_tracking=track))
    cut = text.rindex('"time": 8')
    parsed = read(text[:cut])
    item = objects(text[:cut])["sink"]
    assert [entry["timestamp"] for entry in item["boxes"]] == [0.0, 4.0]
    assert item["intervals"] == [[0, 8]]
    assert parsed.dropped == 1
    early = text[: text.index('"start"') + 12]
    assert isinstance(TASK.parse(early, INPUTS, GRID), ParseError) or objects(early)["sink"]["intervals"] == []


def test_every_shape_that_the_schema_allows_is_read_without_loss() -> None:
    import jsonschema

    answer = json.loads(
        '{"explicit_object": ["sink"], "implicit_object": ["chair 1", "chair 2"], "temporal_grounding": '
        '[{"object": "sink", "start": 0, "end": 4}], "spatial_tracking": '
        '[{"object": "chair 2", "time": 4, "box": [0, 0, 10, 10]}]}'
    )
    from tests.tog_bench.made import TrueObject, made_example

    example = made_example([TrueObject("sink", "explicit", [(0, 4)], {0: (0, 0, 1, 1)})])
    schema: Any = TASK.answer_schema(example)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(answer, schema)
    jsonschema.validate(json.loads(TASK.reference_answer(example, GRID)), schema)
    parsed = read(answer)
    assert (parsed.dropped, len(objects(answer))) == (0, 3)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**answer, "note": "x"}, schema)


def test_the_size_of_an_answer_is_bounded() -> None:
    answer = {
        "explicit_object": [f"thing {n} {'x' * 500}" for n in range(1000)] + ["sink"],
        "implicit_object": "y" * 10_000,
    }
    by_name = objects(answer)
    assert len(by_name) == MAX_OBJECTS
    assert all(len(name) <= MAX_NAME for name in by_name)
    spans = named(temporal_grounding={"sink": [[0, 1]] * 5000})
    assert len(objects(spans)["sink"]["intervals"]) <= MAX_INTERVALS
    boxes = named(spatial_tracking={"sink": [{"time": 0, "box": [0, 0, 1, 1]}] * (MAX_BOXES + 500)})
    assert len(objects(boxes)["sink"]["boxes"]) == MAX_BOXES
    assert read(boxes).dropped == 500


def test_names_of_objects_are_compared_once_however_many_entries_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def counted(name: str) -> str:
        nonlocal calls
        calls += 1
        return plain_name(name)

    monkeypatch.setattr(answers, "plain_name", counted)
    entries = [{"object": f"thing {n}", "start": 0, "end": 1} for n in range(1000)]
    read({"explicit_object": [f"name {n} x" for n in range(MAX_OBJECTS)], "temporal_grounding": entries})
    assert calls <= MAX_OBJECTS + 3 * len(entries)
