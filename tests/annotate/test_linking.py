"""Objects of adjacent segments found again by their masks on the frames of the overlap."""

from hypothesis import given, strategies as st

from barista_bench.annotate.identities import link_identities
from barista_bench.annotate.propagation import FrameMasks, PropagatedMask
from barista_bench.scene_graph import Rle
from tests.annotate.scenes import rectangle, reference


def frame(index: int, **rles: Rle) -> FrameMasks:
    return FrameMasks(index, {name: PropagatedMask(rle, 1.0) for name, rle in rles.items()})


def linked(before: list[FrameMasks], after: list[FrameMasks], *, threshold: float = 0.5) -> dict[str, str]:
    """Links of objects that are all of one category."""
    names = {name for part in (before, after) for _, masks in part for name in masks}
    return link_identities(before, after, dict.fromkeys(names, "cup"), threshold)


LEFT, RIGHT, FAR = rectangle(0, 0, 40, 40), rectangle(20, 0, 40, 40), rectangle(100, 40, 30, 30)


def test_objects_are_linked_by_their_masks_whatever_their_ids() -> None:
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
