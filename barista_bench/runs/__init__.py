"""Runs: send examples to a model, append answers to a log, and compute scores from that log only."""
