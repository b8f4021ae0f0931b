"""Generates batch by batch: plans, encodes the next batch in a thread, generates, splits what does not fit, reads.

torch is imported when something is generated.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from barista_bench.files.checkpoints import on_device
from barista_bench.files.text_out import first_line
from barista_bench.models.base import Answered, Completion, Failure, GenerationConfig, Request, TokenLogprob
from barista_bench.models.local.batching import BatchBudget, Waiting, is_out_of_memory
from barista_bench.models.reasoning import cut_at_stop, is_still_thinking, split_reasoning

if TYPE_CHECKING:
    from transformers import GenerationConfig as DecodingConfig
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from barista_bench.models.local.decoding import TokenScores
    from barista_bench.models.local.inputs import Encoded, PromptEncoder


@dataclass(frozen=True, slots=True)
class Generated:
    """One row as it was generated, padding behind its end included.

    Args:
        opened: the prompt had opened the thinking already.
        stopped: tokens up to and with a stop text; None where none was met.
        prompt_tokens: tokens of the prompt, without padding.
        rows: samples that were generated together; None where that means nothing.
        scores: log-probabilities, where they are wanted.
    """

    tokens: Sequence[int]
    opened: bool
    stopped: int | None
    prompt_tokens: int
    rows: int | None
    scores: TokenScores | None = None


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """Reads the rows of one model.

    Args:
        end_ids: tokens that end an answer.
        hidden_ids: special tokens that are no text.
    """

    tokenizer: PreTrainedTokenizerBase
    tags: tuple[str, str]
    end_ids: frozenset[int]
    hidden_ids: frozenset[int]

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase, tags: tuple[str, str], generation: DecodingConfig) -> AnswerReader:
        """The reader of a checkpoint, by its tokenizer and its generation settings."""
        vocabulary = tokenizer.get_vocab()
        hidden = _special_ids(tokenizer) - {vocabulary[tag] for tag in tags if tag in vocabulary}
        return cls(tokenizer, tags, _end_ids(generation, tokenizer.eos_token_id), hidden)

    def read(self, row: Generated, stop: Sequence[str]) -> Completion:
        """The completion of one row; `stop` are the texts that end an answer.

        Thinking that never closed counts as cut off (`length`), whatever ended it: there is no answer.
        """
        ended = next((n for n, token in enumerate(row.tokens, start=1) if token in self.end_ids), None)
        lengths = [n for n in (ended, row.stopped) if n is not None]
        tokens = row.tokens[: min(lengths, default=len(row.tokens))]
        visible = [n for n, token in enumerate(tokens) if token not in self.hidden_ids | self.end_ids]
        text = self._decoded([tokens[n] for n in visible])
        with_tags = self.tags[0] + text if row.opened else text
        reasoning, uncut = split_reasoning(with_tags, self.tags)
        answer = cut_at_stop(uncut, stop)
        finished = (lengths or answer != uncut) and not is_still_thinking(with_tags, self.tags)
        return Completion(
            text=answer,
            finish_reason="stop" if finished else "length",
            reasoning=reasoning,
            input_tokens=row.prompt_tokens,
            output_tokens=len(tokens),
            logprobs=None if row.scores is None else self._logprobs(row, row.scores, visible, text, answer),
            batch_size=row.rows,
        )

    def _logprobs(
        self, row: Generated, scores: TokenScores, steps: Sequence[int], text: str, answer: str
    ) -> tuple[TokenLogprob, ...]:
        """Of the tokens that wrote a character of the answer."""
        if not answer:
            return ()
        _, closed, after = text.rpartition(self.tags[1])
        start = len(text) - len(after.lstrip(None if closed else " "))
        tokens = [row.tokens[step] for step in steps]
        counts = range(len(steps) + 1)

        def written(count: int) -> int:
            return len(self._decoded(tokens[:count]))

        first = bisect_right(counts, start, key=written) - 1
        last = bisect_left(counts, start + len(answer), key=written)
        return tuple(self._logprob(row.tokens[step], step, scores) for step in steps[first:last])

    def _logprob(self, token: int, step: int, scores: TokenScores) -> TokenLogprob:
        top = dict(zip(scores.ids[step], scores.values[step], strict=True)) | {token: scores.chosen[step]}
        return TokenLogprob(
            token=self._decoded([token]),
            logprob=scores.chosen[step],
            top=tuple((self._decoded([key]), value) for key, value in sorted(top.items(), key=lambda item: -item[1])),
        )

    def _decoded(self, tokens: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))


@dataclass(frozen=True, slots=True)
class _GenerationJob:
    """Samples of one request that are generated together: `index` counts requests, `slots` its seeds."""

    index: int
    slots: tuple[int, ...]
    seeds: tuple[int, ...]
    encoded: Encoded


class Engine:
    """Puts requests through one model."""

    def __init__(
        self, model: PreTrainedModel, encoder: PromptEncoder, reader: AnswerReader, budget: BatchBudget
    ) -> None:
        self.model, self.encoder, self.reader, self.budget = model, encoder, reader, budget

    def work(
        self, requests: Iterable[Request], config: GenerationConfig, *, at_once: bool
    ) -> Iterator[tuple[int, Answered]]:
        """All requests, each with its number; `at_once` takes them all before the first batch, longest first."""
        source = enumerate(requests)
        waiting: list[Waiting] = []
        ahead: Future[_EncodedBatch] | None = None
        wanted = self.budget.prompts
        with ThreadPoolExecutor(1, thread_name_prefix="encode") as worker:
            while True:
                for index, request in islice(source, None if at_once else max(0, wanted - len(waiting))):
                    if request.seeds:
                        waiting.append(self._waiting(index, request, config))
                    else:
                        yield index, Answered(request, [], 0.0)
                # Two batches more with each one that is generated: the first need not wait for a whole window.
                wanted = min(self.budget.window, wanted + 2 * self.budget.prompts)
                present = ahead or self._begin(waiting, worker, config)
                if present is None:
                    return
                ahead = self._begin(waiting, worker, config)
                yield from self._answer(present.result(), config)

    def _waiting(self, index: int, request: Request, config: GenerationConfig) -> Waiting:
        request.check_images()
        samples = len(request.seeds) if config.temperature > 0 else 1
        return Waiting(index, request, self.encoder.tokens(request), samples)

    def _begin(
        self, waiting: list[Waiting], worker: ThreadPoolExecutor, config: GenerationConfig
    ) -> Future[_EncodedBatch] | None:
        """Take the next batch out of `waiting`, longest first: memory runs out at once or never."""
        if not waiting:
            return None
        waiting.sort(key=lambda entry: -entry.tokens)
        count = self.budget.take(waiting)
        batch, waiting[:count] = waiting[:count], []
        return worker.submit(lambda: [(entry, self._job(entry, config)) for entry in batch])

    def _job(self, entry: Waiting, config: GenerationConfig) -> _GenerationJob | Failure:
        from barista_bench.models.local.inputs import PROCESSOR_ERRORS

        request = entry.request
        try:
            encoded = self.encoder.encode(request)
        except PROCESSOR_ERRORS as error:
            return Failure(f"request {request.request_id}: its prompt cannot be prepared: {_cause(error)}")
        slots = tuple(range(len(request.seeds))) if config.temperature > 0 else (0,)
        return _GenerationJob(entry.index, slots, tuple(request.seeds[slot] for slot in slots), encoded)

    def _answer(self, batch: _EncodedBatch, config: GenerationConfig) -> Iterator[tuple[int, Answered]]:
        begun = time.perf_counter()
        jobs = [job for _, job in batch if isinstance(job, _GenerationJob)]
        by_slot: dict[int, dict[int, Completion | Failure]] = {job.index: {} for job in jobs}
        for job, slot, completion in self._generated(jobs, config):
            by_slot[job.index][slot] = completion
        share = (time.perf_counter() - begun) / max(1, sum(len(job.slots) for job in jobs))
        for entry, prepared in batch:
            seeds = range(len(entry.request.seeds))
            if isinstance(prepared, Failure):
                yield entry.index, Answered(entry.request, [prepared for _ in seeds], 0.0)
            else:
                # Greedy decoding has a single answer for all seeds.
                completions = [by_slot[entry.index][slot if config.temperature > 0 else 0] for slot in seeds]
                yield entry.index, Answered(entry.request, completions, share * len(prepared.slots))

    def _generated(
        self, jobs: list[_GenerationJob], config: GenerationConfig
    ) -> Iterator[tuple[_GenerationJob, int, Completion | Failure]]:
        """Generate, in smaller and smaller batches where a batch fails, down to one sample."""
        pending = [jobs] if jobs else []
        while pending:
            batch = pending.pop()
            samples, columns = _size(batch)
            # What is known to be too much is not tried: the budget may have shrunk since the batch was put together.
            outcome = self._attempt(batch, config) if self.budget.fits(len(batch), samples, columns) else None
            if isinstance(outcome, list):
                for job, completions in zip(batch, outcome, strict=True):
                    for slot, completion in zip(job.slots, completions, strict=True):
                        yield job, slot, completion
            elif outcome is not None and samples == 1:
                yield batch[0], batch[0].slots[0], outcome
            else:
                pending.extend(_halves(batch))

    def _attempt(self, batch: list[_GenerationJob], config: GenerationConfig) -> list[list[Completion]] | Failure:
        import torch

        samples, columns = _size(batch)
        self.budget.begin()
        try:
            completions = self._generate(batch, config)
        except (ValueError, RuntimeError, MemoryError) as error:
            out_of_memory = is_out_of_memory(error)
            what = f"out of memory with {samples} samples" if out_of_memory else "generation failed"
            failure = Failure(f"{what}: {_cause(error)}")
        else:
            self.budget.fitted(samples, columns)
            return completions
        # Outside of the except block, where the traceback no longer holds the failed batch's tensors.
        if out_of_memory:
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            self.budget.ran_out(samples, columns)
        return failure

    def _generate(self, batch: list[_GenerationJob], config: GenerationConfig) -> list[list[Completion]]:
        import torch

        from barista_bench.models.local import decoding

        tokenizer, tags = self.encoder.tokenizer, self.reader.tags
        samples = [job for job in batch for _ in job.seeds]
        shared = len(samples) > len(batch) and decoding.suits(self.model)
        encoded = self.encoder.batch([job.encoded for job in (batch if shared else samples)])
        inputs = on_device(encoded, self.model.device, self.model.dtype)
        columns = inputs["input_ids"].shape[1]
        padding = (inputs["attention_mask"] != 0).int().argmax(dim=1)
        shared_decoding: dict[str, object] = {}
        if shared:
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
        processors = [
            decoding.NanCheck(),
            *([recorder] if recorder else []),
            *decoding.sampling_processors(config, penalty, padding, seeds),
        ]
        if config.thinking_budget is not None:
            closing = tokenizer(f"{tags[1]}\n", add_special_tokens=False)["input_ids"]
            processors.append(decoding.ThinkingBudget(thoughts, config.thinking_budget, closing))
        sequences = self.model.generate(  # type: ignore[operator]
            **inputs,
            max_new_tokens=config.max_new_tokens,
            do_sample=False,  # our processors sample
            num_beams=1,
            use_cache=True,
            cache_implementation="dynamic",
            repetition_penalty=1.0,  # ours penalises, so that log-probabilities are recorded before it
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=sorted(self.reader.end_ids) or None,
            logits_processor=processors,
            stopping_criteria=[stop],
            **shared_decoding,
        )
        generated = sequences[:, columns:]
        scores = recorder.rows(generated) if recorder else [None] * len(samples)
        completions = iter(
            self.reader.read(
                Generated(
                    tokens=tokens,
                    opened=job.encoded.opens_thinking,
                    stopped=stop.lengths[row],
                    prompt_tokens=job.encoded.prompt_tokens,
                    rows=len(samples),
                    scores=scores[row],
                ),
                config.stop,
            )
            for row, (job, tokens) in enumerate(zip(samples, generated.tolist(), strict=True))
        )
        return [[next(completions) for _ in job.seeds] for job in batch]


def _special_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """All tokens that are no text. `all_special_ids` leaves out those without a role, such as `<|im_end|>` here."""
    added = (token_id for token_id, token in tokenizer.added_tokens_decoder.items() if token.special)
    return frozenset(tokenizer.all_special_ids) | frozenset(added)


def _end_ids(generation: DecodingConfig, tokenizer_end: int | None) -> frozenset[int]:
    """The tokens that end an answer: the checkpoint's generation settings, else the tokenizer's."""
    declared = generation.eos_token_id
    if declared is None:
        return frozenset(() if tokenizer_end is None else (tokenizer_end,))
    return frozenset(declared if isinstance(declared, list) else [declared])


_EncodedBatch = list[tuple[Waiting, _GenerationJob | Failure]]


def _size(batch: list[_GenerationJob]) -> tuple[int, int]:
    """Samples of a batch, and the prompt tokens that each of them is padded to."""
    return sum(len(job.slots) for job in batch), max(job.encoded.prompt_tokens for job in batch)


def _halves(batch: list[_GenerationJob]) -> list[list[_GenerationJob]]:
    """Two smaller batches, the first of them last (it is taken first); one job is cut by its samples."""
    if len(batch) > 1:
        middle = (len(batch) + 1) // 2
        return [batch[middle:], batch[:middle]]
    job, middle = batch[0], (len(batch[0].slots) + 1) // 2
    first = replace(job, slots=job.slots[:middle], seeds=job.seeds[:middle])
    return [[replace(job, slots=job.slots[middle:], seeds=job.seeds[middle:])], [first]]


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}: {first_line(error)}"
