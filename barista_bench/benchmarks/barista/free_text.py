"""Answers in free text: one labelled line of a model's answer, and words to make up answers from."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE
from barista_bench.benchmarks.parsing import MAX_ANSWER
from barista_bench.files.bounded import load_yaml


def labelled(text: str, label: str) -> str:
    r"""What follows the last `<label>:` that begins a line, up to that line's end; the whole text where there is none.

    The released expression is `^\s*label\s*:\s*(.+)$` without case, over lines
    (docs/upstream/barista.md). Leading white space is looked for within one line here: that finds the same answers, in
    linear time for any text.

    >>> labelled("I see a cup.\nDescription: a red cup\nBye", "description")
    'a red cup'
    >>> labelled(" A red cup. ", "description")
    'A red cup.'
    """
    text = text[:MAX_ANSWER]
    matches = re.findall(rf"^[^\S\n]*{label}\s*:\s*(.+)$", text, re.IGNORECASE | re.MULTILINE)
    return str(matches[-1] if matches else text).strip()


def after_last(text: str, marker: str) -> str:
    r"""All that follows the last `marker`, in either case, anywhere; the whole text where there is none (paper, A.3.3).

    >>> after_last("I think. answer: the lid\nwas opened.", "Answer:")
    'the lid\nwas opened.'
    """
    text = text[-MAX_ANSWER:]
    matches = list(re.finditer(re.escape(marker), text, re.IGNORECASE))
    return text[matches[-1].end() if matches else 0 :].strip()


@cache
def domain_vocabulary() -> dict[str, str]:
    """The release's 45 object categories, each with a short description: for judges and for made-up answers."""
    text = resources.files(PROMPT_PACKAGE).joinpath("vocabulary.yaml").read_text(encoding="utf-8")
    content = load_yaml(text, "vocabulary.yaml")
    assert isinstance(content, dict)
    return {str(name): str(description) for name, description in content["categories"].items()}
