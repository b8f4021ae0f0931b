"""Exact multiset matching of relation tuples: precision, recall and F1."""

from .scoring import RelationTuple, normalise, tuple_confusion, tuple_f1

__all__ = ["RelationTuple", "normalise", "tuple_confusion", "tuple_f1"]
