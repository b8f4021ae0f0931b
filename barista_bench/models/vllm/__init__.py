"""Runs checkpoints in vLLM, in separate processes."""
