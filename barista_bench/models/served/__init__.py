"""Asks models behind an OpenAI-compatible server."""
