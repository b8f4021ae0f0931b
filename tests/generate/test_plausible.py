"""What people would find silly, or asked twice, is not asked: one test for each rule."""

import re
from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest

from barista_bench.generate.candidates import FACTS, REPEATED, Choice, QuestionCandidate, Tally, one_per_event
from barista_bench.generate.egocot.family import EgocotFamily
from barista_bench.generate.egocot.moments import EgocotWords, ShownScene
from barista_bench.generate.egocot.statements import (
    AwayFrom,
    BringsAbout,
    InPart,
    InStep,
    LiesTowards,
    NextAction,
    NextState,
    direction_between,
    part_of_frame,
)
from barista_bench.generate.generator import families_of, pool_candidates
from barista_bench.generate.handyvqa.object_questions import _one_per_place
from barista_bench.generate.handyvqa.statements import HandIsOn, HandsDo
from barista_bench.generate.nearby import place_words
from barista_bench.generate.statements import AllOf, Changes, Does, HasValue, Located, Seen, Statement, Touches
from barista_bench.generate.tog_bench.family import ToGBenchFamily
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import load_domain
from barista_bench.scene_graph.domain_draft import draft_domain
from barista_bench.scene_graph.graph_words import survey_words
from tests.generate.graphs import candidate_of, graph_document, scene_of, table
from tests.releases import write_release

MACHINE, SPOUT, BESIDE = (10, 10, 120, 160), (40, 100, 30, 30), (200, 10, 120, 160)


@pytest.mark.parametrize(("machine", "words", "is_on"), [(MACHINE, "at", None), (BESIDE, "under", False)])
def test_a_mug_inside_the_outline_of_a_machine_is_at_it_and_may_be_on_its_tray(
    tmp_path: Path, machine: tuple[int, int, int, int], words: str, is_on: bool | None
) -> None:
    objects = {"mug": "coffee cup", "machine": "coffee machine"}
    places = [("mug", "position", "under", "machine", (0, 100))]
    content = graph_document(objects, boxes={"mug": SPOUT, "machine": machine}, relations=places)
    scene = scene_of(tmp_path, content)
    assert place_words(scene, "under", "machine") == words
    assert Located("mug", "under", "machine", 50).truth(scene) is True
    assert Located("mug", "on", "machine", 50).truth(scene) is is_on


def test_a_towel_that_wipes_a_wand_is_not_put_on_it_and_a_cup_that_stays_is(tmp_path: Path) -> None:
    objects = {"right": "right hand", "towel": "towel", "wand": "steam wand", "cup": "coffee cup", "saucer": "saucer"}
    relations = [
        ("right", "human_actions", "holds", "towel", (5, 45)),
        ("towel", "position", "on", "wand", (20, 40)),
        ("right", "human_actions", "holds", "cup", (50, 62)),
        ("cup", "position", "on", "saucer", (60, 100)),
    ]
    scene = scene_of(tmp_path, graph_document(objects, relations=relations))
    asked = {candidate.question for candidate in ToGBenchFamily(load_domain()).decide_all(scene, Tally())}
    assert "Put the coffee cup on the saucer." in asked
    assert not any("towel on" in question for question in asked)


def test_a_set_of_instructions_repeats_none_before_all_were_given(small_kitchen: Path) -> None:
    _, families = families_of(["tog_bench"], None, "easy:hard")
    offers = pool_candidates(SceneGraph(small_kitchen), families, 12, 0)
    items = families["tog_bench"].items(offers.candidates["tog_bench"], 12, 0).items
    counts = Counter(item.candidate.answer for item in items if item.candidate.subtask == "explicit_1")
    assert max(counts.values()) - min(counts.values()) <= 1


def test_a_question_of_two_facts_is_asked_only_if_neither_was() -> None:
    def candidate(event: str, frame: int) -> object:
        choices = [Choice(f"{event} {frame}", Seen(event, frame)), Choice("no", Seen("cup", 1))]
        return candidate_of(*choices, event=event, frames=(frame,))

    both = candidate(f"left cup{FACTS}right jar", 10)
    for others, count in (
        ([candidate("left cup", 15)], 1),
        ([candidate("right jar", 15)], 1),
        ([candidate("right cup", 15)], 2),
    ):
        assert len(one_per_event([both, *others], 0, Tally())) == count  # type: ignore[list-item]


def test_a_question_about_one_fact_comes_before_a_question_that_would_exclude_two() -> None:
    def candidate(name: str, event: str) -> QuestionCandidate:
        return candidate_of(Choice(event, Seen(event, 10)), subtask=name, event=event, topic="touch")

    for both, one, two in permutations("abc"):  # subtasks, whose seeded keys have every order
        single = [candidate(one, "left cup"), candidate(two, "right jar")]
        assert one_per_event([candidate(both, f"left cup{FACTS}right jar"), *single], 0, Tally()) == single


def test_no_other_subtask_asks_for_a_fact_that_one_answer_tells_of_a_moment() -> None:
    state, touch = HasValue("mug", "state", "full", 10), Touches("left", "mug", 10)
    both = candidate_of(Choice("full and touched", AllOf((state, touch))), subtask="two")
    tally = Tally()
    more = AllOf((touch, Touches("left", "jar", 30)))
    for claim in (state, touch, more):
        assert len(one_per_event([both, candidate_of(Choice("one", claim), subtask="one")], 0, tally)) == 1
    assert sum(count for (_, reason), count in tally.items() if reason == REPEATED) == 3
    for claim in (Touches("left", "mug", 20), Touches("right", "mug", 10)):
        assert len(one_per_event([both, candidate_of(Choice("one", claim), subtask="one")], 0, Tally())) == 2
    masks = candidate_of(both.right[0], subtask="masks", chosen_as=("two", "?"))
    assert len(one_per_event([both, masks], 0, Tally())) == 2


CHANGE = "lid", "state", "open", "close"
HELD = Touches("right", "lid", 10)


@pytest.mark.parametrize(
    ("answer", "other"),
    [
        (HasValue("lid", "state", "close", 20), Changes(*CHANGE, 10, 21)),
        (HasValue("lid", "state", "open", 10), Changes(*CHANGE, 10, 21)),
        (NextState("lid", "state", "close", 10, 20), Changes(*CHANGE, 10, 21)),
        (Changes(*CHANGE, 10, 21), BringsAbout("Close lid", *CHANGE, 10, 21, ("close",))),
        (NextAction("Close lid", 10, 20), BringsAbout("Close lid", *CHANGE, 10, 21, ("close",))),
        (AllOf((AwayFrom("right", "lid", 20), HELD)), AllOf((HELD, Touches("right", "cup", 20)))),
        (AllOf((AwayFrom("right", "lid", 20), HELD)), AwayFrom("right", "lid", 20)),
        (InPart("lid", "upper left", 10), LiesTowards("lid", 10, "further left", "cup", 10)),
    ],
)
def test_no_other_question_asks_for_moments_that_the_answer_about_a_change_tells(
    answer: Statement, other: Statement
) -> None:
    asked = [candidate_of(Choice("yes", row), subtask=name) for row, name in ((answer, "one"), (other, "other"))]
    assert len(one_per_event(asked, 0, Tally())) == 1


def test_the_colour_of_a_touched_object_is_asked_only_if_the_object_is_not() -> None:
    colour = candidate_of(
        Choice("Red.", HasValue("lid", "color", "red", 10)), subtask="colour", frames=(10,), given=(HELD,)
    )
    for frame, count in ((10, 1), (20, 2)):
        touch = Touches("right", "lid", frame)
        thing = candidate_of(Choice("The lid.", touch), subtask="thing", frames=(frame,))
        assert len(one_per_event([colour, thing], 0, Tally())) == count


def test_subtasks_of_one_topic_share_their_events_in_equal_parts() -> None:
    def candidate(subtask: str, event: int, frame: int) -> QuestionCandidate:
        choice = Choice(f"{event}", Seen(f"{subtask} {event}", frame))
        return candidate_of(choice, subtask=subtask, topic="place", event=f"{event}", frames=(frame,))

    asked = [candidate("few", event, 0) for event in range(40)]
    asked += [candidate("many", event, frame) for event in range(40) for frame in range(1, 10)]
    counts = Counter(c.subtask for c in one_per_event(asked, 0, Tally()))
    assert counts.total() == 40
    assert min(counts["few"], counts["many"]) > 10


def test_a_state_a_place_and_a_step_are_asked_once(small_kitchen: Path) -> None:
    _, families = families_of(["egocot"], None, "easy:hard")
    candidates = pool_candidates(SceneGraph(small_kitchen), families, 40, 0).candidates["egocot"]
    claims = [(c.video_id, c.right[0].statement) for c in candidates if c.subtask != "AOG"]
    states = Counter((video, claim.object, claim.value) for video, claim in claims if isinstance(claim, HasValue))
    moments = [c for c in candidates if c.wording == "egocot/SR moment"]
    things = Counter((c.video_id, c.right[0].statement.object, c.right[0].statement.type) for c in moments)
    assert set(things.values()) == {1}
    places = Counter((video, claim.object, claim.part) for video, claim in claims if isinstance(claim, InPart))
    passages = [(video, claim.parts) for video, claim in claims if isinstance(claim, AllOf)]
    steps = Counter((video, claim.step) for video, claim in claims if isinstance(claim, InStep))
    steps.update({(v, part.step) for v, parts in passages for part in parts if isinstance(part, InStep)})
    for counts in (states, places, steps):
        assert len(counts) > 2
        assert set(counts.values()) == {1}


@pytest.mark.parametrize("again", [[], [("Wipe lid", (45, 55))]])
@pytest.mark.parametrize(("step", "is_asked"), [((20, 40), False), ((20, 60), True)])
def test_an_action_that_fills_a_step_is_asked_as_a_step_only(
    tmp_path: Path, step: tuple[int, int], is_asked: bool, again: list[tuple[str, tuple[int, int]]]
) -> None:
    objects = {"right": "right hand", "cup": "coffee cup", "lid": "lid"}
    activities = [("Lift coffee cup", (0, 20)), ("Wipe lid", (20, 40)), *again, ("Touch jar", (60, 100))]
    content = graph_document(objects, activities=activities, steps=[("Clean lid", step)])
    asked = EgocotFamily(load_domain()).candidates(scene_of(tmp_path, content))
    actions = {c.right[0].statement.action for c in asked if c.wording == "egocot/PR action"}
    assert ("Wipe lid" in actions) is is_asked


def test_a_segment_without_a_name_is_no_answer_and_hides_the_next_one(tmp_path: Path) -> None:
    objects = {"right": "right hand", "cup": "coffee cup", "lid": "lid"}
    rows = [("Lift coffee cup", (0, 30)), (" ", (30, 50)), ("Open lid", (50, 100))]
    relations = [("right", "human_actions", "holds", "cup", (0, 100))]
    scene = scene_of(tmp_path, graph_document(objects, relations=relations, activities=rows, steps=rows))
    _, families = families_of(["egocot", "handyvqa", "vista"], None, "easy:hard")
    for candidate in (each for family in families.values() for each in family.candidates(scene)):
        texts = [choice.text for choice in (*candidate.right, *candidate.distractors)]
        assert not [text for text in texts if re.search(r"\b(ing|s)[.,]", text)]
    asked = list(families["egocot"].candidates(scene))
    statements = [choice.statement for candidate in asked for choice in (*candidate.right, *candidate.distractors)]
    assert {row.action for row in statements if isinstance(row, NextAction)} == {"Lift coffee cup", "Open lid"}
    assert {row.step for row in statements if isinstance(row, InStep)} == {"Lift coffee cup", "Open lid"}
    assert not [candidate for candidate in asked if candidate.wording == "egocot/PR passage"]
    assert NextAction("Open lid", 20, 60).truth(scene) is not True
    assert Does("Open lid", 40).truth(scene) is None


def test_an_action_may_be_in_progress_while_the_state_that_it_makes_lasts(tmp_path: Path) -> None:
    objects = {"right": "right hand", "bread": "food", "jar": "jar"}
    activities = [("Break food", (0, 30)), ("Open jar", (30, 100))]
    attributes = [("bread", "state", "being broken", (0, 60)), ("bread", "state", "whole", (60, 100))]
    scene = scene_of(tmp_path, graph_document(objects, activities=activities, attributes=attributes))
    truths = [Does("Break food", frame).truth(scene) for frame in (10, 50, 90)]
    assert truths == [True, None, False]


def test_no_statement_claims_a_touch_in_a_gap_of_its_record(tmp_path: Path) -> None:
    contacts = [("right", "human_actions", "holds", "cup", span) for span in ((10, 40), (43, 80))]
    objects, boxes = {"right": "right hand", "cup": "coffee cup"}, {"right": (100, 20, 40, 40)}
    scene = scene_of(tmp_path, graph_document(objects, relations=contacts, boxes=boxes))
    frames = (30, 41, 60)
    truths = [Touches("right", "cup", frame).truth(scene) for frame in frames]
    assert truths == [HandIsOn("right", "cup", None, frame, frames).truth(scene) for frame in frames]
    assert truths == [True, None, True]
    assert [HandsDo(None, None, frame, frames).truth(scene) for frame in frames] == [False, None, False]


def test_a_touch_that_is_recorded_on_single_frames_lasts_between_them(tmp_path: Path) -> None:
    contacts = [("right", "human_actions", "holds", "cup", (frame, frame + 1)) for frame in range(10, 60, 5)]
    objects, boxes = {"right": "right hand", "cup": "coffee cup"}, {"right": (100, 20, 40, 40)}
    scene = scene_of(tmp_path, graph_document(objects, relations=contacts, boxes=boxes))
    assert [Touches("right", "cup", frame).truth(scene) for frame in (20, 22, 80)] == [True, True, None]


def test_a_thing_that_the_edge_cuts_has_no_direction_along_an_edge(tmp_path: Path) -> None:
    boxes = {"tray": (10, 100, 40, 40), "cup": (200, 100, 40, 40), "jar": (200, 200, 40, 40), "lid": (280, 100, 40, 40)}
    objects = {"tray": "tray", "cup": "coffee cup", "jar": "jar", "lid": "lid"}
    scene = scene_of(tmp_path, graph_document(objects, boxes=boxes))
    directions = [direction_between(scene, name, 5, "tray", 5) for name in ("cup", "jar", "lid")]
    assert directions == ["further right", "lower down and further right", None]


def test_only_one_answer_about_clips_tells_of_a_touch(small_kitchen: Path) -> None:
    _, families = families_of(["handyvqa"], None, "easy:hard")
    candidates = pool_candidates(SceneGraph(small_kitchen), families, 40, 0).candidates["handyvqa"]
    rows = [(c.video_id, key) for c in candidates if c.topic == "touch" for key in c.event.split(FACTS)]
    assert len({c.subtask for c in candidates if c.topic == "touch"}) > 2
    assert len(set(rows)) == len(rows)


def test_two_wrong_places_are_not_at_one_object(small_kitchen: Path) -> None:
    _, families = families_of(["handyvqa"], None, "easy:hard")
    candidates = pool_candidates(SceneGraph(small_kitchen), families, 40, 0).candidates["handyvqa"]
    checked = 0
    for candidate in (c for c in candidates if c.subtask == "location"):
        right, *wrong = (getattr(c.statement, "other", c.text) for c in (*candidate.right, *candidate.distractors))
        others = [other for other in wrong if other != right]
        assert len(others) == len(set(others))
        checked += len(others) > 1
    assert checked


def test_an_excluded_place_is_chosen_before_another_place_at_the_same_object(tmp_path: Path) -> None:
    things = {"cup": "coffee cup", "tray": "tray", "jar": "jar"}
    scene = table(tmp_path, things, places=[("cup", "on", "tray", 0, 120), ("cup", "on", "jar", 0, 120)])
    places = ("on", "jar"), ("on", "tray"), ("under", "tray")
    jar, on, under = (Choice(" ".join(place), Located("cup", *place, 50)) for place in places)
    assert [choice.statement.truth(scene) for choice in (jar, on, under)] == [True, True, False]
    assert _one_per_place(scene, [on, under], jar) == [under]


def test_two_wrong_actions_never_say_the_same(tmp_path: Path) -> None:
    objects = {"right": "right hand", "cup": "coffee cup", "lid": "lid"}
    relations = [("right", "human_actions", "holds", "cup", (0, 100))]
    activities = [("Lift coffee cup", (0, 20)), ("Raise coffee cup", (20, 40)), ("Wipe lid", (40, 80))]
    scene = scene_of(tmp_path, graph_document(objects, relations=relations, activities=activities))
    _, families = families_of(["handyvqa"], None, "easy:hard")
    (wiping,) = (c for c in families["handyvqa"].candidates(scene) if c.right_text == "The person is wiping the lid.")
    assert len(wiping.distractors) == 1


def test_closing_a_knob_does_not_make_a_wand_closed(tmp_path: Path) -> None:
    objects = {"right": "right hand", "wand": "steam wand", "knob": "knob"}
    states = [("wand", "state", "open", (0, 50)), ("wand", "state", "close", (50, 100))]
    relations = [("right", "human_actions", "holds", "knob", (20, 60))]
    for verb, is_cause in (("Close", False), ("Turn", True)):
        content = graph_document(
            objects, attributes=states, relations=relations, activities=[(f"{verb} knob", (30, 60))]
        )
        scene = scene_of(tmp_path / verb, content)
        _, families = families_of(["egocot"], None, "easy:hard")
        causes = [c.right_text for c in families["egocot"].candidates(scene) if c.subtask == "LCOI"]
        expected = ["The person turns the knob, and the steam wand goes from on to off."]
        assert causes == (expected if is_cause else [])


def test_an_action_that_still_continues_is_no_wrong_next_action(tmp_path: Path) -> None:
    objects = {"right": "right hand", "spoon": "spoon", "cup": "coffee cup", "jar": "jar"}
    relations = [("right", "human_actions", "holds", "spoon", (0, 100))]
    activities = [("Stir cup", (10, 40)), ("Place spoon", (40, 60)), ("Close jar", (60, 80)), ("Wipe jar", (80, 99))]
    scene = scene_of(tmp_path, graph_document(objects, relations=relations, activities=activities))
    _, families = families_of(["egocot"], None, "easy:hard")
    asked = [c for c in families["egocot"].candidates(scene) if c.subtask == "NAA"]
    orders = [c for c in asked if c.wording == "egocot/NAA order" and "stir" in c.question]
    (named,) = {tuple(choice.text for choice in c.distractors) for c in orders}
    assert "Stir the cup." not in named
    assert any(choice.text == "Stir the cup." for c in asked for choice in c.distractors)


@pytest.mark.parametrize(
    ("states", "verb", "is_filled"),
    [
        (("empty", "full"), "Touch", None),
        (("empty", "full"), "Fill", False),
        (("empty", "being filled"), "Touch", False),
    ],
)
def test_a_mug_that_is_full_next_is_being_filled_at_some_time_before(
    tmp_path: Path, states: tuple[str, str], verb: str, is_filled: bool | None
) -> None:
    attributes = [("mug", "state", states[0], (0, 50)), ("mug", "state", states[1], (50, 100))]
    activities = [(f"{verb} cup", (42, 52))]
    scene = scene_of(tmp_path, graph_document({"mug": "coffee cup"}, attributes=attributes, activities=activities))
    assert HasValue("mug", "state", "being filled", 20).truth(scene) is is_filled
    assert HasValue("mug", "state", "full", 20).truth(scene) is False
    assert HasValue("mug", "state", "empty", 20).truth(scene) is True


def test_a_mug_may_be_empty_no_longer_while_a_machine_extracts(tmp_path: Path) -> None:
    objects = {"mug": "coffee cup", "machine": "coffee machine"}
    states = [("mug", "empty", (0, 90)), ("mug", "full", (90, 120))]
    states += [("machine", "idle", (0, 40)), ("machine", "extracting", (40, 120))]
    document = graph_document(objects, attributes=[(thing, "state", value, span) for thing, value, span in states])
    scene = scene_of(tmp_path, document)
    truths = [HasValue("mug", "state", "empty", frame).truth(scene) for frame in (20, 60)]
    assert truths == [True, None]
    assert HasValue("machine", "state", "extracting", 60).truth(scene) is True


def test_no_wrong_interval_holds_a_touch_between_its_moments(tmp_path: Path) -> None:
    contacts = [("right", "human_actions", "holds", "cup", span) for span in ((45, 110), (146, 153))]
    document = graph_document({"right": "right hand", "cup": "coffee cup"}, frames=311, relations=contacts)
    _, families = families_of(["egocot"], None, "easy:hard")
    decided = families["egocot"].decide_all(scene_of(tmp_path, document), Tally())
    asked = [c for c in decided if c.wording in ("egocot/HOTR start", "egocot/HOTR end")]
    assert {c.right_text for c in asked} == {"Between 00:10.30 and 00:12.40."}
    assert "Between 00:14.40 and 00:16.50." not in {choice.text for c in asked for choice in c.distractors}


def test_turn_and_move_count_as_the_same_verb() -> None:
    assert load_domain().same_verb("turn", "move")


def test_no_two_sets_of_a_video_show_the_same_clip(small_kitchen: Path) -> None:
    _, families = families_of(["vista"], None, "easy:hard")
    candidates = pool_candidates(SceneGraph(small_kitchen), families, 40, 0).candidates["vista"]
    clips = Counter((c.video_id, tuple(c.extra["spans"])) for c in candidates if "level" in c.subtask)
    assert len(clips) > 100
    assert set(clips.values()) == {1}


def test_a_particle_belongs_to_the_verb_in_a_drafted_domain(tmp_path: Path) -> None:
    objects = {"right": "right hand", "mug": "mug"}
    relations = [("right", "human_actions", "holds", "mug", (0, 60))]
    attributes = [("mug", "state", "empty", (0, 100))]
    activities = [("Pick up mug", (0, 30)), ("Turn off mug", (30, 60))]
    content = graph_document(objects, relations=relations, attributes=attributes, activities=activities)
    write_release(tmp_path, "v1", content, video=False)
    (tmp_path / "draft.yaml").write_text(draft_domain(survey_words(SceneGraph(tmp_path)), "mugs"))
    families = load_domain(tmp_path / "draft.yaml").families
    assert families["vista"]["objects"] == ["mug"]
    assert families["handyvqa"]["doing"] == {"pick": "picking up", "turn off": "turning off"}


def test_a_kettle_that_goes_up_and_down_in_turn_gives_one_set(real_release: Path) -> None:
    _, families = families_of(["vista"], None, "easy:hard")
    candidates = pool_candidates(SceneGraph(real_release), families, 200, 0).candidates["vista"]
    assert len({c.extra["set"] for c in candidates if c.subtask.startswith("level")}) == 1


@pytest.mark.full
def test_two_sets_of_a_video_that_differ_in_the_same_actions_are_asked_once(small_kitchen: Path) -> None:
    _, families = families_of(["vista"], None, "easy:hard")
    candidates = pool_candidates(SceneGraph(small_kitchen), families, 40, 0).candidates["vista"]
    sets: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for candidate in candidates:
        if candidate.subtask.startswith("level"):
            key = candidate.video_id, f"{candidate.subtask} {candidate.extra['set']}"
            sets.setdefault(key, set()).add(tuple(candidate.extra["actions"]))
    differences = Counter((video, frozenset(map(tuple, _inner(orders)))) for (video, _), orders in sets.items())
    assert len(differences) > 2
    assert set(differences.values()) == {1}


def _inner(orders: set[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The orders without the actions that all begin and end with."""
    rows = sorted(orders)
    while len({row[:1] for row in rows}) == 1:
        rows = [row[1:] for row in rows]
    while len({row[-1:] for row in rows}) == 1:
        rows = [row[:-1] for row in rows]
    return rows


def test_a_small_box_that_the_edge_cuts_has_no_place_and_a_box_in_the_middle_of_an_edge_has(tmp_path: Path) -> None:
    boxes = {"cap": (310, 10, 10, 10), "tray": (240, 10, 80, 80), "cup": (300, 10, 10, 10), "jar": (150, 5, 20, 20)}
    objects = {"cap": "lid", "tray": "tray", "cup": "coffee cup", "jar": "jar"}
    scene = scene_of(tmp_path, graph_document(objects, boxes=boxes))
    parts = {name: part_of_frame(scene, name, 5) for name in boxes}
    assert parts == {"cap": None, "tray": "upper right", "cup": "upper right", "jar": "upper center"}


def test_of_three_things_in_view_the_hand_may_touch_none(tmp_path: Path) -> None:
    objects = {"left": "left hand", "cup": "coffee cup", "jar": "jar", "spoon": "spoon"}
    contacts = [("left", "human_actions", "holds", "cup", (40, 80))]
    scene = scene_of(tmp_path, graph_document(objects, relations=contacts))
    decided = EgocotFamily(load_domain()).decide_all(scene, Tally())
    assert {c.right_text for c in decided if c.subtask == "AOG"} == {"None of these.", "The coffee cup."}


def test_a_change_at_a_shown_moment_is_asked_for_in_wider_intervals(tmp_path: Path) -> None:
    view = ShownScene(scene_of(tmp_path, graph_document({"jar": "jar"})), EgocotWords())
    moment = view.frames[6]
    assert {row[number] for row, number in view.intervals(moment)} == {(view.frames[5], view.frames[7])}
    near = view.intervals((view.frames[6] + view.frames[7]) // 2)
    assert {row[number] for row, number in near} == {(view.frames[6], view.frames[7])}
