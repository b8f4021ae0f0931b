"""Checkpoints that vLLM runs, in separate processes."""
