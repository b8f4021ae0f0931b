"""Describe a diagnosis in sentences: all findings, or the main one."""

from __future__ import annotations

from typing import Final, NamedTuple

from barista_bench.aids.levels import LEVELS, PICTURES, LevelName
from barista_bench.diagnosis.estimates import ALPHA, format_short
from barista_bench.diagnosis.records import Diagnosis, LevelDiagnosis, PValues, significant
from barista_bench.tables import words

NOTHING_MISSING: Final = 0.995
"""Score above which too little is missing to look for a cause."""


class Guess(NamedTuple):
    """The best baseline that guesses (`core.model_names.GUESSES`), and its score in the diagnosis's metric."""

    name: str
    score: float
    examples: int


def finding_sentences(diagnosis: Diagnosis, adjusted: PValues, guess: Guess | None = None) -> list[str]:
    """Return the findings of a diagnosis as sentences. `adjusted` comes from `adjusted_p_values`."""
    d, found, metric = diagnosis, _missing_sentences(diagnosis, guess), words(diagnosis.metric)
    if d.by_words:
        found.append("Only words are compared, and aids supply words: a model that copies them gains too.")
    if _misses_nothing(d):
        return found
    for level in d.levels:
        found += _level_sentences(d, level, adjusted)
    if d.text.p is not None and d.text.p < ALPHA:
        kind = "believes any addition" if d.believes_any_text else "is affected by any addition"
        found.append(f"It {kind}: given facts that the question does not need, its {metric} {d.text.as_change}.")
    if d.unreadable:
        counts = ", ".join(f"{name} {sum(statuses.values())}" for name, statuses in d.unreadable.items())
        found.append(f"Answers that cannot be read, and count as wrong, by condition: {counts}.")
    found += _compared_sentences(d, adjusted)
    if d.remainder.value is not None and not d.is_unread and not _is_harmed(d):
        found.append(f"With all aids, {d.remainder.in_words} of {metric} is still missing: {d.remainder_name}.")
    return found


def headline_sentence(diagnosis: Diagnosis, adjusted: PValues, guess: Guess | None = None) -> str:
    """Return the missing score, its causes, and the effect of hidden evidence. Without a cause, say why."""
    d, found = diagnosis, _missing_sentences(diagnosis, guess)
    largest = max(d.levels, key=lambda level: abs(d.levels[level].share.value or 0.0))
    named = [level for level in d.levels if level in significant(adjusted)]
    if _misses_nothing(d):
        return " ".join(found)
    if d.is_unread:
        count = f"{d.unread_with_aids} of {d.examples * d.repetitions}"
        found.append(f"Given true facts in addition, {count} answers cannot be read and count as wrong.")
        found.append("So this diagnosis cannot show which level it gets wrong.")
    elif named:
        found += [sentence for level in named for sentence in _level_sentences(d, level, adjusted)]
    elif _is_harmed(d):
        found.append(f"Even additions that the question does not need lower its {words(d.metric)}.")
        found += [_SHOWS_NO_LEVEL, *_level_sentences(d, largest, adjusted)]
    elif all(told.gain.value == told.inert.value == 0 for told in d.levels.values()):
        found += [f"No aid changes its {words(d.metric)}.", _SHOWS_NO_LEVEL]
    elif d.same_answer and d.same_answer.is_nearly_all:
        found.append(_SHOWS_NO_LEVEL)
    else:
        found += ["No level is a clear cause.", *_level_sentences(d, largest, adjusted)]
    if d.has_views and not d.views and (d.is_unread or _is_harmed(d)):
        found.append("Next, diagnose with --view all: views add no facts.")
    shown = ("painted over", "must not change, an example's " + words(d.sample_metric) + " clearly")
    return " ".join(
        [*found, *(each for each in _compared_sentences(d, adjusted) if any(part in each for part in shown))]
    )


def _is_harmed(diagnosis: Diagnosis) -> bool:
    """Return whether facts that the question does not need lower the score."""
    text = diagnosis.text
    return text.p is not None and text.p < ALPHA and text.high is not None and text.high < 0


def _misses_nothing(diagnosis: Diagnosis) -> bool:
    return diagnosis.plain.value is not None and diagnosis.plain.value > NOTHING_MISSING


def _missing_sentences(diagnosis: Diagnosis, guess: Guess | None) -> list[str]:
    d, found = diagnosis, []
    if same := d.same_answer:
        right = "" if same.right is None else f", which is right for {same.right}"
        often = f"{same.count} of {same.answers}"
        often = f"to {often} questions" if d.repetitions == 1 else f"{often} times"
        found.append(f"{d.model} gives the same answer {often}: “{same.text}”{right}.")
    if d.plain.value is not None:
        what = f"{'It' if found else d.model} misses {format_short(1 - d.plain.value)} of {words(d.task)}"
        what += " by word overlap" if d.by_words else ""
        beside = f"; {guess.name}, which guesses, gets {format_short(guess.score)}" if guess else ""
        beside += f" on all {guess.examples} examples" if guess and guess.examples != d.examples else ""
        found.append(f"{what}: its {words(d.metric)} is {d.plain.in_words}{beside}.")
    return found


def _level_sentences(diagnosis: Diagnosis, level: LevelName, adjusted: PValues) -> list[str]:
    """Return sentences on the effect of a level's aid, and on whether the level is a cause."""
    told = diagnosis.levels[level]
    others = "other pictures" if level in PICTURES else "other facts"
    beside = f"given as many {others}, it {told.inert.as_change}"
    metric = words(diagnosis.metric)
    found = [f"Given {LEVELS[level].given}, its {metric} {told.gain.as_change}; {beside}."]
    if told.uptake.value is not None and not diagnosis.is_unread:
        found.append(f"Given false ones, it follows them in {told.uptake.in_words} of its answers.")
    if level in significant(adjusted):
        found.append(
            f"So {level} {'are' if level.endswith('s') else 'is'} a cause, worth {told.share.in_words} of {metric}."
        )
        return found
    found[0] = f"{found[0][:-1]}; the difference, {told.share.in_words}, is the share of {level}."
    if told.is_unused and not diagnosis.is_unread:
        found.append(f"It {_use_of(told)}, so {level} may still be a cause.")
    return found


def _use_of(unused: LevelDiagnosis) -> str:
    return "uses this aid in few answers" if (unused.gain.low or 0.0) > 0 else "does not use this aid"


def _compared_sentences(diagnosis: Diagnosis, adjusted: PValues) -> list[str]:
    clear, metric = significant(adjusted), words(diagnosis.sample_metric)
    changes = {each.name: each for each in diagnosis.changes}
    described = {name: "clearly " * (name in clear) + each.change.as_change for name, each in changes.items()}
    found = []
    for name, each in changes.items():
        change = f"an example's {metric} {described[name]} on average"
        if each.before.value is not None and each.after.value is not None:
            change += f", from {format_short(each.before.value)} to {format_short(each.after.value)}"
        if name == "hide_evidence":
            control = described.get("hide_elsewhere")
            beside = f"; with equal areas elsewhere painted over, it {control}" if control else ""
            hidden = f"With the objects that matter painted over, {change}{beside}."
            if diagnosis.asked and not diagnosis.by_words:  # the answer names what it sees
                hidden += f" It cannot see them then, but its average {metric} is still {each.after.in_words}."
            found.append(hidden)
        elif name == "only_evidence":
            found.append(f"With all but these objects painted over, {change}.")
        elif name.startswith("own "):
            answered = name.removeprefix("own ")
            found.append(f"With the {answered} that it answered itself, not the true ones, {change}.")
        elif name != "hide_elsewhere":
            transformed = "the clip reversed" if name.startswith("reversed") else "left and right exchanged"
            answer = "must not change" if name.endswith(", same answer") else "changes too"
            found.append(f"With {transformed}, where the answer {answer}, {change}.")
    return found


_SHOWS_NO_LEVEL: Final = "So the aids do not show which level it gets wrong."
