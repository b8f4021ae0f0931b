"""Exact multiset matching of relation tuples: precision, recall and F1."""

from .scoring import Relation, normalise, score_example, tuple_confusion, tuple_f1

__all__ = ["Relation", "normalise", "score_example", "tuple_confusion", "tuple_f1"]
