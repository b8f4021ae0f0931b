"""Models that read no prompt: they segment and find objects."""
