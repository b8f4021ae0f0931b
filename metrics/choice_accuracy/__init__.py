"""Accuracy of multiple-choice answers, and average precision where several choices are right."""

from .handyvqa import (
    handyvqa_accuracy,
    handyvqa_answer,
    handyvqa_average_precision,
    handyvqa_letters,
    handyvqa_option_scores,
)
from .multiple import average_precision, multi_answer
from .scoring import ExampleScore, choice_accuracy, score_examples

__all__ = [
    "ExampleScore",
    "average_precision",
    "choice_accuracy",
    "handyvqa_accuracy",
    "handyvqa_answer",
    "handyvqa_average_precision",
    "handyvqa_letters",
    "handyvqa_option_scores",
    "multi_answer",
    "score_examples",
]
