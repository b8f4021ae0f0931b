"""Turns a video into a scene graph: contact segments, keyframes, masks between keyframes, identities over segments."""

from barista_bench.errors import require_extra

require_extra("annotating videos", "cv2", extra="annotate")
