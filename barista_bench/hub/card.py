"""model-index metadata, merged into a model card: nothing else in the card changes by a byte."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import yaml
from huggingface_hub.repocard import REGEX_YAML_BLOCK

from barista_bench.errors import DataError
from barista_bench.hub.schemas import MAX_FILE, dump_yaml, load_yaml, read_model_index

KEY: Final = "model-index"
IndexResult: TypeAlias = Mapping[str, Any]
"""One result, as `huggingface_hub.model_index_to_eval_results` reads it."""
_ASIDE = re.compile(r"[ \t]*(#.*)?(\r\n|\n|$)")
_LINE_END = re.compile(r"\r\n|\n")


def merge_model_index(text: str, model_name: str, results: Sequence[IndexResult], where: str = "README.md") -> str:
    """The card with `results` in its metadata. Entries for the same dataset and task are replaced, all others stay.

    Args:
        text: of a README.md; may be empty.
        model_name: of the entry, where the card has none yet.
        where: named in errors.

    Raises:
        DataError: the card's metadata cannot be read, or not be changed without changing more of it.
    """
    if len(text) > MAX_FILE:
        raise DataError(f"{where}: has more than {MAX_FILE} characters. Remedy: give a model card")
    header = REGEX_YAML_BLOCK.match(text)
    if header is None:
        block = dump_yaml({KEY: [_entry(model_name, results)]})
        return f"---\n{block}---\n" + (f"\n{text}" if text else "")
    front = header[2]
    before = load_yaml(front, where)
    if not isinstance(before, dict | None):
        raise DataError(f"{where}: its metadata is no mapping. Remedy: write `name: value` between the --- lines")
    index = _merged((before or {}).get(KEY), model_name, results, where)
    newline = "\r\n" if "\r\n" in header[1] else "\n"
    block = _LINE_END.sub(newline, dump_yaml({KEY: index}))
    start, end = _span(front, where)
    changed = _joined(front[:start], block, front[end:], newline)
    after = load_yaml(changed, where)
    if not isinstance(after, dict) or {**after, KEY: None} != {**(before or {}), KEY: None}:
        raise DataError(f"{where}: other metadata refers into {KEY}. Remedy: take the YAML anchors out of it")
    return text[: header.start(2)] + changed + text[header.end(2) :]


def _merged(existing: object, model_name: str, results: Sequence[IndexResult], where: str) -> list[dict[str, Any]]:
    if existing is None:
        return [_entry(model_name, results)]
    index = read_model_index(existing, f"{where}: {KEY}")
    ours = {_identity(result) for result in results}
    kept = [
        {**entry, "results": [result for result in entry["results"] if _identity(result) not in ours]}
        for entry in index
    ]
    kept[0]["results"] += results
    return kept


def _identity(result: object) -> tuple[str, str] | None:
    """Dataset repository and leaderboard of a result; None for one that is not written as ours are."""
    match result:
        case {"dataset": {"type": str(dataset)}, "task": {"name": str(task)}}:
            return dataset, task
        case _:
            return None


def _entry(model_name: str, results: Sequence[IndexResult]) -> dict[str, Any]:
    return {"name": model_name, "results": list(results)}


def _span(front: str, where: str) -> tuple[int, int]:
    """Where `model-index` stands in the metadata: from, to. Both at the end where there is none yet."""
    root = yaml.compose(front, Loader=yaml.SafeLoader)
    if root is None:
        return len(front), len(front)
    if isinstance(root, yaml.MappingNode) and not root.value:
        return 0, len(front)
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        raise DataError(f"{where}: its metadata is in braces. Remedy: write one `name: value` a line")
    # Whole lines: a key may stand behind "? ".
    starts = [key.start_mark.index - key.start_mark.column for key, _ in root.value] + [len(front)]
    numbers = [number for number, (key, _) in enumerate(root.value) if key.value == KEY]
    if len(numbers) > 1:
        raise DataError(f"{where}: {KEY} stands in it twice. Remedy: merge the two")
    if not numbers:
        return len(front), len(front)
    start, end = starts[numbers[0]], starts[numbers[0] + 1]
    # Comments and blank lines before the next key belong to that key.
    lines = front[start:end].splitlines(keepends=True)
    while len(lines) > 1 and _ASIDE.fullmatch(lines[-1]):
        end -= len(lines.pop())
    return start, end


def _joined(head: str, block: str, tail: str, newline: str) -> str:
    """The parts on lines of their own; the text between the --- lines does not end in a line break."""
    if head and not head.endswith("\n"):
        head += newline
    body = head + block + tail.removeprefix(newline)
    return body.removesuffix(newline) if not tail else body
