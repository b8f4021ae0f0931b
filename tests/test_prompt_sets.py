"""Prompts are data: our wording by default, any other set from a file or a folder."""

import json
from pathlib import Path

import pytest

from barista_bench.benchmarks import BENCHMARKS, get_task, read_wording
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.prompt import ImagePart, Prompt, PromptTexts, TextPart, fill
from barista_bench.core.prompt_files import WRITER, load_prompts
from barista_bench.errors import ConfigError
from barista_bench.judging.rubric import load_rubric
from tests.vista.made import example

GOOD = "version: 3\nsystem: Look.\nuser: 'Find {what}'\n"


def test_every_task_has_its_own_wording() -> None:
    for benchmark in BENCHMARKS.values():
        for task in benchmark.tasks:
            prompts = task().prompts
            assert prompts.version >= 1
            assert prompts.system


def test_a_set_is_read_from_a_file_or_a_folder_and_says_whose_it_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"relations\.yaml: no prompt file"):
        load_prompts(tmp_path, "relations")
    (tmp_path / "relations.yaml").write_text(GOOD)
    loaded = load_prompts(tmp_path, "relations")
    assert loaded == load_prompts(tmp_path / "relations.yaml", "anything")
    assert (loaded.version, loaded.fill(what="{cups}")) == (3, ("Look.", "Find {cups}"))
    assert fill("{a}{b}{a} {c}", {"a": "{b}", "b": "x"}) == "{b}x{b} {c}", "values are never filled again"
    assert loaded.wording == f"file:{loaded.sha256[:8]}"
    ours = BENCHMARKS["barista"].tasks[0]().prompts
    assert ours.wording == f"ours v{ours.version}"


def test_a_file_of_several_tasks_names_each_wording_by_its_own_texts(tmp_path: Path) -> None:
    texts = {"version": 1, "system": "Look.", "user": "Find {what}"}
    path = tmp_path / "all.yaml"
    path.write_text(json.dumps({"tasks": {"relations": texts, "grounding": texts | {"system": "See."}}}))
    relations, grounding = (load_prompts(path, task) for task in ("relations", "grounding"))
    assert (relations.system, grounding.system) == ("Look.", "See.")
    assert relations.wording != grounding.wording
    path.write_text(json.dumps({"tasks": {"relations": texts}, "writer": texts}))
    assert load_prompts(path, "relations") == relations, "what else is in the file does not count"
    assert load_prompts(path, WRITER).system == "Look."
    with pytest.raises(
        ConfigError, match=r"all\.yaml: tasks\.activity: not there \(it has relations\)\. Fix: write it"
    ):
        load_prompts(path, "activity")
    path.write_text(json.dumps({"rubrics": {}}))
    with pytest.raises(ConfigError, match=r"all\.yaml: writer: not there \(it has none\)"):
        load_prompts(path, WRITER)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("tasks: [a]\n", "tasks: Input should be a valid dict"),
        ("tasks: {a: {version: 1, system: b}}\n", r"tasks\.a\.user: Field required.*Fix: correct it"),
        ("writer:\n", r"writer: not there"),
        ("tasks: {}\nmore: 1\n", "more: Extra inputs"),
        ("rubrics: {a: 1}\n", r"rubrics\.a: Input should be a valid dict"),
    ],
)
def test_a_bad_file_of_several_tasks_is_refused(tmp_path: Path, content: str, what: str) -> None:
    (tmp_path / "p.yaml").write_text(content)
    with pytest.raises(ConfigError, match=what):
        load_prompts(tmp_path / "p.yaml", WRITER)


def test_the_file_of_the_page_is_read(tmp_path: Path) -> None:
    page = Path(__file__).parents[1] / "docs" / "prompt_files.md"
    path = tmp_path / "prompts.yaml"
    path.write_text("tasks:\n" + page.read_text().partition("```yaml\ntasks:\n")[2].partition("```")[0])
    texts = read_wording("barista", "relations", path)
    assert len(texts.prompt(2, legend="1: cup").parts) == 5
    assert "{changes}" in load_prompts(path, WRITER).user
    assert load_rubric(get_task("barista", "temporal_vqa"), path).names == ("accuracy",)


def test_a_clone_as_prompts_is_refused_and_the_message_names_the_script() -> None:
    for read in (load_prompts, lambda path, task: load_rubric(get_task("barista", task), path)):
        with pytest.raises(ConfigError, match=r"release:clone: no .* file.*Fix: .*scripts/released_prompts\.py"):
            read("release:clone", "referring")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("version: 1\nsystem: a\n", "Fix: give exactly"),
        (GOOD + "more: 1\n", "Fix: give exactly"),
        ("- a\n", "the whole: Input should be a valid dict"),
        ("version: one\nsystem: a\nuser: b\n", "version: Input should be a valid integer"),
        ("version: 1\nsystem: 2\nuser: b\n", "system: Input should be a valid string"),
        ("version: [\n", "not YAML"),
        ("version: true\nsystem: a\nuser: b\n", "version: Input should be a valid integer"),
        ("version: 2026-13-45\nsystem: a\nuser: b\n", "not YAML"),
        ("version: 1\nsystem: &a x\nuser: *a\n", "alias"),
        ("[" * 3000, "not YAML"),
        ("!!python/object/apply:os.system ['true']\n", "not YAML"),
        ("x" * (2**20 + 1), "larger than"),
    ],
)
def test_a_bad_prompt_file_is_refused(tmp_path: Path, content: str, what: str) -> None:
    (tmp_path / "p.yaml").write_text(content)
    with pytest.raises(ConfigError, match=what):
        load_prompts(tmp_path / "p.yaml", "relations")


def parts(user: str, images: int, **extra: str) -> list[str | int]:
    prompt = PromptTexts(1, "", user, "0" * 64, extra).prompt(images, what="a {image} cup")
    return [part.text if isinstance(part, TextPart) else part.index for part in prompt.parts]


@pytest.mark.parametrize(
    ("user", "images", "extra", "wanted"),
    [
        ("Find {what}", 2, {}, [0, 1, "Find a {image} cup"]),
        ("\nFind", 1, {}, [0, "\nFind"]),
        ("Find", 0, {}, ["Find"]),
        ("{image}\nFind {what}\n", 1, {}, [0, "Find a {image} cup\n"]),
        ("Raw:\n{image}\nMarked:\n{image}\nFind", 2, {}, ["Raw:", 0, "Marked:", 1, "Find"]),
        ("A\n\n{image}\n\nB{image}", 2, {}, ["A\n", 0, "\nB", 1]),
        ("{image}\n{image}", 2, {}, [0, 1]),
        ("{images}\nFind", 2, {"image": "Frame {number}:"}, ["Frame 1:", 0, "Frame 2:", 1, "Find"]),
        ("First {image} then\n{images}", 3, {"image": "{number}"}, ["First ", 0, " then", "2", 1, "3", 2]),
        ("Find", 2, {"image": "Frame {number}:"}, [0, 1, "Find"]),
    ],
)
def test_images_are_where_the_text_places_them(user: str, images: int, extra: dict[str, str], wanted) -> None:
    assert parts(user, images, **extra) == wanted


@pytest.mark.parametrize(("user", "images"), [("{image}", 2), ("{image}{image}", 1), ("{images}{image}", 2)])
def test_a_text_that_places_other_images_is_refused(user: str, images: int) -> None:
    with pytest.raises(ConfigError, match=r"wording file:00000000 places \d images, but \d are shown. Fix: write"):
        parts(user, images)


def test_the_first_part_of_every_barista_prompt_is_as_released() -> None:
    """Frames first, but for the short text before each of several."""
    starts = {task.name: task().prompts.user.split("\n")[0] for task in BENCHMARKS["barista"].tasks}
    assert starts.pop("relations").endswith(":")
    assert set(starts.values()) == {"{image}", "{images}"}


TEXTS = {
    "version": 1,
    "system": "You look.",
    "user": "{frame_count} frames. {task}\n{example}Go.",
    "extra": {
        "example": "Like this: {example}",
        "match": "It says: {description}\nWhich?\n{summaries}",
        "score": "Now the scores {summaries}.",
        "single": "All at once: {frame_count}, {task}, {example}, {summaries}",
    },
}


@pytest.fixture
def prompt_file(tmp_path: Path) -> Path:
    path = tmp_path / "printed.yaml"
    path.write_text(json.dumps({"tasks": {"virtual_home": TEXTS, "all": TEXTS | {"system": "Another."}}}))
    return path


def said(prompt: Prompt | None) -> tuple[str, int, str]:
    """System text, number of images before the text, and the text."""
    assert prompt
    *images, text = prompt.parts
    assert all(isinstance(image, ImagePart) for image in images)
    assert isinstance(text, TextPart)
    return prompt.system, len(images), text.text


@pytest.mark.parametrize(("name", "system"), [("virtual_home", "You look."), ("all", "Another.")])
def test_both_conversations_of_vista_are_as_written(prompt_file: Path, name: str, system: str) -> None:
    task = get_task("vista", name, read_wording("vista", name, prompt_file))
    asked = example(labels=("a", "b"), frames=4)
    described = "4 frames. Look at the hands.\nLike this: 1. A hand.\nGo."
    assert said(task.prompt(asked, BoxFormat())) == (system, 4, described)
    matched = "It says: A hand.\nWhich?\n- (a) somebody does a\n- (b) somebody does b"
    assert said(task.follow_up(asked, ("A hand.\n",), BoxFormat())) == (system, 0, matched)
    scoring = task.follow_up(asked, ("A hand.\n", "It is a."), BoxFormat())
    assert said(scoring) == (system, 0, "Now the scores {summaries}.")
    assert scoring
    assert [(turn["role"], turn["content"][0]["text"]) for turn in scoring.messages()] == [
        ("system", system),
        ("user", matched),
        ("assistant", "It is a."),
        ("user", "Now the scores {summaries}."),
    ]
    assert task.follow_up(asked, ("A hand.", "It is a.", "a 5"), BoxFormat()) is None
