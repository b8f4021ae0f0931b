"""Kinds of task: the common parts of tasks with one kind of answer, for any question."""
