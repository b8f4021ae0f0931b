"""barista_bench: evaluation of vision-language models on egocentric video, from one scene graph.

The way of the data (docs/design.md): a release folder is read as a `SceneGraph`, tasks derive frozen examples from
it, `datasets` configs hold them with lazily decoded frames, a runner asks a model and appends every answer to a
sample log, and metrics, results and reports are made from that log alone.
"""

__version__ = "0.1.0"
