"""Random replies of servers in current dialects, each with its expected outcome.

A reply is a base (the shape in which one server answers, is cut off or refuses) with changes that servers or gateways
make: another spelling of the finish reason, more or fewer fields, another order.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Made:
    """A reply, and its meaning: the `outcome` is stop, length or refusal.

    `text` is the answer, whole; of a refusal it does not matter. `note` says whether the answer has one.
    """

    dialect: str
    status: int
    body: bytes
    outcome: str
    text: str
    note: bool = False


FINISHED = ("stop", "eos", "eos_token", "end_turn", "stop_sequence", "COMPLETE", "STOP", "completed")
CUT = ("length", "max_tokens", "model_length", "MAX_TOKENS", "max_output_tokens", "model_context_window_exceeded")
FILTERED = (
    *("content_filter", "content_filtered", "refusal", "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "SPII"),
    *("PROHIBITED_CONTENT", "IMAGE_SAFETY", "guardrail_intervened", "sensitive", "content_filter: PROHIBITED_CONTENT"),
)
UNKNOWN = ("zorp", "wrapped_up", "FINISH_REASON_UNSPECIFIED", "17", "OTHER")
TOOLS = ("tool_calls", "function_call", "tool_use", "MALFORMED_FUNCTION_CALL", "pause_turn")
CATEGORIES = ("hate", "self_harm", "sexual", "violence", "jailbreak")
TEXTS = ("B", "(A) the left hand", '{"bboxes": [[1, 2, 3, 4]]}', "Content was filtered: no.", "stop", "ß ☕ \u2028 end")


def spelled(reason: str, rng: random.Random) -> object:
    """The reason as another gateway writes it."""
    words = reason.split("_")
    return rng.choice(
        [
            *[reason] * 3,
            *(reason.upper(), reason.lower(), reason.title()),
            *(f"FinishReason.{reason.upper()}", f"FINISH_REASON_{reason.upper()}", f"StopReason.{reason}"),
            *(reason.replace("_", "-"), reason.replace("_", " ")),
            *(words[0] + "".join(word.title() for word in words[1:]), "".join(word.title() for word in words)),
            *(f"<FinishReason.{reason.upper()}: 1>", f" {reason} ", {"type": reason, "matched": 151645}),
            {"type": reason},
        ]
    )


def usage(rng: random.Random) -> object:
    plain = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
    details = {"completion_tokens_details": {"reasoning_tokens": 3}, "prompt_tokens_details": None}
    return rng.choice([plain, {**plain, **details}, {"input_tokens": 100, "output_tokens": 7}, None, {}, [1], "none"])


def filters(filtered: bool, rng: random.Random) -> Body:
    hit = rng.choice(CATEGORIES) if filtered else None
    return {name: {"filtered": name == hit, "severity": "high" if name == hit else "safe"} for name in CATEGORIES}


def content_of(text: str, rng: random.Random) -> object:
    half = len(text) // 2
    parts = [{"type": "text", "text": text[:half]}, {"type": "text", "text": text[half:], "annotations": []}]
    return rng.choice([text, text, text, parts, [{"type": "text", "text": text}], [text]])


def openai(choice: Body, rng: random.Random) -> Body:
    """A chat completion around one choice."""
    extra = {"refusal": None, "annotations": [], "audio": None, "tool_calls": None, "function_call": None}
    if isinstance(choice.get("message"), dict):
        chosen = {name: value for name, value in extra.items() if rng.random() < 0.5}
        choice = {**choice, "message": {"role": "assistant", **chosen, **choice["message"]}}
    around = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m-1", "system_fingerprint": None}
    reply = {name: value for name, value in around.items() if rng.random() < 0.8}
    return {**reply, "choices": [{"index": 0, "logprobs": None, **choice}], "usage": usage(rng)}


Dialect = Callable[[Body, bool, random.Random], Body]


def azure(choice: Body, refused: bool, rng: random.Random) -> Body:
    results = {"content_filter_results": filters(refused, rng)}
    return {
        **openai({**choice, **results}, rng),
        "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": filters(False, rng)}],
    }


def openrouter(choice: Body, refused: bool, rng: random.Random) -> Body:
    native = {"native_finish_reason": choice.get("finish_reason")} if rng.random() < 0.7 else {}
    if native and refused and isinstance(choice.get("finish_reason"), str) and rng.random() < 0.5:
        choice = {**choice, "finish_reason": rng.choice(["stop", None])}  # only the provider's word tells
    return {**openai({**choice, **native, "error": None}, rng), "provider": "Host"}


def vllm(choice: Body, refused: bool, rng: random.Random) -> Body:
    extra = {"stop_reason": rng.choice([None, 151645, "</answer>"]), "token_ids": None}
    return {**openai({**choice, **extra}, rng), "prompt_logprobs": None, "kv_transfer_params": None}


def sglang(choice: Body, refused: bool, rng: random.Random) -> Body:
    return {
        **openai({**choice, "matched_stop": rng.choice([None, 2, "</s>"])}, rng),
        "metadata": {"weight_version": "1"},
    }


def plain(choice: Body, refused: bool, rng: random.Random) -> Body:
    return openai(choice, rng)


def anthropic(choice: Body, refused: bool, rng: random.Random) -> Body:
    """A message of Anthropic's own, as some gateways pass it on."""
    content = (choice.get("message") or {}).get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    if not isinstance(choice.get("finish_reason"), str) or not choice["finish_reason"]:
        return openai(choice, rng)
    thought = [{"type": "thinking", "thinking": "Hm.", "signature": "x"}] if rng.random() < 0.3 and parts else []
    reply = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": [*thought, *parts]}
    return {**reply, "stop_reason": choice["finish_reason"], "stop_sequence": None, "usage": {"input_tokens": 9}}


def gemini(choice: Body, refused: bool, rng: random.Random) -> Body:
    """A response of Gemini's own, as some gateways pass it on."""
    content = (choice.get("message") or {}).get("content")
    texts = content if isinstance(content, list) else [content] if content else []
    parts = [{"text": part if isinstance(part, str) else part["text"]} for part in texts]
    thought = [{"text": "Hm.", "thought": True}] if parts and rng.random() < 0.3 else []
    candidate: Body = {"content": {"role": "model", "parts": [*thought, *parts]}} if parts else {}
    counts = {"promptTokenCount": 100, "candidatesTokenCount": 7, "totalTokenCount": 107}
    return {
        "candidates": [{**candidate, "finishReason": choice.get("finish_reason"), "index": 0, "safetyRatings": []}],
        "usageMetadata": counts,
        "modelVersion": "gemini-1",
    }


DIALECTS: Mapping[str, Dialect] = {
    "openai": plain,
    "azure": azure,
    "gemini through OpenAI's form": plain,
    "anthropic through OpenAI's form": plain,
    "openrouter": openrouter,
    "vllm": vllm,
    "sglang": sglang,
    "anthropic": anthropic,
    "gemini": gemini,
}


def answered(rng: random.Random) -> Made:
    """A whole answer, or one that was cut off."""
    name, text = rng.choice(list(DIALECTS)), rng.choice(TEXTS)
    kind = rng.choice(["finished"] * 4 + ["cut", "cut", "unknown", "tools", "none"])
    words = {"finished": FINISHED, "cut": CUT, "unknown": UNKNOWN, "tools": TOOLS, "none": ("",)}[kind]
    reason: object = spelled(rng.choice(words), rng) if kind in ("finished", "cut", "tools") else rng.choice(words)
    if kind == "none":
        reason = rng.choice([None, ""])
    message: Body = {"content": content_of(text, rng)}
    if rng.random() < 0.2:
        message[rng.choice(["reasoning_content", "reasoning"])] = "Let me look."
    choice: Body = {"message": message, "finish_reason": reason}
    if kind == "none" and rng.random() < 0.5:
        del choice["finish_reason"]
    if rng.random() < 0.1:
        choice["logprobs"] = rng.choice([{"content": "odd"}, [], {"content": [{"token": 5}]}, {"tokens": ["B"]}])
    body = DIALECTS[name](choice, False, rng)
    return Made(
        name, 200, encoded(body, rng), "length" if kind == "cut" else "stop", text, kind in ("unknown", "tools")
    )


def filtered(rng: random.Random) -> Made:
    """A choice that a filter, or the model, has refused: with part of an answer, without one, or without a message."""
    name = rng.choice(list(DIALECTS))
    reason = rng.choice(FILTERED)
    choice: Body = {"finish_reason": reason if ":" in reason else spelled(reason, rng)}
    message = rng.choice(["missing", None, {}, {"content": None}, {"content": ""}, {"content": "The cu"}, "refusal"])
    if message == "refusal":
        choice["message"] = {"content": None, "refusal": "I can't help with that."}
        choice["finish_reason"] = rng.choice(["stop", choice["finish_reason"]])
        name = "openai"
    elif message != "missing":
        choice["message"] = message
    body = DIALECTS[name](choice, True, rng)
    return Made(name, 200, encoded(body, rng), "refusal", "")


def blocked(rng: random.Random) -> Made:
    """A prompt that a filter stopped: there are no choices."""
    empty: Body = rng.choice([{"choices": []}, {"choices": None}, {}])
    results = [{"prompt_index": 0, "content_filter_results": filters(True, rng)}]
    why = rng.choice(["SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "OTHER", "IMAGE_SAFETY"])
    name, evidence = rng.choice(
        [
            ("azure", {"prompt_filter_results": results}),
            ("azure", {"prompt_filter_results": [{"prompt_index": 0}]}),
            ("gemini", {"promptFeedback": {"blockReason": why, "safetyRatings": []}}),
        ]
    )
    body = {"id": "", "object": "chat.completion", "model": "m-1", **empty, **evidence, "usage": usage(rng)}
    return Made(name, 200, encoded(body, rng), "refusal", "")


def declined(rng: random.Random) -> Made:
    """An error of a content policy, with its HTTP status or within a reply."""
    azure_says = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": filters(True, rng)}
    moderated = {"reasons": ["violence"], "flagged_input": "Where...", "provider_name": "Host"}
    name, status, error = rng.choice(
        [
            ("azure", 400, {"message": azure_says, "code": "content_filter", "status": 400, "innererror": inner}),
            ("azure", 400, {"message": azure_says, "code": "400", "type": None}),
            (
                "azure",
                400,
                {"message": "no", "code": "bad", "innererror": {"content_filter_result": filters(True, rng)}},
            ),
            ("openai", 400, {"message": "Your prompt was flagged as violating our policy.", "code": "invalid_prompt"}),
            ("openai", 400, {"message": "no", "code": "content_policy_violation"}),
            (
                "anthropic",
                400,
                {"type": "invalid_request_error", "message": "Output blocked by content filtering policy"},
            ),
            ("openrouter", 403, {"code": 403, "message": "Input was flagged.", "metadata": moderated}),
            ("xai", 403, {"code": "403", "message": "Content violates usage guidelines. Failed check: SAFETY"}),
            (
                "dashscope",
                400,
                {"code": "data_inspection_failed", "message": "Input may contain inappropriate content."},
            ),
        ]
    )
    where = rng.choice(["status", "status", "body", "choice"])
    if where == "status":
        return Made(name, status, encoded({"error": error, "type": "error"}, rng), "refusal", "")
    if where == "body":
        return Made(name, 200, encoded({"error": {"code": status, **error}}, rng), "refusal", "")
    choice = {"message": rng.choice([None, {"content": None}, {"content": "The cu"}]), "finish_reason": "error"}
    in_choice = openai({**choice, "error": {"code": status, **error}}, rng)
    return Made(name, 200, encoded(in_choice, rng), "refusal", "")


def encoded(body: Body, rng: random.Random) -> bytes:
    """The JSON of a reply, its fields in any order."""
    names = list(body)
    rng.shuffle(names)
    return json.dumps({name: body[name] for name in names}, ensure_ascii=rng.random() < 0.5).encode()


def random_reply(seed: int, number: int) -> Made:
    """The reply of this number in the series of a seed."""
    rng = random.Random(f"{seed}/{number}")
    return rng.choice([answered] * 5 + [filtered, filtered, blocked, declined])(rng)
