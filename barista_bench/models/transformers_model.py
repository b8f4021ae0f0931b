"""Any vision-language model that transformers loads: real batches, seeded samples, reasoning kept apart.

torch and transformers are imported when a model is loaded, never when this module is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from barista_bench.errors import ModelError
from barista_bench.models.base import Completion, Failure, GenerationConfig, ModelIdentity, Request
from barista_bench.models.reasoning import split_reasoning
from barista_bench.models.transformers_loading import (
    LoadOptions,
    box_format_of,
    identity_of,
    load_checkpoint,
    require_libraries,
)
from barista_bench.prompt import BoxFormat

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, ProcessorMixin

    from barista_bench.models.transformers_decoding import StopTexts
    from barista_bench.models.transformers_inputs import Encoded

log = logging.getLogger(__name__)

_PROCESSOR_ERRORS = (ValueError, TypeError, RuntimeError, OSError)


@dataclass(frozen=True, slots=True)
class _Job:
    """Samples of one request that are generated together: `index` counts requests, `slots` its seeds."""

    index: int
    slots: tuple[int, ...]
    seeds: tuple[int, ...]
    encoded: Encoded


class TransformersModel:
    """A local vision-language model behind the `Model` contract. Make one with `TransformersModel.load`.

    Args:
        model: the loaded model, on its device.
        processor: its processor, with a chat template.
        identity: what results name.
        box_format: how this model writes boxes.
        batch_size: prompts generated together at the most. Halved for good by an out-of-memory error.
        think_tags: opening and closing tag of this model's reasoning.

    Raises:
        ModelError: the model cannot be prompted (no chat template) or is not a decoder alone.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        processor: ProcessorMixin,
        *,
        identity: ModelIdentity,
        box_format: BoxFormat,
        batch_size: int = 8,
        think_tags: tuple[str, str] = ("<think>", "</think>"),
    ) -> None:
        from barista_bench.models.transformers_inputs import PromptEncoder

        if batch_size < 1:
            raise ValueError(f"batch_size must be 1 or more, got {batch_size}")
        if model.config.is_encoder_decoder:
            raise ModelError(f"model {identity.name}: encoder-decoder models are not supported; use a decoder model")
        self.identity, self.box_format, self.batch_size = identity, box_format, batch_size
        self._model, self._think_tags = model, think_tags
        self._encoder = PromptEncoder(processor, name=identity.name, opening_tag=think_tags[0])
        self._end_ids = _end_ids(model, self._encoder.tokenizer.eos_token_id)
        tags = self._encoder.tokenizer.convert_tokens_to_ids(list(think_tags))
        self._hidden_ids = frozenset(self._encoder.tokenizer.all_special_ids) - frozenset(tags)

    @classmethod
    def load(
        cls,
        name: str,
        *,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "auto",
        attn_implementation: str | None = None,
        trust_remote_code: bool = False,
        batch_size: int = 8,
        box_format: BoxFormat | None = None,
        think_tags: tuple[str, str] = ("<think>", "</think>"),
    ) -> TransformersModel:
        """Load a local folder or a Hub id.

        Args:
            name: path of a folder, or `org/name` on the Hub.
            revision: commit, branch or tag of a Hub id.
            device: `auto` takes a CUDA GPU where there is one; `split` spreads one model over all GPUs.
            dtype: `auto` is the checkpoint's own.
            attn_implementation: e.g. `sdpa`, `flash_attention_2`; None is transformers' choice.
            trust_remote_code: run code that comes with the checkpoint.
            batch_size: prompts generated together at the most.
            box_format: instead of the one of the model's family.
            think_tags: opening and closing tag of the reasoning.

        Raises:
            ModelError: torch or transformers is missing, or the checkpoint cannot be loaded.
        """
        require_libraries()
        options = LoadOptions(revision, device, dtype, attn_implementation, trust_remote_code)
        model, processor = load_checkpoint(name, options)
        return cls(
            model,
            processor,
            identity=identity_of(name, model),
            box_format=box_format or box_format_of(model.config.model_type),
            batch_size=batch_size,
            think_tags=think_tags,
        )

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        """One list a request, in order, with one entry for each of its seeds.

        At temperature 0 a request is generated once and its completion repeated for every seed. Otherwise its
        seeds share one prefill, and each sample depends on its own seed alone (up to rounding in the logits).

        Raises:
            ValueError: a prompt does not place its images exactly once; names the request.
        """
        from barista_bench.models.transformers_inputs import check_images

        for request in requests:
            check_images(request.prompt, request.images, request.request_id)
        answers: list[dict[int, Completion | Failure]] = [{} for _ in requests]
        waiting = self._longest_first(requests)
        while waiting:
            taken, waiting = waiting[: self.batch_size], waiting[self.batch_size :]
            jobs = []
            for index in taken:
                made = self._job(index, requests[index], config)
                if isinstance(made, Failure):
                    answers[index] = dict.fromkeys(range(len(requests[index].seeds)), made)
                else:
                    jobs.append(made)
            for job, slot, answer in self._answer(jobs, config):
                answers[job.index][slot] = answer
        return [_in_order(given, len(r.seeds), config) for given, r in zip(answers, requests, strict=True)]

    def _longest_first(self, requests: Sequence[Request]) -> list[int]:
        """Indices of the requests that want samples. Longest first: memory runs out at once or never."""
        wanted = [index for index, request in enumerate(requests) if request.seeds]
        if len(wanted) <= self.batch_size:
            return wanted
        return sorted(wanted, key=lambda index: -self._encoder.tokens(requests[index]))

    def _job(self, index: int, request: Request, config: GenerationConfig) -> _Job | Failure:
        try:
            encoded = self._encoder.encode(request)
        except _PROCESSOR_ERRORS as error:
            return Failure(f"request {request.request_id}: its prompt cannot be prepared: {_cause(error)}")
        slots = tuple(range(len(request.seeds))) if config.temperature > 0 else (0,)
        return _Job(index, slots, tuple(request.seeds[slot] for slot in slots), encoded)

    def _answer(self, jobs: list[_Job], config: GenerationConfig) -> Iterator[tuple[_Job, int, Completion | Failure]]:
        """Generate, in smaller and smaller batches where a batch fails, down to one sample."""
        pending = [jobs] if jobs else []
        while pending:
            batch = pending.pop()
            made = self._attempt(batch, config)
            if not isinstance(made, Failure):
                for job, completions in zip(batch, made, strict=True):
                    yield from ((job, slot, one) for slot, one in zip(job.slots, completions, strict=True))
            elif len(batch) == 1 and len(batch[0].slots) == 1:
                yield batch[0], batch[0].slots[0], made
            else:
                pending.extend(_halves(batch))

    def _attempt(self, batch: list[_Job], config: GenerationConfig) -> list[list[Completion]] | Failure:
        import torch

        try:
            return self._generate(batch, config)
        except torch.OutOfMemoryError as error:
            failure = Failure(f"out of memory with a batch of {len(batch)}: {_cause(error)}")
            out_of_memory = True
        except (ValueError, RuntimeError) as error:
            failure = Failure(f"generation failed: {_cause(error)}")
            out_of_memory = False
        # Outside of the except block, where the traceback no longer holds the failed batch's tensors.
        if out_of_memory and torch.cuda.is_available():
            torch.cuda.empty_cache()
        if out_of_memory and len(batch) > 1:
            self.batch_size = min(self.batch_size, (len(batch) + 1) // 2)
            log.warning("model %s: %s; going on with %d", self.identity.name, failure.error, self.batch_size)
        return failure

    def _generate(self, batch: list[_Job], config: GenerationConfig) -> list[list[Completion]]:
        import torch

        from barista_bench.models import transformers_decoding as decoding

        inputs = self._on_device(self._encoder.batch([job.encoded for job in batch]))
        seeds = [seed for job in batch for seed in job.seeds]
        rows = torch.tensor([row for row, job in enumerate(batch) for _ in job.seeds], device=self._model.device)
        columns = inputs["input_ids"].shape[1]
        stop = decoding.StopTexts(self._encoder.tokenizer, config.stop, columns, len(rows))
        shared = len(rows) > len(batch)
        sequences = self._model.generate(  # type: ignore[operator]
            **inputs,
            max_new_tokens=config.max_new_tokens,
            do_sample=False,  # our processors sample
            num_beams=1,
            use_cache=True,
            cache_implementation="dynamic",
            pad_token_id=self._encoder.tokenizer.pad_token_id,
            eos_token_id=sorted(self._end_ids) or None,
            logits_processor=decoding.sampling_processors(config.temperature, config.top_p, seeds),
            stopping_criteria=[stop],
            custom_generate=partial(decoding.decode_after_shared_prefill, rows=rows) if shared else None,
        )
        made = iter(enumerate(sequences[:, columns:].tolist()))
        return [[self._completion(job, *next(made), stop, config) for _ in job.seeds] for job in batch]

    def _completion(
        self, job: _Job, row: int, tokens: list[int], stop: StopTexts, config: GenerationConfig
    ) -> Completion:
        """Cut a row's tokens where it ended; behind that stands padding until the longest row was done."""
        ended = next((n for n, token in enumerate(tokens, start=1) if token in self._end_ids), None)
        ends = [n for n in (ended, stop.lengths[row]) if n is not None]
        tokens = tokens[: min(ends, default=len(tokens))]
        visible = [token for token in tokens if token not in self._hidden_ids and token not in self._end_ids]
        text = self._encoder.tokenizer.decode(visible, clean_up_tokenization_spaces=False)
        text = text[: min((at for at in map(text.find, config.stop) if at >= 0), default=len(text))]
        opening = self._think_tags[0] if job.encoded.opens_thinking else ""
        reasoning, answer = split_reasoning(opening + text, self._think_tags)
        return Completion(
            text=answer,
            finish_reason="stop" if ends else "length",
            reasoning=reasoning,
            input_tokens=job.encoded.prompt_tokens,
            output_tokens=len(tokens),
        )

    def _on_device(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Pixels also take the model's number format, as its first layer wants them."""
        device, dtype = self._model.device, self._model.dtype
        return {
            name: value.to(device, dtype) if value.is_floating_point() else value.to(device)
            for name, value in batch.items()
        }


def _halves(batch: list[_Job]) -> list[list[_Job]]:
    """Two smaller batches, the first of them last (it is taken first); one job is cut by its samples."""
    if len(batch) > 1:
        middle = (len(batch) + 1) // 2
        return [batch[middle:], batch[:middle]]
    job, middle = batch[0], (len(batch[0].slots) + 1) // 2
    first = replace(job, slots=job.slots[:middle], seeds=job.seeds[:middle])
    return [[replace(job, slots=job.slots[middle:], seeds=job.seeds[middle:])], [first]]


def _in_order(
    given: dict[int, Completion | Failure], wanted: int, config: GenerationConfig
) -> list[Completion | Failure]:
    """One answer for each seed; greedy decoding has a single one for all of them."""
    return [given[slot if config.temperature > 0 else 0] for slot in range(wanted)]


def _end_ids(model: PreTrainedModel, tokenizer_end: int | None) -> frozenset[int]:
    """The tokens that end an answer: the checkpoint's generation settings, else the tokenizer's."""
    declared = model.generation_config.eos_token_id
    if declared is None:
        return frozenset(() if tokenizer_end is None else (tokenizer_end,))
    return frozenset(declared if isinstance(declared, list) else [declared])


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
