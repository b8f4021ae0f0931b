"""Files and texts, without knowledge of what they hold.

`bounded` reads files of others within bounds, `writing` writes ours without losing anything, `paths` keeps names inside
a folder, `credentials` keeps keys out of files, `text_out` makes text fit to show, `checkpoints` loads what
transformers reads.
"""
