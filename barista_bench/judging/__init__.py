"""Judges: models that grade the free-text answers of other models, after the fact.

`session.judge` asks, `scoring.score_judged` counts, and `cross.cross_judge` compares judges. Importing the package
itself loads none of them: the command line reads its settings from here.
"""
