"""Runs checkpoints that transformers loads on this machine."""
