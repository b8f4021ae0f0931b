"""The per-frame scene graph: reading, checking, querying and writing the BARISTA release format."""

from barista_bench.scene_graph.masks import Rle, decode_mask, encode_mask
from barista_bench.scene_graph.reading import release_bytes, write_release
from barista_bench.scene_graph.scene_graph import Problem, ProblemLog, SceneGraph, Severity
from barista_bench.scene_graph.validation import Validation, VideoValidation, validate, validate_video
from barista_bench.scene_graph.video_graph import (
    Attribute,
    Contact,
    Instance,
    Relation,
    SceneObject,
    Segment,
    Span,
    VideoGraph,
)

__all__ = [
    "Attribute",
    "Contact",
    "Instance",
    "Problem",
    "ProblemLog",
    "Relation",
    "Rle",
    "SceneGraph",
    "SceneObject",
    "Segment",
    "Severity",
    "Span",
    "Validation",
    "VideoGraph",
    "VideoValidation",
    "decode_mask",
    "encode_mask",
    "release_bytes",
    "validate",
    "validate_video",
    "write_release",
]
