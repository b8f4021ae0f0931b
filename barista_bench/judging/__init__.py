"""Judges: models that grade the free-text answers of other models, after a run.

`session.judge` asks, `scoring.score_judged` computes scores, and `cross.cross_judge` compares judges. Importing the
package loads none of them, since the command line reads its settings from here.
"""
