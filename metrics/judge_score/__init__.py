"""Verdicts of LLM judges: means and spreads, agreement between judges, and EgoCoT-Bench's R and SCR."""

from .agreement import calibration_shift, judge_agreement, kendall_tau_b, quadratic_weighted_kappa
from .egocot import EGOCOT_SIZES, egocot_reasoning, spurious_correct_rate
from .scoring import judge_score

__all__ = [
    "EGOCOT_SIZES",
    "calibration_shift",
    "egocot_reasoning",
    "judge_agreement",
    "judge_score",
    "kendall_tau_b",
    "quadratic_weighted_kappa",
    "spurious_correct_rate",
]
