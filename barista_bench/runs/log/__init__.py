"""The sample log: which records there are, and which of them count."""
