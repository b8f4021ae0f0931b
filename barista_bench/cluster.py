"""Distribute work over processes of this machine, or over the nodes of a Ray cluster.

On a cluster each job is a Ray task. Its results return as a stream, and only the driver writes files. After an
interruption no process is left on this machine.

Nodes do not share a file system. A release, videos and checkpoints must be on each node at the same paths as on the
driver's machine. Jobs and results are sent over the network, but decoded frames are not. Ray restarts the tasks of a
lost node elsewhere and continues with the results that had not arrived. So a job must give the same results each time,
in the same number and order.
"""

from __future__ import annotations

import hashlib
import logging
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

from barista_bench.errors import ClusterError, ConfigError, require_extra
from barista_bench.version import __version__

log = logging.getLogger(__name__)
JobT = TypeVar("JobT")
T = TypeVar("T")
AHEAD = 2
"""Jobs per CPU that are sent out: running jobs, and as many jobs whose results wait for their turn."""


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A machine of the cluster that takes work. `name` is for messages."""

    id: str
    name: str
    cpus: int
    gpus: int

    @property
    def placement(self) -> object:
        """Return the scheduling strategy for work that may run only on this node."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(self.id, soft=False)


class RayCluster:
    """A connection to a running cluster. It lasts as long as this process and does not start a cluster.

    Args:
        address: `auto` for the cluster of this machine, or `HOST:PORT` of the cluster's head.
        needs: files and folders that each node must have at the same path, with files of the same names and sizes.

    Attributes:
        nodes: nodes with a CPU, always in the same order.

    Raises:
        ModelError: Ray is not installed.
        ClusterError: there is no cluster, or a node lacks a requirement. The message names the node and the
            requirement.
    """

    def __init__(self, address: str, needs: Iterable[str | Path] = ()) -> None:
        require_extra("--cluster", "ray", extra="ray")
        import ray

        if not ray.is_initialized():
            try:
                if address != "auto":  # without an answer, Ray itself takes minutes to report an error
                    host, _, port = address.rpartition(":")
                    socket.create_connection((host, int(port)), timeout=10).close()
                ray.init(address=address, logging_level="WARNING")
            except (OSError, RuntimeError, ValueError) as error:
                raise ClusterError(
                    f"no Ray cluster at {address} ({error}). Fix: start one with `ray start --head` and join nodes "
                    "with `ray start --address`, then run this command on one of its nodes"
                ) from error
        nodes = []
        for node in sorted(ray.nodes(), key=lambda node: str(node["NodeID"])):
            resources = node["Resources"]
            if node["Alive"] and resources.get("CPU", 0) >= 1:
                name = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']}, {node['NodeID'][:8]})"
                nodes.append(ClusterNode(node["NodeID"], name, int(resources["CPU"]), int(resources.get("GPU", 0))))
        self.nodes = tuple(self._usable_nodes(nodes, [Path(path).absolute() for path in needs]))
        if not self.nodes:
            raise ClusterError(f"the Ray cluster at {address} has no node with a CPU. Fix: join one")

    def _usable_nodes(self, nodes: Sequence[ClusterNode], needs: Iterable[Path]) -> Iterator[ClusterNode]:
        """Yield the available nodes. Raises ClusterError if a node lacks a requirement."""
        import ray
        from ray.exceptions import RayError, RayTaskError

        states = {str(path): files_state(path) for path in needs}
        check = ray.remote(_first_lack)
        arguments = __version__, os.getcwd(), states
        checks = [check.options(num_cpus=0, scheduling_strategy=node.placement).remote(*arguments) for node in nodes]
        for node, reference in zip(nodes, checks, strict=True):
            try:
                lack = ray.get(reference)
            except RayTaskError as error:
                lack = f"cannot be used: {error_line(error).rstrip('.')}"
            except RayError:  # the cluster still lists a lost node for a while
                log.warning("node %s was lost: the others continue", node.name)
                continue
            if lack:
                raise ClusterError(
                    f"node {node.name} {lack}. Fix: give it the package and the files of this machine, or remove the "
                    "node from the cluster"
                )
            yield node

    def stream(self, work: Callable[[JobT], Iterable[T]], jobs: Iterable[JobT], *, gpus: int = 0) -> Iterator[T]:
        """Yield the items that `work` produces for each job, in the order of `jobs`.

        Args:
            work: computes the items of a job. It must give the same items in the same order each time.
            gpus: number of GPUs per job.

        Raises:
            ClusterError: several nodes were lost while they ran the same job. Errors of `work` are raised here too.
        """
        import ray
        from ray.exceptions import RayError, RayTaskError

        work_reference = ray.put(work)
        task = ray.remote(_items).options(num_returns="streaming", scheduling_strategy="SPREAD", num_gpus=gpus)
        max_started = AHEAD * sum(node.gpus if gpus else node.cpus for node in self.nodes)
        streams: deque[Any] = deque()
        source = iter(jobs)
        try:
            while True:
                for job in islice(source, max_started - len(streams)):
                    streams.append(task.remote(work_reference, job, os.getcwd()))
                if not streams:
                    return
                for item in streams[0]:
                    yield ray.get(item)
                streams.popleft()
        except RayTaskError as error:
            raise error.cause from error
        except RayError as error:
            problem = f"nodes of the cluster were lost ({error_line(error).rstrip('.')})"
            raise ClusterError(f"{problem}. Fix: restore the nodes, and run the command again") from error
        finally:
            for items in streams:
                ray.cancel(items)

    def map(self, work: Callable[[JobT], T], jobs: Iterable[JobT]) -> Iterator[T]:
        """Yield the result of `work` for each job, in the order of `jobs`. Errors are the same as in `stream`."""
        return self.stream(partial(_one_item, work), jobs)


def cluster_of(address: str | None, num_proc: int, needs: Iterable[str | Path]) -> RayCluster | None:
    """Return the cluster to use instead of `num_proc` local processes, or None without an address.

    Raises:
        ConfigError: an address and several processes are requested.
        ClusterError, ModelError: the same as in `RayCluster`.
    """
    if address is None:
        return None
    if num_proc > 1:
        raise ConfigError(f"num_proc is {num_proc}, and cluster is {address}. Fix: leave out one")
    return RayCluster(address, needs)


def error_line(error: Exception) -> str:
    """Return the cause of a Ray error in one line, such as an error on the node or the loss of the node."""
    cause = getattr(error, "cause", None) or error
    return str(cause).strip().partition("\n")[0]


def files_state(path: Path) -> str:
    """Return the SHA-256 of the names and sizes of a file, or of all files below a folder.

    The text is empty if the path does not exist.
    """
    if not path.exists():
        return ""
    digest = hashlib.sha256()
    for file in [path, *sorted(path.rglob("*"))]:
        if file.is_file():
            digest.update(f"{file.relative_to(path)} {file.stat().st_size}\n".encode())
    return digest.hexdigest()


def _first_lack(version: str, folder: str, states: dict[str, str]) -> str:
    """Return the first requirement that this node lacks, or an empty string."""
    if __version__ != version:
        return f"has barista_bench {__version__}, not {version}"
    if not Path(folder).is_dir():
        return f"has no folder {folder}, which the command was started in"
    for path, state in states.items():
        if (state_here := files_state(Path(path))) != state:
            return f"has no {path}" if not state_here else f"has other files in {path}"
    return ""


def _items(work: Callable[[JobT], Iterable[T]], job: JobT, folder: str) -> Iterator[T]:
    os.chdir(folder)  # the base of the command's relative paths
    yield from work(job)


def _one_item(work: Callable[[JobT], T], job: JobT) -> Iterator[T]:
    yield work(job)


@contextmanager
def new_processes_end(active_children: Callable[[], Iterable[BaseProcess]]) -> Iterator[None]:
    """End the processes that start in the block if the block raises an error or is interrupted."""
    other_processes = set(active_children())
    try:
        yield
    except BaseException:
        for process in set(active_children()) - other_processes:
            process.terminate()
        raise


@contextmanager
def worker_processes(number: int) -> Iterator[Callable[[Callable[[JobT], T], Iterable[JobT]], Iterator[T]]]:
    """Yield a `map` that runs in `number` processes and returns results in order. An error ends the processes at once.

    Processes are spawned, not forked, since loaded libraries hold threads and locks.
    """
    pool = ProcessPoolExecutor(number, get_context("spawn"))

    def map_in_order(work: Callable[[JobT], T], jobs: Iterable[JobT]) -> Iterator[T]:
        # A terminal sends Ctrl-C to every process. A worker ignores it from its first moment, since it inherits the
        # signal mask of the thread that starts it; an initializer would run too late. Ctrl-C raises only in the main
        # thread, so it does not break off the start of a worker.
        block = partial(signal.pthread_sigmask, signal.SIG_BLOCK, {signal.SIGINT})
        # Do not use the pool's map, since it cancels waiting jobs. Before Python 3.12.3, a pool with ended processes
        # prints a traceback for each cancelled job.
        with ThreadPoolExecutor(1, initializer=block) as starter:
            futures = starter.submit(lambda: deque(pool.submit(work, job) for job in jobs)).result()
        while futures:  # each result is released when it is yielded
            yield futures.popleft().result()

    try:
        with new_processes_end(active_children):
            yield map_in_order
    finally:
        pool.shutdown(cancel_futures=True)


def map_in_processes(work: Callable[[JobT], T], jobs: Sequence[JobT], number: int) -> Iterator[T]:
    """Yield the result of `work` for each job, in order. A single job or `number` 1 runs in this process."""
    if number <= 1 or len(jobs) == 1:
        yield from map(work, jobs)
        return
    with worker_processes(min(number, len(jobs))) as map_in_order:
        yield from map_in_order(work, jobs)
