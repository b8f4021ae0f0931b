"""Aids give true facts of one level of the graph before the question. They have inert and false controls.

`levels` lists the levels and the aids that each task admits. `graph_rows` reads the graph of a built dataset. `facts`
finds the facts on which a question depends. `texts` turns these facts into text.
"""
