"""Questions in the style of ToG-Bench."""
