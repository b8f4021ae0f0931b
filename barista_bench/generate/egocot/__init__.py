"""Questions in the style of EgoCoT-Bench."""
