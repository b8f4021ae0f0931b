import time
from collections.abc import Callable, Iterator

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
