"""Imports annotations of other datasets and tools as scene graphs in the release format. Each reader is a plug-in."""

from typing import Literal, TypeAlias

Tool: TypeAlias = Literal["coco", "coco_video", "label_studio", "labelme", "supervisely", "fiftyone"]
"""The tools whose exports `import-graph --from table --map TOOL` reads; each is a module here."""
