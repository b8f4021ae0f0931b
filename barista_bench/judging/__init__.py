"""Judges: models that grade the free-text answers of other models, after a run.

`session.judge` asks a judge, `scoring.score_judged` computes scores, and `cross.cross_judge` compares judges. Importing
this package does not load these modules, since the command line reads its settings from here.
"""
