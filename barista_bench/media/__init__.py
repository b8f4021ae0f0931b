"""Frames of videos: exact by index, decoded only when accessed."""
