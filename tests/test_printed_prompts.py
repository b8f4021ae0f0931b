"""Prompts as papers print them, in one prompt file: each message that is sent, word for word, with texts of our own.

`tests/benchmarks/test_released_wording.py` does the same for BARISTA, `tests/egocot/test_judging.py` for the judge.
"""

import json
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_task, read_wording
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from tests.vista.made import example

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
