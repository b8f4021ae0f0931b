"""Computes scores from checked rationales.

Each sample contributes sums, and scores are computed from the total. Groups pool their samples.

Scores run from 0 to 1:

* `claim_precision`, `contradiction_rate`, `unverifiable_rate`: the fractions of claims that the evidence supports,
  contradicts and does not decide. They add up to 1.
* `claim_recall`: the fraction of the expected evidence that supported claims name. A sample without claims names no
  evidence.
* `verified_scr`: the fraction of right answers with a claim that the evidence contradicts. It is the counterpart of SCR
  without a judge. A right answer without a rationale makes no claim, so it cannot be contradicted. `reasoned` is the
  fraction of samples with a rationale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from barista_bench.benchmarks.egocot.claims import KINDS
from barista_bench.benchmarks.egocot.evidence_check import VERDICTS, RationaleCheck
from barista_bench.benchmarks.egocot.items import GROUPS, SUBTASKS
from barista_bench.core.example import Json
from barista_bench.core.statistics import Floats, Metrics, Row, Sums, SumStatistics, fraction

FRACTIONS: Mapping[str, tuple[str, str]] = {
    "accuracy": ("right", "n"),
    "coverage": ("answered", "n"),
    "reasoned": ("reasoned", "n"),
    "claim_precision": ("supported", "claims"),
    "contradiction_rate": ("contradicted", "claims"),
    "unverifiable_rate": ("unverifiable", "claims"),
    "claim_recall": ("said", "to_say"),
    "verified_scr": ("right_contradicted", "right"),
}
"""The numerator and the denominator of each score."""
CLAIM_METRICS = tuple(name for name in FRACTIONS if name not in ("accuracy", "coverage", "reasoned"))
SAMPLE_SCORES = {"accuracy": "right", "lexical_f1": "lexical_f1", **{name: name for name in ("claims", *VERDICTS)}}
"""The contribution that gives each score of a sample."""
_COUNTS = tuple(dict.fromkeys(name for pair in FRACTIONS.values() for name in pair))
_TABLES: Mapping[str, Sequence[str]] = {
    "per_group": tuple(GROUPS),
    "per_subtask": tuple(subtask.code for subtask in SUBTASKS),
}


class ClaimStatistics(SumStatistics):
    """The scores of samples with known references. `rows` come from `sample_row`."""

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__(rows, compute_metrics, tables=tables)
        self._rows = rows

    def scores(self) -> dict[str, Floats]:
        """Return each sample's correctness, word overlap of rationale and reference, and counts of claims."""
        return {name: np.array([row[part] for row in self._rows]) for name, part in SAMPLE_SCORES.items()}

    def subset(self, samples: Sequence[int]) -> ClaimStatistics:
        return ClaimStatistics([self._rows[index] for index in samples])


def sample_row(
    groups: Mapping[str, str],
    check: RationaleCheck | None,
    *,
    is_right: bool,
    has_reasoning: bool,
    expected_count: int,
    lexical_f1: float,
) -> Row:
    """Return the contribution of one sample. `check` belongs to its rationale; it is None without a readable answer.

    `groups` maps `per_group` and `per_subtask` to the sample's codes. `expected_count` is the number of expected facts
    in the evidence, which count even without an answer. `lexical_f1` is the word overlap of rationale and reference.
    """
    findings = check.findings if check else ()
    counts = Counter[Hashable](finding.verdict for finding in findings)
    row: dict[Hashable, float] = {
        "n": 1.0,
        "right": float(is_right),
        "answered": float(check is not None),
        "reasoned": float(has_reasoning),
        "claims": float(len(findings)),
        **{verdict: float(counts[verdict]) for verdict in VERDICTS},
        "said": float(check.said_count if check else 0),
        "to_say": float(expected_count),
        "right_contradicted": float(is_right and counts["contradicted"] > 0),
    }
    group_sums: dict[Hashable, float] = {
        (table, code, name): row[name] for table, code in groups.items() for name in _COUNTS
    }
    by_kind = Counter[Hashable](("per_claim_kind", finding.claim.kind, finding.verdict) for finding in findings)
    return {**row, "lexical_f1": lexical_f1, **group_sums, **by_kind}


def compute_metrics(sums: Sums) -> Metrics:
    """Return the scores of D resamples, as arrays (D,). A division by zero gives NaN."""
    return {name: fraction(sums[part], sums[whole]) for name, (part, whole) in FRACTIONS.items()}


def tables(sums: Row) -> dict[str, Json]:
    """Return scores by group and by subtask, the share of each verdict by kind of claim, and counts."""
    return {
        **{table: _metrics_by_code(sums, table, codes) for table, codes in _TABLES.items()},
        "per_claim_kind": _fractions_by_kind(sums),
        "n": int(sums["n"]),
        "n_failed": int(sums["n"] - sums["answered"]),
        "n_right": int(sums["right"]),
        "n_claims": int(sums["claims"]),
    }


def _metrics_by_code(sums: Row, table: str, codes: Sequence[str]) -> dict[str, Json]:
    """Return the scores of each group that occurs, without undefined scores."""
    by_code: dict[str, Json] = {}
    for code in codes:
        totals: dict[Hashable, Floats] = {name: np.array([sums.get((table, code, name), 0.0)]) for name in _COUNTS}
        if totals["n"][0]:
            values = {
                name: float(value[0]) for name, value in compute_metrics(totals).items() if not np.isnan(value[0])
            }
            by_code[code] = {**values, "support": int(totals["n"][0])}
    return by_code


def _fractions_by_kind(sums: Row) -> dict[str, Json]:
    by_kind: dict[str, Json] = {}
    for kind in KINDS:
        counts = {verdict: sums.get(("per_claim_kind", kind, verdict), 0.0) for verdict in VERDICTS}
        support = sum(counts.values())
        if support:
            by_kind[kind] = {**{verdict: count / support for verdict, count in counts.items()}, "support": int(support)}
    return by_kind
