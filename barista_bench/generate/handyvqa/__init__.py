"""Questions in the style of HanDyVQA."""
