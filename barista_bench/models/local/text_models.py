"""Language models that read text alone, asked as vision-language models are: a tokenizer in the place of a processor.

Imports transformers, so it is itself imported only where a model is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from transformers import AutoConfig, AutoTokenizer, PreTrainedConfig
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
)

Message = dict[str, Any]


class TextProcessor:
    """What a processor does for prompts of text; images are refused.

    Args:
        tokenizer: with or without a chat template.
    """

    image_processor: ClassVar[None] = None
    video_processor: ClassVar[None] = None
    model_input_names: ClassVar[list[str]] = ["input_ids", "attention_mask"]

    def __init__(self, tokenizer: Any) -> None:  # noqa: ANN401  (a tokenizer of transformers)
        self.tokenizer = tokenizer
        self.chat_template = tokenizer.chat_template

    def apply_chat_template(
        self,
        conversations: Sequence[Message] | Sequence[Sequence[Message]],
        *,
        processor_kwargs: dict[str, Any] | None = None,
        **settings: Any,  # noqa: ANN401  (of the tokenizer, and variables of the template)
    ) -> Any:  # noqa: ANN401  (a text, or tensors by name)
        """As a processor's. Raises ValueError for an image: the model reads none."""
        one = isinstance(conversations[0], dict)
        several: Any = [conversations] if one else conversations
        written = [[_as_text(message) for message in conversation] for conversation in several]
        chosen = {"chat_template": self.chat_template, **settings, **(processor_kwargs or {})}
        return self.tokenizer.apply_chat_template(written[0] if one else written, **chosen)


def _as_text(message: Message) -> Message:
    """A message whose parts are joined: templates of language models take a text."""
    content = message["content"]
    if isinstance(content, str):
        return message
    if any(part["type"] != "text" for part in content):
        raise ValueError("the model reads text alone, and is given an image")
    return {**message, "content": "".join(part["text"] for part in content)}


def reads_text_alone(name: str, gguf_file: str | None = None, *, revision: str, trust_remote_code: bool) -> bool:
    """Whether transformers has a checkpoint as a language model, and not as one that reads images too.

    Those in GGUF are: it reads no other models from such a file.
    """
    if gguf_file:
        return True
    config: PreTrainedConfig = AutoConfig.from_pretrained(name, revision=revision, trust_remote_code=trust_remote_code)
    if trust_remote_code and "AutoModelForCausalLM" in (brought := getattr(config, "auto_map", None) or {}):
        return "AutoModelForImageTextToText" not in brought and not hasattr(config, "vision_config")
    kind = config.model_type
    return kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES


def text_processor(
    name: str, gguf_file: str | None = None, *, revision: str, trust_remote_code: bool
) -> TextProcessor | None:
    """A checkpoint's tokenizer as a processor; None where the checkpoint reads images too."""
    if not reads_text_alone(name, gguf_file, revision=revision, trust_remote_code=trust_remote_code):
        return None
    chosen = {"gguf_file": gguf_file} if gguf_file else {}
    tokenizer = AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=trust_remote_code, **chosen)
    return TextProcessor(tokenizer)
