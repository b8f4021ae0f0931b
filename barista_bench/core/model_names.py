"""Names of models that stand for no model of their own: baselines, people, ablations. Light: a Space reads it."""

from __future__ import annotations

from typing import Final

GUESSES: Final = ("chance", "prior", "centre_box", "copy_first_mask")
"""Baselines that look at no image."""
SCRIPTED: Final = ("oracle", *GUESSES)
"""Models whose answers the tasks themselves give (`random_answer`, `reference_answer` and the like)."""
EMBEDDED: Final = ("kitchen", "kitchen_early")
"""Checkpoints that come with the package: the model, and an early step of its training."""
BASELINES: Final = (*SCRIPTED, *EMBEDDED, "tiny")
"""Names that no leaderboard takes."""
HUMAN: Final = "human"
"""The prefix of a colon and a person's name: the studio logs people's answers as a model's."""
ABLATIONS: Final = ("text_only", "first_frame", "shuffled_frames")
"""Each stands before a colon and a model's name: that model sees less (`models/ablations.py`)."""
AIDED: Final = "aided"
"""Stands before a colon and the name of a model that is given facts of the graph with the question."""
ALTERED: Final = frozenset({*ABLATIONS, AIDED})
"""Prefixes of models that are asked something else than the task asks: diagnoses, which no leaderboard takes."""
