"""The per-frame scene graph: reading, checking, querying and writing the BARISTA release format."""

from barista_bench.scene_graph.masks import Rle as Rle
from barista_bench.scene_graph.masks import decode_mask as decode_mask
from barista_bench.scene_graph.masks import encode_mask as encode_mask
from barista_bench.scene_graph.problems import Problem as Problem
from barista_bench.scene_graph.problems import ProblemLog as ProblemLog
from barista_bench.scene_graph.problems import Severity as Severity
from barista_bench.scene_graph.release_writing import release_bytes as release_bytes
from barista_bench.scene_graph.release_writing import write_release as write_release
from barista_bench.scene_graph.scene_graph import SceneGraph as SceneGraph
from barista_bench.scene_graph.validation import Validation as Validation
from barista_bench.scene_graph.validation import VideoValidation as VideoValidation
from barista_bench.scene_graph.validation import validate as validate
from barista_bench.scene_graph.validation import validate_video as validate_video
from barista_bench.scene_graph.video_graph import Attribute as Attribute
from barista_bench.scene_graph.video_graph import Contact as Contact
from barista_bench.scene_graph.video_graph import Instance as Instance
from barista_bench.scene_graph.video_graph import Relation as Relation
from barista_bench.scene_graph.video_graph import SceneObject as SceneObject
from barista_bench.scene_graph.video_graph import Segment as Segment
from barista_bench.scene_graph.video_graph import Span as Span
from barista_bench.scene_graph.video_graph import VideoGraph as VideoGraph
