"""Temporal segmentation: frame accuracy, edit score and F1 of segments."""

from .scoring import LabelledRun, clip_sums, compute_metrics, segments_of, temporal_segmentation

__all__ = ["LabelledRun", "clip_sums", "compute_metrics", "segments_of", "temporal_segmentation"]
