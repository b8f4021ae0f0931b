"""Any vision-language model that transformers loads: real batches, seeded samples, reasoning kept apart.

torch and transformers are imported when a model is loaded, never when this module is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from barista_bench.core.prompt import BoxFormat
from barista_bench.errors import ModelError
from barista_bench.files.checkpoints import require_libraries
from barista_bench.models.base import Answered, Completion, Failure, GenerationConfig, ModelIdentity, Request
from barista_bench.models.checks import check_images
from barista_bench.models.local.answers import AnswerReader
from barista_bench.models.local.batching import BatchBudget, BatchSize, CudaMemory, checked_size
from barista_bench.models.local.engine import Engine
from barista_bench.models.local.loading import (
    LoadOptions,
    Quantization,
    box_format_of,
    identity_of,
    load_checkpoint,
    template_hash,
)
from barista_bench.models.local.settings import check_generation, check_load
from barista_bench.models.reasoning import THINK_TAGS

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, ProcessorMixin

    from barista_bench.models.local.inputs import FramesAs


class TransformersModel:
    """A local vision-language model behind the `StreamingModel` contract. Make one with `TransformersModel.load`.

    Of the checkpoint's own generation settings its repetition penalty stays in force (it is part of the identity),
    unless the run asks for another one than 1.0. Its temperature and its cuts do not: the run's settings say these.
    Log-probabilities are the model's own, before penalty, temperature and cuts.

    Args:
        model: the loaded model, on its device.
        processor: its processor, with a chat template.
        identity: what results name.
        box_format: how this model writes boxes.
        batch_size: prompts generated together at the most; `auto` finds out (see `BatchBudget`).
        think_tags: opening and closing tag of this model's reasoning; None for `<think>` and `</think>`, if it has
            any. Tags that are given are taken at their word.
        frames_as: `video` makes one video of images that follow each other.
        video_fps: frames a second that the processor is told of such videos.

    Raises:
        ModelError: the model cannot be prompted (no chat template), is not a decoder alone, or takes no video.
        ConfigError: the batch size is below 1.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        processor: ProcessorMixin,
        *,
        identity: ModelIdentity,
        box_format: BoxFormat,
        batch_size: BatchSize = 8,
        think_tags: tuple[str, str] | None = None,
        frames_as: FramesAs = "images",
        video_fps: float = 2.0,
    ) -> None:
        from barista_bench.models.local.inputs import PromptEncoder

        if model.config.is_encoder_decoder:
            raise ModelError(f"model {identity.name}: encoder-decoder models are not supported; use a decoder model")
        tags = think_tags or THINK_TAGS
        self.identity, self.box_format = identity, box_format
        encoder = PromptEncoder(
            processor, name=identity.name, opening_tag=tags[0], frames_as=frames_as, video_fps=video_fps
        )
        self._thinks = think_tags is not None or encoder.knows(tags)
        hidden = _special_ids(encoder.tokenizer) - frozenset(encoder.tokenizer.convert_tokens_to_ids(list(tags)))
        ends = _end_ids(model, encoder.tokenizer.eos_token_id)
        reader = AnswerReader(encoder.tokenizer, tags, ends, hidden)
        self._engine = Engine(model, encoder, reader, BatchBudget(batch_size, _memory_of(model)))

    @classmethod
    def load(
        cls,
        name: str,
        *,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "auto",
        attn_implementation: str | None = None,
        quantization: Quantization | None = None,
        adapter: str | None = None,
        adapter_revision: str | None = None,
        trust_remote_code: bool = False,
        batch_size: BatchSize = 8,
        min_pixels: int | None = None,
        max_pixels: int | None = None,
        frames_as: FramesAs = "images",
        video_fps: float | None = None,
        box_format: BoxFormat | None = None,
        think_tags: tuple[str, str] | None = None,
    ) -> TransformersModel:
        """Load a local folder or a Hub id. Weights are read from safetensors files only.

        Args:
            name: path of a folder, or `org/name` on the Hub.
            revision: commit, branch or tag of a Hub id.
            device: `auto` takes a CUDA GPU where there is one; `split` spreads one model over all GPUs.
            dtype: `auto` is the checkpoint's own.
            attn_implementation: e.g. `sdpa`, `flash_attention_2`; None is transformers' choice.
            quantization: `4bit` (NF4) or `8bit` (LLM.int8) by bitsandbytes, on a CUDA GPU.
            adapter: folder or Hub id of a LoRA adapter, which needs peft.
            adapter_revision: commit, branch or tag of the adapter's Hub id.
            trust_remote_code: run code that comes with the checkpoint.
            batch_size: prompts generated together at the most, or `auto`.
            min_pixels: smallest image in pixels that the processor makes, where it has such a limit (Qwen).
            max_pixels: largest one, likewise.
            frames_as: `video` makes one native video of images that follow each other.
            video_fps: frames a second that the processor is told of such videos; None for 2.
            box_format: instead of the one of the model's family.
            think_tags: opening and closing tag of the reasoning; None for `<think>` and `</think>`, if it has any.

        Raises:
            ModelError: a library is missing, or checkpoint, adapter or processor cannot do what is asked.
            ConfigError: a setting is unknown, out of range, or contradicts another one.
        """
        require_libraries()
        check_load(frames_as, video_fps, think_tags, min_pixels, max_pixels)
        BatchBudget(batch_size)  # refuses a wrong one before the weights are read
        options = LoadOptions(
            revision,
            device,
            dtype,
            attn_implementation,
            trust_remote_code,
            quantization,
            adapter,
            adapter_revision,
            min_pixels,
            max_pixels,
        )
        model, processor = load_checkpoint(name, options)
        fps = (video_fps or 2.0) if frames_as == "video" else None
        identity = identity_of(
            name,
            model,
            options,
            chat_template=template_hash(processor),
            frames_as=frames_as if frames_as == "video" else None,
            video_fps=fps,
            box_format=f"{box_format.order}/{box_format.scale}" if box_format else None,
            think_tags=" ".join(think_tags) if think_tags else None,
        )
        return cls(
            model,
            processor,
            identity=identity,
            box_format=box_format or box_format_of(model.config.model_type),
            batch_size=batch_size,
            think_tags=think_tags,
            frames_as=frames_as,
            video_fps=fps or 2.0,
        )

    @property
    def batch_size(self) -> int:
        """Prompts generated together at the most. Memory may allow fewer, which is learned by their tokens."""
        return self._engine.budget.most

    @batch_size.setter
    def batch_size(self, most: int) -> None:
        self._engine.budget.most = checked_size(most)

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
            ConfigError: a setting is out of range.
            ModelError: the model cannot keep to a setting.
        """
        self._check(config)
        for request in requests:
            check_images(request)
        done = {one.index: one.completions for one in self._engine.work(requests, config, at_once=True)}
        return [done[index] for index in range(len(requests))]

    def stream(self, requests: Iterable[Request], config: GenerationConfig) -> Iterator[Answered]:
        """Every request once, batch by batch as they are finished.

        The first batch is made of the first requests; with each batch more are taken, up to `window`, and the
        longest of them come next, together with others of similar length. While a batch is generated, a thread
        prepares the next one. No request is taken before everything that is finished has been handed back.

        Raises:
            ValueError, ConfigError, ModelError: as `generate`.
        """
        self._check(config)
        for one in self._engine.work(requests, config, at_once=False):
            yield Answered(one.request, one.completions, one.seconds)

    def _check(self, config: GenerationConfig) -> None:
        """Refuse settings that are out of range, or that this model cannot keep to."""
        check_generation(config)
        if config.thinking_budget is not None and not self._thinks:
            opening, closing = self._engine.reader.tags
            raise ModelError(
                f"model {self.identity.name}: thinking_budget is set, but neither its chat template nor its "
                f"vocabulary knows {opening} and {closing}. Remedy: leave thinking_budget out, or give think_tags"
            )


def _memory_of(model: PreTrainedModel) -> CudaMemory | None:
    """What can be measured of the memory that holds the model; None on a CPU."""
    devices = {parameter.device for parameter in model.parameters()}
    indices = sorted(device.index or 0 for device in devices if device.type == "cuda")
    return CudaMemory(indices) if indices else None


def _special_ids(tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """All tokens that are no text. `all_special_ids` leaves out those without a role, such as `<|im_end|>` here."""
    added = (place for place, token in tokenizer.added_tokens_decoder.items() if token.special)
    return frozenset(tokenizer.all_special_ids) | frozenset(added)


def _end_ids(model: PreTrainedModel, tokenizer_end: int | None) -> frozenset[int]:
    """The tokens that end an answer: the checkpoint's generation settings, else the tokenizer's."""
    declared = model.generation_config.eos_token_id
    if declared is None:
        return frozenset(() if tokenizer_end is None else (tokenizer_end,))
    return frozenset(declared if isinstance(declared, list) else [declared])
