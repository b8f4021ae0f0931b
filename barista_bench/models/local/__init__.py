"""Checkpoints that transformers loads on this machine."""
