"""Imports annotations of other datasets and tools as scene graphs in the release format. Each reader is a plug-in."""
