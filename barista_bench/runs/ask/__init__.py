"""Asking: from settings, examples and frames to one logged record per sample."""
