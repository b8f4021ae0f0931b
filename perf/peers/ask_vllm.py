"""Runs in vLLM's environment: asks the prompts by its offline `LLM`, all at once, `batch` of them in a step."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from PIL import Image
from vllm import LLM, SamplingParams


def conversation(row: dict[str, Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = json.loads(row["messages"])
    for part in (part for message in messages for part in message["content"] if part["type"] == "image"):
        picture = Image.open(io.BytesIO(row["images"][part.pop("image")]["bytes"])).convert("RGB")
        part.update(type="image_pil", image_pil=picture)
    return messages


def main(job: dict[str, Any]) -> None:
    rows = pq.read_table(job["prompts"]).to_pylist()[: job["count"]]
    llm = LLM(
        job["model"],
        dtype="float32",
        enforce_eager=True,
        max_num_seqs=job["batch"] * job["repetitions"],
        max_model_len=4096,
        limit_mm_per_prompt={"image": 8, "video": 0},
        seed=0,
    )
    sampling = SamplingParams(
        n=job["repetitions"],
        temperature=job["temperature"],
        max_tokens=job["new_tokens"],
        seed=0,
        skip_special_tokens=True,
    )
    outputs = llm.chat([conversation(row) for row in rows], sampling, use_tqdm=False)
    answers = {row["id"]: [each.text for each in output.outputs] for row, output in zip(rows, outputs, strict=True)}
    (Path(job["out"]) / "answers.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
