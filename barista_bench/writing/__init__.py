"""Texts that models write about a graph or about generated items: questions of temporal VQA, and reworded items."""
