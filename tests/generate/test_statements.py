"""Statements about a scene: true where recorded, false where the records exclude them, else unknown."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barista_bench.generate.candidates import Choice, decide_candidate
from barista_bench.generate.egocot.statements import NextAction
from barista_bench.generate.handyvqa.statements import NothingElseTouched
from barista_bench.generate.missing import UndecidedCandidates
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import SIDES
from barista_bench.generate.statements import (
    Changes,
    Does,
    DoesNext,
    HasValue,
    Located,
    Precedes,
    Seen,
    Statement,
    TouchedDuring,
    Touches,
    Truth,
)
from tests.generate.graphs import candidate_of, graph_document, scene_of

OBJECTS = {"cup": "coffee cup", "right": "right hand", "left": "left hand", "pot": "pitcher", "spoon": "spoon"}
HOLDS = "human_actions"
Recorded = Callable[[Any, Scene], Truth]


def document(**content: Any) -> dict[str, Any]:
    return graph_document(OBJECTS, **content)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """The right hand holds the cup, which fills, from 20 to 60; then the left hand takes the pot out of the cup."""
    content = document(
        boxes={"right": (30, 20, 40, 40), "spoon": (250, 190, 40, 40)},
        attributes=[("cup", "state", "empty", (0, 40)), ("cup", "state", "full", (40, 100))],
        relations=[
            ("right", HOLDS, "holds", "cup", (20, 60)),
            ("left", HOLDS, "touches", "pot", (70, 90)),
            ("pot", "position", "inside", "cup", (0, 70)),
        ],
        activities=[("Grasp cup", (20, 40)), ("Pour milk", (40, 60)), ("Press button", (62, 90))],
        steps=[("Prepare cup", (0, 45)), ("Serve coffee", (60, 100))],
    )
    return scene_of(tmp_path, content)


@pytest.mark.parametrize(
    ("statement", "truth"),
    [
        (Seen("cup", 5), True),
        (Touches("right", "cup", 30), True),
        (Touches("right", "cup", 30, "holds"), True),
        (Touches("right", "cup", 30, "presses"), False),
        (Touches("right", "cup", 30, "touches"), None),
        (Touches("right", "spoon", 30), False),
        (Touches("right", "cup", 80), None),
        (Touches("left", "cup", 30), False),
        (TouchedDuring("cup", 0, 50), True),
        (TouchedDuring("spoon", 0, 50), False),
        (TouchedDuring("pot", 0, 50), False),
        (HasValue("cup", "state", "empty", 10), True),
        (HasValue("cup", "state", "filled", 60), True),
        (HasValue("cup", "state", "full", 10), False),
        (HasValue("cup", "state", "open", 10), None),
        (HasValue("pot", "state", "open", 10), None),
        (HasValue("cup", "state", "empty", 40), None),
        (Changes("cup", "state", "empty", "full", 10, 60), True),
        (Changes("cup", "state", "full", "empty", 10, 60), False),
        (Changes("cup", "state", "empty", "empty", 10, 60), False),
        (Changes("cup", "state", "empty", "empty", 0, 30), True),
        (Located("pot", "inside", "cup", 20), True),
        (Located("pot", "under", "cup", 20), False),
        (Located("pot", "on", "cup", 20), None),
        (Located("spoon", "inside", "cup", 20), False),
        (Does("Grasp cup", 30), True),
        (Does("Press button", 30), False),
        (Does("Take cup", 30), None),
        (Does("Grasp spoon", 30), False),
        (Does("Hold cup", 50), None),
        (Does("Press button", 5), None),
        (DoesNext("Pour milk", 30), True),
        (DoesNext("Press button", 30), False),
        (DoesNext("Fill cup", 30), None),
        (DoesNext("Pour milk", 95), None),
        (Precedes(("cup", "pot"), 95), True),
        (Precedes(("pot", "cup"), 95), False),
        (Precedes(("pot", "cup"), 65), None),
    ],
    ids=str,
)
def test_a_statement_holds_is_excluded_or_is_not_known(scene: Scene, statement: Statement, truth: bool | None) -> None:
    assert statement.truth(scene) is truth


def test_a_hand_out_of_the_picture_is_not_known_to_touch_nothing(tmp_path: Path) -> None:
    scene = scene_of(tmp_path, document(seen={"right": [(0, 10)]}))
    assert Touches("right", "cup", 5).truth(scene) is False
    assert Touches("right", "cup", 50).truth(scene) is None


@pytest.mark.parametrize(
    ("before", "after", "unknown"),
    [("being filled", "full", range(30, 51)), ("empty", "being filled", range(39, 41))],
    ids=["by degrees: a second before and after", "at once: the margin"],
)
def test_near_a_change_a_value_is_not_known(tmp_path: Path, before: str, after: str, unknown: range) -> None:
    """At 10 frames a second, around frame 40, on which the cup's state becomes another."""
    attributes = [("cup", "state", before, (0, 40)), ("cup", "state", after, (40, 100))]
    scene = scene_of(tmp_path, document(attributes=attributes))
    for frame in range(28, 53):
        truths = [HasValue("cup", "state", value, frame).truth(scene) for value in (before, after)]
        assert truths == ([None, None] if frame in unknown else [frame < 40, frame >= 40]), frame


def test_a_touch_of_an_object_drawn_apart_from_the_hand_is_unknown(tmp_path: Path) -> None:
    for name, x, truth in (("at", 45, True), ("apart", 90, None)):
        boxes = {"right": (x, 20, 40, 40)}
        content = document(boxes=boxes, relations=[("right", HOLDS, "holds", "cup", (20, 60))])
        assert Touches("right", "cup", 30).truth(scene_of(tmp_path / name, content)) is truth


def test_undecided_facts_are_looked_up_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deciding a candidate and naming its missing facts ask a scene the same."""
    asked: Counter[Statement] = Counter()
    for kind in (Touches, HasValue):

        def recorded(self: Statement, scene: Scene, found: Recorded = kind.recorded_truth) -> Truth:
            asked[self] += 1
            return found(self, scene)

        monkeypatch.setattr(kind, "recorded_truth", recorded)
    given = (HasValue("cup", "state", "empty", 10),)
    candidate = candidate_of(*(Choice(side, Touches(side, "pot", 30)) for side in SIDES), given=given, frames=(30,))
    reason = decide_candidate(candidate, scene, 1)
    assert isinstance(reason, str)
    UndecidedCandidates().add("egocot", candidate, scene, 1, reason)
    assert asked[given[0]] == 1
    assert set(asked.values()) == {1}


def test_a_hand_relation_that_the_domain_does_not_define_may_be_a_touch(tmp_path: Path) -> None:
    objects = {"hand": "right hand", "cup": "coffee cup", "jar": "jar"}
    holds, steadies = (
        ("hand", "human_actions", "holds", "cup", (10, 40)),
        ("hand", "relation", "steadies", "jar", (10, 40)),
    )
    for name, relations, expected in (("a", [holds], True), ("b", [holds, steadies], False)):
        scene = scene_of(tmp_path / name, graph_document(objects, relations=relations))
        assert NothingElseTouched(("cup",), 12, 30, tuple(range(12, 30, 3))).truth(scene) is expected


def test_an_action_whose_verb_is_a_contact_at_the_moment_is_not_excluded(tmp_path: Path) -> None:
    objects = {"left": "left hand", "cup": "coffee cup", "jar": "jar"}
    relations = [("left", "hand contact", "steadies", "jar", (10, 40))]
    activities = [("Stirring cup", (0, 60)), ("Steadying jar", (80, 100))]
    scene = scene_of(tmp_path, graph_document(objects, relations=relations, activities=activities))
    for action, frame, truth in (
        *(("Steadying jar", 30, None), ("Steadying", 30, None)),
        *(("Steadying jar", 50, False), ("Steadying cup", 30, False), ("Wipe jar", 30, False)),
    ):
        assert Does(action, frame).truth(scene) is truth, (action, frame)


@pytest.mark.parametrize(("value", "truth"), [("polishes", None), ("wipes", False)])
def test_a_contact_with_the_object_of_an_action_is_no_wrong_next_action(
    tmp_path: Path, value: str, truth: Truth
) -> None:
    objects = {"left": "left hand", "cup": "coffee cup", "jar": "jar"}
    relations = [("left", "hand contact", value, "jar", (70, 80))]
    activities = [("Wipe cup", (0, 20)), ("Open jar", (20, 60)), ("Polish jar", (80, 100))]
    scene = scene_of(tmp_path, graph_document(objects, relations=relations, activities=activities))
    assert NextAction("Polish jar", 10, 40).truth(scene) is truth
