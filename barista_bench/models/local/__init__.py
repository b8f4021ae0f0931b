"""Checkpoints that transformers loads, on the machine at hand."""
