"""A scripted coffee kitchen: small egocentric videos with a complete scene graph, in the release's layout.

One script determines all actions and their times; motion, relations, states, activities and process steps follow from
it, and the masks come from the same drawing that makes the pixels. Use it when the real videos are not available.
"""

from barista_bench.mini.kitchen import KitchenVideo, VideoPlan, graph_outline, plan_kitchen, write_kitchen, write_video

__all__ = ["KitchenVideo", "VideoPlan", "graph_outline", "plan_kitchen", "write_kitchen", "write_video"]
