"""Import results of other harnesses, and export results in their formats.

`importing` and `exporting` convert run folders of the released BARISTA harness to our runs and back. `released_folder`
defines the released files and their fields, and stores data that our runs lack. `released_run` reads and checks a
released folder. `recorded_answers` makes run folders from answers in any format that a benchmark reads, and writes
files for a benchmark's leaderboard. `trackers` logs scores to experiment trackers. `fiftyone_dataset` writes runs for
FiftyOne. `mask_formats` reads and writes masks in the formats of other tools.
"""
