"""Temporal segmentation: frame accuracy, edit score and F1 of segments."""

from .scoring import OVERLAPS, Segment, clip_sums, figures, matched_segments, segments_of, temporal_segmentation

__all__ = ["OVERLAPS", "Segment", "clip_sums", "figures", "matched_segments", "segments_of", "temporal_segmentation"]
