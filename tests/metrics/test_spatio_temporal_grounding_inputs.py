"""Properties of spatio_temporal_grounding, what it forgives in answers, and what it says of wrong input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from spatio_temporal_grounding import MEASURES, spatio_temporal_grounding

BOX = [0, 0, 10, 10]
THING = {"category": "cup", "intervals": [[0, 4]], "boxes": {0: BOX, 4: BOX}}
TASK = {"kind": "explicit", "objects": [THING]}
RIGHT = {"match": 0, "intervals": [[0, 4]], "boxes": {0: BOX, 4: BOX}}
LEVELS = ("O-", "T-", "ST-")

# ---------------------------------------------------------------- properties

spans = st.tuples(st.integers(0, 20), st.integers(1, 20)).map(lambda s: [s[0] / 2, (s[0] + s[1]) / 2])
boxes = st.tuples(*[st.integers(0, 30)] * 2, *[st.integers(1, 30)] * 2).map(
    lambda b: [b[0], b[1], b[0] + b[2], b[1] + b[3]]
)
stamps = st.integers(0, 6)
kinds = st.sampled_from(["explicit", "implicit"])
objects = st.fixed_dictionaries(
    {
        "category": st.sampled_from("abc"),
        "kind": st.none() | kinds,
        "intervals": st.lists(spans, min_size=1, max_size=3),
        "boxes": st.dictionaries(stamps, boxes, min_size=1, max_size=4),
    }
)
tasks = st.fixed_dictionaries({"kind": kinds, "objects": st.lists(objects, min_size=1, max_size=4)})


@st.composite
def cases(draw, failures=True):
    reference = draw(tasks)
    if failures and draw(st.integers(0, 9)) == 0:
        return None, reference
    matches = draw(st.lists(st.sampled_from(range(len(reference["objects"]))), unique=True))
    answer = [
        {
            "match": match,
            "intervals": draw(st.lists(spans, max_size=3)),
            "boxes": draw(st.dictionaries(stamps, st.lists(boxes, max_size=2), max_size=4)),
        }
        for match in [*matches, *[None] * draw(st.integers(0, 1))]
    ]
    return answer, reference


columns = st.lists(cases(), min_size=1, max_size=4)
vious = st.sampled_from(["reference", "union"])


def scored(pairs, viou="reference"):
    return spatio_temporal_grounding([p[0] for p in pairs], [p[1] for p in pairs], viou=viou)


def fractions(result):
    return {name: result[name] for level in LEVELS for name in (level + measure for measure in MEASURES)} | {
        name: result[name] for name in ("O-Acc", "T-Acc", "coverage")
    }


@given(columns, vious)
def test_shares_are_bounded_and_stricter_levels_and_thresholds_are_never_higher(pairs, viou):
    result = scored(pairs, viou)
    assert all(0 <= value <= 1 for value in fractions(result).values())
    for measure in MEASURES:
        assert result["ST-" + measure] <= result["T-" + measure] + 1e-12
    for level in LEVELS:
        for name in ("R1", "AP", "vIoU"):
            assert result[f"{level}{name}@0.3"] >= result[f"{level}{name}@0.5"] >= result[f"{level}{name}@0.7"]
    assert (result["T-Acc"] == 1) == (result["O-Acc"] == 1)


@given(columns, vious)
def test_the_union_of_time_stamps_never_scores_higher(pairs, viou):
    reference, union = scored(pairs), scored(pairs, "union")
    for level in LEVELS:
        assert union[level + "m_vIoU"] <= reference[level + "m_vIoU"] + 1e-12
        assert union[level + "m_tIoU"] == reference[level + "m_tIoU"]


@given(columns, st.randoms(use_true_random=False))
def test_the_order_of_tasks_and_of_predicted_objects_does_not_matter(pairs, rng):
    shuffled = [(None if p is None else rng.sample(p, len(p)), r) for p, r in pairs]
    rng.shuffle(shuffled)
    assert fractions(scored(shuffled)) == pytest.approx(fractions(scored(pairs)))
    assert scored(shuffled)["by_kind"].keys() == scored(pairs)["by_kind"].keys()


@given(st.lists(tasks, min_size=1, max_size=4), vious)
def test_right_objects_at_the_wrong_time_and_place_score_zero_but_for_the_accuracy(references, viou):
    far, late = [900, 900, 901, 901], [[100, 101]]
    answers = [
        [{"match": i, "intervals": late, "boxes": dict.fromkeys(range(7), far)} for i in range(len(task["objects"]))]
        for task in references
    ]
    result = fractions(spatio_temporal_grounding(answers, references, viou=viou))
    assert {name for name, value in result.items() if value} == {"O-Acc", "T-Acc", "coverage"}


@given(columns, vious, st.randoms(use_true_random=False))
def test_a_better_box_a_better_interval_and_a_further_object_never_lower_a_score(pairs, viou, rng):
    before = scored(pairs, viou)
    answer, reference = pairs[0]
    if answer is None:
        answer = []
    matches = [item["match"] for item in answer]
    index = rng.randrange(len(reference["objects"]))
    target = reference["objects"][index]
    stamp = rng.choice(list(target["boxes"]))
    if index in matches:
        old = answer[matches.index(index)]
        frame = [*old["boxes"].get(stamp, []), target["boxes"][stamp]]
        better = old | {"intervals": target["intervals"], "boxes": old["boxes"] | {stamp: frame}}
        changed = [better if item is old else item for item in answer]
    else:
        changed = [*answer, {"match": index, "intervals": [], "boxes": {}}]
    after = scored([(changed, reference), *pairs[1:]], viou)
    assert all(after[name] >= value - 1e-12 for name, value in fractions(before).items())


# ---------------------------------------------------------------- broken answers


@pytest.mark.parametrize(
    "intervals",
    ["soon", 3, [3, 4], [[4, 2]], [["0", "4"]], [[0, 4], [1]], [[0, math.nan]], [[0, math.inf]], [None], {"start": 0}],
)
def test_broken_intervals_count_as_none_and_the_boxes_still_count(intervals):
    result = spatio_temporal_grounding([[RIGHT | {"intervals": intervals}]], [TASK])
    assert (result["O-Acc"], result["O-m_tIoU"], result["O-m_vIoU"], result["n_malformed"]) == (1, 0, 1, 1)


@pytest.mark.parametrize(
    "frame",
    ["left", 7, [1, 2, 3], [5, 5, 5, 9], [9, 0, 1, 10], [0, 0, math.nan, 10], ["0", "0", "9", "9"], [[1], 2], [{}]],
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


@pytest.mark.parametrize(
    "missing", [{}, {"intervals": None, "boxes": None}, {"intervals": [], "boxes": {0: [], 4: None}}]
)
def test_missing_grounding_scores_zero_and_is_not_broken(missing):
    result = spatio_temporal_grounding([[{"match": 0} | missing]], [TASK], viou="union")
    assert (result["O-Acc"], result["O-m_tIoU"], result["O-m_vIoU"], result["n_malformed"]) == (1, 0, 0, 0)


def test_arrays_and_tensors_are_accepted():
    answer = RIGHT | {"match": np.int64(0), "intervals": np.array([[0, 4]]), "boxes": {np.float32(0): np.array(BOX)}}
    assert spatio_temporal_grounding([[answer]], [TASK])["O-m_vIoU"] == 0.5
    torch = pytest.importorskip("torch")
    tensors = {"intervals": torch.tensor([[0.0, 4.0]]), "boxes": {0: torch.tensor([BOX, BOX]), 4: torch.tensor(BOX)}}
    assert spatio_temporal_grounding([[RIGHT | tensors]], [TASK])["O-m_vIoU"] == 1


# ---------------------------------------------------------------- errors


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


def test_an_unknown_viou_is_refused():
    with pytest.raises(ValueError, match="viou is 'mean'; give reference or union"):
        spatio_temporal_grounding([[RIGHT]], [TASK], viou="mean")
