"""A Ray cluster of several nodes on this machine; each node can be killed."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class LocalCluster:
    """A head and two further nodes, with a CPU each."""

    def __init__(self) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        from ray.cluster_utils import Cluster

        self._cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        for _ in range(2):
            self._cluster.add_node(num_cpus=1)

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def add_node(self, **settings: Any) -> Any:
        """A further node; settings as of `Cluster.add_node`."""
        return self._cluster.add_node(**{"num_cpus": 1, **settings})

    def remove(self, node: Any) -> None:
        """Kill a node that is still there."""
        if node in self._cluster.list_all_nodes():
            self._cluster.remove_node(node, allow_graceful=False)

    @contextmanager
    def killing(self, when: Callable[[], bool], **settings: Any) -> Iterator[threading.Event]:
        """A further node, killed as soon as the condition holds. The event says that it was, before the block ended."""
        node, ended, killed = self.add_node(**settings), threading.Event(), threading.Event()

        def watch() -> None:
            while not ended.is_set():
                if when():
                    self.remove(node)
                    killed.set()
                    return
                time.sleep(0.02)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield killed
        finally:
            ended.set()
            watcher.join()
            self.remove(node)

    def shutdown(self) -> None:
        import ray

        ray.shutdown()
        self._cluster.shutdown()
