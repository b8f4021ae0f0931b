"""Files and texts, without knowledge of what they hold.

`reading` reads other people's files within bounds and keeps names inside a folder, `writing` writes ours without losing
anything, `text_out` makes text safe to show and keeps keys out of files, `checkpoints` loads what transformers reads.
"""
