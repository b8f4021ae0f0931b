"""Ask twenty questions with known answers before a run is paid.

`questions.py` makes the questions. `findings.py` asks them and reads the answers.
"""
