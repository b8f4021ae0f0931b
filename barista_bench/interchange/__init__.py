"""Imports results of other harnesses, and exports results in their formats.

Run folders of the released BARISTA harness are converted to our runs and back: `importing` and `exporting` are the
entry points, `released_folder` defines the files and their fields and stores data that our runs lack, `released_run`
reads and checks a folder. `recorded_answers` makes run folders from answers in any format that a benchmark reads, and
writes files for a benchmark's leaderboard. `trackers` logs scores to experiment trackers, `fiftyone_dataset` writes
runs for FiftyOne. `mask_formats` reads and writes masks in the formats of other tools: `coco_video`, `cvat`, `davis`.
"""
