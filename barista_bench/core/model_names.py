"""Names of models that need no checkpoint: baselines, people, ablations. Imports little, since a Space reads it."""

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
"""Each is a prefix, followed by a colon and a model's name: that model sees less (`models/ablations.py`)."""
AIDED: Final = "aided"
"""Prefix, before a colon, of a model that is given facts of the graph with the question."""
ALTERED: Final = frozenset({*ABLATIONS, AIDED})
"""Prefixes of models with changed questions: these runs are diagnoses, which no leaderboard accepts."""
