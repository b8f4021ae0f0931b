"""What every propagator holds to, the baselines' masks, and objects found again over segments."""

import pytest
from hypothesis import given, strategies as st

from barista_bench.annotate.flow_propagation import FlowPropagator
from barista_bench.annotate.identities import link_identities
from barista_bench.annotate.lucas_kanade import LucasKanade
from barista_bench.annotate.propagation import CopyNearest, FrameMasks, PropagatedMask, Propagator
from barista_bench.errors import DataError
from barista_bench.media.video import FrameReader
from barista_bench.scene_graph import Rle, decode_mask
from barista_bench.scene_graph.masks import mask_ious
from tests.annotate.scenes import NOTHING, keyframes, rectangle, reference

PROPAGATORS = [CopyNearest(), LucasKanade(), FlowPropagator()]
every_propagator = pytest.mark.parametrize("propagator", PROPAGATORS, ids=lambda p: p.identity.name)


@every_propagator
def test_every_frame_of_the_span_comes_once_and_keyframes_come_as_given(
    propagator: Propagator, scene: FrameReader
) -> None:
    results = list(propagator.propagate(scene, keyframes(10, 20), range(6, 25)))
    assert [result.frame for result in results] == list(range(6, 25))
    for frame in (10, 20):
        masks = results[frame - 6].masks
        assert {name: mask.rle for name, mask in masks.items()} == reference(frame)
        assert {mask.confidence for mask in masks.values()} == {1.0}
    assert all(0 <= mask.confidence <= 1 for result in results for mask in result.masks.values())


@every_propagator
def test_keyframes_without_objects_give_frames_without_masks(propagator: Propagator, scene: FrameReader) -> None:
    assert list(propagator.propagate(scene, {2: {}}, range(4))) == [FrameMasks(frame, {}) for frame in range(4)]


@every_propagator
def test_objects_overlap(propagator: Propagator, scene: FrameReader) -> None:
    for _, masks in propagator.propagate(scene, keyframes(0, 6), range(7)):
        box, lid = (decode_mask(masks[name].rle) for name in ("box", "lid"))
        assert (box & lid).sum() > 0.9 * lid.sum()


@every_propagator
def test_an_object_that_is_absent_is_left_out_and_one_not_mentioned_is_bridged(
    propagator: Propagator, scene: FrameReader
) -> None:
    given = {0: reference(0), 8: {"box": reference(8)["box"]}, 16: reference(16)}
    absent = given | {8: given[8] | {"lid": NOTHING}}
    bridged, gone = (
        {result.frame: set(result.masks) for result in propagator.propagate(scene, masks, range(17))}
        for masks in (given, absent)
    )
    assert bridged[8] == {"box", "lid"}
    assert gone[8] == gone[7] == gone[9] == {"box"}
    assert gone[1] == gone[15] == {"box", "lid"}


@every_propagator
@pytest.mark.parametrize(
    ("masks", "span", "named"),
    [
        ({}, range(5), "no keyframe"),
        (keyframes(7), range(5), "keyframe 7 is outside"),
        (keyframes(7), range(500), "cannot propagate"),
        (keyframes(0), range(0, 5, 2), "cannot propagate"),
        ({2: {"box": Rle("00", (0, 0))}}, range(5), "keyframe 2: the mask of 'box' is 0x0 px"),
    ],
)
def test_a_mask_that_cannot_be_propagated_is_named(
    propagator: Propagator, scene: FrameReader, masks: object, span: range, named: str
) -> None:
    with pytest.raises(DataError, match=rf"frames: .*{named}.*Fix: "):
        next(propagator.propagate(scene, masks, span))  # type: ignore[arg-type]


def test_the_nearest_mask_is_copied_the_earlier_of_two(scene: FrameReader) -> None:
    results = list(CopyNearest().propagate(scene, keyframes(0, 4), range(7)))
    nearest = [0, 0, 0, 4, 4, 4, 4]
    assert [result.masks["box"].rle for result in results] == [reference(frame)["box"] for frame in nearest]
    assert [result.masks["box"].confidence for result in results] == [1, 1 / 2, 1 / 3, 1 / 2, 1, 1 / 2, 1 / 3]


def test_lucas_kanade_follows_an_object_that_leaves_its_mask(scene: FrameReader) -> None:
    box = reference(0)["box"]
    *_, (_, masks) = LucasKanade().propagate(scene, {0: {"box": box}}, range(24))
    truth = reference(23)["box"]
    assert mask_ious([box], [truth])[0, 0] < 0.1
    assert mask_ious([masks["box"].rle], [truth])[0, 0] > 0.65


def test_lucas_kanade_leaves_a_mask_without_corners_where_it_is(scene: FrameReader) -> None:
    speck = rectangle(100, 50, 2, 1)
    results = LucasKanade().propagate(scene, {0: {"speck": speck}}, range(5))
    assert [result.masks["speck"].rle for result in results] == [speck] * 5


def frame(index: int, **rles: Rle) -> FrameMasks:
    return FrameMasks(index, {name: PropagatedMask(rle, 1.0) for name, rle in rles.items()})


def linked(before: list[FrameMasks], after: list[FrameMasks], *, threshold: float = 0.5) -> dict[str, str]:
    """Links of objects that are all of one category."""
    names = {name for part in (before, after) for _, masks in part for name in masks}
    return link_identities(before, after, dict.fromkeys(names, "cup"), threshold)


LEFT, RIGHT, FAR = rectangle(0, 0, 40, 40), rectangle(20, 0, 40, 40), rectangle(100, 40, 30, 30)


def test_masks_link_objects_under_any_ids() -> None:
    before = [frame(k, **reference(k)) for k in range(4)]
    after = [frame(k, a=reference(k)["lid"], b=reference(k)["box"], c=FAR) for k in range(4)]
    assert linked(before, after) == {"a": "lid", "b": "box"}


def test_agreement_counts_every_frame_on_which_either_is_seen() -> None:
    before = [frame(0, cup=LEFT), frame(1, cup=LEFT), frame(2), frame(3)]
    after = [frame(0, x=LEFT), frame(1), frame(2, x=LEFT), frame(3)]
    assert linked(before, after, threshold=0.33) == {"x": "cup"}  # 1 of 3
    assert linked(before, after, threshold=0.34) == {}


def test_links_are_the_best_together_and_never_one_below_the_threshold() -> None:
    before = [frame(0, p=LEFT, q=RIGHT)]
    moved = frame(0, x=rectangle(2, 0, 40, 40), y=rectangle(22, 0, 40, 40))
    assert linked(before, [moved]) == {"x": "p", "y": "q"}
    # LEFT and RIGHT share a third of their union.
    assert linked([frame(0, p=LEFT)], [frame(0, x=RIGHT)]) == {}
    assert linked([frame(0, p=LEFT)], [frame(0, x=RIGHT)], threshold=0.3) == {"x": "p"}


def test_a_pair_below_the_threshold_takes_no_object_from_a_pair_above_it() -> None:
    p, x, y, q = (rectangle(start, 0, 60, 40) for start in (40, 57, 17, 80))  # p-x: .56, p-y and q-x: .45 each
    assert linked([frame(0, p=p, q=q)], [frame(0, x=x, y=y)]) == {"x": "p"}
    assert linked([frame(0, p=p, q=q)], [frame(0, x=x, y=y)], threshold=0.4) == {"x": "q", "y": "p"}


@given(st.permutations(range(4)), st.integers(0, 3))
def test_a_segment_is_linked_to_itself_under_other_names(order: list[int], missing: int) -> None:
    rles = [rectangle(40 * k, 0, 30, 30) for k in range(4)]
    before = [frame(0, **{f"object {k}": rles[k] for k in range(4)})]
    after = [frame(0, **{f"{order[k]}": rles[k] for k in range(4) if k != missing})]
    assert linked(before, after) == {f"{order[k]}": f"object {k}" for k in range(4) if k != missing}


def test_segments_without_objects_or_overlap_have_no_links() -> None:
    assert linked([], []) == {}
    assert linked([frame(0)], [frame(0, x=LEFT)]) == {}


def test_objects_of_different_categories_are_not_linked() -> None:
    categories = {"p": "lid", "x": "coffee cup", "y": "lid"}
    before, after = [frame(0, p=LEFT)], [frame(0, x=LEFT, y=rectangle(5, 0, 40, 40))]
    assert link_identities(before, after, categories, 0.5) == {"y": "p"}
