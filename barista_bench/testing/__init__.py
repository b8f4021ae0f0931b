"""Tests of tasks, inside of this package and outside: `check_task` holds one to the laws that all keep.

`check_version` tells a change of prompts, parser, scores or derivation that nobody gave a new `version`.
"""

from barista_bench.testing.hostile_answers import HOSTILE_ANSWERS
from barista_bench.testing.laws import LawError, check_task
from barista_bench.testing.versions import check_version

__all__ = ["HOSTILE_ANSWERS", "LawError", "check_task", "check_version"]
