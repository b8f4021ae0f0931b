"""Frames: exact by index, decoded when touched."""
