"""Why an answer ended is read in the words of any server."""

import pytest

from barista_bench.models.finish_reasons import meaning_of

KNOWN = {
    "finished": ["stop", "STOP", "end_turn", "endturn", "stop_sequence", "eos_token", "COMPLETE", "EOS_TOKEN"],
    "length": ["length", "MAX_TOKENS", "max-tokens", "maxTokens", "model_length", "model_context_window_exceeded"],
    "filtered": [
        *("content_filter", "content-filter", "ContentFilter", "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "SPII"),
        *("PROHIBITED_CONTENT", "IMAGE_SAFETY", "refusal", "guardrail_intervened", "ERROR_TOXIC", "sensitive"),
        *("content_filter: PROHIBITED_CONTENT", "content_filter: RECITATION"),
    ],
    "tool call": ["tool_calls", "tool_use", "pause_turn", "function_call_filter: MALFORMED_FUNCTION_CALL"],
    "broken off": ["abort", "error", "ERROR", "insufficient_system_resource", "network_error", "cancelled"],
}
SPELLED = {
    "finished": [
        *("FinishReason.STOP", "FINISH_REASON_STOP", "<FinishReason.STOP: 1>", "StopReason.END_TURN", " stop\n")
    ],
    "length": ["FinishReason.MAX_TOKENS", "finishReason: MAX_TOKENS", "STOP_REASON_MAX_TOKENS"],
    "filtered": ["FinishReason.SAFETY", "FINISH_REASON_PROHIBITED_CONTENT"],
}


@pytest.mark.parametrize(("meaning", "reasons"), [*KNOWN.items(), *SPELLED.items()])
def test_a_reason_is_known_in_any_case_and_with_any_prefix_and_separators(meaning: str, reasons: list[str]) -> None:
    assert {reason: meaning_of(reason) for reason in reasons} == dict.fromkeys(reasons, meaning)


@pytest.mark.parametrize(
    ("reason", "meaning"),
    [
        ({"type": "stop", "matched": 151645}, "finished"),
        ({"type": "length", "length": 64}, "length"),
        ({"type": "abort", "message": "stop"}, "broken off"),
        ({"reason": "STOP"}, "finished"),
        ({"weather": 1}, None),
        *((reason, None) for reason in (None, "", "weather", "unstoppable", "FINISH_REASON_UNSPECIFIED", "OTHER", 1)),
    ],
)
def test_a_reason_may_be_an_object_and_an_unknown_reason_means_nothing(reason: object, meaning: str | None) -> None:
    assert meaning_of(reason) == meaning
