"""Examples to `datasets`: splits, frozen files, rows, builders, publishable folders."""
