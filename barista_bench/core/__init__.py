"""The contracts that all rooms share: what a task, an example, a prompt and a benchmark are."""
