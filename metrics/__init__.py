"""Stand-alone `evaluate` metrics: each folder is, with app.py, a Hugging Face Space. None imports barista_bench."""
