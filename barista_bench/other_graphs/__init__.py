"""Public datasets that are scene graphs already, as graphs in the release format. Each reader is a plug-in."""
