"""Aids: true facts of one level of the graph, as text before the question, with inert and false controls.

`levels` lists the levels and the aids that each task admits. `graph_rows` reads the graph of a built dataset. `facts`
finds the facts that a question depends on. `texts` writes them as text.
"""
