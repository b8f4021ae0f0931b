"""HOTA of object masks over time, and how often identities switch."""

from .scoring import ALPHAS, tracking

__all__ = ["ALPHAS", "tracking"]
