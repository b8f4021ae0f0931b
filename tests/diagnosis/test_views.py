"""Questions with less evidence, mirrored and reversed."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from barista_bench.aids.views import paint
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.diagnosis.running import DiagnoseConfig, diagnose
from barista_bench.runs.ask import runner
from tests.diagnosis.conftest import TASKS, Aids
from tests.diagnosis.test_pictures import Watcher, watcher  # noqa: F401  (a fixture)

FRAME = np.random.default_rng(3).integers(0, 255, (90, 160, 3), dtype=np.uint8)
BOX = (20.0, 30.0, 60.0, 50.0)


@pytest.mark.parametrize("keep", [False, True])
def test_painting_hides_either_the_areas_or_the_rest(keep: bool) -> None:
    painted = np.asarray(paint(Image.fromarray(FRAME), [BOX], (160, 90), keep=keep))
    inside = np.zeros((90, 160), bool)
    inside[30:50, 20:60] = True
    hidden = ~inside if keep else inside
    assert np.array_equal(painted[~hidden], FRAME[~hidden])
    assert len(np.unique(painted[hidden], axis=0)) == 1


@pytest.mark.parametrize("name", TASKS)
def test_a_question_mirrored_twice_is_the_same(name: str, aids_of: Aids) -> None:
    task, examples, book = aids_of(name)
    for example in examples:
        size = book.size(example)
        once = task.aids.mirrored(example, size)
        twice = task.aids.mirrored(once, size)
        assert twice is not None
        assert twice.inputs == example.inputs
        assert twice.target == example.target


def test_mirrored_hands_change_sides_and_boxes_change_places(aids_of: Aids) -> None:
    task, examples, book = aids_of("hand_object")
    for example in examples:
        other = task.aids.mirrored(example, book.size(example))
        for before, after in zip(example.target["interactions"], other.target["interactions"], strict=True):
            sides = {"left": "right", "right": "left", "both": "both"}
            assert after["hand_type"] == sides[before["hand_type"]]
            assert after["object_pixels"][0] == book.size(example)[0] - before["object_pixels"][2]
        task.target_type.read(other.target)


def test_a_reversed_clip_closes_opened_things_and_reversed_twice_asks_the_same(aids_of: Aids) -> None:
    task, examples, book = aids_of("temporal_vqa")
    kinds = set()
    for example in examples:
        viewed = book.viewed(example, "reversed")
        if viewed is None:
            continue
        once = viewed.example
        if example.target["category"] == "action_transition":
            continue  # read from the graph, which is not reversed
        assert once.target != example.target
        kinds.add(example.target["category"])
        twice = task.aids.reversed(book._scene(once))
        assert twice is not None
        answers = [sorted(re.findall(r"\w+", each.target["answer"])) for each in (twice, example)]
        assert answers[0] == answers[1]
    assert len(kinds) == 3


@pytest.mark.full
def test_views_hide_equal_areas_and_mirror_the_pictures(kitchen_data: Path, tmp_path: Path, watcher: Watcher) -> None:  # noqa: F811
    def shown(**view: str) -> dict[str, np.ndarray]:
        watcher.requests.clear()
        out = tmp_path / "-".join(view.values() or ["plain"])
        runner.run(kitchen_data, out, task="relations", model="watcher", repetitions=1, limit=6, **view)
        return {request.request_id: np.asarray(request.images[0]) for request in watcher.requests}

    plain = shown()
    hidden, elsewhere = shown(view="hide_evidence"), shown(view="hide_elsewhere")
    assert set(elsewhere) <= set(hidden) == set(plain)
    for name, picture in elsewhere.items():
        counts = [(picture != plain[name]).any(axis=2).sum() for picture in (picture, hidden[name])]
        assert counts[0] > 0
        assert counts[1] > 0
    for name, picture in shown(view="mirrored").items():
        assert np.array_equal(picture, plain[name][:, ::-1])


@pytest.mark.full
def test_a_model_that_answers_the_old_question_loses_its_score_when_mirrored(
    kitchen_data: Path, tmp_path: Path
) -> None:
    settings = {"task": ("hand_object",), "model": "oracle", "limit": 12, "workers": 1, "view": ("mirrored",)}
    (found,) = diagnose(DiagnoseConfig(data=str(kitchen_data), out=tmp_path / "hands", **settings))
    (changed,) = found.views
    assert (changed.name, changed.examples) == ("mirrored", found.examples)
    assert changed.before.value == 1
    assert changed.after.value is not None
    assert changed.after.value < 0.2
    settings |= {"task": ("relations",), "view": ("mirrored", "hide_evidence", "hide_elsewhere")}
    (found,) = diagnose(DiagnoseConfig(data=str(kitchen_data), out=tmp_path / "relations", **settings))
    by_name = {each.name: each for each in found.views}
    assert by_name["mirrored, same answer"].change.value == 0, "marks keep their numbers"
    assert by_name["hide_evidence"].examples == by_name["hide_elsewhere"].examples


def test_mirrored_questions_are_asked_in_mirrored_words(aids_of: Aids) -> None:
    task, examples, book = aids_of("grounding")
    named = [example for example in examples if "left hand" in example.inputs["phrase"]]
    assert named
    other = task.aids.mirrored(named[0], book.size(named[0]))
    assert "right hand" in task.prompt(other, DEFAULT_BOX_FORMAT).as_text()
