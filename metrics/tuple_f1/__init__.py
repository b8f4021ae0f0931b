"""Exact multiset matching of relation tuples: precision, recall and F1."""

from .scoring import Relation, normalise, tuple_confusion, tuple_f1

__all__ = ["Relation", "normalise", "tuple_confusion", "tuple_f1"]
