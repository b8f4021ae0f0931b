"""Makes a scripted coffee kitchen: small egocentric videos with complete scene graphs, in the layout of the release.

One script determines all actions and their times. Motion, relations, states, activities and process steps follow from
the script. The drawing that makes the pixels also makes the masks. Use the kitchen when the real videos are not
available.
"""

from barista_bench.mini.kitchen import KitchenVideo, VideoPlan, graph_outline, plan_kitchen, write_kitchen, write_video

__all__ = ["KitchenVideo", "VideoPlan", "graph_outline", "plan_kitchen", "write_kitchen", "write_video"]
