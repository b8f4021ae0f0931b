"""Frames that a person should look at, and what geometry proposes."""

from barista_bench.annotate.geometry import carry_forward, propose_layers
from barista_bench.annotate.records import AcceptedKeyframe, KeyframeAttribute, TrackedMask, TrackLine
from barista_bench.annotate.review import doubtful_frames, with_agreement
from barista_bench.scene_graph import Rle
from barista_bench.scene_graph.domain import load_domain
from tests.annotate.scenes import HEIGHT, WIDTH, rectangle

FPS = 10.0


def line(frame: int, confidence: float = 1.0, **rles: Rle) -> TrackLine:
    masks = {name: TrackedMask(counts=rle.counts, confidence=confidence) for name, rle in rles.items()}
    return TrackLine(frame=frame, masks=masks)


def doubts(lines: list[TrackLine], given: tuple[int, ...] = ()) -> list[tuple[int, str]]:
    return [(doubt.frame, doubt.why) for doubt in doubtful_frames(lines, given, WIDTH, HEIGHT, FPS)]


BOX = rectangle(50, 30, 40, 30)


def test_frames_come_by_doubt_and_neither_annotated_ones_nor_those_close_to_a_worse_one() -> None:
    lines = [line(k, 0.3 if k == 7 else 0.6 if k == 20 else 0.1 if k == 30 else 1.0, cup=BOX) for k in range(40)]
    assert doubts(lines, (30,)) == [(7, "low confidence"), (20, "low confidence")]
    close = [line(k, 0.5 if k in (10, 12, 15) else 1.0, cup=BOX) for k in range(20)]
    assert doubts(close) == [(10, "low confidence"), (15, "low confidence")]


def test_a_frame_on_which_a_second_propagator_disagrees_is_doubtful() -> None:
    first = [line(k, cup=BOX) for k in range(20)]
    second = [line(k) if k == 15 else line(k, cup=rectangle(50, 30, 20 if k == 5 else 40, 30)) for k in range(20)]
    lines = list(with_agreement(first, second, (WIDTH, HEIGHT)))
    assert [lines[k].masks["cup"].agreement for k in (4, 5, 15)] == [1.0, 0.5, 0.0]
    assert doubts(lines) == [(15, "propagators disagree"), (5, "propagators disagree")]


def test_a_sudden_change_of_area_is_doubtful() -> None:
    lines = [line(k, cup=rectangle(50, 30, 40, 30 if k < 10 else 8)) for k in range(20)]
    assert doubts(lines) == [(10, "area changes")]


def test_an_object_may_leave_over_the_edge_but_not_vanish_in_the_middle() -> None:
    leaving = [line(k, cup=rectangle(0, 30, 40, 30)) if k < 10 else line(k) for k in range(20)]
    assert doubts(leaving) == []
    vanishing = [line(k, cup=BOX) if k < 10 else line(k) for k in range(20)]
    assert doubts(vanishing) == [(10, "vanishes")]
    assert doubts([line(19 - k.frame, **({"cup": BOX} if k.masks else {})) for k in reversed(vanishing)]) == [
        (10, "appears")
    ]


CATEGORIES = {"hand": "right hand", "cup": "coffee cup", "tray": "box", "sugar": "sugar", "lid": "lid"}


def proposed(lines: list[TrackLine]) -> set[tuple[str, str, str, tuple[int, int]]]:
    layers = propose_layers(lines, [], CATEGORIES, load_domain(), (HEIGHT, WIDTH), FPS)
    return {(r.source, r.target, r.value, span) for r in layers.relations for span in r.ranges}


def test_a_hand_that_reaches_an_object_touches_it_and_holds_it_once_it_moves_along() -> None:
    lines = []
    for k in range(30):
        x = 20 + 4 * max(0, k - 15)
        near = k >= 5
        hand = rectangle(x - 18 if near else 0, 40 if near else 80, 18, 15)
        lines.append(line(k, hand=hand, cup=rectangle(x, 40, 20, 20), lid=rectangle(120, 5, 20, 10)))
    # The hand comes in a leap from frame 4 to frame 5, which may as well be a sweep.
    assert proposed(lines) == {("hand", "cup", "touches", (6, 16)), ("hand", "cup", "holds", (16, 30))}


def test_an_arm_in_front_of_an_object_touches_only_things_at_its_fingers() -> None:
    arm = rectangle(0, 50, 100, 14)
    lines = [line(k, hand=arm, lid=rectangle(20, 45, 20, 10), cup=rectangle(96, 45, 20, 20)) for k in range(10)]
    assert proposed(lines) == {("hand", "cup", "touches", (0, 10))}


def test_a_hand_that_sweeps_over_an_object_does_not_touch_it() -> None:
    cup = rectangle(70, 40, 40, 20)
    sweeping = [line(k, hand=rectangle(0, 50, 60 + 6 * k, 10), cup=cup) for k in range(10)]
    assert proposed(sweeping) == set()
    assert proposed([line(k, hand=rectangle(0, 50, 80, 10), cup=cup) for k in range(10)])


def test_an_object_within_a_box_is_inside_and_one_over_its_upper_edge_is_on_it() -> None:
    tray, sugar, cup = rectangle(40, 50, 80, 40), rectangle(60, 60, 10, 10), rectangle(90, 30, 16, 26)
    lines = [line(k, tray=tray, sugar=sugar, cup=cup) for k in range(10)]
    always = (0, 10)
    forward = {("sugar", "tray", "inside", always), ("cup", "tray", "on", always)}
    assert proposed(lines) == forward | {("tray", "sugar", "contains", always), ("tray", "cup", "under", always)}


def test_a_keyframes_statement_holds_until_the_next_keyframe_that_changes_it() -> None:
    def stating(frame: int, *values: str) -> AcceptedKeyframe:
        stated = [KeyframeAttribute(object="cup", type="state", value=value) for value in values]
        return AcceptedKeyframe(frame=frame, complete=True, masks={}, attributes=stated)

    keyframes = [stating(5, "empty"), stating(20, "empty", "upright"), stating(30), stating(40, "full")]
    rows = {value: spans for (_, _, value), spans in carry_forward(keyframes, 50).items()}
    assert rows == {"empty": [(0, 40)], "upright": [(20, 40)], "full": [(40, 50)]}
