"""Relation extraction: how answers are read."""

from __future__ import annotations

import json

import numpy as np
import pytest

from barista_bench.benchmarks.barista.relations import Relations
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.task import Example, FrameRef, ParseError, Prediction, Scored

TASK = Relations()
BOXES = BoxFormat()
ONE = {"source_id": 1, "target_id": 2, "relation_type": "position", "value": "on"}
TEXT = json.dumps(ONE)
INFINITE = json.dumps([ONE, {**ONE, "source_id": float("inf")}])


@pytest.mark.parametrize(
    ("answer", "relations", "dropped"),
    [
        (f"[{TEXT}]", [ONE], 0),
        ("[]", [], 0),
        (f"  \n[{TEXT}]\n ", [ONE], 0),
        (f"```json\n[{TEXT}]\n```", [ONE], 0),
        (f"Sure!\n```\n[{TEXT}]\n``` I hope this helps", [ONE], 0),
        (f"The relations are [{TEXT}].", [ONE], 0),
        (f"See [1] and [2, 3]: [{TEXT}]", [ONE], 0),
        ("See [1]. There are none: []", [], 0),
        (f"[{TEXT}, {{}}, 3, null]", [ONE], 3),
        ("[3, 4]", [], 2),
        (f"[{TEXT}, {TEXT}]", [ONE, ONE], 0),
        ('[{"source_id": "1", "target_id": 2.0, "relation_type": "position", "value": "on"}]', [ONE], 0),
        *(
            (f'[{{"source_id": {said}, "target_id": 2, "relation_type": "position", "value": "on"}}]', [ONE], 0)
            for said in ("true", "1.5", '" 1 "', '"+1"', '"0_1"', '"١"')
        ),
        *(
            (f'[{{"source_id": {said}, "target_id": 2, "relation_type": "position", "value": "on"}}]', [], 1)
            for said in ('"1.0"', '"ID 1"', "[1]", "null", "NaN")
        ),
        (
            '[{"source_id": 1, "target_id": 2, "relation_type": 5, "value": ["on"]}]',
            [{**ONE, "relation_type": "5", "value": "['on']"}],
            0,
        ),
        (f"so [[{TEXT}]]", [ONE], 0),
        ("so [[]]", [], 0),
        ("[[]]", [], 1),
        ('[{"source_id": 1, "target_id": 2, "relation_type": "position", "value": null}]', [], 1),
        (f"first [{TEXT}] then [{TEXT}, {TEXT}]", [ONE], 0),
    ],
)
def test_answers_are_read_as_released(answer: str, relations: list[dict], dropped: int) -> None:
    parsed = TASK.parse(answer, {}, BOXES)
    assert isinstance(parsed, Prediction)
    assert parsed.value["relations"] == relations
    assert parsed.dropped == dropped


def test_the_papers_protocol_drops_numbers_that_are_not_whole_and_fields_that_are_no_texts() -> None:
    entries = [{**ONE, "source_id": 1.5}, {**ONE, "target_id": True}, {**ONE, "value": 5}, ONE]
    parsed = Relations(options={"protocol": "paper"}).parse(json.dumps(entries), {}, BOXES)
    assert parsed == Prediction({"relations": [ONE]}, dropped=3)


def test_half_a_character_is_spelled_out_so_that_it_can_be_written_down() -> None:
    parsed = TASK.parse(json.dumps([{**ONE, "value": "o\ud83dn"}]), {}, BOXES)
    assert parsed == Prediction({"relations": [{**ONE, "value": "o\\ud83dn"}]})


def test_truths_of_unread_answers_count_in_the_pooled_figures_and_not_by_type() -> None:
    asked = Example("e", "barista", "relations", "", (FrameRef("v", 0),), {"objects": []}, {"relations": [ONE]})
    samples = [Scored(asked, Prediction({"relations": [ONE]})), Scored(asked, None)]
    both = [task.aggregate(samples) for task in (TASK, Relations(options={"protocol": "paper"}))]
    assert [figures["micro_recall"] for figures in both] == [0.5, 0.5]
    assert [figures["per_relation_type"]["position"]["recall"] for figures in both] == [1.0, 0.5]
    for task, figures in zip((TASK, Relations(options={"protocol": "paper"})), both, strict=True):
        drawn = task.statistics(samples).figures(np.ones((1, 2)))
        assert {name: values[0] for name, values in drawn.items()} == pytest.approx(
            {name: figures[name] for name in drawn}
        )


@pytest.mark.parametrize(
    "answer", ["", "no relations", TEXT, f"[{TEXT}", "see [1]", "[" * 100_000, "{}", "null", INFINITE]
)
def test_an_answer_without_an_array_is_a_parse_error(answer: str) -> None:
    assert isinstance(TASK.parse(answer, {}, BOXES), ParseError)
