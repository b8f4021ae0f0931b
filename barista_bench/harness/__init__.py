"""Our tasks inside of other harnesses, which ask the models: inspect_ai and lmms-eval.

`questions.py` is what both share; each of the others is imported by its harness alone, in an environment that has it.
"""
