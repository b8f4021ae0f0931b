"""Models that score given texts against images."""
