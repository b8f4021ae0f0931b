"""Names of models that are no checkpoints; here and not in `catalog.py`, since the command line loads them at once."""

from __future__ import annotations

SCRIPTED = ("oracle", "chance", "prior", "centre_box")
"""They answer examples, from what tasks say of these."""
SPECIALISTS = ("dual", "predictions", "sam3")
"""Before a colon: they rank texts, look up answers and find objects, and write no text of their own."""
