"""A few examples for every metric, which tests/conformance/test_metrics.py holds to the same list."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sample:
    """A few examples of one configuration of a metric, at least three; one of them has failed.

    `columns`: plain lists that survive JSON. `failure`: what stands for an example without a usable answer.
    `perfect`, `all_wrong`: predictions in place of the sample's own, which give `headline` (a dotted path into the
    result) its `highest` and its `lowest` value. `wrong`: (column, an example of the wrong type, what the error must
    name) beside the wrong types that are tried with every metric. `function`: what of the folder takes these columns
    and gives the same result, called as the folder if empty; None where there is none. `options`: keywords of `compute`
    that change the result. `wrong_options`: (keywords of `compute`, what the error must say). `in_order`: parts of the
    result that list the examples in their order. `arrays`: whether there are lists of numbers, which may then come as
    arrays and tensors.
    `in_arrow`: whether a `datasets` column holds them as they are; boxes by the name of a frame are no Arrow type.
    """

    columns: dict[str, list[Any]]
    headline: str
    perfect: list[Any]
    all_wrong: list[Any]
    highest: float = 1.0
    lowest: float = 0.0
    config: str | None = None
    failure: Any = None
    wrong: tuple[tuple[str, Any, str], ...] = ()
    function: str | None = ""
    options: tuple[dict[str, Any], ...] = ()
    wrong_options: tuple[tuple[dict[str, Any], str], ...] = ()
    in_order: frozenset[str] = field(default_factory=frozenset)
    arrays: bool = True
    in_arrow: bool = True


def relation(source: Any, target: Any, kind: Any, value: Any) -> dict[str, Any]:
    return {"source_id": source, "target_id": target, "relation_type": kind, "value": value}


ON, HOLDS = relation(1, 2, "position", "on"), relation(3, 1, "human_actions", "holds")
CUP = {"hand_boxes": [[0, 0, 4, 4]], "object_box": [3, 3, 9, 9], "hand_type": "left"}
LID = {"hand_boxes": [[20, 0, 24, 4], [30, 0, 34, 4]], "object_box": [22, 3, 28, 9], "hand_type": "both"}
FAR = {"hand_boxes": [[90, 90, 94, 94.5]], "object_box": [80, 80, 86, 86.5], "hand_type": "right"}
OPTIONS = ["cup", "lid", "spoon", "milk"]
CUPS = {"boxes": [[10, 10, 50, 50], [60, 10, 100, 50]], "labels": ["cup", "cup"]}
A_LID = {"boxes": [[30, 30, 90, 90]], "labels": ["lid"]}
LEFT, RIGHT = [[1, 1, 0, 0, 0, 0, 0]] * 3, [[0, 0, 0, 0, 0, 1, 1]] * 3
PALM, THUMB, FIST = ({"size": [1, 8], "counts": counts} for counts in ("125", "521", "71"))
BOTH = {"1": PALM, "2": THUMB}
NOTHING_THERE = {"boxes": [[200, 200, 240, 240]], "labels": ["cup"]}


def boxes(rows: list[list[float]], label: str, scores: list[float]) -> dict[str, Any]:
    return {"boxes": rows, "labels": [label] * len(rows), "scores": scores}


def task(kind: str, *objects: tuple[str, list[float], dict[str, list[float]]]) -> dict[str, Any]:
    fields = ({"category": name, "intervals": [interval], "boxes": boxes} for name, interval, boxes in objects)
    return {"kind": kind, "objects": list(fields)}


def answered(match: int, interval: list[float], boxes: dict[str, list[float]]) -> dict[str, Any]:
    return {"match": match, "intervals": [interval], "boxes": boxes}


ONE_BOX, TWO_BOXES = {"2": [0, 0, 10, 10]}, {"2": [0, 0, 10, 10], "4": [5, 0, 15, 10]}
OFF_BOXES = {"2": [0, 0, 10, 8], "5": [5, 0, 15, 10]}
FETCH_CUP = task("explicit", ("cup", [2, 6], TWO_BOXES))
FETCH_BOTH = task("implicit", ("cup", [2, 6], TWO_BOXES), ("lid", [1, 3], ONE_BOX))
GOT_CUP, GOT_BOTH = [answered(0, [2, 6], TWO_BOXES)], [answered(0, [2, 6], TWO_BOXES), answered(1, [1, 3], ONE_BOX)]


def timed(subject: str, relation: str, item: str, start: Any, end: Any) -> dict[str, Any]:
    return {"subject": subject, "relation": relation, "object": item, "start": start, "end": end}


HELD, LAID = timed("hand", "holds", "cup", 0, 4), timed("cup", "on", "table", 2, 8)


SAMPLES: dict[str, list[Sample]] = {
    "tuple_f1": [
        Sample(
            columns={
                "predictions": [None, [ON, HOLDS], [], [HOLDS, HOLDS]],
                "references": [[ON], [ON], [HOLDS], [HOLDS]],
            },
            headline="micro_f1",
            perfect=[[ON], [ON], [HOLDS], [HOLDS]],
            all_wrong=[[HOLDS], [HOLDS], [], [ON]],
            wrong=(
                ("predictions", [relation(1, "2", "position", "on")], "target_id"),
                ("predictions", [relation(1, 2, 3, "on")], "relation_type is 3"),
            ),
            arrays=False,
        )
    ],
    "interaction_f1": [
        Sample(
            columns={
                "predictions": [None, [CUP, FAR], [], [LID, LID]],
                "references": [[CUP], [CUP], [LID], [CUP, LID]],
            },
            headline="f1",
            perfect=[[CUP], [CUP], [LID], [CUP, LID]],
            all_wrong=[[FAR], [LID], [], [FAR]],
            wrong=(
                ("predictions", [CUP | {"object_box": "left"}], "object_box"),
                ("references", [CUP | {"hand_type": 3}], "hand_type is 3"),
            ),
            options=({"matching": "optimal"},),
            wrong_options=(({"matching": "best"}, "matching is 'best'"),),
        )
    ],
    "choice_accuracy": [
        Sample(
            columns={
                "predictions": [None, 0, 1, 2],
                "references": [0, 0, 0, 2],
                "classes": [None, "lid", "cup", "cup"],
                "verbs": [None, "open", None, "turn"],
                "choices": [None, [0, 1, 2], [0, 1, 2], [0, 1, 2]],
            },
            headline="accuracy",
            perfect=[0, 0, 0, 2],
            all_wrong=[1, 1, 2, 0],
            wrong=(("choices", 3.5, "choices"), ("classes", 3.5, "classes")),
        ),
        Sample(
            config="multi_answer",
            function="multi_answer",
            columns={
                "predictions": [None, ["cup"], [], ["lid", "cup"]],
                "references": [["cup"], ["cup"], ["lid"], ["lid"]],
                "choices": [OPTIONS] * 4,
            },
            headline="average_precision",
            perfect=[["cup"], ["cup"], ["lid"], ["lid"]],
            all_wrong=[["lid", "milk", "spoon"], ["lid", "milk", "spoon"], ["cup", "milk"], ["milk"]],
            # Every right option is last, and one option in four is right.
            lowest=0.25,
            arrays=False,
        ),
    ],
    "judge_score": [
        Sample(
            columns={
                "predictions": [
                    None,
                    {"accuracy": [8, 10], "completeness": [6, 6]},
                    {"accuracy": [4, 5], "completeness": [7, 7]},
                    {"accuracy": [0, 1], "completeness": [2, 2]},
                ],
                "references": ["state_change", "state_change", "relation_change", "state_change"],
            },
            headline="mean",
            perfect=[{"accuracy": [10], "completeness": [10]}] * 4,
            all_wrong=[{"accuracy": [0], "completeness": [0]}] * 4,
            wrong=(
                ("predictions", {"accuracy": ["high"]}, "accuracy"),
                ("predictions", {"accuracy": [-1]}, "is -1, outside 0 upwards"),
                ("references", 1, "is 1"),
            ),
            options=({"scale": 20},),
        ),
        Sample(
            config="agreement",
            function=None,
            failure={"a": None, "b": None},
            columns={
                "predictions": [{"a": None, "b": None}, {"a": 3, "b": 4}, {"a": 9, "b": 9}, {"a": 5, "b": 2}],
                "references": ["one", "one", "two", "two"],
            },
            headline="mean.exact",
            perfect=[{"a": 3, "b": 3}, {"a": 4, "b": 4}, {"a": 9, "b": 9}, {"a": 5, "b": 5}],
            all_wrong=[{"a": 3, "b": 4}, {"a": 4, "b": 5}, {"a": 9, "b": 8}, {"a": 5, "b": 6}],
            arrays=False,
        ),
        Sample(
            config="egocot",
            function=None,
            failure={"score": None, "correct": False},
            columns={
                "predictions": [
                    {"score": None, "correct": False},
                    {"score": 4, "correct": True},
                    {"score": 1, "correct": True},
                    {"score": 3, "correct": False},
                ],
                "references": ["AOG", "AOG", "HOA", "HOA"],
            },
            headline="accuracy",
            perfect=[{"score": 5, "correct": True}] * 4,
            all_wrong=[{"score": 0, "correct": False}] * 4,
            highest=100.0,
            wrong=(
                ("predictions", {"score": "high", "correct": True}, "score"),
                ("predictions", {"score": 5}, "has the keys ['score']"),
                ("predictions", {"score": 6, "correct": True}, "is 6, outside"),
            ),
            arrays=False,
        ),
    ],
    "mean_ap": [
        Sample(
            columns={
                "predictions": [
                    None,
                    boxes([[10, 10, 50, 46]], "cup", [0.9]),
                    boxes([[30, 30, 90, 80], [0, 0, 9, 9]], "lid", [0.8, 0.1]),
                    boxes([[60, 10, 100, 50]], "cup", [0.7]),
                ],
                "references": [CUPS, CUPS, A_LID, CUPS],
            },
            headline="map",
            perfect=[CUPS, CUPS, A_LID, CUPS],
            all_wrong=[NOTHING_THERE] * 4,
            wrong=(
                ("predictions", {"boxes": "left", "labels": ["cup"]}, "boxes"),
                ("predictions", {"boxes": [[1, 2]]}, "boxes has the"),
            ),
            options=({"rounding": "float32"},),
            wrong_options=(({"iou_type": "segm"}, "masks is missing"),),
        )
    ],
    "region_boundary": [
        Sample(
            columns={
                "predictions": [None, [LEFT, LEFT], [RIGHT, None, LEFT], [LEFT]],
                "references": [[LEFT], [LEFT, RIGHT], [RIGHT, LEFT, LEFT], [LEFT]],
            },
            headline="J&F_mean",
            perfect=[[LEFT], [LEFT, RIGHT], [RIGHT, LEFT, LEFT], [LEFT]],
            all_wrong=[[RIGHT], [RIGHT, LEFT], [LEFT, RIGHT, RIGHT], [RIGHT]],
            wrong=(("predictions", [LEFT, "right"], "predictions[1][1]"),),
            options=({"tolerance": 3},),
            wrong_options=(({"tolerance": 0}, "tolerance is 0"),),
            in_order=frozenset({"per_object"}),
        )
    ],
    "sequence_matching": [
        Sample(
            columns={
                "predictions": [
                    None,
                    [[0.9, 0.8], [0.7, 0.2]],
                    [[5, 1, 1], [3, 3, 0], [1, 1, 4]],
                    [[0.1, 0.2], [0.3, 0.2]],
                ],
                "references": [[0, 1], [1, 0], [0, 1, 2], [0, 1]],
            },
            headline="macro_f1",
            perfect=[[[1, 0], [0, 1]], [[0, 1], [1, 0]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[1, 0], [0, 1]]],
            all_wrong=[[[0, 1], [1, 0]], [[1, 0], [0, 1]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[0, 1], [1, 0]]],
            wrong=(
                ("references", {"labels": "first"}, "label"),
                ("references", {"label": [0, 1]}, "has the keys"),
                ("predictions", [["x", 0], [0, 1]], "is 'x'"),
            ),
            options=({"standardise": "raw"},),
            wrong_options=(({"ties": "last"}, "ties: is 'last'"),),
            in_order=frozenset({"per_set"}),
        )
    ],
    "temporal_segmentation": [
        Sample(
            columns={
                "predictions": [None, ["pour", "pour", None], ["stir", "pour", "pour"], ["pour", "stir"]],
                "references": [["pour", None], ["pour", "pour", "stir"], ["stir", "stir", "pour"], ["pour", "pour"]],
            },
            headline="f1_50",
            perfect=[["pour", None], ["pour", "pour", "stir"], ["stir", "stir", "pour"], ["pour", "pour"]],
            all_wrong=[["stir", None], ["stir", "stir", None], [None, None, "stir"], ["stir", "stir"]],
            wrong=(
                ("predictions", ["pour", 3, None], "predictions[1][1]"),
                ("predictions", ["pour"], "has 1 labels"),
                ("references", [], "is empty"),
            ),
            arrays=False,
        )
    ],
    "tracking": [
        Sample(
            columns={
                "predictions": [None, [BOTH, {"1": THUMB, "2": PALM}], [{}, {"7": PALM}], [{"a": THUMB}]],
                "references": [[{"1": PALM}], [BOTH] * 2, [{"1": PALM}] * 2, [{"2": THUMB}]],
            },
            headline="HOTA",
            perfect=[[{"a": PALM}], [{"a": PALM, "b": THUMB}] * 2, [{"a": PALM}] * 2, [{"a": THUMB}]],
            all_wrong=[[{}], [{"1": FIST}] * 2, [{"1": FIST}, {}], [{"1": PALM}]],
            wrong=(
                ("predictions", [{"1": PALM}, {"1": "left"}], "predictions[1][1]['1']"),
                ("predictions", [{"1": PALM}, {"1": {"size": [1, 9], "counts": "022"}}], "does not fill the 1 x 9"),
                ("predictions", [{}, {"1": {"size": [1, 8], "counts": "8"}}, {}], "has 3 frames"),
            ),
            in_order=frozenset({"per_sequence"}),
        )
    ],
    "temporal_relations": [
        Sample(
            columns={
                "predictions": [None, [HELD, LAID | {"end": 4}], [], [LAID, LAID]],
                "references": [[HELD], [HELD, LAID], [LAID], [LAID]],
            },
            headline="segment_iou",
            perfect=[[HELD], [LAID, HELD], [LAID], [LAID]],
            all_wrong=[[LAID], [], [HELD], [HELD | {"start": 8, "end": 9}]],
            wrong=(
                ("predictions", [HELD | {"start": 4}], "end after the start"),
                ("references", [HELD | {"start": "0"}], "start is '0'"),
                ("predictions", [{"subject": "hand"}], "give subject, relation, object, start, end"),
            ),
            arrays=False,
        )
    ],
    "spatio_temporal_grounding": [
        Sample(
            columns={
                "predictions": [None, [answered(0, [2, 4], OFF_BOXES)], GOT_BOTH, [answered(1, [1, 3], ONE_BOX)]],
                "references": [FETCH_CUP, FETCH_CUP, FETCH_BOTH, FETCH_BOTH],
            },
            headline="ST-m_tIoU",
            perfect=[GOT_CUP, GOT_CUP, GOT_BOTH, GOT_BOTH],
            all_wrong=[[], [answered(0, [8, 9], {"9": [50, 50, 60, 60]})], [], []],
            wrong=(("references", FETCH_CUP | {"kind": 3}, "kind"), ("predictions", [{"match": 5}], "match is 5")),
            options=({"viou": "union"},),
            wrong_options=(({"viou": "all"}, "viou is 'all'"),),
            in_arrow=False,
        )
    ],
}
