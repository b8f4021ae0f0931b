"""Runs our tasks in other harnesses, inspect_ai and lmms-eval, which then run the models.

The modules for both harnesses use `questions.py`. Each of these modules is imported only by its harness, in an
environment that has the harness.
"""
