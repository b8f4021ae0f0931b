"""Aids: the truth of one level of a question, from the graph, as text before the question; with controls.

`levels` says which levels there are and which of them a task admits, `graph_rows` reads the graph of a built dataset,
`facts` finds what a question depends on, `texts` writes it down.
"""
