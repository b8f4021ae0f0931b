"""The contracts that all package areas share.

Tasks                `task` (the contract: question, scoring), `display` (its third part), `deriving` (tasks made of
                     a scene graph or of a benchmark's own files), `options` (the user's choices)
Questions            `prompt` (text and images, wordings as data, fences around untrusted text), `boxes` (how
                     models write boxes), `model_names` (models that need no checkpoint)
Records              `example` (Example, Prediction, typed columns), `status` (of a sample), `frozen_lines` (of a
                     release), `training_videos` (videos that a model was trained on)
Scores               `statistics` (each score defined once), `resampling` (intervals), `leaderboards` (names of
                     leaderboards on the Hub), `model_samples` (the data of papers' tables)
Internals            `guarding` (calls of tasks), `remembering` (cached values), `plugins` (additions by other
                     packages)
"""
