"""The contracts that all rooms share.

What a task is       `task` (the contract: what is asked, how it is scored, how it is shown), `deriving` (the draw, and
                     tasks that derive examples from a scene graph or take them from a benchmark's files), `options`
What it asks with    `prompt` (text and images, wordings as data, and how models write boxes)
What is recorded     `example` (Example, Prediction, Status, typed columns), `released_records` (frozen lines of a
                     release)
Figures              `statistics` (each figure stated once, and its intervals), `costs` (seconds and dollars)
Benchmarks           `benchmark` (what a benchmark is), `paper_tables` (what those of a paper are made of)
Machinery            `cluster` (processes that end with this one, nodes of a cluster)
"""
