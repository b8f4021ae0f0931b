"""The sample log: its records, and what was asked. `runs/log_reader.py` says which records count."""
