"""The contracts that all rooms share.

What a task is       `task` (the contract: what is asked, how it is scored, how it is shown), `deriving` (tasks made of
                     a scene graph or of a benchmark's own files), `options` (the user's choices)
What it asks with    `prompt` (text and images, wordings as data), `boxes` (how models write boxes)
                     `fencing` (JSON in fences), `model_names` (models that need no checkpoint)
What is recorded     `example` (Example, Prediction, Status, typed columns), `frozen_lines` (of a release),
                     `failures` (how an answer is wrong), `training_videos` (what a model was trained on)
Figures              `statistics` (each figure stated once), `resampling` (their intervals), `leaderboards` (names of
                     those on the Hub), `model_samples` (what tables of papers are made of)
Machinery            `guarding` (calls of tasks), `remembering` (values worked out once), `plugins` (what packages
                     register)
"""
