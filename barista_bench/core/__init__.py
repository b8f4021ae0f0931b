"""The contracts that all rooms share.

What a task is       `task` (the contract: what is asked, how it is scored, how it is shown), `deriving` (tasks made of
                     a scene graph or of a benchmark's own files), `options` (the user's choices)
What it asks with    `prompt` (text and images, wordings as data), `boxes` (how models write boxes)
What is recorded     `example` (Example, Prediction, Status, typed columns), `released_records` (frozen lines of a
                     release)
Figures              `statistics` (each figure stated once), `resampling` (their intervals)
Machinery            `cluster` (processes that end with this one, nodes of a cluster), `guarding` (calls of tasks),
                     `plugins` (what packages register)
"""
