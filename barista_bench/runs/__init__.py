"""Runs: examples to a model, answers to an appended log, scores from that log alone."""
