"""Generates answers batch by batch: plans batches, encodes the next one in a thread, and splits those that do not fit.

This module imports torch and transformers, so import it only when a model is loaded.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import torch
from PIL import Image
from transformers import PreTrainedConfig, PreTrainedModel

from barista_bench.core.frame_times import FrameTimes
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.errors import ModelError
from barista_bench.files.checkpoints import on_device
from barista_bench.files.text_out import first_line
from barista_bench.models.answers import AnswerReader, GeneratedRow
from barista_bench.models.base import (
    AnsweredRequest,
    Completion,
    Failure,
    GenerationConfig,
    Request,
    is_out_of_memory,
    repeat_answer,
)
from barista_bench.models.local import decoding
from barista_bench.models.local.batch_check import BatchCheck, Steps, first_steps, largest_distance, tolerance_of
from barista_bench.models.local.batching import BatchBudget, QueuedRequest
from barista_bench.models.local.inputs import MODEL_ERRORS, Encoded, PromptEncoder

if TYPE_CHECKING:
    from llguidance import LLMatcher

    from barista_bench.models.local.holding import AnswerHolder

log = logging.getLogger(__name__)
_FIRST_PICTURE = 256, 192  # width and height in pixels
_FIRST_ANSWER = GenerationConfig(temperature=0, max_new_tokens=2)


@dataclass(frozen=True, slots=True)
class _GenerationJob:
    """Samples of one request that are generated together.

    `index` is the number of the request, and `slots` are the numbers of its seeds.

    `matcher` is a schema's matcher at the beginning of an answer; None for an answer without a schema.
    """

    index: int
    has_images: bool
    slots: tuple[int, ...]
    seeds: tuple[int, ...]
    encoded: Encoded
    matcher: LLMatcher | None = None


class Engine:
    """Answers requests with one model, batch by batch.

    Args:
        holder: constrains answers to the schemas of their requests; None if no request has a schema.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        encoder: PromptEncoder,
        reader: AnswerReader,
        budget: BatchBudget,
        holder: AnswerHolder | None = None,
    ) -> None:
        self.model, self.encoder, self.reader, self.budget = model, encoder, reader, budget
        self._holder = holder
        self._context = _context_of(model.config)
        self.batch_check: BatchCheck | None = None

    def check_start(self) -> None:
        """Ask a test question about a picture, and drop the answer.

        If frames are shown as videos, the question has a video of two pictures.

        Raises:
            ModelError: the model does not answer the question, or its prompt is the same without the picture.
        """
        name, count = self.encoder.name, 0 if self.encoder.reads_text_alone else 2 if self.encoder.takes_video else 1
        prompt = Prompt("", (*map(ImagePart, range(count)), TextPart("What is this?")))
        pictures, times = (Image.new("RGB", _FIRST_PICTURE),) * count, FrameTimes(1.0, tuple(range(count)))
        request = Request("the first", prompt, pictures, times=times)
        subject = "an image" if count else "a question"
        remedy = "Fix: use another checkpoint, or give the chat_template that it needs"
        if self.encoder.takes_video:
            subject, remedy = "a video of two frames, which its processor cannot take", "Fix: use frames_as=images"
        try:
            encoded = self.encoder.encode(request)
            if count and self.encoder.drops_images(request, encoded):
                raise ModelError(f"model {name}: its chat template places no images. {remedy}")
            if self.encoder.takes_video:
                subject = f"a video of two frames, at which {type(self.model).__name__} of transformers fails"
            self._generate([_GenerationJob(0, True, (0,), (0,), encoded)], _FIRST_ANSWER)
        except MODEL_ERRORS as error:
            raise ModelError(f"model {name}: cannot answer about {subject}: {_cause(error)}. {remedy}") from error

    def work(
        self, requests: Iterable[Request], config: GenerationConfig, *, at_once: bool
    ) -> Iterator[tuple[int, AnsweredRequest]]:
        """Yield the answers to all requests, with the requests' numbers.

        With `at_once`, all requests are taken first, and the longest are answered first.
        """
        source = enumerate(requests)
        queue: list[QueuedRequest] = []
        ahead: Future[_EncodedBatch] | None = None
        queue_length = self.budget.prompts
        with ThreadPoolExecutor(1, thread_name_prefix="encode") as worker:
            while True:
                for index, request in islice(source, None if at_once else max(0, queue_length - len(queue))):
                    if request.seeds:
                        request.check_images()
                        samples = len(request.seeds) if config.temperature > 0 else 1
                        queue.append(QueuedRequest(index, request, self.encoder.tokens(request), samples))
                    else:
                        yield index, AnsweredRequest(request, [], 0.0)
                # Take two more batches for each generated batch, so that the first batch need not wait for a full
                # window.
                queue_length = min(self.budget.window, queue_length + 2 * self.budget.prompts)
                batch = ahead or self._begin(queue, worker, config)
                if batch is None:
                    return
                ahead = self._begin(queue, worker, config)
                yield from self._answer(batch.result(), config)

    def _begin(
        self, queue: list[QueuedRequest], worker: ThreadPoolExecutor, config: GenerationConfig
    ) -> Future[_EncodedBatch] | None:
        """Take the next batch from `queue`, longest first: if memory runs out, it does so in the first batch."""
        if not queue:
            return None
        queue.sort(key=lambda entry: -entry.tokens)
        count = self.budget.take(queue)
        batch, queue[:count] = queue[:count], []
        return worker.submit(lambda: [(entry, self._job(entry, config)) for entry in batch])

    def _job(self, entry: QueuedRequest, config: GenerationConfig) -> _GenerationJob | Failure:
        request, matcher = entry.request, None
        try:
            encoded = self.encoder.encode(request)
            if self._holder:
                matcher = self._holder.matcher(request.schema, opens_thinking=encoded.opens_thinking)
        except MODEL_ERRORS as error:
            return Failure(f"request {request.request_id}: its prompt cannot be prepared: {_cause(error)}")
        if self._context is not None and encoded.prompt_tokens >= self._context:
            too_long = f"its prompt of {encoded.prompt_tokens} tokens leaves no room in a context of {self._context}"
            return Failure(f"request {request.request_id}: {too_long}. Fix: fewer or smaller images (max_pixels)")
        slots = tuple(range(len(request.seeds))) if config.temperature > 0 else (0,)
        seeds = tuple(request.seeds[slot] for slot in slots)
        return _GenerationJob(entry.index, bool(request.images), slots, seeds, encoded, matcher)

    def _answer(self, batch: _EncodedBatch, config: GenerationConfig) -> Iterator[tuple[int, AnsweredRequest]]:
        started = time.perf_counter()
        jobs = [job for _, job in batch if isinstance(job, _GenerationJob)]
        check = self.batch_check  # a check without images tells nothing about images
        if len(jobs) > 1 and (check is None or (jobs[0].has_images and not check.has_images)):
            # The longest and the shortest job first: this pair has the most padding.
            self._check_batches([jobs[0], *jobs[:0:-1]])
        by_slot: dict[int, dict[int, Completion | Failure]] = {job.index: {} for job in jobs}
        for job, slot, completion in self._generate_splitting(jobs, config):
            by_slot[job.index][slot] = completion
        fraction = (time.perf_counter() - started) / max(1, sum(len(job.slots) for job in jobs))
        for entry, prepared in batch:
            seeds = range(len(entry.request.seeds))
            if isinstance(prepared, Failure):
                yield entry.index, AnsweredRequest(entry.request, [prepared for _ in seeds], 0.0)
            else:
                # Greedy decoding gives all seeds the same answer.
                answers = by_slot[entry.index]
                is_greedy = config.temperature <= 0
                completions = repeat_answer(answers[0], len(seeds)) if is_greedy else [answers[slot] for slot in seeds]
                yield entry.index, AnsweredRequest(entry.request, completions, fraction * len(prepared.slots))

    def _generate_splitting(
        self, jobs: list[_GenerationJob], config: GenerationConfig
    ) -> Iterator[tuple[_GenerationJob, int, Completion | Failure]]:
        """Generate a batch; if it fails, split it into smaller batches, down to one sample."""
        pending = [jobs] if jobs else []
        while pending:
            batch = pending.pop()
            samples, columns = _size(batch)
            # Do not try batches that are known to be too large: the budget may have shrunk since the batch was made.
            outcome = self._attempt(batch, config) if self.budget.fits(len(batch), samples, columns) else None
            if isinstance(outcome, list):
                for job, completions in zip(batch, outcome, strict=True):
                    for slot, completion in zip(job.slots, completions, strict=True):
                        yield job, slot, completion
            elif outcome is not None and samples == 1:
                yield batch[0], batch[0].slots[0], outcome
            else:
                pending.extend(_halves(batch))

    def _check_batches(self, jobs: list[_GenerationJob]) -> None:
        """Ask two examples separately and together.

        If the results differ, samples are generated one by one from then on.

        The examples are the first two that succeed separately. If fewer than two succeed, or memory is too small for
        two, the next batch is tried.
        """
        pair, alone = [], []
        for job in jobs:
            with suppress(*MODEL_ERRORS):
                alone += self._first_steps([job])
                pair.append(job)
            if len(pair) == 2:
                break
        else:
            return
        tolerance, has_images = tolerance_of(self.model.dtype), pair[0].has_images
        try:
            distance = largest_distance(alone, self._first_steps(pair))
            self.batch_check = BatchCheck(distance, tolerance, has_images)
        except MODEL_ERRORS as error:
            if is_out_of_memory(error):
                return
            self.batch_check = BatchCheck(None, tolerance, has_images, _cause(error))
        if not self.batch_check.agrees:
            log.warning("asking one at a time, since batches cannot be trusted: %s", self.batch_check.finding)
            self.budget.ask_one_by_one()

    def _first_steps(self, jobs: list[_GenerationJob]) -> list[Steps]:
        pad_id = self.encoder.tokenizer.pad_token_id
        return first_steps(self.model, self._inputs(jobs), pad_id=pad_id, end_ids=self.reader.end_ids)

    def _inputs(self, jobs: list[_GenerationJob]) -> dict[str, torch.Tensor]:
        return on_device(self.encoder.batch([job.encoded for job in jobs]), self.model.device, self.model.dtype)

    def _attempt(self, batch: list[_GenerationJob], config: GenerationConfig) -> list[list[Completion]] | Failure:
        samples, columns = _size(batch)
        self.budget.begin_batch()
        try:
            completions = self._generate(batch, config)
        except MODEL_ERRORS as error:
            out_of_memory = is_out_of_memory(error)
            problem = f"out of memory with {samples} samples" if out_of_memory else "generation failed"
            failure = Failure(f"{problem}: {_cause(error)}")
        else:
            self.budget.record_fit(samples, columns)
            return completions
        # This is outside of the except block, where the traceback no longer holds the failed batch's tensors.
        if out_of_memory:
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            self.budget.record_out_of_memory(samples, columns)
        return failure

    def _generate(self, batch: list[_GenerationJob], config: GenerationConfig) -> list[list[Completion]]:
        tokenizer, tags = self.encoder.tokenizer, self.encoder.tags
        samples = [job for job in batch for _ in job.seeds]
        is_shared = len(samples) > len(batch) and decoding.can_share_prefill(self.model)
        inputs = self._inputs(batch if is_shared else samples)
        columns = inputs["input_ids"].shape[1]
        padding = (inputs["attention_mask"] != 0).int().argmax(dim=1)
        shared_decoding: dict[str, object] = {}
        if is_shared:
            rows = torch.tensor([row for row, job in enumerate(batch) for _ in job.seeds], device=self.model.device)
            padding = padding[rows]
            shared_decoding["custom_generate"] = partial(decoding.decode_after_shared_prefill, rows=rows)
        thoughts = decoding.Thoughts(tokenizer, tags, columns, [job.encoded.opens_thinking for job in samples])
        stop = decoding.StopTexts(tokenizer, config.stop, columns, thoughts)
        recorder = decoding.LogprobRecorder(config.top_logprobs) if config.top_logprobs else None
        seeds = [seed for job in batch for seed in job.seeds]
        penalty = config.repetition_penalty
        if penalty == 1.0:
            penalty = self.model.generation_config.repetition_penalty or 1.0
        matchers = [job.matcher for job in samples]
        masks = None
        if self._holder and any(matchers):
            masks = self._holder.processor(matchers, columns, tokenizer.pad_token_id)
        processors = [
            decoding.NanCheck(),
            *([masks] if masks else []),
            *([recorder] if recorder else []),
            *decoding.sampling_processors(config, penalty, padding, seeds),
        ]
        if config.thinking_budget is not None:
            closing = tokenizer(f"{tags[1]}\n", add_special_tokens=False)["input_ids"]
            allows = {"allows": masks.allows} if masks else {}
            processors.append(decoding.ThinkingBudget(thoughts, config.thinking_budget, closing, **allows))
        sequences = self.model.generate(
            **inputs,
            max_new_tokens=config.max_new_tokens,
            do_sample=False,  # our processors draw the samples
            num_beams=1,
            use_cache=True,
            cache_implementation="dynamic",
            # Our processor applies the penalty, so that log-probabilities are recorded before it.
            repetition_penalty=1.0,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=sorted(self.reader.end_ids) or None,
            logits_processor=processors,
            stopping_criteria=[stop],
            **shared_decoding,
        )
        generated = sequences[:, columns:]
        scores = recorder.rows(generated) if recorder else [None] * len(samples)
        first = {id(job): row for row, job in reversed(list(enumerate(samples)))}
        completions = iter(
            self.reader.read(
                GeneratedRow(
                    tokens=tokens,
                    opens_thinking=job.encoded.opens_thinking,
                    stop_length=stop.lengths[row],
                    prompt_tokens=job.encoded.prompt_tokens,
                    cached=job.encoded.prompt_tokens if is_shared and row != first[id(job)] else 0,
                    rows=len(samples),
                    scores=scores[row],
                    is_held=job.matcher is not None,
                ),
                config.stop,
            )
            for row, (job, tokens) in enumerate(zip(samples, generated.tolist(), strict=True))
        )
        return [[next(completions) for _ in job.seeds] for job in batch]


_EncodedBatch = list[tuple[QueuedRequest, _GenerationJob | Failure]]


def _size(batch: list[_GenerationJob]) -> tuple[int, int]:
    """Return the number of samples in a batch, and the number of prompt tokens that each sample is padded to."""
    return sum(len(job.slots) for job in batch), max(job.encoded.prompt_tokens for job in batch)


def _context_of(config: PreTrainedConfig) -> int | None:
    """Return the context length of a model (prompt and answer) in tokens; None if its configuration has none."""
    text = config.get_text_config()
    rope = getattr(text, "rope_parameters", None) or {}
    limit = getattr(text, "max_position_embeddings", None)
    stretched_limit = (rope.get("original_max_position_embeddings") or 0) * (rope.get("factor") or 1)
    return None if limit is None else max(int(limit), int(stretched_limit))


def _halves(batch: list[_GenerationJob]) -> list[list[_GenerationJob]]:
    """Return two smaller batches; the first half comes last, because it is taken first. One job is split by samples."""
    if len(batch) > 1:
        middle = (len(batch) + 1) // 2
        return [batch[middle:], batch[:middle]]
    job, middle = batch[0], (len(batch[0].slots) + 1) // 2
    first = replace(job, slots=job.slots[:middle], seeds=job.seeds[:middle])
    return [[replace(job, slots=job.slots[middle:], seeds=job.seeds[middle:])], [first]]


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}: {first_line(error)}"
