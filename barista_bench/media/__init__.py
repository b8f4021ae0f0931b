"""Exact frames of videos by index, decoded only when they are needed."""
