"""Results of other harnesses in, and results in their formats out.

Run folders of the released BARISTA harness are read into runs of ours and written from them: `importing` and
`exporting` are the entrances, `released_folder` names the files and their fields and holds what a run of ours cannot
say, `released_run` reads and checks a folder. `recorded_answers` makes run folders of answers in
any format that a benchmark reads, and writes what a benchmark's own leaderboard takes. `trackers`
logs figures to experiment trackers, `fiftyone_dataset` writes runs for FiftyOne. `mask_formats`
reads and writes masks in the formats of other tools: `coco_video`, `cvat`, `davis`.
"""
