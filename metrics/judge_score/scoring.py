"""Compute means and spreads of an LLM judge's verdicts, over several criteria and repetitions.

The protocol follows the BARISTA paper (arXiv 2605.12074, sections A.1, A.2 and A.3.3). A judge scores every answer on
each criterion from 0 to 10. Scores are rescaled to [0, 1] for reports. A missing verdict never counts as zero. An
example counts only if every criterion has a verdict. The released code also counts an example with some verdicts, by
the mean of these verdicts. Sums are exact (`math.fsum`), so scores do not depend on the order of the examples. Needs
only the standard library.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

SampledScore = float | None
# A list with a score per verdict, a number for one verdict, or None. Numpy arrays and torch tensors are allowed.
RawSampledScores = Any
Verdict = Mapping[str, RawSampledScores]


def as_plain(value: Any) -> Any:  # noqa: ANN401
    """Convert numpy arrays, numpy scalars and torch tensors to Python lists and numbers.

    Other values stay unchanged.
    """
    return value.tolist() if hasattr(value, "tolist") else value


def as_score(raw: object, where: str, scale: float = 10.0) -> SampledScore:
    """Return one judge score from 0 to `scale`, or None for a missing score (None and NaN).

    Raises TypeError or ValueError; the message starts with `where`.

    >>> as_score(7, "verdicts[0]['accuracy'][0]"), as_score(float("nan"), "verdicts[0]['accuracy'][1]")
    (7.0, None)
    >>> as_score(11, "verdicts[0]['accuracy'][0]")
    Traceback (most recent call last):
        ...
    ValueError: verdicts[0]['accuracy'][0]: is 11, outside 0 to 10; give a raw judge score, None where there is none
    """
    raw = as_plain(raw)
    if raw is None:
        return None
    if isinstance(raw, bool) or not isinstance(raw, Real):
        raise TypeError(
            f"{where}: is {raw!r} ({type(raw).__name__}), not a number; "
            f"give a score from {_range(scale)}, None for a missing, malformed or refused verdict"
        )
    score = float(raw)
    if math.isnan(score):
        return None
    if not 0 <= score <= scale:
        raise ValueError(
            f"{where}: is {raw!r}, outside {_range(scale)}; give a raw judge score, None where there is none"
        )
    return score


def _range(scale: float) -> str:
    return f"0 to {scale:g}" if math.isfinite(scale) else "0 upwards"


def as_sampled_scores(raw: RawSampledScores, where: str, scale: float = 10.0) -> list[SampledScore]:
    """Return an example's scores on a criterion. Position k is verdict k. None is an unusable verdict.

    >>> as_sampled_scores([8, None, 9.5], "scores"), as_sampled_scores(8, "scores"), as_sampled_scores(None, "scores")
    ([8.0, None, 9.5], [8.0], [])
    """
    value = as_plain(raw)
    if value is None:
        return []
    if isinstance(value, Real):
        return [as_score(value, where, scale)]
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise TypeError(f"{where}: is {raw!r} ({type(raw).__name__}); give a list of scores, one per verdict")
    return [as_score(sampled_score, f"{where}[{index}]", scale) for index, sampled_score in enumerate(value)]


def as_verdict(raw: Verdict | None, where: str, scale: float = 10.0) -> dict[str, list[SampledScore]]:
    """Map each criterion of an example to its scores. None gives {}. Raises TypeError or ValueError like `as_score`."""
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise TypeError(
            f"{where}: is {raw!r} ({type(raw).__name__}); "
            "give a dict from criterion to scores, None where there is no verdict"
        )
    for name in raw:
        if not isinstance(name, str):
            raise TypeError(f"{where}: criterion {name!r} ({type(name).__name__}) is not a string; give its name")
    return {
        name: as_sampled_scores(sampled_scores, f"{where}[{name!r}]", scale) for name, sampled_scores in raw.items()
    }


def as_column(column: Any, name: str, length: int | None = None) -> Sequence[Any]:  # noqa: ANN401
    """Return a column as a sequence with one entry per example. Raises TypeError, or ValueError for another length."""
    values = as_plain(column)
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Sequence):
        kind = type(column).__name__
        raise TypeError(f"{name}: is of type {kind}; give a list with one entry per example")
    if length is not None and len(values) != length:
        raise ValueError(f"{name}: has {len(values)} entries for {length} examples; give one per example, or None")
    return values


def as_names(column: Any, name: str, length: int) -> list[str | None]:  # noqa: ANN401
    """Return an optional column of group names. All names are None if it is missing. Raises TypeError or ValueError."""
    if column is None:
        return [None] * length
    names = as_column(column, name, length)
    for index, entry in enumerate(names):
        if entry is not None and not isinstance(entry, str):
            kind = type(entry).__name__
            raise TypeError(f"{name}[{index}]: is {entry!r} ({kind}), not a string; give a name, or None for none")
    return list(names)


def positive(scale: object) -> float:
    """Return the highest raw score as a float. Raises TypeError or ValueError unless it is a positive number."""
    if isinstance(scale, bool) or not isinstance(scale, Real):
        raise TypeError(f"scale: is {scale!r} ({type(scale).__name__}); give the judge's highest score, such as 10")
    if not 0 < float(scale) < math.inf:
        raise ValueError(f"scale: is {scale!r}; give the judge's highest score, such as 10")
    return float(scale)


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, or None without values.

    >>> mean([0.5, 0.75]), mean([])
    (0.625, None)
    """
    return math.fsum(values) / len(values) if values else None


def sample_sd(values: Sequence[float], ddof: int = 1) -> float | None:
    """Return the standard deviation with the divisor n - `ddof`, or None for at most `ddof` values."""
    if len(values) <= ddof:
        return None
    centre = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - ddof))


def judge_score(
    verdicts: Sequence[Verdict | None],
    categories: Sequence[str | None] | None = None,
    *,
    criteria: Sequence[str] | None = None,
    scale: float = 10.0,
) -> dict[str, Any]:
    """Return means, spreads and coverage of a judge's verdicts.

    `verdicts[i]` maps each criterion to the scores of example i (0 to `scale`; score k is of repetition k).
    None, at any of the three levels, means that there is no usable verdict: it lowers the coverage and is never
    counted as zero. `categories[i]` is the example's category or None. `criteria` are the expected criteria, by
    default all that occur. An example that lacks a criterion is incomplete.

    Returned, overall and again for each category in `per_category`:
    * `mean`: over the complete examples (a verdict on every criterion), of the mean of their criteria, 0 to 1.
    * `raw_mean`: the same from 0 to `scale`.
    * `mean_of_criteria`: the mean of the means of the criteria; equals `mean` if every example is complete.
    * `sd_of_verdicts`: the standard deviation of verdicts on an example, 0 to 1 (pooled over examples: root of the
      summed squares over the degrees of freedom). With several criteria, a verdict is the mean over its criteria,
      and counts only if all of them have a score.
    * `means_of_repetitions`: the mean of each repetition; `sd_of_repetitions`: their sample standard deviation.
    * `n`, `n_failed`, `coverage`: the number of examples, the number of incomplete examples, and the fraction of
      complete examples.
    * `per_criterion`: the same scores for each criterion (where `mean` is over the examples with at least one verdict,
      with equal weights), and `n_sampled` and `coverage_of_samples`: the number of usable verdicts and their share of
      the expected ones. The expected number is n times the longest list of scores given for the criterion.

    A score of nothing is None. Raises ValueError for no examples, unequal lengths, scores out of range or criteria
    not in `criteria`, and TypeError for wrong types.

    >>> result = judge_score([{"accuracy": [8, 10], "completeness": [6, 6]}, {"accuracy": [4, None]}, None])
    >>> result["mean"], result["mean_of_criteria"], round(result["coverage"], 3)
    (0.75, 0.625, 0.333)
    >>> result["per_criterion"]["accuracy"]["mean"], result["per_criterion"]["accuracy"]["n_sampled"]
    (0.65, 3)
    """
    top = positive(scale)
    column = as_column(verdicts, "verdicts")
    if not len(column):
        raise ValueError("verdicts: is empty: there is nothing to average; give >= 1 example")
    rows = [as_verdict(raw, f"verdicts[{index}]", top) for index, raw in enumerate(column)]
    groups = as_names(categories, "categories", len(rows))
    names = _criteria(rows, criteria)
    # Take the longest list over all examples, so that categories have the same repetitions as the whole set.
    lengths = {name: max(len(row.get(name, [])) for row in rows) for name in names}
    return _compute_metrics(rows, lengths, top) | {
        "per_category": {
            group: _compute_metrics(
                [row for row, category in zip(rows, groups, strict=True) if category == group], lengths, top
            )
            for group in sorted({group for group in groups if group is not None})
        }
    }


def _criteria(rows: Sequence[Mapping[str, Any]], criteria: Sequence[str] | None) -> list[str]:
    found_names = {name for row in rows for name in row}
    if criteria is None:
        return sorted(found_names)
    names = list(as_column(criteria, "criteria"))
    if not names or len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"criteria: is {criteria!r}; give the names of the criteria, each once")
    for index, row in enumerate(rows):
        unknown = sorted(row.keys() - set(names))
        if unknown:
            raise ValueError(f"verdicts[{index}]: {unknown[0]!r} is not among the criteria {names}; name it there")
    return names


def _compute_metrics(
    rows: Sequence[Mapping[str, list[SampledScore]]], lengths: Mapping[str, int], scale: float
) -> dict[str, Any]:
    """Return all scores of some examples, overall and per criterion."""
    columns = {
        name: [row.get(name, []) + [None] * (length - len(row.get(name, []))) for row in rows]
        for name, length in lengths.items()
    }
    per_criterion = {name: _criterion(sampled_scores, scale) for name, sampled_scores in columns.items()}
    examples = [[column[index] for column in columns.values()] for index in range(len(rows))]
    means = [_mean_of_all([mean(drop_missing(sampled_scores)) for sampled_scores in criteria]) for criteria in examples]
    together = [[_mean_of_all(run) for run in zip(*criteria, strict=False)] for criteria in examples]
    return {
        **_centre(means, scale),
        "mean_of_criteria": _mean_of_all([metrics["mean"] for metrics in per_criterion.values()]),
        **_spread(together, scale),
        "per_criterion": per_criterion,
    }


def drop_missing(sampled_scores: Sequence[SampledScore]) -> list[float]:
    """Return the scores of usable verdicts."""
    return [sampled_score for sampled_score in sampled_scores if sampled_score is not None]


def _mean_of_all(values: Sequence[SampledScore]) -> SampledScore:
    """Return the mean, or None if any value is None."""
    return None if None in values else mean(drop_missing(values))


def _centre(examples: Sequence[SampledScore], scale: float) -> dict[str, Any]:
    scored = drop_missing(examples)
    raw = mean(scored)
    return {
        "mean": None if raw is None else raw / scale,
        "raw_mean": raw,
        "n": len(examples),
        "n_failed": len(examples) - len(scored),
        "coverage": len(scored) / len(examples),
    }


def _criterion(rows: Sequence[list[SampledScore]], scale: float) -> dict[str, Any]:
    expected = sum(len(row) for row in rows)
    n_sampled = sum(len(drop_missing(row)) for row in rows)
    return {
        **_centre([mean(drop_missing(row)) for row in rows], scale),
        **_spread(rows, scale),
        "n_sampled": n_sampled,
        "coverage_of_samples": n_sampled / expected if expected else 0.0,
    }


def _spread(rows: Sequence[Sequence[SampledScore]], scale: float) -> dict[str, Any]:
    """Return the spread of verdicts within examples, and the spread of the means of complete repetitions."""
    squares, freedom = [], 0
    for sampled_scores in map(drop_missing, rows):
        centre = math.fsum(sampled_scores) / len(sampled_scores) if sampled_scores else 0.0
        squares += [(sampled_score - centre) ** 2 for sampled_score in sampled_scores]
        freedom += max(len(sampled_scores) - 1, 0)
    raw_means = [mean(drop_missing(repetition)) for repetition in zip(*rows, strict=True)]
    means = [None if raw is None else raw / scale for raw in raw_means]
    return {
        "sd_of_verdicts": math.sqrt(math.fsum(squares) / freedom) / scale if freedom else None,
        "means_of_repetitions": means,
        "sd_of_repetitions": sample_sd(drop_missing(means)),
    }
