"""Name models that need no checkpoint: baselines, people and ablations. A Space imports this module, so it is small."""

from __future__ import annotations

from typing import Final

GUESSES: Final = ("chance", "prior", "centre_box", "copy_first_mask")
"""Baselines that see no image."""
SCRIPTED: Final = ("oracle", *GUESSES)
"""Models whose answers come from the tasks themselves (`random_answer`, `reference_answer` and similar methods)."""
EMBEDDED: Final = ("kitchen", "kitchen_early")
"""Checkpoints that come with the package: a model, and an early step of its training."""
BASELINES: Final = (*SCRIPTED, *EMBEDDED, "tiny")
"""Names that no leaderboard accepts."""
_DESCRIPTIONS: Final = {
    "oracle": "answers with the references",
    "chance": "answers at random",
    "prior": "answers with what is most frequent in other videos",
    "centre_box": "answers with one box in the middle of the picture",
    "copy_first_mask": "answers with the masks of the first frame",
    "kitchen": "a small model of this package, trained on toy kitchens",
    "kitchen_early": "an early step of the training of kitchen",
    "tiny": "a model with random weights",
    "human": "a person, in the studio",
    "predictions": "answers that another program wrote",
    "served": "a model behind an API",
    "dual": "compares embeddings of pictures and choices",
    "text_only": "the model without pictures",
    "first_frame": "the model with only the first picture",
    "shuffled_frames": "the model with its pictures in a random order",
    "aided": "the model with facts of the graph in the prompt",
}
"""The meaning of each name or prefix, in one line."""


def describe_model(name: str) -> str:
    """Return the description of a model by its name, such as `text_only:kitchen`.

    A checkpoint is described only as `a checkpoint`.

    >>> describe_model("prior"), describe_model("text_only:kitchen"), describe_model("org/model")
    ('answers with what is most frequent in other videos', 'the model without pictures', 'a checkpoint')
    """
    return _DESCRIPTIONS.get(name.partition(":")[0], "a checkpoint")


HUMAN: Final = "human"
"""The prefix before a colon and a person's name. The studio logs the answers of people like the answers of models."""
ABLATIONS: Final = ("text_only", "first_frame", "shuffled_frames")
"""Prefixes before a colon and a model's name. The named model sees less (`models/ablations.py`)."""
AIDED: Final = "aided"
"""The prefix before a colon and a model's name. The named model gets facts of the graph with the question."""
ALTERED: Final = frozenset({*ABLATIONS, AIDED})
"""Prefixes of models that get changed questions. Their runs are diagnoses, which no leaderboard accepts."""
