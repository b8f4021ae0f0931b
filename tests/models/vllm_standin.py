"""Replaces `worker.py`: its messages without vLLM. The text of a prompt decides what happens to it.

`crash`, `garbage`, `hang`: the process does so, unless `once` stands there too and another process has done it before
(in the folder `STANDIN`). `stranger`: it answers what was not asked. `slow`: it takes its time, and shows life.
`refused`: it cannot be taken. Otherwise the tokens of a sample are those of `answer` in the environment, then its seed,
the sum of its images' bytes, and their number.
"""

import json
import os
import sys
import time
from pathlib import Path


def say(**message):
    print(json.dumps(message), flush=True)


def happens(what, text):
    """Whether this prompt is to do that now."""
    if what not in text:
        return False
    mark = Path(os.environ["STANDIN"], what)
    if "once" in text and mark.exists():
        return False
    mark.touch()
    return True


def main():
    first = json.loads(sys.stdin.buffer.readline())["arguments"]
    Path(os.environ["STANDIN"], f"life-{os.getpid()}").touch()
    if failure := os.environ.get("STANDIN_FAILS"):
        sys.exit(f"RuntimeError: the first cause\n  more lines\nValueError: {failure}")
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
    say(ready={"vllm": "0.0", "dtype": "torch.float32", "gpus": gpus, "arguments": json.dumps(first)})
    while line := sys.stdin.buffer.readline():
        prompt = json.loads(line)
        images = [sys.stdin.buffer.read(3 * width * height) for width, height in prompt["sizes"]]
        text = prompt["prompt"]
        if happens("crash", text):
            sys.exit("RuntimeError: out of luck")
        if happens("garbage", text):
            print("INFO: somebody else's line", flush=True)
        if happens("hang", text):
            time.sleep(600)
        if happens("slow", text):
            for _ in range(90):
                time.sleep(0.1)
                say()
        if "refused" in text:
            say(id=prompt["id"], error="ValueError: too long\nfor this model")
            continue
        answer = json.loads(os.environ.get("STANDIN_ANSWER", "[]"))
        seen = [sum(map(sum, images)) % 256, len(images)]
        stopped = bool(prompt["sampling"].get("stop"))
        each = [[*answer, seed % 256, *seen] for seed in prompt["seeds"]]
        samples = [{"tokens": tokens, "ended": "length", "met_stop_text": stopped, "cached": 8} for tokens in each]
        say(id=10**6 if happens("stranger", text) else prompt["id"], prompt_tokens=len(text), samples=samples)


if __name__ == "__main__":
    main()
