from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from barista_bench.benchmarks.tog_bench.release import AnnotationFile
from barista_bench.errors import ConfigError
from barista_bench.generate.candidates import QuestionCandidate, Tally, reasons_of
from barista_bench.generate.generator import SPARE, generate, pool_candidates
from barista_bench.generate.scene import Scene
from barista_bench.generate.tog_bench.family import ToGBenchFamily
from barista_bench.generate.tog_bench.statements import visible_spans
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import load_domain
from tests.generate.graphs import table


def asked(scene: Scene) -> tuple[dict[str, QuestionCandidate], Tally]:
    """Instruction to candidate of all possible questions, and the refused ones."""
    tally = Tally()
    candidates = ToGBenchFamily(load_domain()).decide_all(scene, tally)
    return {candidate.question: candidate for candidate in candidates}, tally


HANDLED = " I only mean things that the person touches in the video."


def held(*things: str) -> list[tuple[str, str, str, int, int]]:
    """A hand on each of these things, for a second."""
    return [("right", "holds", thing, 10 * at, 10 * at + 10) for at, thing in enumerate(things, start=1)]


def test_an_explicit_instruction_takes_the_named_object_and_an_implicit_one_the_only_object_that_serves(
    tmp_path: Path,
) -> None:
    things = {"right": "right hand", "cup": "coffee cup", "spoon": "spoon", "towel": "towel"}
    candidates, _ = asked(table(tmp_path, things, contacts=held("cup", "spoon", "towel")))
    assert candidates["Bring me the spoon."].objects == ("spoon",)
    assert candidates["Give me something to stir with."].objects == ("spoon",)
    stirring = candidates["Stir what is in the coffee cup."]
    assert stirring.objects == ("cup", "spoon")
    assert stirring.extra["kinds"] == ["explicit", "implicit"]
    assert stirring.subtask == "implicit_2"


def test_ambiguous_objects_must_be_touched_unless_their_kind_has_only_one(tmp_path: Path) -> None:
    things = {"right": "right hand", "cup": "coffee cup", "spoon": "spoon", "mill": "coffee mill"}
    candidates, tally = asked(table(tmp_path, things, contacts=held("cup")))
    assert candidates["Wash the coffee cup."].objects == ("cup",)
    assert candidates["Dust the coffee grinder."].objects == ("mill",)
    assert not any("spoon" in candidate.objects for candidate in candidates.values())
    reason = "no hand touches it, and its name could mean a thing that is not annotated"
    assert reasons_of("implicit_1", tally)[reason] == 1


def test_only_a_touch_distinguishes_things_with_ambiguous_names(tmp_path: Path) -> None:
    things = {"right": "right hand", "jug": "pitcher", "grip": "handle"}
    parts = [("grip", "part of", "jug", 0, 120)]
    candidates, _ = asked(table(tmp_path / "part", things, contacts=held("jug"), places=parts))
    assert "Wash the pitcher." in candidates
    candidates, _ = asked(table(tmp_path / "other", things, contacts=held("jug")))
    assert "Wash the pitcher that the person touches." in candidates
    things |= {"bowl": "bowl", "tray": "tray"}
    candidates, _ = asked(table(tmp_path / "two", things, contacts=held("jug", "bowl")))
    assert "Wash the bowl that the person touches." in candidates
    assert f"Swap the pitcher and the bowl.{HANDLED}" in candidates
    assert f"I need something to mix a salad in.{HANDLED}" in candidates
    candidates, _ = asked(table(tmp_path / "named", things, contacts=held("bowl", "tray")))
    assert f"Move the bowl away from the tray.{HANDLED}" in candidates  # another bowl may stand beside them


def test_of_instructions_that_ask_for_the_same_one_is_used_for_an_object(tmp_path: Path) -> None:
    things = {"right": "right hand", "cup": "coffee cup", "jug": "pitcher", "spoon": "spoon"}
    scene = table(tmp_path, things, contacts=held("cup", "jug", "spoon"))
    family = ToGBenchFamily(load_domain())
    stirring = [c for c in family.decide_all(scene, Tally()) if c.question.startswith("Stir")]
    assert Counter(c.objects[0] for c in stirring) == {"cup": 2, "jug": 2}
    for seed in range(4):
        used = [c.question for c in family.collect_candidates(scene, Tally(), 99, seed) if "tir " in c.question]
        assert all(sum(name in question for question in used) <= 1 for name in ("coffee cup", "pitcher"))
        assert sum("with the spoon" not in question for question in used) == 1  # what serves to stir is asked once


def test_a_wish_or_a_name_that_two_things_could_serve_is_refused(tmp_path: Path) -> None:
    candidates, tally = asked(table(tmp_path / "wish", {"cup": "coffee cup", "glass": "glass"}))
    assert "I would like something to drink from." not in candidates
    assert reasons_of("implicit_1", tally)["several things in the video could serve"] == 2
    above_each_other = {"one": "spoon", "jar": "jar", "cup": "coffee cup", "pot": "pitcher", "other": "spoon"}
    candidates, tally = asked(table(tmp_path / "name", above_each_other))
    candidates = {question: row for question, row in candidates.items() if "spoon" in question}
    assert candidates == {}
    assert reasons_of("explicit_1", tally)["its name could mean another thing in the video"] > 0


def test_what_would_make_for_another_answer_must_not_be_in_the_video(tmp_path: Path) -> None:
    wish = "My drink should be sweeter."
    things = {"right": "right hand", "sugar": "sugar"}
    assert wish in asked(table(tmp_path / "sugar", things, contacts=held("sugar")))[0]
    candidates, tally = asked(table(tmp_path / "jar", {**things, "jar": "jar"}, contacts=held("sugar", "jar")))
    assert wish not in candidates
    assert reasons_of("implicit_1", tally)["something in the video leads to another answer"] == 1


def test_an_object_on_no_shown_frame_is_refused(tmp_path: Path) -> None:
    """Frames are shown at 0, 4 and 8 s: frames 0, 40 and 80."""
    for spans, is_asked in (([(45, 75)], False), ([(0, 30)], True), ([(0, 30), (45, 75)], False)):
        scene = table(tmp_path / str(spans), {"saucer": "saucer"}, seen={"saucer": spans})
        candidates, tally = asked(scene)
        assert ("Bring me the saucer." in candidates) is is_asked
        refused = reasons_of("explicit_1", tally).get("it is not clearly visible on the frames shown", 0)
        assert (refused > 0) is not is_asked


def test_a_step_needs_a_record_of_hands_on_the_taken_object(tmp_path: Path) -> None:
    wish = "I need something to press ground coffee flat with."
    things = {"right": "right hand", "tamper": "tamper", "filter": "portafilter"}
    contacts = [("right", "holds", "tamper", 20, 40)]
    steps = [("Tamp coffee", 10, 50)]
    assert wish in asked(table(tmp_path / "all", things, contacts=contacts, steps=steps))[0]
    assert wish not in asked(table(tmp_path / "no_step", things, contacts=contacts))[0]
    assert wish not in asked(table(tmp_path / "no_hand", things, steps=steps))[0]


def test_instructions_ask_for_results_of_hands_and_not_for_events_without_hands(tmp_path: Path) -> None:
    things = {"right": "right hand", "cup": "coffee cup", "saucer": "saucer", "drawer": "drawer"}
    said = {
        "places": [("cup", "on", "saucer", 60, 120)],
        "attributes": [("drawer", "state", "close", 0, 50), ("drawer", "state", "open", 50, 120)],
    }
    by_hand = [("right", "holds", "cup", 40, 60), ("right", "pulls", "drawer", 45, 55)]
    candidates, _ = asked(table(tmp_path / "hand", things, contacts=by_hand, **said))
    assert candidates["Open the drawer."].objects == ("drawer",)
    assert "Put the coffee cup on the saucer." in candidates
    candidates, tally = asked(table(tmp_path / "alone", things, **said))
    assert "Open the drawer." not in candidates
    assert reasons_of("explicit_1", tally)["the graph shows no hand that does it"] == 1


def test_a_whole_and_its_part_are_not_two_objects_and_a_touch_of_a_part_touches_the_whole(tmp_path: Path) -> None:
    parts = [("jar", "part of", "machine", 0, 120)]
    candidates, tally = asked(table(tmp_path / "two", {"machine": "coffee machine", "jar": "jar"}, places=parts))
    assert all(len(candidate.objects) == 1 for candidate in candidates.values())
    assert reasons_of("explicit_2", tally) == {} or "one is a part of the other" in reasons_of("explicit_2", tally)
    things = {"right": "right hand", "jug": "pitcher", "grip": "handle"}
    parts = [("grip", "part of", "jug", 0, 120)]
    candidates, _ = asked(table(tmp_path / "touch", things, contacts=held("grip"), places=parts))
    assert "Wash the pitcher." in candidates


def test_intervals_shorter_than_a_second_are_left_out(tmp_path: Path) -> None:
    spans = [(0, 30), (35, 60), (75, 80), (100, 115)]
    assert visible_spans(table(tmp_path, {"towel": "towel"}, seen={"towel": spans}), "towel") == [(0, 60), (100, 115)]


def test_no_family_and_a_domain_without_instructions_are_errors(small_kitchen: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"families: the list is empty.*Fix"):
        generate(small_kitchen, tmp_path / "out", [])
    with pytest.raises(ConfigError, match=r"families\.tog_bench.*Fix"):
        ToGBenchFamily(msgspec.structs.replace(load_domain(), families={}))


def test_boxes_and_intervals_equal_the_graph(generated: Callable[[str], Path], small_kitchen: Path) -> None:
    file = msgspec.json.decode((generated("tog_bench") / "annotations.json").read_bytes(), type=AnnotationFile)
    graph = SceneGraph(small_kitchen)
    assert {task.kind for task in file.tasks} == {"explicit", "implicit"}
    for task in file.tasks:
        video = graph[task.video]
        assert video.video.fps
        for item in task.objects:
            for box in item.boxes:
                x, y, width, height = video.boxes(round(box.time * video.video.fps))[item.id or ""]
                assert box.box == pytest.approx((x, y, x + width, y + height))
            frames = [round(second * video.video.fps) for interval in item.intervals for second in interval]
            assert all(0 <= frame <= video.frame_count for frame in frames)


def test_memory_does_not_grow_with_the_number_of_videos(small_kitchen: Path) -> None:
    graph = SceneGraph(small_kitchen)
    assert len(graph.video_ids) >= 3  # each may offer `SPARE`
    held = pool_candidates(graph, {"tog_bench": ToGBenchFamily(load_domain())}, per_subtask=1, seed=0)
    counts = Counter(candidate.subtask for candidate in held.candidates["tog_bench"])
    assert 0 < max(counts.values()) <= 2 * SPARE


def test_real_clips_have_tasks_of_both_kinds(real_release: Path, tmp_path: Path) -> None:
    (report,) = generate(real_release, tmp_path / "real", ["tog_bench"])
    sampled = {row.subtask: row.sampled for row in report.subtasks}
    assert sampled["explicit_1"] >= 10
    assert sampled["implicit_2"] >= 1
