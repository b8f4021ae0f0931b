"""Our tasks in other harnesses, which run the models: inspect_ai and lmms-eval.

Both use `questions.py`. Each of the other modules is imported only by its harness, in an environment that has it.
"""
