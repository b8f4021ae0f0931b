"""Any vision-language model that transformers loads: real batches, seeded samples, reasoning kept apart.

torch and transformers are imported when a model is loaded, never when this module is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barista_bench.core.boxes import BoxFormat
from barista_bench.errors import ModelError
from barista_bench.files.checkpoints import require_libraries
from barista_bench.models.answer_schemas import require_holding
from barista_bench.models.answers import THINK_TAGS, AnswerReader, Reasoning
from barista_bench.models.base import (
    Answered,
    Completion,
    Failure,
    FramesAs,
    GenerationConfig,
    ModelIdentity,
    Request,
    video_settings,
)
from barista_bench.models.local.batching import BatchBudget, BatchSize, CudaMemory, checked_size
from barista_bench.models.local.engine import Engine
from barista_bench.models.local.loading import box_format_of_checkpoint, identity_of, load_checkpoint, template_hash
from barista_bench.models.settings import TransformersSettings, checked

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

    from barista_bench.models.local.processors import TextProcessor


class TransformersModel:
    """A local model behind the `StreamingModel` contract: it reads text, and images where it can. See `load`.

    Of the checkpoint's own generation settings its repetition penalty stays in force (it is part of the identity),
    unless the run asks for another one than 1.0. Its temperature and its cuts do not: those are the run's.
    Log-probabilities are the model's own, before penalty, temperature and cuts.

    Args:
        batch_size: prompts generated together at the most; `auto` finds out (see `BatchBudget`).
        think_tags: opening and closing tag of this model's reasoning; None for `<think>` and `</think>`, if it has
            any. Tags that are given are taken at their word.
        structured_output: answers are held to the schemas of their requests, thoughts before them are not.

    Raises:
        ModelError: the model cannot be prompted (no chat template), is not a decoder alone, takes no video, or cannot
            be held to a schema.
        ConfigError: the batch size is below 1.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        processor: ProcessorMixin | TextProcessor,
        *,
        identity: ModelIdentity,
        box_format: BoxFormat,
        batch_size: BatchSize = 8,
        think_tags: tuple[str, str] | None = None,
        frames_as: FramesAs = "images",
        video_fps: float | None = None,
        template_kwargs: Mapping[str, object] | None = None,
        structured_output: bool = False,
        reasoning: Reasoning | None = None,
    ) -> None:
        from barista_bench.models.local.inputs import PromptEncoder

        if model.config.is_encoder_decoder:
            raise ModelError(f"model {identity.name}: is an encoder-decoder model. Remedy: use a decoder")
        tags = think_tags or THINK_TAGS
        self.identity, self.box_format = identity, box_format
        encoder = PromptEncoder(
            processor,
            name=identity.name,
            opening_tag=tags[0],
            frames_as=frames_as,
            video_fps=video_fps,
            template_kwargs=template_kwargs,
            reasoning=reasoning,
        )
        self.reads_text_alone = encoder.reads_text_alone
        self._thinks = think_tags is not None or encoder.knows(tags)
        reader = AnswerReader.of(encoder.tokenizer, tags, model.generation_config)
        holder = None
        if structured_output:
            require_holding(f"model {identity.name}: structured_output")
            from barista_bench.models.local.holding import AnswerHolder

            vocabulary = model.config.get_text_config().vocab_size
            known = tags if self._thinks else None
            holder = AnswerHolder(identity.name, encoder.tokenizer, vocabulary, reader.end_ids, known)
        budget = BatchBudget(batch_size, _memory_of(model))
        self._engine = Engine(identity.name, model, encoder, reader, budget, holder)

    @classmethod
    def load(cls, name: str, **settings: Any) -> TransformersModel:  # noqa: ANN401  (`TransformersSettings` says which)
        """Load a local folder or a Hub id. Weights are read from safetensors files only.

        Args:
            name: path of a folder, or `org/name` on the Hub.
            settings: fields of `TransformersSettings`, which describes each of them.

        Raises:
            ModelError: a library is missing, checkpoint, adapter or processor cannot do what is asked, or the model
                does not answer a first question about a picture.
            ConfigError: a setting is unknown, out of range, or contradicts another one.
        """
        require_libraries()
        table = checked(TransformersSettings, settings)
        model, processor = load_checkpoint(name, table)
        box_format = table.box_format
        identity = identity_of(
            name,
            model,
            table,
            image_processor=type(processor.image_processor).__name__ if processor.image_processor else None,
            chat_template=template_hash(processor),
            **video_settings(table.frames_as, table.video_fps, processor.model_input_names),
            template_kwargs=json.dumps(table.template_kwargs, sort_keys=True) if table.template_kwargs else None,
            **table.identity_of_answers(),
        )
        loaded = cls(
            model,
            processor,
            identity=identity,
            box_format=box_format or box_format_of_checkpoint(name, model.config.model_type),
            batch_size=table.batch_size,
            think_tags=table.tags,
            frames_as=table.frames_as,
            video_fps=table.video_fps,
            template_kwargs=table.template_kwargs,
            structured_output=table.structured_output,
            reasoning=table.reasoning,
        )
        loaded._engine.check_start()
        return loaded

    @property
    def batch_size(self) -> int:
        """Prompts generated together at the most. Memory may allow fewer, which is learned by their tokens."""
        return self._engine.budget.most

    @batch_size.setter
    def batch_size(self, most: int) -> None:
        self._engine.budget.most = checked_size(most)

    @property
    def batch_check(self) -> str | None:
        """The result of asking two examples together and alone; None before the first batch of two or more."""
        check = self._engine.batch_check
        return None if check is None else check.finding

    @property
    def window(self) -> int:
        """Requests wanted at hand: 8 batches, but not more than 128 requests (or one batch), for their images."""
        return self._engine.budget.window

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        """One list a request, in order, with one entry for each of its seeds.

        At temperature 0 a request is generated once and its completion repeated for every seed. Otherwise its
        seeds share one prefill, and each sample depends on its own seed alone (up to rounding in the logits).

        Raises:
            ValueError: a prompt does not place its images exactly once; names the request.
            ModelError: the model cannot keep to a setting.
        """
        self._check(config)
        for request in requests:
            request.check_images()
        answers = {n: answered.completions for n, answered in self._engine.work(requests, config, at_once=True)}
        return [answers[number] for number in range(len(requests))]

    def stream(self, requests: Iterable[Request], config: GenerationConfig) -> Iterator[Answered]:
        """Every request once, batch by batch as they are finished.

        The first batch is made of the first requests; with each batch more are taken, up to `window`, and the
        longest of them come next, together with others of similar length. While a batch is generated, a thread
        prepares the next one. No request is taken before everything that is finished has been handed back.

        Raises:
            ValueError, ModelError: as `generate`.
        """
        self._check(config)
        for _, answered in self._engine.work(requests, config, at_once=False):
            yield answered

    def _check(self, config: GenerationConfig) -> None:
        """Raise ModelError for a setting that this model cannot keep to."""
        if config.thinking_budget is not None and not self._thinks:
            opening, closing = self._engine.reader.tags
            raise ModelError(
                f"model {self.identity.name}: thinking_budget is set, but neither its chat template nor its "
                f"vocabulary knows {opening} and {closing}. Remedy: leave thinking_budget out, or give think_tags"
            )


def _memory_of(model: PreTrainedModel) -> CudaMemory | None:
    """The measurable memory of the model's device; None on a CPU."""
    devices = {parameter.device for parameter in model.parameters()}
    indices = sorted(device.index or 0 for device in devices if device.type == "cuda")
    return CudaMemory(indices) if indices else None
