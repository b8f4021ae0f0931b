"""Names of models that stand for no model of their own: baselines, people, ablations. Light: a Space reads it."""

from __future__ import annotations

from typing import Final

GUESSES: Final = ("chance", "prior", "centre_box", "copy_first_mask")
"""What answers without looking."""
SCRIPTED: Final = ("oracle", *GUESSES)
"""Models that answer examples from what tasks say of these."""
EMBEDDED: Final = ("kitchen", "kitchen_early")
"""Checkpoints that come with the package: the model, and an early step of its training."""
BASELINES: Final = (*SCRIPTED, *EMBEDDED, "tiny")
"""All of which no leaderboard takes."""
HUMAN: Final = "human"
"""Before a colon: a person, whose answers the studio logs as a model's."""
ABLATIONS: Final = ("text_only", "first_frame", "shuffled_frames")
"""Before a colon: the model behind it sees less (`models/ablations.py`)."""
