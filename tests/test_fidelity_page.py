"""docs/fidelity.md says of which task versions it is true; this needs no golden outputs."""

import re
from pathlib import Path

from barista_bench.benchmarks import get_benchmark

PAGE = (Path(__file__).parents[1] / "docs" / "fidelity.md").read_text(encoding="utf-8")


def test_the_page_is_of_the_tasks_as_they_are() -> None:
    stated = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|$", PAGE, re.MULTILINE))
    now = {task.name: str(task.version) for task in get_benchmark("barista").tasks}
    assert stated == now, "a task's version has moved since: run `make fidelity`"


def test_all_that_was_compared_is_equal_and_exceptions_are_few() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert {task for task, _, _ in rows} == {task.name for task in get_benchmark("barista").tasks}
    assert all(compared == equal for _, compared, equal in rows)
    assert 1 <= len(re.findall(r"^\d\. \*\*", PAGE, re.MULTILINE)) < 10
