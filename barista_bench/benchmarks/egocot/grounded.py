"""From checked rationales to figures: sums over samples, and shares of them. Groups pool their samples.

Figures run from 0 to 1:

* `claim_precision`, `contradiction_rate`, `unverifiable_rate`: of all claims, those that the evidence supports,
  contradicts and does not decide; together 1.
* `claim_recall`: of what the evidence points at, what supported claims say. A sample without claims says nothing of it.
* `verified_scr`: of the right answers, those with a claim that the evidence contradicts: the counterpart of SCR that
  asks no judge. A right answer without a rationale contradicts nothing; `reasoned` says how many samples have one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from barista_bench.benchmarks.egocot.claims import KINDS
from barista_bench.benchmarks.egocot.evidence_check import VERDICTS, Checked
from barista_bench.benchmarks.egocot.taxonomy import GROUPS, SUBTASKS
from barista_bench.benchmarks.pooling import Floats, ratio, weighted_sums
from barista_bench.core.task import Json

SHARES: Mapping[str, tuple[str, str]] = {
    "accuracy": ("right", "n"),
    "coverage": ("read", "n"),
    "reasoned": ("reasoned", "n"),
    "claim_precision": ("supported", "claims"),
    "contradiction_rate": ("contradicted", "claims"),
    "unverifiable_rate": ("unverifiable", "claims"),
    "claim_recall": ("said", "to_say"),
    "verified_scr": ("right_contradicted", "right"),
}
"""Figure -> what is divided by what."""
OF_CLAIMS = tuple(name for name in SHARES if name not in ("accuracy", "coverage", "reasoned"))


@dataclass(frozen=True, slots=True)
class CheckedSample:
    """One sample of known answer: its subtask, whether it is right and readable, and its rationale, checked.

    `checked` is None where there is no readable answer; `to_say` counts what the evidence points at all the same.
    """

    group: str
    subtask: str
    right: bool
    reasoned: bool
    checked: Checked | None
    to_say: int

    def counts(self) -> Counter[str]:
        """What the sample adds to the sums."""
        found = Counter({"n": 1, "right": int(self.right), "read": int(self.checked is not None)})
        found["reasoned"], found["to_say"] = int(self.reasoned), self.to_say
        if self.checked is not None:
            found["said"] = self.checked.said
            found["right_contradicted"] = int(self.right and self.checked.is_contradicted)
            for verdict in VERDICTS:
                found[verdict] = self.checked.count(verdict)
            found["claims"] = len(self.checked.findings)
        return found


def figures(samples: Sequence[CheckedSample]) -> dict[str, Json]:
    """All figures, overall, by group, by subtask and (of claims) by kind; those of nothing are left out."""
    whole = _sum(samples)
    by_subtask = {subtask.code: [s for s in samples if s.subtask == subtask.code] for subtask in SUBTASKS}
    by_group = {group: [s for s in samples if s.group == group] for group in GROUPS}
    return {
        **_shares(whole),
        "per_group": {name: _with_support(own) for name, own in by_group.items() if own},
        "per_subtask": {name: _with_support(own) for name, own in by_subtask.items() if own},
        "per_claim_kind": _per_kind(samples),
        "n": len(samples),
        "n_failed": len(samples) - whole["read"],
        "n_right": whole["right"],
        "n_claims": whole["claims"],
    }


def resampled_figures(samples: Sequence[CheckedSample], weights: Floats) -> dict[str, Floats]:
    """(D,) the overall figures for many draws; NaN where a draw has none.

    Args:
        samples: (S,).
        weights: (D, S) how often each draw takes each sample.
    """
    rows: list[dict[Hashable, float]] = [{name: float(n) for name, n in s.counts().items()} for s in samples]
    sums = weighted_sums(rows, weights)
    nothing = weights.sum(axis=1) * 0.0
    return {name: ratio(sums.get(part, nothing), sums.get(whole, nothing)) for name, (part, whole) in SHARES.items()}


def _sum(samples: Sequence[CheckedSample]) -> Counter[str]:
    total: Counter[str] = Counter()
    for sample in samples:
        total.update(sample.counts())
    return total


def _shares(sums: Counter[str]) -> dict[str, Json]:
    return {name: sums[part] / sums[whole] for name, (part, whole) in SHARES.items() if sums[whole]}


def _with_support(samples: Sequence[CheckedSample]) -> dict[str, Json]:
    return {**_shares(_sum(samples)), "support": len(samples)}


def _per_kind(samples: Sequence[CheckedSample]) -> dict[str, Json]:
    counts: Counter[tuple[str, str]] = Counter(
        (finding.claim.kind, finding.verdict)
        for sample in samples
        if sample.checked is not None
        for finding in sample.checked.findings
    )
    found: dict[str, Json] = {}
    for kind in KINDS:
        support = sum(counts[kind, verdict] for verdict in VERDICTS)
        if support:
            found[kind] = {**{verdict: counts[kind, verdict] / support for verdict in VERDICTS}, "support": support}
    return found
