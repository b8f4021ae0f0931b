"""Questions in the style of ViSTa."""
