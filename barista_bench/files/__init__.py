"""Files of others read within bounds, ours written atomically, names and texts made harmless."""
