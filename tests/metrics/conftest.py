import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import pytest

from tests.conformance.loading import load_class, own_modules


@pytest.fixture(scope="module")
def metric_class(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[type]:
    """The class of the metric that the test file names in METRIC, as a stranger loads it.

    What holds for every metric (batches, processes, documents, isolation) is tested in tests/conformance.
    """
    with own_modules(tmp_path_factory.mktemp("modules")) as data:
        yield load_class(request.module.METRIC, data)


def least_cpu(call: Callable[[], object]) -> float:
    """The fewest seconds of CPU that four calls took."""
    spent = []
    for _ in range(4):
        begin = time.process_time()
        call()
        spent.append(time.process_time() - begin)
    return min(spent)


def assert_metrics(got: Mapping[str, Any], want: Mapping[str, Any], off: float = 1e-12) -> None:
    """The figures that `want` names are as there, `off` by so much at most; None where they are None there."""
    known = {name: value for name, value in want.items() if value is not None}
    assert known.keys() == {name for name in want if got[name] is not None}
    assert {name: got[name] for name in known} == pytest.approx(known, rel=0, abs=off)


@cache
def _squares(box: tuple[int, int, int, int]) -> frozenset[tuple[int, int]]:
    x0, y0, x1, y1 = box
    return frozenset(product(range(x0, x1), range(y0, y1)))


def slow_iou(first: Sequence[int], second: Sequence[int]) -> Fraction:
    """The intersection over union of boxes with whole corners, as sets of unit squares: an exact fraction."""
    left, right = _squares(tuple(first)), _squares(tuple(second))
    return Fraction(len(left & right), len(left | right)) if left | right else Fraction(0)
