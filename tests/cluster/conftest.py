from collections.abc import Iterator

import pytest

from tests.cluster.ray_nodes import LocalCluster
from tests.runs.conftest import linked_dataset  # noqa: F401  (a fixture)


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """A head and two nodes for all tests, which each bring those that they kill."""
    pytest.importorskip("ray", reason="Ray is not in this environment: make test-integrations makes one that has it")
    nodes = LocalCluster()
    yield nodes
    nodes.shutdown()
