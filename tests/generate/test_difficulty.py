"""Difficulty: smaller, shorter visible and look-alike things are harder; a user can ask for a level."""

import json
from pathlib import Path

import msgspec
import pytest

from barista_bench.errors import ConfigError
from barista_bench.generate.candidates import Choice, Difficulty, QuestionCandidate, with_choices
from barista_bench.generate.difficulty import SAME_MOMENT, SAME_OBJECT, count_steps, parse_difficulties, with_difficulty
from barista_bench.generate.generator import generate
from barista_bench.generate.scene import Scene
from barista_bench.generate.statements import AllOf, HasValue, Touches
from tests.generate.graphs import candidate_of, graph_document, scene_of

THINGS = {"left": "left hand", "cup": "coffee cup", "jar": "jar", "pot": "pitcher", "lid": "lid", "box": "box"}
AWAY = {"lid": [(60, 100)], "box": [(60, 100)]}


def scene(root: Path, size: int = 60, seen: int = 100) -> Scene:
    boxes = {"cup": (90, 10, size, size)}
    return scene_of(root, graph_document(THINGS, seen={**AWAY, "cup": [(0, seen)]}, boxes=boxes))


def touched(*names: str, steps: int = 1) -> QuestionCandidate:
    right, *distractors = (Choice(name, Touches("left", name, 20)) for name in names)
    if steps > 1:
        right = Choice(right.text, AllOf(tuple(Touches("left", names[0], at) for at in range(steps))))
    return candidate_of(right, *distractors, frames=(20,), objects=names[:1])


def difficulty(scene: Scene, *names: str, steps: int = 1) -> Difficulty:
    made = with_difficulty(touched(*names, steps=steps), scene, 1).difficulty
    assert made
    return made


def test_smaller_and_shorter_visible_things_and_more_steps_are_harder(tmp_path: Path) -> None:
    easy = difficulty(scene(tmp_path / "easy"), "cup", "pot")
    assert (easy.area, easy.seconds, easy.steps) == (60 * 60 / (320 * 240), 10.0, 1)
    small = difficulty(scene(tmp_path / "small", size=10), "cup", "pot")
    short = difficulty(scene(tmp_path / "short", seen=25), "cup", "pot")
    long_way = difficulty(scene(tmp_path / "steps"), "cup", "pot", steps=3)
    assert all(other.score > easy.score for other in (small, short, long_way))
    assert long_way.steps == 3


def test_the_steps_are_claims_with_named_touches_or_moments() -> None:
    question = touched("cup")
    assert count_steps(question) == 1
    assert count_steps(msgspec.structs.replace(question, frames=(20, 30, 40))) == 3
    by_touch = msgspec.structs.replace(question, given=(Touches("right", "pot", 20),))
    assert count_steps(by_touch) == count_steps(msgspec.structs.replace(by_touch, frames=(20, 30))) == 2
    renamed = [msgspec.structs.replace(question, wording=wording) for wording in ("egocot/AOG", "egocot/AOG as a key")]
    assert {count_steps(candidate) for candidate in renamed} == {1}


def test_distractors_have_an_origin_and_near_ones_come_first(tmp_path: Path) -> None:
    candidate = touched("cup", "lid", "jar", "pot")
    full = Choice("full", HasValue("cup", "state", "full", 20))
    made = with_difficulty(
        msgspec.structs.replace(candidate, distractors=(*candidate.distractors, full)), scene(tmp_path), 3
    )
    assert made.origins == {"lid": "", "jar": SAME_MOMENT, "pot": SAME_MOMENT, "full": SAME_OBJECT}
    assert [choice.text for choice in made.distractors] == ["jar", "pot", "full", "lid"]


def test_a_third_of_the_distractors_is_near_even_where_balance_would_have_others(tmp_path: Path) -> None:
    made = [with_difficulty(touched("cup", "lid", "box", "jar"), scene(tmp_path), 2)]
    made += [with_difficulty(touched(name, "lid", "box"), scene(tmp_path / name), 2) for name in ("lid", "box")]
    (item, *_) = with_choices(made, "s", lambda _: 2, 0)
    assert {choice.text for choice in item.choices} >= {"cup", "jar"}


def test_levels_are_a_range_or_one() -> None:
    assert parse_difficulties("easy:hard") == ("easy", "medium", "hard")
    assert parse_difficulties("medium") == ("medium",)
    for wrong in ("hard:easy", "simple", ""):
        with pytest.raises(ConfigError, match="not a range of levels"):
            parse_difficulties(wrong)


def test_only_levels_that_are_asked_for_are_generated_and_others_counted(small_release: Path, tmp_path: Path) -> None:
    def levels(out: Path, asked: str) -> set[str]:
        generate(small_release, out, ["egocot", "tog_bench"], per_subtask=3, difficulty=asked)
        rows = [json.loads(line) for path in out.glob("*.items.jsonl") for line in path.read_text().splitlines()]
        return {row["difficulty"]["level"] for row in rows}

    every = levels(tmp_path / "every", "easy:hard")
    assert len(every) > 1
    assert levels(tmp_path / "easy", "easy") == {"easy"}
    report = json.loads((tmp_path / "easy/egocot.report.json").read_text())
    assert any("it is medium" in row["refused"] for row in report["subtasks"])
