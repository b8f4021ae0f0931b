"""Read, check, query and write per-frame scene graphs in the BARISTA release format."""

from barista_bench.scene_graph.coverage import LAYERS, Coverage
from barista_bench.scene_graph.masks import Rle, decode_mask, encode_mask
from barista_bench.scene_graph.reading import Problem, ProblemLog, Severity
from barista_bench.scene_graph.release import Layer
from barista_bench.scene_graph.scene_graph import SceneGraph, release_bytes, write_release
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

__all__ = ["LAYERS", "Attribute", "Contact", "Coverage", "Instance", "Layer", "Problem", "ProblemLog", "Relation"]
__all__ += ["Rle", "SceneGraph", "SceneObject", "Segment", "Severity", "Span", "Validation", "VideoGraph"]
__all__ += ["VideoValidation", "decode_mask", "encode_mask", "release_bytes", "validate", "validate_video"]
__all__ += ["write_release"]
