"""Handle files and texts, whatever their content.

`reading` reads untrusted files within bounds and confines names to a folder. `writing` writes files without losing
data. `text_out` makes text safe to show and keeps keys out of files. `checkpoints` loads checkpoints with transformers.
"""
