"""Diagnose a model by intervention: give it the truth about one level of a question, and ask the question again.

`conditions` plans the questions and aids. `running` asks them in ordinary runs. `estimates` computes the shares of the
levels. `records` writes `diagnosis.json` and its sentences.
"""
