"""Runs one engine, vLLM's `LLM`, in this process; prompts arrive at stdin, and answers leave at stdout.

Run this file by its path with the interpreter of an environment that has vllm. That environment may lack this package,
so the file imports nothing from it.

Each message is one line of JSON. The first input is `{"arguments": {...}}` with the arguments of `LLM`; the reply is
`{"ready": {...}}`. Prompts follow. Each prompt is a line (`id`, `prompt`, `sizes`, `videos`, `adds_special_tokens`,
`seeds`, `sampling`, `grammar`),
followed by the bytes of its images: RGB, row by row, one image per (width, height) in `sizes`. Each entry of `videos`
has the numbers of its `images`, and its `metadata`. All other images are shown as images. `grammar` constrains the
answer, or is null. An answer is `{"id", "prompt_tokens", "samples"}` or `{"id", "error"}`; `{}` between answers is a
sign of life. The process ends when stdin ends.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
import traceback
from typing import Any, BinaryIO

_SIGN_OF_LIFE = 5.0  # seconds between two signs of life
_LEAST = -9999.0  # replaces a log-probability of -infinity, which JSON cannot represent
_PROBE = {"id": -1, "prompt": "probe", "images": [], "videos": [], "adds_special_tokens": True, "seeds": [0]}


def main() -> None:
    """Answer prompts until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the output of libraries must not mix with the answers
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # starts faster and uses a third of the memory
    sys.excepthook = _end
    prompts: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    stdin = sys.stdin.buffer
    arguments = json.loads(stdin.readline())["arguments"]
    threading.Thread(target=_read_prompts, args=(stdin, prompts), daemon=True).start()
    _Engine(arguments, answers).work(prompts)


def _end(*error: Any) -> None:  # noqa: ANN401  (type, value and traceback)
    """Print the error and exit at once: a normal exit would wait for the thread that reads stdin."""
    # Torch would intercept text written to sys.stderr.
    os.write(2, "".join(traceback.format_exception(*error)).encode())
    os._exit(1)


def _read_prompts(stdin: BinaryIO, prompts: queue.SimpleQueue[dict[str, Any]]) -> None:
    """Put prompts into the queue, in a thread, so that the sender need not wait for a step of the engine."""
    from PIL import Image

    while line := stdin.readline():
        prompt = json.loads(line)
        sizes = [(width, height) for width, height in prompt["sizes"]]
        prompt["images"] = [Image.frombytes("RGB", size, stdin.read(3 * size[0] * size[1])) for size in sizes]
        prompts.put(prompt)
    os._exit(0)  # the reader of our answers has ended, and a step may take long


class _Engine:
    def __init__(self, arguments: dict[str, Any], answers: Any) -> None:  # noqa: ANN401  (a text stream)
        import vllm
        from vllm.platforms import current_platform

        if current_platform.is_cpu():  # on a CPU, vLLM 0.32 crashes if a prompt with a seed is read in two steps
            arguments.setdefault("enable_chunked_prefill", False)
        self._vllm, self._answers, self._last_sign = vllm, answers, time.monotonic()
        self._llm = vllm.LLM(**arguments)
        # Maps the engine's id of a sample to its prompt and place.
        self._samples: dict[str, tuple[dict[str, Any], int]] = {}
        # Some failures appear only at the first step. The process then ends here, before any prompt.
        self._add(_PROBE | {"sampling": {"max_tokens": 1}, "grammar": None})
        while self._llm.llm_engine.has_unfinished_requests():
            self._llm.llm_engine.step()
        self._samples.clear()
        self._say(ready={"vllm": vllm.__version__, "dtype": str(self._llm.llm_engine.model_config.dtype)})

    def work(self, prompts: queue.SimpleQueue[dict[str, Any]]) -> None:
        """Take prompts as they arrive, run steps with the prompts at hand, and write each complete answer."""
        while True:
            while not self._samples or not prompts.empty():
                self._take(prompts.get())
                self._show_life()
            for output in self._llm.llm_engine.step():
                if output.finished:
                    self._finish(output)
            self._show_life()

    def _take(self, prompt: dict[str, Any]) -> None:
        from vllm.exceptions import VLLMError

        try:
            self._add(prompt)
        except (VLLMError, ValueError, TypeError, LookupError, AttributeError, RuntimeError, OSError) as error:
            # vLLM and the checkpoint's processor raise these errors for a prompt that they do not support. Only this
            # prompt fails.
            self._say(id=prompt["id"], error=f"{type(error).__name__}: {error}")

    def _add(self, prompt: dict[str, Any]) -> None:
        prompt["samples"] = [None] * len(prompt["seeds"])
        text: dict[str, Any] = {"prompt": prompt["prompt"]}
        if prompt["images"]:
            text["multi_modal_data"] = _media(prompt["images"], prompt["videos"])
        sampling = prompt["sampling"]
        if prompt["grammar"] is not None:
            from vllm.sampling_params import StructuredOutputsParams

            sampling = {**sampling, "structured_outputs": StructuredOutputsParams(grammar=prompt["grammar"])}
        ids = self._llm.enqueue(
            [text] * len(prompt["seeds"]),
            [self._vllm.SamplingParams(**sampling, seed=seed) for seed in prompt["seeds"]],
            use_tqdm=False,
            tokenization_kwargs={"add_special_tokens": prompt["adds_special_tokens"]},
        )
        self._samples.update({_strip_ending(name): (prompt, sample) for sample, name in enumerate(ids)})

    def _finish(self, output: Any) -> None:  # noqa: ANN401  (a `RequestOutput`)
        prompt, sample = self._samples.pop(_strip_ending(output.request_id))
        answer = output.outputs[0]
        prompt["samples"][sample] = {
            "tokens": list(answer.token_ids),
            "ended": answer.finish_reason,
            "cached": output.num_cached_tokens,
            "met_stop_text": isinstance(answer.stop_reason, str),
            "logprobs": answer.logprobs and list(map(_scores, answer.token_ids, answer.logprobs)),
        }
        if None not in prompt["samples"]:
            tokens = len(output.prompt_token_ids)
            self._say(id=prompt["id"], prompt_tokens=tokens, samples=prompt["samples"])

    def _show_life(self) -> None:
        if time.monotonic() - self._last_sign > _SIGN_OF_LIFE:
            self._say()

    def _say(self, **message: object) -> None:
        self._answers.write(json.dumps(message) + "\n")
        self._answers.flush()
        self._last_sign = time.monotonic()


def _media(images: list[Any], videos: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return the media for vLLM: images, and videos as arrays of frames with the times in their metadata."""
    import numpy as np

    in_videos = {number for video in videos for number in video["images"]}
    media: dict[str, list[Any]] = {"image": [image for n, image in enumerate(images) if n not in in_videos]}
    media["video"] = [
        (np.stack([np.asarray(images[number]) for number in video["images"]]), video["metadata"]) for video in videos
    ]
    return {kind: items for kind, items in media.items() if items}


def _strip_ending(name: str) -> str:
    return name.partition("-")[0]


def _scores(token: int, logprobs: dict[int, Any]) -> list[Any]:
    """Return the token's log-probability, then the ids and the log-probabilities of the likeliest tokens."""
    values = {key: max(entry.logprob, _LEAST) for key, entry in logprobs.items()}
    return [values[token], list(values), list(values.values())]


if __name__ == "__main__":
    main()
