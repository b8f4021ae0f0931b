"""A scripted coffee kitchen: small egocentric videos with a complete scene graph, in the release's own layout.

One script says what is done when; motion, relations, states, activities and process steps all follow from it, and the
masks come from the very drawing that makes the pixels. It stands in for the real videos where those cannot be had.
"""

from barista_bench.mini.kitchen import KitchenVideo, VideoPlan, graph_outline, plan_kitchen, write_kitchen, write_video

__all__ = ["KitchenVideo", "VideoPlan", "graph_outline", "plan_kitchen", "write_kitchen", "write_video"]
