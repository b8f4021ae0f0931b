"""Properties of spatio_temporal_grounding, what it forgives in answers, and what it says of wrong input."""

import math

import pytest
from spatio_temporal_grounding import spatio_temporal_grounding

METRIC = "spatio_temporal_grounding"
BOX = [0, 0, 10, 10]
THING = {"category": "cup", "intervals": [[0, 4]], "boxes": {0: BOX, 4: BOX}}
TASK = {"kind": "explicit", "objects": [THING]}
RIGHT = {"match": 0, "intervals": [[0, 4]], "boxes": {0: BOX, 4: BOX}}


@pytest.mark.parametrize(
    "intervals",
    ["soon", 3, [3, 4], [[4, 2]], [["0", "4"]], [[0, 4], [1]], [[0, math.nan]], [[0, math.inf]], [None], {"start": 0}],
)
def test_broken_intervals_count_as_none_and_the_boxes_still_count(intervals):
    result = spatio_temporal_grounding([[RIGHT | {"intervals": intervals}]], [TASK])
    assert (result["O-Acc"], result["O-m_tIoU"], result["O-m_vIoU"], result["n_malformed"]) == (1, 0, 1, 1)


@pytest.mark.parametrize(
    "frame",
    [
        "left",
        7,
        [1, 2, 3],
        [5, 5, 5, 9],
        [9, 0, 1, 10],
        [0, 0, math.nan, 10],
        ["0", "0", "9", "9"],
        [[1], 2],
        [{}],
        [[9, 0, 1, 10]],
    ],
)
def test_a_broken_box_counts_as_missing_and_spoils_no_other(frame):
    for viou in ("reference", "union"):
        result = spatio_temporal_grounding([[RIGHT | {"boxes": {0: BOX, 4: frame}}]], [TASK], viou=viou)
        assert (result["O-m_tIoU"], result["O-m_vIoU"], result["n_malformed"]) == (1, 0.5, 1)


@pytest.mark.parametrize(
    "boxes", ["everywhere", 5, [BOX], [{"timestamp": 0}], {"first": BOX, None: BOX, True: BOX, "nan": BOX}]
)
def test_boxes_without_time_stamps_count_as_none(boxes):
    result = spatio_temporal_grounding([[RIGHT | {"boxes": boxes}]], [TASK])
    assert (result["O-m_tIoU"], result["O-m_vIoU"], result["n_malformed"]) == (1, 0, 1)


def test_columns_of_a_dataset_are_accepted(metric_class):
    datasets = pytest.importorskip("datasets")
    boxes = [{"timestamp": 0, "box": BOX}]
    answers = [[{"match": 0, "intervals": [[0, 2]], "boxes": boxes}], None]
    references = [{"kind": "explicit", "objects": [THING | {"boxes": boxes}]}] * 2
    table = datasets.Dataset.from_dict({"p": answers, "r": references})
    result = metric_class(keep_in_memory=True).compute(predictions=table["p"], references=table["r"])
    assert result == spatio_temporal_grounding(answers, references)


@pytest.mark.parametrize(
    "missing", [{}, {"intervals": None, "boxes": None}, {"intervals": [], "boxes": {0: [], 4: None}}]
)
def test_missing_grounding_scores_zero_and_is_not_broken(missing):
    result = spatio_temporal_grounding([[{"match": 0} | missing]], [TASK], viou="union")
    assert (result["O-Acc"], result["O-m_tIoU"], result["O-m_vIoU"], result["n_malformed"]) == (1, 0, 0, 0)


@pytest.mark.parametrize(
    ("predictions", "references", "error", "message"),
    [
        ([RIGHT], [TASK], TypeError, r"predictions\[0\]: is .* give a list of predicted objects"),
        ([["cup"]], [TASK], TypeError, r"predictions\[0\]\[0\]: is 'cup' .str.; give a dict with match"),
        ([[{"boxes": {}}]], [TASK], ValueError, r"predictions\[0\]\[0\]: match is missing"),
        ([[{"match": "0"}]], [TASK], TypeError, r"predictions\[0\]\[0\]: match is '0'; give the index"),
        ([[{"match": True}]], [TASK], TypeError, r"match is True"),
        ([[{"match": 1}]], [TASK], ValueError, r"match is 1; give the index of one of the 1 reference objects"),
        ([[{"match": -1}]], [TASK], ValueError, r"match is -1"),
        ([[RIGHT, RIGHT]], [TASK], ValueError, r"predictions\[0\]\[1\]: match is 0, as predictions\[0\]\[0\]'s"),
        ([[RIGHT]], [None], TypeError, r"references\[0\]: is None .NoneType.; give a dict with kind, objects"),
        ([[RIGHT]], [{"kind": "explicit"}], ValueError, r"references\[0\]: objects is missing"),
        (
            [[RIGHT]],
            [TASK | {"kind": "both"}],
            ValueError,
            r"references\[0\]: kind is 'both'; give explicit or implicit",
        ),
        ([[RIGHT]], [TASK | {"objects": []}], ValueError, r"references\[0\]: objects is empty"),
        ([[RIGHT]], [TASK | {"objects": THING}], TypeError, r"references\[0\].objects: is .*give a list"),
    ],
)
def test_wrong_input_is_named_with_its_place_and_remedy(predictions, references, error, message):
    with pytest.raises(error, match=message):
        spatio_temporal_grounding(predictions, references)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"category": 3}, TypeError, "category is 3, not a string"),
        ({"kind": "named"}, ValueError, "kind is 'named'"),
        ({"intervals": []}, ValueError, r"intervals is \[\]; give"),
        ({"intervals": [[4, 2]]}, ValueError, r"intervals is \[\[4, 2\]\]; give .* in seconds, start <= end"),
        ({"boxes": {}}, ValueError, "boxes is {}; give a dict of time stamps"),
        ({"boxes": "all"}, ValueError, "boxes is 'all'; give a dict of time stamps"),
        ({"boxes": {"start": BOX}}, ValueError, "boxes has the time stamp 'start'; give seconds"),
        ({"boxes": {"4": BOX, 4: BOX}}, ValueError, "boxes has the time stamp 4; give seconds, each time stamp once"),
        ({"boxes": {4: [9, 0, 1, 9]}}, ValueError, r"boxes has \[9, 0, 1, 9\] at 4 s; give one box"),
        ({"boxes": {4: [BOX, BOX]}}, ValueError, "boxes has .* at 4 s; give one box"),
        ({"boxes": {4: None}}, ValueError, "boxes has None at 4 s; give one box"),
    ],
)
def test_wrong_references_are_never_forgiven(change, error, message):
    with pytest.raises(error, match=r"references\[0\].objects\[0\]: " + message):
        spatio_temporal_grounding([[RIGHT]], [TASK | {"objects": [THING | change]}])
