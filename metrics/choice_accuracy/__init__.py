"""Accuracy of multiple-choice answers, and average precision if several choices are right."""

from .inputs import handyvqa_letters
from .multiple import average_precision, multi_answer
from .scoring import choice_accuracy

__all__ = ["average_precision", "choice_accuracy", "handyvqa_letters", "multi_answer"]
