"""Aids give true facts of one level of the graph before the question. They have inert and false controls.

`levels` has a table of all levels. `task_aids` defines what a task says about aids, and each task declares it, so
this area names no task. `graph_rows` reads the graph of a built dataset. `texts` makes the aids of examples.
"""
