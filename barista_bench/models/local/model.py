"""Runs any vision-language model that transformers loads, with real batches, seeded samples and separate reasoning.

torch and transformers are imported when a model is loaded, not when this module is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat
from barista_bench.core.settings import check_settings
from barista_bench.errors import ModelError
from barista_bench.files.checkpoints import require_libraries
from barista_bench.models.answers import AnswerReader
from barista_bench.models.base import AnsweredRequest, GenerationConfig, ModelIdentity, NumberedStream, Request
from barista_bench.models.box_formats import box_format_of_checkpoint
from barista_bench.models.local.batching import BatchBudget, CudaMemory, checked_size
from barista_bench.models.local.loading import answer_holder, identity_of, load_checkpoint
from barista_bench.models.settings import TransformersSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

    from barista_bench.models.local.processors import TextProcessor


class TransformersModel(NumberedStream):
    """A local `StreamingModel` that reads text, and images if the checkpoint supports them; make one with `load`.

    The checkpoint's repetition penalty applies (it is part of the identity), unless the run sets a value other than
    1.0. The checkpoint's temperature, top-k and top-p do not apply: the run sets them. Log-probabilities are recorded
    before penalty, temperature, top-k and top-p change them.

    At temperature 0, each request is generated once, and its completion is repeated for every seed. At other
    temperatures, the seeds of a request share one prefill, and each sample depends only on its seed (except for
    rounding in the logits).

    `stream` answers batch by batch. The first batch consists of the first requests. With each batch, more requests are
    taken, up to `window`. The longest requests come next, together with requests of similar length. While a batch is
    generated, a thread prepares the next batch. All finished answers are yielded before another request is taken.

    Args:
        settings: settings for asking the model; the settings for loading are already applied.
        box_format: how the model writes boxes, unless the settings name a format.

    Raises:
        ModelError: the model cannot be prompted (no chat template), is not decoder-only, takes no video, or cannot
            follow a schema.
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
            raise ModelError(f"model {identity.name}: is an encoder-decoder model. Fix: use a decoder")
        self.identity, self.box_format = identity, settings.box_format or box_format
        encoder = PromptEncoder(processor, identity.name, settings, settings.template_kwargs)
        self.reads_text_alone = encoder.reads_text_alone
        reader = AnswerReader.of(encoder.tokenizer, encoder.tags, model.generation_config)
        vocabulary = model.config.get_text_config().vocab_size
        holder = answer_holder(encoder, reader, vocabulary) if settings.structured_output else None
        self._engine = Engine(model, encoder, reader, BatchBudget(settings.batch_size, _memory_of(model)), holder)

    @classmethod
    def load(cls, name: str, **settings: Any) -> TransformersModel:  # noqa: ANN401  (`TransformersSettings` says which)
        """Load a local folder or a Hub id. Weights are read only from safetensors files.

        Args:
            name: path of a folder, or `org/name` on the Hub.
            settings: fields of `TransformersSettings`, which describes each of them.

        Raises:
            ModelError: a library is missing; the checkpoint, adapter or processor does not support a setting; or the
                model does not answer a test question about a picture.
            ConfigError: a setting is unknown, out of range, or contradicts another setting.
        """
        require_libraries()
        table = check_settings(TransformersSettings, settings)
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
        """Limit of prompts generated together.

        If memory runs out, a limit on tokens is learned and batches get smaller.
        """
        return self._engine.budget.most

    @batch_size.setter
    def batch_size(self, most: int) -> None:
        self._engine.budget.most = checked_size(most)

    @property
    def batch_check(self) -> str | None:
        """The result of asking two examples together and separately; None before the first batch of at least two."""
        check = self._engine.batch_check
        return None if check is None else check.finding

    @property
    def window(self) -> int:
        """Number of requests to have at hand: 8 batches, but at most 128 requests, because of their images.

        If one batch has more than 128 requests, it is one batch.
        """
        return self._engine.budget.window

    def _numbered_answers(
        self, requests: Iterable[Request], config: GenerationConfig, *, at_once: bool
    ) -> Iterator[tuple[int, AnsweredRequest]]:
        encoder = self._engine.encoder
        if config.thinking_budget is not None and not encoder.thinks:
            opening, closing = encoder.tags
            raise ModelError(
                f"model {self.identity.name}: thinking_budget is set, but neither its chat template nor its "
                f"vocabulary knows {opening} and {closing}. Fix: leave thinking_budget out, or give think_tags"
            )
        return self._engine.work(requests, config, at_once=at_once)


def _memory_of(model: PreTrainedModel) -> CudaMemory | None:
    """Return the memory of the model's device, if it can be measured; None on a CPU."""
    devices = {parameter.device for parameter in model.parameters()}
    indices = sorted(device.index or 0 for device in devices if device.type == "cuda")
    return CudaMemory(indices) if indices else None
