"""Models that read no prompt, but segment and find objects."""
