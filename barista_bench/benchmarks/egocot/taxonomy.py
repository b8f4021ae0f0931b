"""The four groups and twelve subtasks of EgoCoT-Bench (arXiv 2605.19559, "Task Definition"), as data.

What each subtask asks is said in our own words.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import NamedTuple

_SEPARATORS = re.compile(r"[\W_]+")


class Subtask(NamedTuple):
    """`code` and `group` are the paper's abbreviations, `name` is what `sub_category_en` says."""

    code: str
    group: str
    name: str
    asks: str


GROUPS = MappingProxyType(
    {
        "EGP": "Egocentric Grounding & Perception",
        "STR": "Spatio-Temporal Retrospection",
        "PCI": "Predictive & Causal Inference",
        "HGR": "High-level Grounded Reasoning",
    }
)
SUBTASKS: tuple[Subtask, ...] = (
    Subtask("AOG", "EGP", "Active Object Grounding", "what is being looked at, touched or handled now"),
    Subtask("HOA", "EGP", "Hand-Object Association", "which hand is on which object now"),
    Subtask("MSP", "EGP", "Manipulation State Perception", "what state the handled object is in now"),
    Subtask("SR", "STR", "State Retrospection", "what state an object was in before"),
    Subtask("LVR", "STR", "Location / Visibility Retrospection", "where an object was before, and whether in view"),
    Subtask("HOTR", "STR", "Hand-Object Temporal Retrospection", "in what order hands took hold of objects"),
    Subtask("NSA", "PCI", "Next State Anticipation", "what state an object is in next"),
    Subtask("NAA", "PCI", "Next Action Anticipation", "what is done next"),
    Subtask("LCOI", "PCI", "Local Cause-Outcome Inference", "what just done brought about what is seen"),
    Subtask("PR", "HGR", "Progress Reasoning", "how far the work has got"),
    Subtask("HGC", "HGR", "Hand-Object Grounded CoT", "what follows from hands, times and places together"),
    Subtask("GOT", "HGR", "Goal-Oriented Object Tracking", "which object serves the purpose, wherever it moves"),
)
"""In the order of the paper's tables."""
OF_GROUP = MappingProxyType({group: tuple(s for s in SUBTASKS if s.group == group) for group in GROUPS})
BY_CODE = MappingProxyType({subtask.code: subtask for subtask in SUBTASKS})


def _key(name: str) -> str:
    return " ".join(_SEPARATORS.sub(" ", name.casefold()).split())


_BY_NAME = {_key(text): subtask for subtask in SUBTASKS for text in (subtask.name, subtask.code)}
_GROUP_BY_NAME = {_key(text): code for code, name in GROUPS.items() for text in (name, code, name.replace("&", "and"))}


def subtask_called(name: str) -> Subtask | None:
    """The subtask of a name or abbreviation, whatever its case and punctuation; None where there is none.

    >>> subtask_called("location/visibility retrospection").code
    'LVR'
    """
    return _BY_NAME.get(_key(name))


def group_called(name: str) -> str | None:
    """The abbreviation of a group's name; None where there is no such group.

    >>> group_called("Predictive and Causal Inference")
    'PCI'
    """
    return _GROUP_BY_NAME.get(_key(name))
