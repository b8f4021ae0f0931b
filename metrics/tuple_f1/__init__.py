"""Exact multiset matching of relation tuples: precision, recall and F1."""

from .scoring import ExampleScore, Relation, normalise, score_example, score_examples, tuple_confusion, tuple_f1

__all__ = ["ExampleScore", "Relation", "normalise", "score_example", "score_examples", "tuple_confusion", "tuple_f1"]
