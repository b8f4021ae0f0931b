"""Turns requests into the tensors of a batch, with the chat template, the processor and left padding.

This module imports torch and transformers, so import it only when a model is loaded.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Literal

import torch
from jinja2 import TemplateError
from PIL import Image
from transformers import ProcessorMixin

from barista_bench.core.frame_times import FrameTimes, VideoClip, parts_with_clips
from barista_bench.core.prompt import ImagePart, TextPart
from barista_bench.errors import ModelError
from barista_bench.models.answers import OTHER_TAGS, THINK_TAGS
from barista_bench.models.base import Request, knows_one_rate
from barista_bench.models.local.processors import TextProcessor, template_variables
from barista_bench.models.settings import GeneratorSettings

log = logging.getLogger(__name__)

SystemStyle = Literal["parts", "text", "folded"]
Message = dict[str, object]

# Errors that a processor, chat template or model raises for inputs it does not support. The example then fails.
MODEL_ERRORS = (
    *(ValueError, TypeError, LookupError, AttributeError, AssertionError, RuntimeError, OSError, MemoryError),
    TemplateError,
)

# Outputs of processors that can be concatenated: rows of tokens, and values of each image or patch. Other outputs may
# count images or patches over a whole batch, so only a processor that sees the whole batch can make them.
_PER_TOKEN = frozenset({"input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids", "moe_mm_token_type_ids"})
_PER_IMAGE = frozenset(
    {"pixel_values", "high_res_pixel_values", "pixel_values_videos", "pixel_mask", "pixel_attention_mask"}
    | {"image_sizes", "target_sizes", "image_grid_thw", "video_grid_thw", "image_merge_sizes", "image_position_ids"}
    | {"second_per_grid_ts", "video_second_per_grid", "batch_num_images"}
)

_PROBE = "barista-system-probe"
# These processors take the images of a batch in one list instead of one list per prompt.
_FLAT_IMAGES = frozenset({"GotOcr2Processor"})
_SIZE_STEP = 32  # pixels; sizes are rounded up to a multiple of this, so that few sizes must be measured in tokens


@dataclass(frozen=True, slots=True)
class Encoded:
    """The processor's output for one request: a tensor's first dimension is one row, or one entry per image.

    Args:
        messages: the conversation, for processors whose outputs cannot be joined later.
        times: the times of the frames, for each video.
        tensors: the model's inputs; no padding.
        opens_thinking: the template has already written the opening think tag.
    """

    messages: list[Message]
    tensors: dict[str, torch.Tensor]
    opens_thinking: bool
    times: tuple[FrameTimes, ...] = ()

    @property
    def prompt_tokens(self) -> int:
        return self.tensors["input_ids"].shape[1]


class PromptEncoder:
    """Writes prompts in the form of one model.

    `encode` may run in a thread while other methods run. A tokenizer may not be used by two threads, so `tokenizer` is
    separate from the processor's tokenizer.

    Args:
        processor: has a tokenizer and a chat template. Its tokenizer is set to pad on the left.
        name: the model's name, for error messages.
        settings: how the model receives frames, reasoning and think tags.
        template_kwargs: further variables of the chat template.

    Attributes:
        thinks: True if the tags were given, or if the model has common think tags.

    Raises:
        ModelError: the processor has no chat template, cannot pad, or does not take a requested video; or its template
            does not read `template_kwargs`, or has no switch for `reasoning`.
    """

    def __init__(
        self,
        processor: ProcessorMixin | TextProcessor,
        name: str,
        settings: GeneratorSettings,
        template_kwargs: Mapping[str, object] | None = None,
    ) -> None:
        self.processor: Any = processor
        self.tokenizer = processor.tokenizer
        self.name, self._video_fps, self._warned_of_rate = name, settings.video_fps, False
        self.takes_video = settings.frames_as == "video"
        self._input_names = frozenset(getattr(processor, "model_input_names", ()))
        self.knows_one_rate = knows_one_rate(self._input_names)
        self.reads_text_alone = isinstance(processor, TextProcessor)
        self._lock = Lock()
        self._image_tokens: dict[tuple[int, int], int] = {}
        if self.takes_video and getattr(processor, "video_processor", None) is None:
            raise ModelError(f"model {name}: its processor takes no video. Fix: use frames_as='images'")
        # Only the processor's own template is applied, and some processors do not read it from the checkpoint.
        processor.chat_template = processor.chat_template or self.tokenizer.chat_template
        if not processor.chat_template:
            remedy = "use its instruction-tuned version, or give chat_template"
            raise ModelError(f"model {name}: it has no chat template. Fix: {remedy}")
        variables = template_kwargs or {}
        self._template_kwargs = template_variables(name, processor.chat_template, variables, settings.reasoning)
        if self.tokenizer.pad_token_id is None:
            if self.tokenizer.eos_token is None:
                raise ModelError(f"model {name}: its tokenizer has no padding and no end token. Fix: set pad_token")
            self.tokenizer.pad_token = self.tokenizer.eos_token
        # With padding on the right a model continues the padding instead of the prompt.
        self.tokenizer.padding_side = "left"
        self.tokenizer = copy.deepcopy(self.tokenizer)
        self.system_style = self._find_system_style()
        templates, vocabulary = f"{processor.chat_template}{self.tokenizer.chat_template}", self.tokenizer.get_vocab()
        pairs = (THINK_TAGS, *OTHER_TAGS)
        known = (pair for pair in pairs if all(tag in vocabulary or tag in templates for tag in pair))
        tags = settings.tags or next(known, None)
        self.tags, self.thinks = tags or THINK_TAGS, tags is not None

    def parts(self, request: Request) -> list[TextPart | ImagePart | VideoClip]:
        """Return the parts of the user turn; images that the model receives as a video are joined to clips.

        Raises:
            ValueError: the times of a video's frames are unknown.
        """
        return (
            parts_with_clips(request.prompt, request.times, self._video_fps)
            if self.takes_video
            else list(request.prompt.joined_parts)
        )

    def messages(self, request: Request) -> list[Message]:
        """Return the conversation: a system message, if one exists and the template takes it, and all turns."""
        content = [_content(part, request) for part in self.parts(request)]
        system = request.prompt.system
        earlier = [(role, [_text(text)]) for role, text in request.prompt.text_turns]
        turns = [*earlier, ("user", content)]
        if system and self.system_style == "folded":
            turns.pop(0)
            turns[0][1].insert(0, _text(f"{system}\n\n"))
        messages: list[Message] = [{"role": role, "content": parts} for role, parts in turns]
        if system and self.system_style == "text":
            messages[0]["content"] = system
        return messages

    def encode(self, request: Request) -> Encoded:
        """Return tensors of one request.

        Raises:
            MODEL_ERRORS: the processor does not support these inputs.
        """
        messages = self.messages(request)
        times = tuple(part.times for part in self.parts(request) if isinstance(part, VideoClip))
        # A processor with a single rate cannot tell the model that the frames are unevenly spaced.
        uneven = next((each for each in times if not each.is_even), None)
        if self.knows_one_rate and uneven is not None and not self._warned_of_rate:
            self._warned_of_rate = True
            problem = "its processor tells one rate a video, and frames lie at uneven distances"
            log.warning(
                "model %s: %s: each video has its own mean rate (here %.3g a second)", self.name, problem, uneven.rate
            )
        with self._lock:
            tensors = self._apply([messages], times)
            prompt_end = self.processor.tokenizer.decode(tensors["input_ids"][0, -32:], skip_special_tokens=False)
        return Encoded(messages, tensors, prompt_end.rstrip().endswith(self.tags[0]), times)

    def text(self, request: Request) -> tuple[str, bool, bool]:
        """Write a request with the chat template, for callers that tokenize the text; each image has one place in it.

        The second value is True if the tokenizer must add its special tokens (such as a beginning of text), because the
        template wrote none. The third is True if the template has already written the opening think tag.

        Raises:
            MODEL_ERRORS: the chat template does not support these inputs.
        """
        text = self._template_text(self.messages(request), add_generation_prompt=True)
        begin = self.tokenizer.bos_token
        # `apply_chat_template` follows these rules when it tokenizes its text: a tokenizer adds no special tokens, and
        # a processor adds the special tokens that the text lacks.
        adds_special_tokens = not self.reads_text_alone and not (begin is not None and text.startswith(begin))
        return text, adds_special_tokens, text.rstrip().endswith(self.tags[0])

    def drops_images(self, request: Request, encoded: Encoded) -> bool:
        """Return True if the prompt gives the same tensors with and without its images."""
        texts = tuple(part for part in request.prompt.parts if isinstance(part, TextPart))
        try:
            bare = self.encode(replace(request, prompt=replace(request.prompt, parts=texts), images=()))
        except MODEL_ERRORS:
            return False  # the processor takes no prompt without images
        return bare.tensors.keys() == encoded.tensors.keys() and bare.prompt_tokens == encoded.prompt_tokens

    def tokens(self, request: Request) -> int:
        """Return the approximate number of visual and text tokens of a request, for sorting.

        The images are not processed.
        """
        try:
            prompt_text = self._template_text(self.messages(request))
        except MODEL_ERRORS:
            return 0  # the error is raised when the request is encoded
        text_tokens = len(self.tokenizer(prompt_text, add_special_tokens=False)["input_ids"])
        return text_tokens + sum(self._tokens_of_image(image.size) for image in request.images)

    def batch(self, encoded: Sequence[Encoded]) -> dict[str, torch.Tensor]:
        """Return one left-padded batch: tensors of shape (requests, columns), and the images of all requests in order.

        If the tensors of the requests cannot be joined, the processor encodes all requests once more, together. For
        example, some processors pad images to the largest image of a batch, or count over all images.
        """
        batch = _stack([each.tensors for each in encoded], self.tokenizer.pad_token_id)
        if batch is None:
            with self._lock:
                times = tuple(each for request in encoded for each in request.times)
                batch = self._apply([each.messages for each in encoded], times)
        if not bool((batch["attention_mask"][:, -1] == 1).all()):
            raise AssertionError("a batch is padded on the right")
        return batch

    def _apply(self, conversations: list[list[Message]], times: Sequence[FrameTimes] = ()) -> dict[str, torch.Tensor]:
        """Return tensors of conversations; `times` has the frame times of their videos, in order."""
        options: dict[str, object] = {"padding": len(conversations) > 1}
        if "mm_token_type_ids" in self._input_names:
            options["return_mm_token_type_ids"] = True  # some processors return these ids only if asked
        if times:
            # Use all frames unchanged: the task has chosen which frames to show.
            metadata = [each.metadata() for each in times]
            # Some processors write times into the prompt, but do not request the times from their video processor.
            options |= {"do_sample_frames": False, "video_metadata": metadata, "return_metadata": True}
            if "video_second_per_grid" in self._input_names:
                options["fps"] = self._shared_rate(times)
        if type(self.processor).__name__ in _FLAT_IMAGES:
            texts = [self._template_text(conversation, add_generation_prompt=True) for conversation in conversations]
            contents = [message["content"] for each in conversations for message in each]
            parts = [part for content in contents if isinstance(content, list) for part in content]
            images = [part["image"] for part in parts if part["type"] == "image"]
            return dict(self.processor(text=texts, images=images or None, return_tensors="pt", **options))
        inputs = self.processor.apply_chat_template(
            conversations,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs=options,
            **self._template_kwargs,
        )
        return {name: value for name, value in inputs.items() if value is not None and name != "video_metadata"}

    def _shared_rate(self, times: Sequence[FrameTimes]) -> float:
        """Return one rate for all videos of a call, for processors that ignore the videos' metadata."""
        rates = {each.rate for each in times}
        if len(rates) > 1:
            listed = ", ".join(f"{rate:.3g}" for rate in sorted(rates))
            raise ValueError(
                f"its videos have {listed} frames a second, and the processor takes one rate for all videos. "
                "Fix: say video_fps, or use frames_as=images"
            )
        return rates.pop()

    def _template_text(self, messages: list[Message], *, add_generation_prompt: bool = False) -> str:
        return self.processor.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=add_generation_prompt, **self._template_kwargs
        )

    def _tokens_of_image(self, size: tuple[int, int]) -> int:
        width, height = (-(-side // _SIZE_STEP) * _SIZE_STEP for side in size)
        if (width, height) not in self._image_tokens:
            blank = Image.new("RGB", (width, height))
            try:
                with self._lock:
                    inputs = self._apply([[{"role": "user", "content": [{"type": "image", "image": blank}]}]])
                self._image_tokens[width, height] = inputs["input_ids"].shape[1]
            except MODEL_ERRORS:
                self._image_tokens[width, height] = 0  # the request itself will report the image's fault
        return self._image_tokens[width, height]

    def _find_system_style(self) -> SystemStyle:
        """Test how the template handles a system message: some templates refuse it, and some drop it silently."""
        user: Message = {"role": "user", "content": [_text("question")]}
        styles: dict[SystemStyle, object] = {"parts": [_text(_PROBE)], "text": _PROBE}
        for style, content in styles.items():
            try:
                rendered = self._template_text([{"role": "system", "content": content}, user])
            except MODEL_ERRORS:
                continue
            # If 'type' is there, the template printed the list itself.
            if _PROBE in rendered and "'type'" not in rendered:
                return style
        return "folded"


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


def _content(part: TextPart | ImagePart | VideoClip, request: Request) -> Message:
    if isinstance(part, TextPart):
        return _text(part.text)
    if isinstance(part, ImagePart):
        return {"type": "image", "image": request.images[part.index]}
    return {"type": "video", "video": [request.images[index] for index in part.images]}


def _stack(items: Sequence[dict[str, torch.Tensor]], pad: int) -> dict[str, torch.Tensor] | None:
    """Stack the tensors of requests into a batch; return None if this may not be safe."""
    if len(items) == 1:
        return items[0]
    columns = max(item["input_ids"].shape[1] for item in items)
    batch: dict[str, torch.Tensor] = {}
    for name in dict.fromkeys(name for item in items for name in item):
        values = [item.get(name) for item in items]
        present = [value for value in values if value is not None]
        if name in _PER_TOKEN:
            fill = pad if name == "input_ids" else 0
            batch[name] = torch.cat([_pad_left(v, i, columns, fill) for v, i in zip(values, items, strict=True)])
        elif name in _PER_IMAGE and len({value.shape[1:] for value in present}) == 1:
            batch[name] = torch.cat(present)
        else:
            return None
    return batch


def _pad_left(value: torch.Tensor | None, item: dict[str, torch.Tensor], columns: int, fill: int) -> torch.Tensor:
    """Return a row of tokens, shape (1, n), padded with `fill` on the left up to `columns`.

    If `value` is None, the row has only `fill`.
    """
    row = torch.full_like(item["input_ids"], fill) if value is None else value
    return torch.nn.functional.pad(row, (columns - row.shape[1], 0), value=fill)
