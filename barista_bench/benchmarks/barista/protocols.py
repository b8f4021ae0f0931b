"""Where the paper and its released code differ, or one of them says what the other leaves open, task by task.

`protocol="release"` (the default) does what the released code does, `"paper"` what the paper says where the two can be
told apart. Rules that change nothing here are listed too: those on which the paper contradicts itself, and those that
concern assets or calls outside this package. The tables of the dataset cards are made from this one.
"""

from __future__ import annotations

from barista_bench.task import ProtocolRule

_GRID = ProtocolRule(
    "scores",
    "true boxes",
    "on the integer grid of 0..1000, and scored from there",
    "absolute pixels, as annotated (A.1)",
)
_JUDGE_INPUT = ProtocolRule(
    "nothing",
    "question shown to the judge",
    "the template, its place for the box not filled in",
    "not stated",
)

_BROKEN_OFF = ProtocolRule(
    "parsing",
    "a JSON array that breaks off",
    "cannot be read",
    "not stated; read as far as its entries are complete",
)

RULES: dict[str, tuple[ProtocolRule, ...]] = {
    "grounding": (
        _GRID,
        ProtocolRule(
            "parsing",
            "a JSON object that breaks off",
            "every four numbers in a row count, the last one even if it was cut short",
            "not stated; read as far as its boxes are complete",
        ),
        ProtocolRule(
            "nothing",
            "relation that a phrase uses",
            "any of the object's, drawn by a generator that is not seeded",
            "spatial relations, preferred by richness (4.2.1, A.2.1); which of several is not stated",
        ),
    ),
    "hand_object": (
        _GRID,
        _BROKEN_OFF,
        ProtocolRule("prompt", "text beside the frame", "a short request", "none (A.2.2)"),
        ProtocolRule(
            "scores",
            "matching of interactions",
            "true ones by their best object IoU, each takes its best unused answer if above 0.5",
            "pairs by object IoU, highest first, at 0.5 or more (4.2.1, table 3, A.2.2; table 9 has above 0.5)",
        ),
        ProtocolRule("nothing", "F1", "not computed", "of the pooled precision and recall (both protocols here)"),
    ),
    "referring": (
        ProtocolRule(
            "examples",
            "related objects in the reference",
            "only those that no count stands for (`2x button`)",
            "every related object (A.2.3)",
        ),
        ProtocolRule(
            "examples",
            "objects cut off by the frame's edge",
            "left out if they cover less than 5 % of the frame",
            "not left out (A.2.3)",
        ),
        _JUDGE_INPUT,
    ),
    "activity": (
        ProtocolRule(
            "examples",
            "segments that share time with another",
            "left out",
            "not left out: only too short ones are (A.3.1)",
        ),
    ),
    "relations": (
        _BROKEN_OFF,
        ProtocolRule(
            "scores",
            "texts of a relation are compared",
            "without case and outer white space",
            "without case and with any white space read as one space (A.3.2)",
        ),
        ProtocolRule(
            "nothing",
            "place of the allowed vocabulary",
            "system prompt",
            "system prompt by the text, user message by the prompt that it prints (A.3.2)",
        ),
    ),
    "temporal_vqa": (
        ProtocolRule("examples", "reference answers under 16 words", "left out", "not left out (A.3.3)"),
        ProtocolRule(
            "parsing",
            "the answer",
            "the last line that begins with `Answer:`, else the whole text",
            "all that follows the last `Answer:` anywhere, else the whole text (A.3.3)",
        ),
        ProtocolRule(
            "nothing",
            "model that writes the questions",
            "Gemini 2.5 Flash",
            "Gemini 2.5 Flash Lite (4.2.2, A.1) or Gemini 2.5 Flash (A.3.3); here templates, or pairs of any model",
        ),
        ProtocolRule(
            "nothing",
            "empty answers",
            "left out of the judges' mean",
            "not stated; in `lexical_f1` they score 0",
        ),
    ),
}
