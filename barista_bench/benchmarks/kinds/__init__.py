"""Define kinds of tasks: the common parts of all tasks with the same kind of answer."""
