"""Verdicts of LLM judges: means and spreads, agreement between judges, and EgoCoT-Bench's R and SCR."""

from .agreement import (
    calibration_shift as calibration_shift,
    judge_agreement as judge_agreement,
    kendall_tau_b as kendall_tau_b,
    quadratic_weighted_kappa as quadratic_weighted_kappa,
)
from .egocot import (
    EGOCOT_SIZES as EGOCOT_SIZES,
    egocot_reasoning as egocot_reasoning,
    spurious_correct_rate as spurious_correct_rate,
)
from .scoring import judge_score as judge_score
