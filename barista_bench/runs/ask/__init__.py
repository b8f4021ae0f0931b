"""Asking: settings, examples and frames in, one logged record a sample out."""
