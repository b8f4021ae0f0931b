"""Files and texts, without knowledge of what they hold.

`bounded`, `yaml_files` and `schema` read files of others within bounds; `atomic` and `owned_folders` write ours without
losing anything; `paths` keeps names inside a folder, `credentials` keeps keys out of files, `text_out` makes text fit
to show, `checkpoints` loads what transformers reads.
"""
