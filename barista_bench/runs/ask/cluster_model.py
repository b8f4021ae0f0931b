"""Run copies of a model on the nodes of a Ray cluster. Callers see a single streaming model.

The driver sends requests in chunks and without images. A node finds each example in its own copy of the data and
decodes the frames there. Answers arrive one by one and are logged like a local model's answers. Pending requests of a
lost node go to the other nodes.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from barista_bench.cluster import ClusterNode, RayCluster, error_line
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.task import Task
from barista_bench.data.dataset import ExampleSet
from barista_bench.data.loaded_example import LinkedMedia, Pictures
from barista_bench.data.shared_frames import FrameStore
from barista_bench.errors import ClusterError, ConfigError, DataError, TaskError
from barista_bench.models import (
    AnsweredRequest,
    Completion,
    Failure,
    GenerationConfig,
    ModelIdentity,
    Request,
    StreamingModel,
)
from barista_bench.runs.ask.answers import answer_each
from barista_bench.runs.ask.catalog import TaskExamples, load_model
from barista_bench.runs.ask.config import ModelSettings, RunConfig
from barista_bench.runs.ask.opening import open_tasks
from barista_bench.runs.ask.pictures import AHEAD_BYTES, PictureError, decoded_size, pictures_for
from barista_bench.runs.ask.prefetch import decode_ahead

log = logging.getLogger(__name__)

CHUNKS = 2
"""Number of pending chunks per copy. The copy decodes the frames of one chunk while it answers the other."""
MAX_LOSSES = 3
"""A request fails after this many copies were lost while they held it: the request may have crashed them."""


class LoadedCopy(NamedTuple):
    """Describes the model that a node has loaded. `chunk` is the number of requests in a chunk."""

    identity: ModelIdentity
    box_format: BoxFormat
    chunk: int


class NodeAnswer(NamedTuple):
    """A node's answer to one request: one completion per seed, and the seconds for all completions."""

    request_id: str
    completions: list[Completion | Failure]
    seconds: float


class ModelCopy:
    """A model with its data on a node.

    Args:
        config: settings of the driver's command.
        content_hashes: hashes of the driver's example sets, one per task.
        folder: the driver's working directory, the base of relative paths.
    """

    def __init__(self, config: ModelSettings, content_hashes: Sequence[str], folder: str) -> None:
        self._config, self._content_hashes, self._folder = config, list(content_hashes), folder
        self._examples: dict[str, tuple[Task, ExampleSet, int]] = {}
        self._answering = threading.Lock()

    def load(self) -> LoadedCopy:
        """Open the data and load the model.

        Raises DataError if the data differ from the driver's, and the errors of opening and loading.
        """
        os.chdir(self._folder)
        tasks = self._tasks()
        for task, examples in tasks:
            for index, example in enumerate(examples.examples):
                self._examples[example.example_id] = task, examples, index
        self._model = model = load_model(self._config, tasks)
        # A streaming model sorts its pending requests. All pending chunks together hold that many.
        chunk = model.window // CHUNKS if isinstance(model, StreamingModel) else CHUNKS * model.batch_size
        return LoadedCopy(model.identity, model.box_format, max(model.batch_size, chunk))

    def _tasks(self) -> TaskExamples:
        if not isinstance(self._config, RunConfig):
            return []
        opened = open_tasks(self._config)
        if [task.examples.content_hash for task in opened] != self._content_hashes:
            raise DataError(f"{self._config.data}: holds other examples. Fix: copy the same dataset to every node")
        return [(task.task, task.examples) for task in opened]

    def answer(self, requests: Sequence[Request], config: GenerationConfig) -> Iterator[NodeAnswer]:
        """Yield each answer as it arrives. The frames of this chunk are decoded while another chunk is answered."""
        failures: list[NodeAnswer] = []

        def readable(prepared: Iterable[tuple[Request, Pictures | PictureError]]) -> Iterator[tuple[str, Request]]:
            for request, pictures in prepared:
                if not isinstance(pictures, Pictures):
                    of_seeds: list[Completion | Failure] = [Failure.of(pictures)] * len(request.seeds)
                    failures.append(NodeAnswer(request.request_id, of_seeds, 0.0))
                else:
                    yield request.request_id, dataclasses.replace(request, images=pictures.images, files=pictures.files)

        run = self._config if isinstance(self._config, RunConfig) else None
        cache_bytes = run.frame_cache_mib * 2**20 if run else 0
        with FrameStore(max_bytes=cache_bytes) as store, closing(self._ready(requests, store, run)) as ready:
            first = list(islice(ready, 1))  # starts decoding
            with self._answering:
                for name, completions, seconds in answer_each(self._model, readable(chain(first, ready)), config):
                    yield NodeAnswer(name, completions, seconds * len(completions))
        yield from failures

    def _ready(
        self, requests: Sequence[Request], store: FrameStore, run: RunConfig | None
    ) -> Generator[tuple[Request, Pictures | PictureError], None, None]:
        with_images = [self._examples[request.request_id] for request in requests if request.prompt.image_count]
        store.plan(frame for _, examples, index in with_images for frame in examples.examples[index].frames)
        return decode_ahead(
            requests,
            lambda request: self._pictures(request, store),
            workers=run.workers if run else 1,
            max_items=len(requests),
            max_bytes=AHEAD_BYTES // CHUNKS,
            size_of=decoded_size,
            group_of=self._video_id,
        )

    def _video_id(self, request: Request) -> str | None:
        if request.request_id not in self._examples:
            return None
        _, examples, index = self._examples[request.request_id]
        return examples.examples[index].video_id

    def _pictures(self, request: Request, store: FrameStore) -> Pictures | PictureError:
        if not request.prompt.image_count:
            return Pictures(())
        task, examples, index = self._examples[request.request_id]
        try:
            return pictures_for(self._model, examples[index], task, store)
        except (DataError, TaskError) as error:
            return error


@dataclasses.dataclass(eq=False, slots=True)
class _RemoteCopy:
    """The driver's handle for a copy on a node: the actor and its pending chunks."""

    node: ClusterNode
    actor: Any
    chunks: int = 0


class ClusterModel:
    """Copies of one model: one copy per GPU, or one per node if there is no GPU or the CPU is chosen.

    A lost copy is not replaced, and the driver does not wait for it. A copy that is ready late joins the others.

    Args:
        config: settings of the command.
        address: address of the cluster, see `RayCluster`.
        tasks: the tasks to ask. Nodes open the same data at the same paths.

    Raises:
        ClusterError: the cluster cannot be used, or a node cannot use its data or model. The message names the node.
        ConfigError: the cluster lacks the device, or the engine is not transformers.
    """

    def __init__(self, config: ModelSettings, address: str, tasks: TaskExamples) -> None:
        if config.engine != "transformers":  # package versions on the nodes would be neither compared nor recorded
            raise ConfigError(f"a cluster does not run --engine {config.engine}. Fix: leave engine or cluster out")
        cluster = RayCluster(address, needed_paths(config, tasks))
        import ray

        hashes = [examples.content_hash for _, examples in tasks]
        self._copies: list[_RemoteCopy] = []
        self._loading: dict[Any, _RemoteCopy] = {}
        self._loaded_copies: list[LoadedCopy] = []
        for node, cpus, gpus in placements(config.device, cluster.nodes):
            actors = ray.remote(ModelCopy).options(
                num_cpus=cpus, num_gpus=gpus, max_concurrency=CHUNKS, scheduling_strategy=node.placement
            )
            remote_copy = _RemoteCopy(node, actors.remote(config, hashes, os.getcwd()))
            self._loading[remote_copy.actor.load.remote()] = remote_copy
        while not self._loaded_copies:
            self._refuse_none_left()
            self._add_copy(ray.wait(list(self._loading))[0][0])
        self.identity, self.box_format, self.window = self._loaded_copies[0]
        self.batch_size = self.window

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        """Return one list per request, in order, with one entry per seed. See `stream`."""
        answers = {answered.request.request_id: answered.completions for answered in self.stream(requests, config)}
        return [answers[request.request_id] for request in requests]

    def stream(self, requests: Iterable[Request], config: GenerationConfig) -> Iterator[AnsweredRequest]:
        """Yield answers as they arrive, exactly one per request.

        Raises:
            ClusterError: all copies were lost.
            ModelError: a copy cannot answer the request that it received.
        """
        import ray
        from ray.exceptions import RayError, RayTaskError

        source, returned_requests, losses = iter(requests), deque[Request](), Counter[str]()
        # The unanswered requests of each pending chunk, by id.
        calls: dict[Any, tuple[_RemoteCopy, dict[str, Request]]] = {}
        while True:
            for remote_copy in self._copies_with_room():
                chunk = self._returned_chunk(returned_requests, losses) or list(islice(source, self.window))
                if not chunk:
                    break
                handle = remote_copy.actor.answer.options(num_returns="streaming").remote(chunk, config)
                calls[handle] = remote_copy, {request.request_id: request for request in chunk}
                remote_copy.chunks += 1
            if not calls and self._copies:
                return
            self._refuse_none_left()
            handle = ray.wait([*self._loading, *calls])[0][0]
            if handle in self._loading:
                self._add_copy(handle)
                continue
            remote_copy, unanswered = calls[handle]
            try:
                name, completions, seconds = ray.get(next(handle))
            except StopIteration:
                del calls[handle]
                remote_copy.chunks -= 1
            except RayTaskError as error:
                raise error.cause from error
            except RayError as error:  # an actor that is only temporarily unreachable counts as lost too
                del calls[handle]
                self._drop(remote_copy, error, len(unanswered))
                losses.update(list(unanswered))
                returned_requests.extend(request for name, request in unanswered.items() if losses[name] < MAX_LOSSES)
                for name, request in unanswered.items():
                    if losses[name] == MAX_LOSSES:
                        failure = Failure(f"{name}: {MAX_LOSSES} copies of the model were lost with it in hand")
                        yield AnsweredRequest(request, [failure] * len(request.seeds), 0.0)
            else:
                yield AnsweredRequest(unanswered.pop(name), completions, seconds)

    def _returned_chunk(self, returned_requests: deque[Request], losses: Counter[str]) -> list[Request]:
        """Return requests of lost copies for another try.

        A request that may have crashed its copy is sent in a chunk of its own.
        """
        chunk: list[Request] = []
        while returned_requests and len(chunk) < self.window:
            is_suspect = losses[returned_requests[0].request_id] == MAX_LOSSES - 1
            if chunk and is_suspect:
                break
            chunk.append(returned_requests.popleft())
            if is_suspect:
                break
        return chunk

    def _copies_with_room(self) -> Iterator[_RemoteCopy]:
        """Yield the copies that can take another chunk. Copies with the fewest pending chunks come first."""
        while self._copies and (idlest := min(self._copies, key=lambda one: one.chunks)).chunks < CHUNKS:
            yield idlest

    def _add_copy(self, reference: object) -> None:
        """Add a loaded copy. Raises ClusterError if loading failed."""
        import ray
        from ray.exceptions import RayError, RayTaskError

        remote_copy = self._loading.pop(reference)
        try:
            loaded_copy: LoadedCopy = ray.get(reference)
        except RayTaskError as error:
            raise ClusterError(f"node {remote_copy.node.name}: {error_line(error)}") from error
        except RayError as error:
            self._drop(remote_copy, error, 0)
            return
        self._loaded_copies.append(loaded_copy)
        if loaded_copy.identity != (first := self._loaded_copies[0].identity):
            raise ClusterError(
                f"node {remote_copy.node.name} has another model: {loaded_copy.identity}, not {first} as the "
                "first. Fix: give every node the same checkpoint and packages, and say --dtype"
            )
        self._copies.append(remote_copy)

    def _drop(self, remote_copy: _RemoteCopy, error: Exception, in_hand: int) -> None:
        import ray

        message = "node %s: a copy of the model is lost, with %d requests in hand: %s"
        log.warning(message, remote_copy.node.name, in_hand, error_line(error))
        self._copies = [other for other in self._copies if other is not remote_copy]
        ray.kill(remote_copy.actor)  # otherwise the actor would keep its GPU if it came back

    def _refuse_none_left(self) -> None:
        if not self._copies and not self._loading:
            remedy = "Fix: see to the nodes, and start the command again"
            raise ClusterError(f"all copies of the model were lost. {remedy}")


def placements(device: str, nodes: Sequence[ClusterNode]) -> list[tuple[ClusterNode, int, int]]:
    """Return the placement of each copy: its node, and the CPUs and GPUs reserved for the copy.

    Raises:
        ConfigError: the nodes lack the device, or `device` names a specific GPU. Ray chooses the GPUs.
    """
    if device.startswith("cuda:"):
        what = f"device is {device}, and Ray chooses among a cluster's GPUs"
        raise ConfigError(f"{what}. Fix: give --device auto or cuda")
    with_gpus = [node for node in nodes if node.gpus]
    if device == "cpu" or (device == "auto" and not with_gpus):
        return [(node, node.cpus, 0) for node in nodes]
    if not with_gpus:
        what = f"device is {device}, and the cluster has no GPU"
        raise ConfigError(f"{what}. Fix: give --device auto or cpu, or join a node")
    if device == "split":
        return [(node, node.cpus, node.gpus) for node in with_gpus]
    return [(node, max(1, node.cpus // node.gpus), 1) for node in with_gpus for _ in range(node.gpus)]


def needed_paths(config: ModelSettings, tasks: TaskExamples) -> list[str]:
    """Return the local files and folders that a command names, and the videos of linked examples."""
    paths = [str(value) for name in ("data", "root", "prompts", "adapter") if (value := getattr(config, name, None))]
    paths.append(config.model.rpartition(":")[2])
    videos: dict[str, str] = {}
    for _, examples in tasks:
        for index, example in enumerate(examples.examples):
            if example.video_id not in videos and (path := _video_path(examples, index)):
                videos[example.video_id] = path
    return [path for path in (*paths, *videos.values()) if path and Path(path).exists()]


def _video_path(examples: ExampleSet, index: int) -> str | None:
    try:
        media = examples[index].media
    except DataError:
        return None  # it fails when it is asked, and costs no other
    return media.lazy.path if isinstance(media, LinkedMedia) else None
