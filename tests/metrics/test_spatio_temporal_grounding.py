"""The arithmetic of spatio_temporal_grounding: against a slow reference, by hand, and against the paper's tables."""

import math
import random

import pytest
from spatio_temporal_grounding import MEASURES, box_iou, spatio_temporal_grounding, temporal_iou

from tests.metrics.conftest import assert_metrics, slow_iou

BOX = [0, 0, 10, 10]
LOW = [0, 0, 10, 4]  # IoU 0.4 with BOX


def thing(intervals=((0, 4),), boxes=None, category="cup", **more):
    return {"category": category, "intervals": intervals, "boxes": boxes or {0: BOX, 4: BOX}} | more


def task(*objects, kind="explicit"):
    return {"kind": kind, "objects": list(objects)}


def answer(match, intervals=((0, 4),), boxes=None):
    return {"match": match, "intervals": intervals, "boxes": {0: BOX, 4: BOX} if boxes is None else boxes}


def cells(intervals):
    """Half seconds in a set of intervals with whole seconds as ends."""
    return {half for start, end in intervals for half in range(2 * start, 2 * end)}


def slow_t_iou(predicted, reference):
    if len(predicted) == len(reference) == 1:  # V-STaR's formula, unchanged
        (s, e), (start, end) = predicted[0], reference[0]
        return max(0, min(e, end) - max(s, start)) / (max(e, end) - min(s, start))
    mine, theirs = cells(predicted), cells(reference)
    return len(mine & theirs) / len(mine | theirs)


def slow_object(predicted, reference, viou):
    if predicted is None:
        return dict.fromkeys(MEASURES, 0.0) | {"Acc": 0}
    t_iou = slow_t_iou(predicted["intervals"], reference["intervals"]) if predicted["intervals"] else 0.0
    per_frame = []
    for second in range(12):
        mine, theirs = predicted["boxes"].get(str(second), []), reference["boxes"].get(second)
        if theirs is not None:
            per_frame.append(max([slow_iou(box, theirs) for box in mine], default=0.0))
        elif mine and viou == "union":
            per_frame.append(0.0)
    row = {"Acc": 1, "m_tIoU": t_iou, "m_vIoU": sum(per_frame) / len(per_frame)}
    for t in (0.3, 0.5, 0.7):
        row[f"R1@{t}"] = 1 if t_iou >= t else 0
        row[f"AP@{t}"] = len([iou for iou in per_frame if iou >= t]) / len(per_frame)
        row[f"vIoU@{t}"] = 1 if row["m_vIoU"] > t else 0
    return row


def mean(values):
    return sum(values) / len(values) if values else None


def slow_metrics(tasks):
    """tasks: (kind, rows, object kinds), rows as slow_object's."""
    rows = [row for _, part, _ in tasks for row in part]
    kinds = [kind for _, _, part in tasks for kind in part]
    metrics = {"O-Acc": mean([row["Acc"] for row in rows])}
    for name, kind in (("EAcc", "explicit"), ("IAcc", "implicit")):
        metrics[name] = mean([row["Acc"] for row, asked_kind in zip(rows, kinds, strict=True) if asked_kind == kind])
    metrics["T-Acc"] = mean([float(all(row["Acc"] for row in part)) for _, part, _ in tasks])
    for name in MEASURES:
        metrics[f"O-{name}"] = mean([row[name] for row in rows])
        metrics[f"T-{name}"] = mean([mean([row[name] for row in part]) for _, part, _ in tasks])
        strict = [mean([row[name] for row in part]) if all(row["Acc"] for row in part) else 0 for _, part, _ in tasks]
        metrics[f"ST-{name}"] = mean(strict)
    return metrics


def slow_grounding(predictions, references, viou):
    tasks = []
    for prediction, reference in zip(predictions, references, strict=True):
        rows = []
        for index, item in enumerate(reference["objects"]):
            matches = [p for p in prediction or [] if p["match"] == index]
            rows.append(slow_object(matches[0] if matches else None, item, viou))
        kinds = [item.get("kind", reference["kind"]) for item in reference["objects"]]
        tasks.append((reference["kind"], rows, kinds))
    parts = {"all": tasks}
    for row in tasks:
        for group in (row[0], ("1", "2", "3+")[min(len(row[1]), 3) - 1]):
            parts.setdefault(group, []).append(row)
    return {group: slow_metrics(part) for group, part in parts.items()}


def random_intervals(rng, most=3):
    starts = [rng.randrange(10) for _ in range(rng.randint(1, most) if rng.random() < 0.5 else 1)]
    return [[start, rng.randint(start + 1, 11)] for start in starts]


def random_box(rng):
    x0, y0 = rng.randrange(10), rng.randrange(10)
    return [x0, y0, rng.randint(x0 + 1, 11), rng.randint(y0 + 1, 11)]


def random_case(rng):
    kind = rng.choice(["explicit", "implicit"])
    objects = []
    for _ in range(rng.randint(1, 4)):
        boxes = {second: random_box(rng) for second in rng.sample(range(12), rng.randint(1, 6))}
        settings = {"kind": rng.choice(["explicit", "implicit"])} if rng.random() < 0.3 else {}
        objects.append(thing(random_intervals(rng), boxes, rng.choice("ab")) | settings)
    given = []
    for index, item in enumerate(objects):
        if rng.random() < 0.8:
            near = {str(s): [item["boxes"].get(s, BOX)] for s in range(12) if rng.random() < 0.4}
            other = {str(s): [random_box(rng) for _ in range(rng.randint(1, 3))] for s in rng.sample(range(12), 3)}
            intervals = rng.choice([[], item["intervals"], random_intervals(rng), random_intervals(rng)])
            given.append({"match": index, "intervals": intervals, "boxes": near | other})
    given += [answer(None)] * rng.randint(0, 1)
    rng.shuffle(given)
    return None if rng.random() < 0.1 else given, task(*objects, kind=kind)


@pytest.mark.parametrize("n_cases", [100, pytest.param(1000, marks=pytest.mark.full)])
@pytest.mark.parametrize("viou", ["reference", "union"])
def test_equals_a_slow_reference_on_random_cases(viou, n_cases):
    rng = random.Random(0)
    for _ in range(n_cases):
        cases = [random_case(rng) for _ in range(rng.randint(1, 4))]
        predictions, references = [c[0] for c in cases], [c[1] for c in cases]
        got = spatio_temporal_grounding(predictions, references, viou=viou)
        groups = slow_grounding(predictions, references, viou)
        assert_metrics(got, groups.pop("all"))
        found = got["by_kind"] | got["by_number_of_objects"]
        assert found.keys() == groups.keys()
        for name, want in groups.items():
            assert_metrics(found[name], want)


def test_overlaps_of_boxes_equal_counted_pixels_and_overlaps_of_intervals_counted_seconds():
    rng = random.Random(1)
    for _ in range(500):
        a, b = random_box(rng), random_box(rng)
        assert box_iou(a, b) == pytest.approx(slow_iou(a, b), abs=1e-15)
        mine, theirs = random_intervals(rng), random_intervals(rng)
        assert temporal_iou(mine, theirs) == pytest.approx(slow_t_iou(mine, theirs), abs=1e-15)


@pytest.mark.parametrize(
    ("predicted", "reference", "want"),
    [
        ([(0, 4)], [(2, 6)], 1 / 3),
        ([], [(0, 4)], 0),
        ([(0, 3), (1, 4)], [(0, 4)], 1),  # overlapping intervals are a union, not a sum
        ([(3, 3)], [(3, 3)], 1),
        ([(3, 3)], [(4, 4)], 0),
        ([(2, 4)], [(3, 3)], 0),
    ],
)
def test_the_temporal_overlap_is_as_computed_by_hand(predicted, reference, want):
    assert temporal_iou(predicted, reference) == want


def test_the_best_of_several_boxes_counts_and_time_stamps_are_numbers():
    answers = [answer(0, boxes={"0": [[5, 5, 6, 6], LOW], "4.0": LOW})]
    result = spatio_temporal_grounding([answers], [task(thing())])
    assert result["O-m_vIoU"] == pytest.approx(0.4)
    assert (result["O-AP@0.3"], result["O-AP@0.5"]) == (1, 0)
    as_list = [answer(0, boxes=[{"timestamp": 0, "box": [5, 5, 6, 6]}, {"timestamp": 0, "box": LOW}])]
    assert spatio_temporal_grounding([as_list], [task(thing())])["O-m_vIoU"] == pytest.approx(0.2)
    noisy = {0.1 + 0.2: BOX}
    assert spatio_temporal_grounding([[answer(0, boxes=noisy)]], [task(thing(boxes={0.3: BOX}))])["O-m_vIoU"] == 1


def test_accuracies_by_level_equal_values_computed_by_hand():
    two, single = task(thing(), thing(kind="implicit")), task(thing(), kind="implicit")
    result = spatio_temporal_grounding([[answer(0, [[0, 2]]), answer(None)], [answer(0)], None], [two, single, single])
    assert (result["O-Acc"], result["EAcc"], result["IAcc"]) == (2 / 4, 1, pytest.approx(1 / 3))
    assert (result["O-m_tIoU"], result["O-m_vIoU"]) == (1.5 / 4, 2 / 4)
    assert result["T-Acc"] == pytest.approx(1 / 3)
    assert result["T-m_tIoU"] == pytest.approx((0.25 + 1 + 0) / 3)
    assert result["T-m_vIoU"] == pytest.approx((0.5 + 1 + 0) / 3)
    assert result["ST-m_tIoU"] == result["ST-m_vIoU"] == pytest.approx(1 / 3)
    assert (result["n"], result["n_failed"], result["n_objects"], result["n_extra"]) == (3, 1, 4, 1)
    assert result["coverage"] == pytest.approx(2 / 3)
    assert list(result["by_kind"]) == ["explicit", "implicit"]
    assert result["by_kind"]["implicit"]["T-Acc"] == 0.5
    assert result["by_kind"]["implicit"]["EAcc"] is None
    assert list(result["by_number_of_objects"]) == ["1", "2"]
    assert result["per_category"] == {"cup": {"Acc": 0.5, "m_tIoU": 0.375, "m_vIoU": 0.5, "n_objects": 4}}


METRIC = "spatio_temporal_grounding"
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
def test_wrong_references_raise_an_error(change, error, message):
    with pytest.raises(error, match=r"references\[0\].objects\[0\]: " + message):
        spatio_temporal_grounding([[RIGHT]], [TASK | {"objects": [THING | change]}])
