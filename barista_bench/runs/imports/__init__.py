"""Answers from elsewhere in, submissions out."""
