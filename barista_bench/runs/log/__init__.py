"""The sample log of a run and the record of its questions. `runs/log_reader.py` defines which records count."""
