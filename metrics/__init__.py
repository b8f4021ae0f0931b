"""Stand-alone `evaluate` metrics: each folder is also a Hugging Face Space. None imports barista_bench."""
