"""The prompts as a task of lmms-eval: what its YAML names. lmms-eval imports it; nothing of ours is there."""

from __future__ import annotations

import json
from typing import Any

Row = dict[str, Any]


def doc_to_messages(doc: Row, lmms_eval_specific_kwargs: object = None) -> list[Row]:
    messages: list[Row] = json.loads(doc["messages"])
    for part in (part for message in messages for part in message["content"] if part["type"] == "image"):
        part["url"] = doc["images"][part.pop("image")].convert("RGB")
    return messages


def doc_to_visual(doc: Row) -> list[object]:
    return [image.convert("RGB") for image in doc["images"]]


def doc_to_text(doc: Row, lmms_eval_specific_kwargs: object = None) -> str:
    return str(doc["messages"])


def process_results(doc: Row, results: list[str]) -> dict[str, int]:
    return {"answered": len(results)}
