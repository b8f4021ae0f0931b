"""Rubric files: ours cover their scale, and a user's broken file is refused by name."""

import hashlib
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_task
from barista_bench.core.display import JudgedSample
from barista_bench.errors import ConfigError
from barista_bench.judging.forms import form_prompt, form_prompts, read_steps, steps_prompt
from barista_bench.judging.rubric import load_rubric
from barista_bench.runs.ask.replies import Unusable
from barista_bench.scene_graph.domain import domain_vocabulary

REFERRING = get_task("barista", "referring")
VQA = get_task("barista", "temporal_vqa")

GOOD = """
version: 1
introduction: Grade it.
criteria:
  - name: fit
    text: Does it fit?
    bands:
      - {low: 0, high: 4, text: "no"}
      - {low: 5, high: 10, text: "yes"}
    steps: [Look.]
"""


def test_our_rubrics_have_the_criteria_and_bands_of_the_paper() -> None:
    assert load_rubric(REFERRING).names == ("correctness",)
    assert load_rubric(VQA).names == ("accuracy", "completeness")
    for task in (REFERRING, VQA):
        for criterion in load_rubric(task).criteria:
            assert [(band.low, band.high) for band in criterion.bands] == [(0, 3), (4, 7), (8, 10)]
            assert criterion.steps


def test_the_referring_judge_reads_the_whole_vocabulary_and_the_clip_judge_none_of_it() -> None:
    assert load_rubric(REFERRING).words == domain_vocabulary()
    assert load_rubric(VQA).words == {}
    judged = JudgedSample("q", "r", "a")
    rubric = load_rubric(REFERRING)
    text = form_prompt(rubric, rubric.criteria[0], rubric.criteria[0].steps, judged).as_text()
    assert all(f"- {word}: {about}" in text for word, about in domain_vocabulary().items())
    with pytest.raises(TypeError, match="reasoning has no rubric, and answers have one"):
        form_prompts(None, {}, judged)


def test_a_form_shows_criterion_bands_steps_and_material_and_asks_steps_with_the_first_two() -> None:
    rubric = load_rubric(VQA)
    criterion = rubric.criteria[1]
    judged = JudgedSample("What?", "The lid.", "A jar.")
    text = form_prompt(rubric, criterion, ["First this.", "Then that."], judged).as_text()
    for part in (rubric.introduction, criterion.text, *(band.text for band in criterion.bands)):
        assert part in text
    assert "1. First this.\n2. Then that." in text
    assert '{"question": "What?", "reference": "The lid.", "answer": "A jar."}' in text
    assert rubric.criteria[0].text not in text
    for gap in ("{introduction}", "{name}", "{bands}", "{steps}", "{vocabulary}", "{fence}", "{data}"):
        assert gap not in text
    steps = steps_prompt(rubric, criterion).as_text()
    assert criterion.text in steps
    assert criterion.scale in steps


@pytest.mark.parametrize(
    "text", ['{"steps": []}', '{"steps": [1]}', '{"steps": [" "]}', "[]", '{"steps": ["a"], "x": 1}']
)
def test_steps_other_than_a_list_of_texts_are_refused(text: str) -> None:
    assert isinstance(read_steps(text), Unusable)


@pytest.mark.parametrize("vocabulary", [False, True])
def test_the_hash_of_a_users_rubric_covers_its_bytes_and_its_shown_words(tmp_path: Path, vocabulary: bool) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD + ("vocabulary: true\n" if vocabulary else ""))
    rubric = load_rubric(VQA, path)
    assert rubric.names == ("fit",)
    assert bool(rubric.words) is vocabulary
    assert (rubric.sha256 != hashlib.sha256(path.read_bytes()).hexdigest()) is vocabulary


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("high: 4", "high: 5"), "bands"),
        (("low: 5", "low: 6"), "bands"),
        (("high: 10", "high: 9"), "bands"),
        (("high: 10", "high: 1000000000000"), "bands"),
        (("name: fit", "name: Über alles"), "criteria.0.name"),
        (("text: Does it fit?", "text: ''"), "criteria.0.text"),
        (("version: 1", "version: one"), "version"),
        (("introduction: Grade it.", "intro: Grade it."), "introduction"),
        (("steps: [Look.]", "steps: [1]"), "criteria.0.steps.0"),
        (("steps: [Look.]", "stepz: [Look.]"), "criteria.0.stepz"),
        (("text: Does it fit?", "text: &a Does it fit?\n    lexical: *a"), "alias"),
        (("version: 1", "version: [1"), "line [0-9]+: "),
        (("version: 1", "version: 1\nversion: 2"), "'version' appears here twice"),
        (("version: 1", "version: " + "1" * 5000), "a number of 5000 characters"),
        (("version: 1", "version: !!python/name:os.system"), "not YAML"),
        (("version: 1", "#" * 2**20), "larger than 1048576"),
    ],
)
def test_a_broken_rubric_is_refused_and_names_the_field(change: tuple[str, str], named: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    assert change[0] in GOOD
    path.write_text(GOOD.replace(*change))
    with pytest.raises(ConfigError, match=named) as caught:
        load_rubric(VQA, path)
    assert str(path) in str(caught.value)
    assert "Fix" in str(caught.value)


def test_no_judge_judges_a_task_without_a_rubric(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no judge scores the task relations"):
        load_rubric(get_task("barista", "relations"))
    with pytest.raises(ConfigError, match="no rubric file"):
        load_rubric(VQA, tmp_path / "absent.yaml")
