"""Files of others read within bounds, ours written whole, names and texts that cannot do harm."""
