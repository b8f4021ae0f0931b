"""Released run folders: those of the released BARISTA harness, read into runs of ours and written from them.

`importing` and `exporting` are the entrances; `released_folder` names the files and their fields, `reading` reads and
checks a folder, `deriving` and `summary` make one of a run of ours, and `kept` holds what a run of ours cannot say.
"""
