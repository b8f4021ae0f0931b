"""Texts that models write about a graph or its items: questions of temporal VQA, and reworded items."""
