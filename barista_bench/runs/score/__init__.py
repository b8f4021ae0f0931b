"""Scoring: from the log to `results.json`, without asking a model."""
