"""Any vision-language model that transformers loads: real batches, seeded samples, reasoning kept apart.

torch and transformers are imported when a model is loaded, never when this module is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat
from barista_bench.errors import ModelError
from barista_bench.files.checkpoints import require_libraries
from barista_bench.models.answers import AnswerReader
from barista_bench.models.base import AnsweredRequest, GenerationConfig, ModelIdentity, NumberedStream, Request
from barista_bench.models.box_formats import box_format_of_checkpoint
from barista_bench.models.local.batching import BatchBudget, CudaMemory, checked_size
from barista_bench.models.local.loading import answer_holder, identity_of, load_checkpoint
from barista_bench.models.settings import TransformersSettings, checked

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

    from barista_bench.models.local.processors import TextProcessor


class TransformersModel(NumberedStream):
    """A local model behind the `StreamingModel` contract: it reads text, and images where it can. See `load`.

    Of the checkpoint's own generation settings its repetition penalty stays in force (it is part of the identity),
    unless the run asks for another one than 1.0. Its temperature and its cuts do not: those are the run's.
    Log-probabilities are the model's own, before penalty, temperature and cuts.

    At temperature 0 a request is generated once and its completion repeated for every seed. Otherwise its seeds share
    one prefill, and each sample depends on its own seed alone (up to rounding in the logits).

    `stream` answers batch by batch. The first batch is made of the first requests; with each batch more are taken, up
    to `window`, and the longest of them come next, together with others of similar length. While a batch is generated,
    a thread prepares the next one. No request is taken before everything that is finished has been handed back.

    Args:
        settings: those that say how the model is asked; the others have been heeded by then.
        box_format: how it writes boxes, where the settings do not say.

    Raises:
        ModelError: the model cannot be prompted (no chat template), is not a decoder alone, takes no video, or cannot
            be held to a schema.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        processor: ProcessorMixin | TextProcessor,
        identity: ModelIdentity,
        settings: TransformersSettings,
        box_format: BoxFormat = DEFAULT_BOX_FORMAT,
    ) -> None:
        from barista_bench.models.local.engine import Engine
        from barista_bench.models.local.inputs import PromptEncoder

        if model.config.is_encoder_decoder:
            raise ModelError(f"model {identity.name}: is an encoder-decoder model. Remedy: use a decoder")
        self.identity, self.box_format = identity, settings.box_format or box_format
        encoder = PromptEncoder(processor, identity.name, settings, settings.template_kwargs)
        self.reads_text_alone = encoder.reads_text_alone
        reader = AnswerReader.of(encoder.tokenizer, encoder.tags, model.generation_config)
        vocabulary = model.config.get_text_config().vocab_size
        holder = answer_holder(encoder, reader, vocabulary) if settings.structured_output else None
        self._engine = Engine(model, encoder, reader, BatchBudget(settings.batch_size, _memory_of(model)), holder)

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
        identity = identity_of(name, model, processor, table)
        loaded = cls(
            model,
            processor,
            identity,
            table,
            table.box_format or box_format_of_checkpoint(name, model.config.model_type),
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

    def _numbered_answers(
        self, requests: Iterable[Request], config: GenerationConfig, *, at_once: bool
    ) -> Iterator[tuple[int, AnsweredRequest]]:
        encoder = self._engine.encoder
        if config.thinking_budget is not None and not encoder.thinks:
            opening, closing = encoder.tags
            raise ModelError(
                f"model {self.identity.name}: thinking_budget is set, but neither its chat template nor its "
                f"vocabulary knows {opening} and {closing}. Remedy: leave thinking_budget out, or give think_tags"
            )
        return self._engine.work(requests, config, at_once=at_once)


def _memory_of(model: PreTrainedModel) -> CudaMemory | None:
    """The measurable memory of the model's device; None on a CPU."""
    devices = {parameter.device for parameter in model.parameters()}
    indices = sorted(device.index or 0 for device in devices if device.type == "cuda")
    return CudaMemory(indices) if indices else None
