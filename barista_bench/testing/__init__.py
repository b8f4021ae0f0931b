"""Test tasks of this package and of plug-ins. `check_task` checks the laws that all tasks must satisfy.

`check_version` finds changes of prompts, parser, scores or derivation without a new `version`.
"""

from barista_bench.testing.hostile_answers import HOSTILE_ANSWERS
from barista_bench.testing.laws import LawError, check_task
from barista_bench.testing.versions import check_version

__all__ = ["HOSTILE_ANSWERS", "LawError", "check_task", "check_version"]
