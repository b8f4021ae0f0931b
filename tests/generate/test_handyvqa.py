"""HanDyVQA's questions out of a graph: each kind on a video made by hand, then whole releases."""

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest

from barista_bench.benchmarks.handyvqa import BENCHMARK, RvosObjects
from barista_bench.benchmarks.handyvqa.base_task import choose_frames
from barista_bench.benchmarks.handyvqa.release import HandyvqaRelease, QuestionClip, open_release
from barista_bench.errors import ConfigError, DataError
from barista_bench.generate.candidates import QuestionCandidate, Tally, reasons_of
from barista_bench.generate.generator import SPLITS, generate, parse_fractions, split_videos
from barista_bench.generate.handyvqa.family import HandyvqaFamily
from barista_bench.generate.handyvqa.statements import HandsDo, clip_around, clip_halfway
from barista_bench.generate.scene import Scene
from barista_bench.scene_graph import SceneGraph, decode_mask
from barista_bench.scene_graph.domain import Lengths, load_domain
from tests.generate.bench import ACTIVITIES, FRAMES, OBJECTS, RELATIONS, VALUES, cup, document, write_bench
from tests.generate.graphs import scene_of
from tests.releases import relation

PRESS = relation("left", "brew", "human_actions", "presses", (48, 60))


def asked(scene: Scene, subtask: str) -> list[QuestionCandidate]:
    return [c for c in HandyvqaFamily(scene.domain).decide_all(scene, Tally()) if c.subtask == subtask]


def refused(scene: Scene, subtask: str) -> dict[str, int]:
    tally = Tally()
    list(HandyvqaFamily(scene.domain).decide_all(scene, tally))
    return {reason: count for reason, count in reasons_of(subtask, tally).items() if reason != "decided"}


def right(candidate: QuestionCandidate) -> list[str]:
    return [choice.text for choice in candidate.right]


def distractors(candidate: QuestionCandidate) -> set[str]:
    return {choice.text for choice in candidate.distractors}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return scene_of(tmp_path_factory.mktemp("bench"), document())


# Clips


@pytest.mark.parametrize("fps", [10, 30])
def test_clips_have_the_frames_that_the_task_shows(tmp_path: Path, fps: int) -> None:
    scene = scene_of(tmp_path, document(fps=fps))
    write_bench(tmp_path, document(fps=fps), fps)
    for centre in (0, 7, FRAMES // 2, FRAMES - 1):
        clip = clip_around(scene, centre)
        asked_clip = QuestionClip("bench/video.mp4", False, centre / fps)
        assert choose_frames(tmp_path / "bench/video.mp4", asked_clip, 16).indices == clip.shown
        assert (clip.shown[0], clip.shown[-1]) == (clip.start, clip.stop - 1)


def test_halfway_events_are_in_the_middle_of_a_clip_and_none_is_near_the_ends_of_a_video(scene: Scene) -> None:
    around = clip_halfway(scene, 60)
    assert around is not None
    clip, frame = around
    assert frame in clip.shown
    for centre in range(FRAMES):
        if around := clip_halfway(scene, centre):
            clip, frame = around
            assert abs(frame - (clip.start + clip.stop - 1) / 2) <= (clip.stop - clip.start) / 15 / 2 + 1
    assert clip_halfway(scene, 0) is None
    assert clip_halfway(scene, FRAMES - 1) is None


# Each kind of question


def test_action_asks_for_the_activity_halfway(scene: Scene, tmp_path: Path) -> None:
    (candidate,) = asked(scene, "action")
    assert right(candidate) == ["The person is pressing the brew button."]
    assert distractors(candidate) >= {"The person is pouring the milk.", "The person is opening the milk carton."}
    assert refused(scene, "action") == {"no hand at work is clearly visible": 3}
    again = scene_of(tmp_path / "same", document(activities=[*ACTIVITIES, ("Push brew button", 80, 100)]))
    (candidate,) = asked(again, "action")
    assert "The person is pushing the brew button." not in distractors(candidate), "it could be said of the right one"
    odd = scene_of(tmp_path / "odd", document(activities=[("Jiggle brew button", 44, 62), ("Pour milk", 66, 80)]))
    assert "the domain file has no participle of the activity's verb" not in refused(odd, "action")


def test_process_asks_for_the_actions_of_both_hands_and_offers_the_exchanged_hands(scene: Scene) -> None:
    (candidate,) = asked(scene, "process")
    assert right(candidate) == [
        "The left hand is pressing the brew button, and the right hand is holding the coffee cup."
    ]
    assert "The left hand is holding the coffee cup, and the right hand is pressing the brew button." in distractors(
        candidate
    )


def test_a_hand_is_free_only_if_it_is_in_the_picture(tmp_path: Path) -> None:
    def right_hand(frame: int) -> tuple[int, int, int, int] | None:
        return (280, 10, 20, 20) if frame < 40 or frame >= 70 else None

    left = relation("left", "brew", "human_actions", "presses", (20, 80))
    held = relation("right", "cup", "human_actions", "holds", *((frame, frame + 1) for frame in (100, 104, 108)))
    hands = {"left": ("left hand", (24, 24, 20, 20)), "right": ("right hand", right_hand)}
    scene = scene_of(tmp_path, document({**OBJECTS, **hands}, [*RELATIONS[:-2], left, held]))
    claims = [HandsDo(("presses", "brew"), None, frame, (frame, frame + 5)).truth(scene) for frame in (30, 55)]
    assert claims == [True, None]


def test_parts_asks_for_the_part_under_a_hand_among_other_parts_in_view(scene: Scene) -> None:
    (candidate,) = asked(scene, "parts")
    assert candidate.question == "What is the left hand touching halfway through the clip?"
    assert right(candidate) == ["The brew button."]
    assert distractors(candidate) == {
        "The rinse button.",
        "The knob of the coffee machine.",
        "The grind button.",
        "The lid of the jar.",
    }


def test_objects_are_all_that_is_touched_and_never_a_whole_beside_its_part(scene: Scene, tmp_path: Path) -> None:
    (candidate,) = asked(scene, "objects")
    assert set(right(candidate)) == {"coffee cup", "brew button"}
    # Neither the whole of the button, nor the place where the cup ends up.
    assert not {"coffee machine", "scale"} & distractors(candidate)
    assert {"towel", "milk carton"} <= distractors(candidate)
    passed = {**OBJECTS, "towel": ("towel", (10, 62, 40, 30))}
    (candidate,) = asked(scene_of(tmp_path / "passed", document(passed)), "objects")
    assert "towel" not in {*right(candidate), *distractors(candidate)}, "a hand passes it closely"
    aside = scene_of(tmp_path / "aside", document({**OBJECTS, "second": ("coffee cup", (220, 20, 30, 30))}))
    (candidate,) = asked(aside, "objects")
    assert "coffee cup on the left" in right(candidate)
    above = {**OBJECTS, "second": ("coffee cup", lambda frame: (cup(frame)[0], 2, 30, 15))}
    twice = scene_of(tmp_path / "twice", document(above))
    assert not asked(twice, "objects")
    assert refused(twice, "objects") == {"a name could mean several things in view": 1}


def test_location_asks_before_and_after_of_the_same_move(scene: Scene) -> None:
    asked_of = {(c.question, *right(c)): c for c in asked(scene, "location") if c.frames == (55,)}
    begins, ends = (f"Where is the coffee cup when the clip {end}?" for end in ("begins", "ends"))
    assert set(asked_of) == {(begins, "Under the coffee machine."), (ends, "On the scale.")}
    assert "On the scale." in distractors(asked_of[begins, "Under the coffee machine."])
    assert "Under the coffee machine." in distractors(asked_of[ends, "On the scale."])


def test_no_question_asks_which_hand_holds_an_object_of_both_hands(tmp_path: Path) -> None:
    def left_hand(frame: int) -> tuple[int, int, int, int] | None:
        x, y, _, _ = cup(frame)
        return (x - 20, y, 20, 40) if 40 <= frame < 70 else None

    both = relation("left", "cup", "human_actions", "holds", (45, 65))
    objects = {**OBJECTS, "left": ("left hand", left_hand)}
    scene = scene_of(tmp_path, document(objects, [row for row in RELATIONS if row != PRESS] + [both]))
    assert asked(scene, "location")
    assert not [c for c in asked(scene, "location") if right(c)[0].startswith("In the")]


def test_state_asks_for_the_course_of_values_and_offers_others_of_the_same_values(scene: Scene) -> None:
    by_frame = {c.frames[0]: c for c in asked(scene, "state")}
    assert right(by_frame[60]) == ["First closed, then open, then closed again."]
    assert distractors(by_frame[60]) >= {"First closed, then open.", "First open, then closed.", "Open throughout."}
    assert {c.question for c in by_frame.values()} == {"What state is the milk carton in during the clip?"}


def test_a_state_that_stays_is_asked_only_of_an_object_that_hands_touch_in_the_clip(tmp_path: Path) -> None:
    touched = [*RELATIONS, relation("right", "carton", "human_actions", "touches", (90, 100))]
    for name, relations in (("apart", RELATIONS), ("touched", touched)):
        scene = scene_of(tmp_path / name, document(relations=relations))
        at_rest = [right(c) for c in asked(scene, "state") if c.frames == (95,)]
        assert at_rest == ([["Closed throughout."]] if name == "touched" else [])


def test_a_course_that_only_leaves_a_value_out_is_not_wrong(tmp_path: Path) -> None:
    filling = [
        ("cup", "state", "empty", 0, 40),
        ("cup", "state", "being filled", 40, 60),
        ("cup", "state", "full", 60, FRAMES),
    ]
    objects = {**OBJECTS, "cup": ("coffee cup", (120, 150, 30, 30))}
    scene = scene_of(tmp_path, document(objects, values=[*VALUES, *filling]))
    candidates = [c for c in asked(scene, "state") if right(c) == ["First empty, then being filled, then full."]]
    assert candidates
    for candidate in candidates:
        assert "First empty, then full." not in distractors(candidate)
        assert "First full, then empty." in distractors(candidate)


def test_masks_belong_to_the_answer_and_to_shown_frames(scene: Scene, tmp_path: Path) -> None:
    (candidate,) = asked(scene, "rvos_objects")
    assert candidate.extra["masked"] == [["cup"], ["brew"]]
    annotated = set(candidate.extra["annotated"])
    assert len(annotated) == 3
    assert annotated <= set(clip_around(scene, candidate.frames[0]).shown) & set(range(*candidate.span))
    content = document()
    for row in content["annotations"]:
        row["segmentation"] = None if row["object_id"] == "brew" else row["segmentation"]
    reason = "too few frames show all of the answer clearly, with masks"
    assert reason in refused(scene_of(tmp_path, content), "rvos_parts")


def test_a_clip_that_shows_touches_begin_and_a_later_clip_of_them_ask_for_the_same_objects(tmp_path: Path) -> None:
    place = (60, 170, 30, 30)
    objects = {"cup": ("coffee cup", place), "left": ("left hand", place), "right": ("right hand", place)}
    held = [
        relation(side, "cup", "human_actions", "holds", (0, end)) for side, end in (("left", 52), ("right", FRAMES))
    ]
    scene = scene_of(tmp_path, document({**OBJECTS, **objects}, [*RELATIONS[:-2], *held]))
    first, *later = asked(scene, "rvos_objects")
    assert first.span[0] == 0
    assert later
    assert all(first.facts & candidate.facts for candidate in later)


# The family


def test_a_domain_without_a_needed_entry_is_refused() -> None:
    domain = load_domain()
    words = domain.families["handyvqa"]
    for changes, said in (
        ({"families": {"handyvqa": {**words, "hold": "holds"}}}, r"families\.handyvqa"),
        ({"families": {"handyvqa": {**words, "state": "mood"}}}, r"handyvqa\.state: 'mood' is not described"),
        ({"families": {"handyvqa": {**words, "grip": "licks"}}}, r"handyvqa\.grip: 'licks' is not described"),
        ({"families": {"handyvqa": {**words, "where": ["beside"]}}}, r"\.where: 'beside' is not described"),
        ({"lengths": Lengths(clip=4.0)}, r"lengths\.clip is 4 s"),
    ):
        with pytest.raises(ConfigError, match=said):
            HandyvqaFamily(msgspec.structs.replace(domain, **changes))


def test_a_video_at_another_rate_than_its_graph_is_refused(tmp_path: Path) -> None:
    root = write_bench(tmp_path / "source", document(fps=10), fps=20)
    with pytest.raises(DataError, match="at a constant rate"):
        generate(root, tmp_path / "out", ["handyvqa"])


@pytest.fixture(scope="module")
def release(generated: Callable[[str], Path]) -> HandyvqaRelease:
    return open_release(generated("handyvqa"), None)


def test_every_subtask_has_questions_that_the_reader_takes(release: HandyvqaRelease) -> None:
    assert set(release.counts) == {task.name for task in BENCHMARK.tasks}
    assert min(release.counts.values()) >= 1
    assert not [problem for problem in release.problems if problem.severity == "error"]


def test_masks_of_the_release_equal_the_masks_of_the_graph(small_kitchen: Path, release: HandyvqaRelease) -> None:
    graph = SceneGraph(small_kitchen)
    assert release.questions["rvos_parts"]
    for question in release.questions["rvos_parts"]:
        assert question.clip is not None
        video = graph[Path(question.clip.video).stem]
        for annotated in question.annotated:
            assert annotated.moment.frame is not None
            masks = [video.mask(instance) for instance in video.instances(annotated.moment.frame)]
            assert any((mask == decode_mask(annotated.mask)).all() for mask in masks)


def test_real_clips_give_states_and_masks_and_report_gaps(real_release: Path, tmp_path: Path) -> None:
    (report,) = generate(real_release, tmp_path / "out", ["handyvqa"])
    sampled = {row.subtask: row.sampled for row in report.subtasks}
    assert sampled["state"] >= 4
    assert sampled["rvos_objects"] >= 2
    assert not report.lost_videos
    for row in report.subtasks:
        assert row.sampled + sum(row.refused.values()) == row.candidates, row
    assert RvosObjects.name in open_release(tmp_path / "out/handyvqa", None).counts


def test_questions_with_masks_are_the_questions_with_options_of_the_same_set(release: HandyvqaRelease) -> None:
    for name in ("objects", "parts"):
        with_options = {question.item_id: question for question in release.questions[name]}
        assert release.questions[f"rvos_{name}"]
        for masked in release.questions[f"rvos_{name}"]:
            other = with_options[masked.item_id.removeprefix("rvos_")]
            assert (masked.clip, masked.options, masked.correct) == (other.clip, other.options, other.correct)


def test_whole_videos_are_split_by_their_ids_and_the_seed(small_kitchen: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"families": ["handyvqa"], "splits": "0.5,0,0.5"}
    found: list[dict[str, set[str]]] = []
    for number, size in enumerate((4, 2)):
        generate(small_kitchen, tmp_path / str(number), per_subtask=size, **settings)
        questions = open_release(tmp_path / str(number) / "handyvqa", None).questions.values()
        videos: dict[str, set[str]] = defaultdict(set)
        for question in chain.from_iterable(questions):
            assert question.clip is not None
            assert question.scenario == load_domain().name
            videos[question.clip.video].add(question.split)
        found.append(videos)
    assert all(len(splits) == 1 for splits in found[0].values())
    assert set().union(*found[0].values()) == {"train", "test"}
    assert all(found[0][video] == splits for video, splits in found[1].items())


@pytest.mark.parametrize("count", [3, 10, 57])
def test_splits_have_their_fractions_in_any_order_of_the_videos_and_change_with_the_seed(count: int) -> None:
    names, fractions = [f"video_{number}" for number in range(count)], (0.6, 0.2, 0.2)
    splits = split_videos(names, fractions, 0)
    assert splits == split_videos(names[::-1], fractions, 0)
    assert count < 10 or splits != split_videos(names, fractions, 1)
    counts = Counter(splits.values())
    assert all(abs(counts[name] - count * part) <= 1 for name, part in zip(SPLITS, fractions, strict=True))
    assert set(counts) == set(SPLITS)


@pytest.mark.parametrize("text", ["", "0.6,0.4", "0.6,0.6,-0.2", "0.6,0.2,0.1", "a,b,c", "nan,0.5,0.5"])
def test_fractions_that_do_not_add_up_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="three fractions"):
        parse_fractions(text)


def test_fewer_videos_than_splits_are_refused() -> None:
    with pytest.raises(ConfigError, match="2 videos do not fill"):
        split_videos(["a", "b"], (0.6, 0.2, 0.2), 0)
