"""Texts that models write about a graph or its items: questions of temporal VQA, and items in other words."""
