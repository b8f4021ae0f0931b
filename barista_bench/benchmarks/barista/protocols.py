"""Where the paper and its released code differ, or one of them says what the other leaves open, task by task.

`protocol="release"` (the default) does what the released code does, `"paper"` what the paper says where the two can be
told apart. Rules that change nothing here are listed too: those on which the paper contradicts itself, and those that
concern assets or calls outside this package. The tables of the dataset cards are made from this one.
"""

from __future__ import annotations

from barista_bench.core.task import ProtocolRule

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

_FENCE = ProtocolRule(
    "parsing",
    "a fenced block",
    "counts if three backticks and a plain tag, or none, end the line",
    "not stated; whatever follows on the line of the backticks",
)

_BROKEN_OFF = ProtocolRule(
    "parsing",
    "a JSON array that breaks off",
    "cannot be read",
    "not stated; read as far as its entries are complete",
)

_NO_ANSWER = ProtocolRule(
    "scores",
    "an example for which the provider gave no answer",
    "counts as one whose answer cannot be read",
    "not stated; left out, and missing in the coverage",
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
        _FENCE,
        ProtocolRule(
            "parsing",
            "numbers of a box",
            "true and false count; a NaN gives the list up; in running text digits alone, cut at signs and points",
            "not stated; up to 1e9, with signs, fractions only of models that write them; other entries are dropped",
        ),
        ProtocolRule(
            "scores",
            "confidences in an answer",
            "ignored: all are 1",
            "not stated; they rank the boxes of all images if every answer with boxes has them",
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
        _FENCE,
        ProtocolRule(
            "parsing",
            "numbers of a box",
            "rounded; texts and booleans that Python makes a number of count too",
            "not stated; numbers up to 1e9, as they are",
        ),
        ProtocolRule(
            "parsing",
            "a JSON array inside of another one",
            "is tried where the outer one in running text is not valid, so that an empty one says `none`",
            "not stated; is not looked at",
        ),
        ProtocolRule(
            "scores",
            "a true hand that no answered hand overlaps",
            "uses up the first one left",
            "not stated; uses up none",
        ),
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
        ProtocolRule(
            "parsing",
            "what stands between `answer:` and the letter",
            "blanks and parts of `<CHOICE_ID>`, in this order; the letter may stand after blanks before the colon",
            "not stated; any punctuation too, as in `**A**` or `(A)`",
        ),
        _NO_ANSWER,
    ),
    "relations": (
        ProtocolRule(
            "images",
            "inside of a mark",
            "a tenth of the mark's colour, so that it darkens the frame",
            "not stated; the mark's colour",
        ),
        _BROKEN_OFF,
        _FENCE,
        ProtocolRule(
            "parsing",
            "fields of a relation",
            "numbers as Python's `int` reads them of anything, type and value as the text of anything",
            "not stated; whole numbers, also as digits, and texts",
        ),
        ProtocolRule(
            "parsing",
            "a JSON array inside of another one",
            "is tried where the outer one in running text has no valid entry",
            "not stated; is not looked at",
        ),
        ProtocolRule(
            "scores",
            "relations of frames without a readable answer, by type",
            "left out of the figures by type, and of those made of them",
            "not stated; counted",
        ),
        _NO_ANSWER,
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
        ProtocolRule(
            "nothing",
            "reference answers under 16 words",
            "left out when a model writes the questions",
            "not left out (A.3.3; `barista-bench questions --protocol paper`)",
        ),
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
