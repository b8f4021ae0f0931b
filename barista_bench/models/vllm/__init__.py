"""Checkpoints that vLLM runs, in processes of its own."""
