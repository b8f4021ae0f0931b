"""Kinds of task: what tasks of one kind of answer share, whatever they ask."""
