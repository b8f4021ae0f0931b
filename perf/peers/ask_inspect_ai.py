"""Runs in inspect_ai's environment: asks the prompts by its `eval`.

Its own provider of local models takes no images. This one batches what it is asked at the same time: `max_connections`
samples are in flight, and each batch goes through the processor and `generate` in a thread.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch
from inspect_ai import Task, eval, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    ContentImage,
    ContentText,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    modelapi,
)
from inspect_ai.solver import generate
from PIL import Image
from transformers import AutoModelForImageTextToText, AutoProcessor

Waiting = tuple[list[dict[str, Any]], "asyncio.Future[str]"]
_PATIENCE = 0.2  # seconds that an incomplete batch waits for another sample


@modelapi(name="batched")
def batched() -> type[ModelAPI]:
    return Batched


class Batched(ModelAPI):
    """A vision-language model of transformers; a batch is `max_connections` samples."""

    def __init__(self, model_name: str, config: GenerateConfig, **_: object) -> None:
        super().__init__(model_name, config=config)
        self._model = AutoModelForImageTextToText.from_pretrained(model_name, dtype=torch.float32)
        self._processor = AutoProcessor.from_pretrained(model_name)
        self._processor.tokenizer.padding_side = "left"
        self._waiting: list[Waiting] = []
        self._turn = asyncio.Lock()

    async def generate(
        self, input: list[ChatMessage], tools: object, tool_choice: object, config: GenerateConfig
    ) -> ModelOutput:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(([_message(message) for message in input], future))
        if len(self._waiting) < (config.max_connections or 1):
            await asyncio.wait([future], timeout=_PATIENCE)
        async with self._turn:
            if not future.done():
                batch, self._waiting = self._waiting, []
                answers = await asyncio.to_thread(self._answers, [messages for messages, _ in batch], config)
                for (_, asked), answer in zip(batch, answers, strict=True):
                    asked.set_result(answer)
        return ModelOutput.from_content(self.model_name, future.result())

    def _answers(self, conversations: list[list[dict[str, Any]]], config: GenerateConfig) -> list[str]:
        texts = [self._processor.apply_chat_template(each, add_generation_prompt=True) for each in conversations]
        images = [p["image"] for each in conversations for m in each for p in m["content"] if p["type"] == "image"]
        inputs = self._processor(text=texts, images=images, padding=True, return_tensors="pt")
        heat = config.temperature or None
        with torch.inference_mode():
            tokens = self._model.generate(
                **inputs, do_sample=bool(heat), temperature=heat, max_new_tokens=config.max_tokens
            )
        generated = tokens[:, inputs["input_ids"].shape[1] :]
        return self._processor.batch_decode(generated, skip_special_tokens=True, clean_up_tokenization_spaces=False)


def _message(message: ChatMessage) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for part in [ContentText(text=message.content)] if isinstance(message.content, str) else message.content:
        if isinstance(part, ContentImage):
            picture = io.BytesIO(base64.b64decode(part.image.partition(",")[2]))
            parts.append({"type": "image", "image": Image.open(picture).convert("RGB")})
        elif isinstance(part, ContentText):
            parts.append({"type": "text", "text": part.text})
    return {"role": message.role, "content": parts}


def _sample(row: dict[str, Any]) -> Sample:
    system, user = json.loads(row["messages"])
    urls = ["data:image/jpeg;base64," + base64.b64encode(image["bytes"]).decode() for image in row["images"]]
    content = [
        ContentImage(image=urls[part["image"]]) if part["type"] == "image" else ContentText(text=part["text"])
        for part in user["content"]
    ]
    return Sample(
        input=[ChatMessageSystem(content=system["content"][0]["text"]), ChatMessageUser(content=content)], id=row["id"]
    )


@task
def prompts(file: str) -> Task:
    return Task(dataset=MemoryDataset([_sample(row) for row in pq.read_table(file).to_pylist()]), solver=generate())


def main(job: dict[str, Any]) -> None:
    rows = job["batch"] * job["repetitions"]
    [log] = eval(
        prompts(job["prompts"]),
        model=f"batched/{job['model']}",
        epochs=job["repetitions"],
        limit=job["count"],
        temperature=job["temperature"],
        max_tokens=job["new_tokens"],
        max_connections=rows,
        max_samples=rows,
        seed=0,
        display="none",
        log_dir=str(Path(job["out"]) / "logs"),
    )
    if log.status != "success":
        raise SystemExit(f"inspect_ai: {log.error}")
    answers: dict[str, list[str]] = {}
    for sample in sorted(log.samples or [], key=lambda sample: sample.epoch):
        answers.setdefault(str(sample.id), []).append(sample.output.completion)
    (Path(job["out"]) / "answers.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
