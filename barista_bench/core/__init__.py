"""The contracts that all rooms share.

What a task is       `task` (the contract) and its parts `question`, `scoring` and `display`; `graph_task` and
                     `release_task` derive examples from a scene graph, or take them from a benchmark's files
What it asks with    `prompt` (text and images), `prompt_sets` (wordings as data), `boxes` (box formats), `options` (a
                     task's settings), `sampling` (how a frozen set is drawn), `typed_fields` (columns of an example)
What is recorded     `example` (Example, Prediction, Status), `released_records` (frozen lines of a release),
                     `choice_scores` (answers of dual encoders), `explanation` (why a sample scored as it did)
Figures              `statistics` (each figure stated once), `interval`, `bootstrap`, `prices`
Benchmarks           `benchmark` (what a benchmark is), `paper_tables` (tables and charts of a paper as data)
Machinery            `timing` (seconds by stage), `worker_processes` (processes that end with this one)
"""
