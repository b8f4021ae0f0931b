"""The files of a release: layouts, ids, and everything that can be wrong with a record."""

import json
from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks.handyvqa.letters import letters
from barista_bench.benchmarks.handyvqa.release import HandyvqaRelease, open_release
from barista_bench.errors import DataError
from tests.handyvqa.made import CUPS, DAMAGED_MASKS, record, rectangle, rle, target, write_lines

GOOD_MASK = rectangle(10, 10, 40, 30)


def ids(release: HandyvqaRelease, category: str = "action") -> list[str]:
    return [question.item_id for question in release.questions[category]]


def errors(release: HandyvqaRelease) -> list[str]:
    return [str(problem) for problem in release.problems if problem.severity == "error"]


def frame(*targets: dict[str, Any], **moment: object) -> dict[str, Any]:
    return {"targets": list(targets), **(moment or {"frame": 4})}


GOOD = target(1, GOOD_MASK)
BAD_FRAMES: list[tuple[list[dict[str, Any]], str]] = [
    ([], "no frame has a mask"),
    ([frame()], "no frame has a mask"),
    ([{"targets": [GOOD]}], "annotated[0]: names no moment"),
    ([frame(GOOD, frame=4, second=1.0)], "annotated[0]: names no moment, or two"),
    ([frame(target(2, GOOD_MASK))], "option 2 is not right"),
    ([frame(GOOD, GOOD)], "an option has two masks"),
    ([frame(GOOD)] * 2, "a frame is annotated twice"),
    ([frame(GOOD), frame(target(1, GOOD_MASK[:, :-1]), frame=5)], "masks are of several sizes"),
    ([frame(GOOD, frame=-1)], "annotated[0].frame"),
]


def rvos(item_id: str = "parts_0007", **changes: Any) -> dict[str, Any]:
    return record(item_id, annotated=[frame(GOOD)]) | changes


def test_a_folder_of_items_takes_ids_from_file_names(tmp_path: Path) -> None:
    (tmp_path / "action").mkdir()
    for number in (10, 9, 2):
        (tmp_path / f"action/action_{number}.json").write_text(json.dumps(record(None)))  # type: ignore[arg-type]
    release = open_release(tmp_path, None)
    assert ids(release) == ["action_2", "action_9", "action_10"]
    assert not release.problems
    assert release.counts == {"action": 3}
    assert release.questions["action"][0].file == "action/action_2.json"


def test_lists_and_lines_number_records_without_ids(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps([record(None), record("mine")]))  # type: ignore[arg-type]
    write_lines(tmp_path / "parts.jsonl", [record(None), record(None)])  # type: ignore[arg-type]
    release = open_release(tmp_path, None)
    assert ids(release, "state") == ["mine", "state_0000"]
    assert ids(release, "parts") == ["parts_0000", "parts_0001"]


def test_one_file_of_lines_names_the_category_of_each(tmp_path: Path) -> None:
    inference = {"prompt": "x", "output": "(A) y"}  # the keys of public result files do no harm
    first = record("a", category="action", inference=inference, another={"key": 1}, options=[f" {c}\n" for c in CUPS])
    path = write_lines(tmp_path / "all.jsonl", [first, record("b", category="process")])
    for root in (path, tmp_path):
        release = open_release(root, None)
        assert release.counts == {"action": 1, "process": 1}
        assert release.videos == tmp_path
        assert list(release.questions["action"][0].options) == CUPS, "trimmed"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"correct_idx": []}, "correct_idx: names no option"),
        ({"correct_idx": ["1"]}, "line 2.correct_idx[0]: Expected `int`"),
        ({"correct_idx": None}, "correct_idx"),
        ({"options": []}, "line 2.options: Expected"),
        ({"options": ["cup"] * 1001}, "line 2.options: Expected"),
        ({"options": ["a", None, "c"]}, "line 2.options[1]: Expected `str`"),
        ({"question": 7}, "line 2.question: Expected"),
        ({"id": "../up"}, "is not a name"),
        ({"category": "colour"}, "category: is 'colour'"),
        ({"category": "state"}, "category: is 'state', among 'action'"),
        ({"split": "a/b"}, "split: 'a/b' is not a name"),
        ({"clip": {}}, "clip: names no video or folder"),
        ({"clip": {"video": "a.mp4", "frames": "b"}}, "clip: names no video or folder, or both"),
        ({"clip": {"video": "../a.mp4", "centre_seconds": 2}}, "is not a path below the videos"),
        ({"clip": {"video": "/etc/passwd"}}, "is not a path below the videos"),
        ({"clip": {"video": "a.mp4", "center": 2}}, "center"),
        ({"clip": {"video": "a.mp4", "centre_seconds": -1}}, "centre_seconds"),
        ({"clip": {"video": "a.mp4", "fps": 30}}, "clip.fps"),
        ({"clip": {"frames": "a", "centre_seconds": 2}}, "clip.fps: is missing"),
    ],
)
def test_a_bad_record_costs_itself_and_is_named(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    bad = record("action_0001", **changes)
    write_lines(tmp_path / "action.jsonl", [record("action_0000"), bad, record("action_0002")])
    release = open_release(tmp_path, None)
    assert ids(release) == ["action_0000", "action_0002"]
    (error,) = errors(release)
    assert named in error
    assert "action.jsonl: line 2" in error
    assert "Fix: " in error


def test_of_two_records_of_a_category_with_one_id_the_first_counts(tmp_path: Path) -> None:
    write_lines(tmp_path / "action.jsonl", [record(question="first?"), record(question="second?")])
    write_lines(tmp_path / "state.jsonl", [record()])
    release = open_release(tmp_path, None)
    assert [question.question for question in release.questions["action"]] == ["first?"]
    (error,) = errors(release)
    assert "line 2.id: ('action', 'action_0000') stands twice" in error


@pytest.mark.parametrize(
    ("category", "changes", "named", "correct"),
    [
        ("objects", {"options": ["cup", "jug", "Cup "]}, "options[2]: says what options[0] says", (1,)),
        ("objects", {"correct_idx": [2, 2]}, "names an option twice: it counts once", (2,)),
        ("objects", {"options": ["cup", "jug"], "correct_idx": [0, 1]}, "every option is right", (0, 1)),
        ("objects", {"correct_idx": []}, "correct_idx: names no option", ()),
        ("objects", {"correct_idx": [3, 5, 0]}, "5 is not one of the 5 options", (0, 3)),
        ("action", {"correct_idx": [5]}, "5 is not one of the 5 options", ()),
        ("action", {"correct_idx": [-1]}, "-1 is not one of the 5 options", ()),
        ("action", {"correct_idx": [2, 1]}, "2 options are right, but action asks for one: the first counts", (2,)),
        ("action", {"options": ["a", " ", "c"]}, "options[1]: is blank", (1,)),
        ("action", {"question": "   "}, "question: is blank", (1,)),
        ("action", {"question": None}, "question: is blank", (1,)),
        ("objects", {"options": ["cup"], "correct_idx": [0]}, "every option is right", (0,)),
    ],
)
def test_odd_records_are_kept_with_a_warning(
    tmp_path: Path, category: str, changes: dict[str, Any], named: str, correct: tuple[int, ...]
) -> None:
    write_lines(tmp_path / f"{category}.jsonl", [record("odd", **changes)])
    release = open_release(tmp_path, None)
    (problem,) = release.problems
    assert problem.severity == "warning"
    assert named in str(problem)
    assert str(problem).count("odd is kept") == 1
    assert "left out" not in str(problem)
    assert [question.correct for question in release.questions[category]] == [correct]


def test_options_beyond_the_alphabet_are_numbered(tmp_path: Path) -> None:
    write_lines(tmp_path / "action.jsonl", [record(options=[f"cup {n}" for n in range(28)])])
    release = open_release(tmp_path, None)
    assert not release.problems
    assert letters(len(release.questions["action"][0].options))[-3:] == ["Z", "27", "28"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"question": " "}, "question: is blank: bad is left out"),
        ({"options": ["", "cup"]}, "options[0]: is blank: bad is left out"),
        ({"correct_idx": [7]}, "7 is not one of the 5 options: bad is left out"),
        ({"correct_idx": [1, 2]}, "2 options are right, but rvos_parts asks for one: bad is left out"),
        ({"correct_idx": []}, "names no option: bad is left out"),
        *(({"annotated": annotated}, named) for annotated, named in BAD_FRAMES),
        *(({"annotated": [frame({"option": 1, "segmentation": damaged})]}, "") for damaged in DAMAGED_MASKS),
    ],
)
def test_records_with_masks_need_texts_right_options_and_annotated_frames(
    tmp_path: Path, changes: dict[str, Any], named: str
) -> None:
    """Damaged run lengths never reach native code."""
    write_lines(tmp_path / "rvos_parts.jsonl", [rvos("good"), rvos("bad", **changes)])
    release = open_release(tmp_path, None)
    assert ids(release, "rvos_parts") == ["good"]
    (error,) = errors(release)
    assert named in error


def test_the_message_about_a_folder_without_usable_records_names_the_expected_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no HanDyVQA records.*categories are action"):
        open_release(tmp_path, None)
    with pytest.raises(DataError, match="no such file or folder"):
        open_release(tmp_path / "gone", None)
    write_lines(tmp_path / "action.jsonl", [record(correct_idx=[])])
    with pytest.raises(DataError, match=r"no HanDyVQA record that can be used .*first problem: .*names no option"):
        open_release(tmp_path, None)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    secret = write_lines(tmp_path / "outside/secret.jsonl", [record()])
    (tmp_path / "root").mkdir()
    (tmp_path / "root/action.jsonl").symlink_to(secret)
    with pytest.raises(DataError, match="leads outside"):
        open_release(tmp_path / "root", None)


def test_masks_of_several_right_options_become_one_region(tmp_path: Path) -> None:
    first, second = rectangle(0, 0, 10, 10), rectangle(5, 5, 30, 20)
    frames = [frame(target(1, first), target(2, second)), frame(target(2, second), frame=9)]
    item = record("objects_0001", correct_idx=[2, 1], annotated=frames)
    write_lines(tmp_path / "rvos_objects.jsonl", [item])
    (question,) = open_release(tmp_path, None).questions["rvos_objects"]
    assert question.correct == (1, 2)
    assert [frame.options for frame in question.annotated] == [(1, 2), (2,)]
    assert question.annotated[0].mask.counts == rle(first | second)["counts"]


def test_a_right_option_that_is_not_visible_leaves_a_frame_empty(tmp_path: Path) -> None:
    write_lines(tmp_path / "rvos_parts.jsonl", [rvos(annotated=[frame(GOOD), frame(frame=9)])])
    (question,) = open_release(tmp_path, None).questions["rvos_parts"]
    assert question.annotated[1].mask.counts == rle(rectangle(0, 0, 0, 0))["counts"]


def test_messages_about_a_record_do_not_grow_with_it(tmp_path: Path) -> None:
    write_lines(tmp_path / "action.jsonl", [record("good"), record("a/" * 4000), record("b", split="c/" * 4000)])
    problems = open_release(tmp_path, None).problems
    assert len(problems) == 2
    assert all(len(str(problem)) < 500 for problem in problems)
