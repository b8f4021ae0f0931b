"""Decide a question about a frozen set of questions before every example is answered."""
