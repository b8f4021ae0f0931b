"""The sample log: its records, and the questions of a run. `runs/log_reader.py` defines which records count."""
