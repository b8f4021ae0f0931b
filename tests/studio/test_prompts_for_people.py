"""A prompt that is written for models, reworded for a person."""

import pytest

from barista_bench.studio.prompts_for_people import prompt_for_people


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        ("Name all.\n\nAnswer with a JSON array and nothing after it. If nothing holds, answer [].", "Name all."),
        ("List all relations between them as a JSON array.", "List all relations between them."),
        ('Find all.\n\nAnswer with a JSON object:\n{"bboxes": []}\nIf none fits, answer {}.', "Find all."),
        ('Report all.\n\nThe left hand holds a cup:\n[{"hand_type": "left"}]', "Report all."),
        ("Draw boxes.\n\nA box is [left, top, right, bottom].\n\nBe exact.", "Draw boxes.\n\nBe exact."),
        ("Mark each cup. Answer with one JSON object: {}", "Mark each cup."),
        ("You may reason in a sentence. Then close with one JSON list:\n[[1, 2]]", ""),
        ("Which one?\nA: a cup\nB: a lid", "Which one?\nA: a cup\nB: a lid"),
        ("Which object does the box [1, 2, 3, 4] surround?", "Which object does the box [1, 2, 3, 4] surround?"),
        ('Find this: "a [red] {cup}"', 'Find this: "a [red] {cup}"'),
    ],
)
def test_people_read_the_question_and_not_the_answer_format_of_models(prompt: str, shown: str) -> None:
    assert prompt_for_people(prompt) == shown
