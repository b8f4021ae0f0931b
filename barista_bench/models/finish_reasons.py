"""The words with which servers and engines say why an answer ended, and their meanings.

The words come from the documentation and the source code of OpenAI, Azure, Gemini, Anthropic, Bedrock, Cohere, Mistral,
DeepSeek, Zhipu, watsonx, Together, OpenRouter, vLLM, SGLang, TensorRT-LLM, LM Studio and text-generation-inference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

Meaning = Literal["filtered", "broken off", "length", "tool call", "finished"]

_WORDS: Mapping[Meaning, str] = {
    "filtered": """
        content_filter content_filtered content_blocked content_moderation refusal refused safety recitation language
        blocklist prohibited_content spii sensitive image_safety image_prohibited_content image_recitation model_armor
        guardrail guardrails guardrail_intervened error_toxic blocked moderation""",
    "broken off": """
        abort aborted error cancel cancelled canceled user_cancel user_stopped timeout time_limit network_error
        server_error insufficient_system_resource overloaded model_unloaded not_finished failed""",
    "length": """
        length max_length max_token max_tokens max_new_tokens max_output_tokens max_completion_tokens max_tokens_reached
        max_tokens_exceeded max_predicted_tokens_reached token_limit token_limit_reached model_length context_length
        context_length_reached context_length_exceeded model_context_window_exceeded error_limit incomplete repetition
        compaction""",
    "tool call": """
        tool_call tool_calls tool_use function_call function_calls function_call_filter pause_turn
        malformed_function_call malformed_tool_use malformed_tool_call unexpected_tool_call too_many_tool_calls""",
    "finished": """
        stop stopped stop_sequence stop_sequences stop_token stop_word stop_words stop_string_found eos eos_token
        eos_found end end_id end_turn end_of_text complete completed completion finish finished done normal none
        null""",
}
"""Meanings in order of precedence, for reasons that contain several of these words (`content_filter: SAFETY`)."""
_PREFIXES = ("finishreason", "stopreason")
_KEYS = ("type", "reason", "finish_reason", "name", "value")
_MAX_READ = 200  # characters


def _simplify(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


_MEANINGS: Mapping[str, Meaning] = {
    _simplify(word): meaning for meaning, words in _WORDS.items() for word in words.split()
}


def said_reason(reason: object) -> str:
    """Return the reason as text; if the reason is an object, such as `{"type": "stop"}` of SGLang, a field holds it."""
    if isinstance(reason, Mapping):
        reason = next((reason[key] for key in _KEYS if isinstance(reason.get(key), str)), str(dict(reason)))
    return "" if reason is None else str(reason)[:_MAX_READ].strip()


def meaning_of(reason: object) -> Meaning | None:
    """Return the meaning of a reason, ignoring case, prefix and separators; None if the reason is unknown.

    >>> meaning_of("stop"), meaning_of("FinishReason.MAX_TOKENS"), meaning_of("STOP_REASON_END_TURN")
    ('finished', 'length', 'finished')
    >>> meaning_of("content_filter: SAFETY"), meaning_of({"type": "length", "length": 64}), meaning_of("weather")
    ('filtered', 'length', None)
    """
    meanings = set()
    for part in re.split(r"[^\w\s-]+", said_reason(reason)):
        word = _simplify(part)
        prefix = next((prefix for prefix in _PREFIXES if word.startswith(prefix)), "")
        meanings.add(_MEANINGS.get(word) or _MEANINGS.get(word.removeprefix(prefix)))
    return next((meaning for meaning in _WORDS if meaning in meanings), None)
