"""Stand-alone `evaluate` metrics. Each folder is also a Hugging Face Space. No metric imports barista_bench."""
