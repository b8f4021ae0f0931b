"""Read, check, query and write per-frame scene graphs in the BARISTA release format."""

from barista_bench.scene_graph.coverage import LAYERS as LAYERS, Coverage as Coverage
from barista_bench.scene_graph.masks import Rle as Rle, decode_mask as decode_mask, encode_mask as encode_mask
from barista_bench.scene_graph.reading import Problem as Problem, ProblemLog as ProblemLog, Severity as Severity
from barista_bench.scene_graph.release import Layer as Layer
from barista_bench.scene_graph.scene_graph import (
    SceneGraph as SceneGraph,
    release_bytes as release_bytes,
    write_release as write_release,
)
from barista_bench.scene_graph.validation import (
    Validation as Validation,
    VideoValidation as VideoValidation,
    validate as validate,
    validate_video as validate_video,
)
from barista_bench.scene_graph.video_graph import (
    Attribute as Attribute,
    Contact as Contact,
    Instance as Instance,
    Relation as Relation,
    SceneObject as SceneObject,
    Segment as Segment,
    Span as Span,
    VideoGraph as VideoGraph,
)
