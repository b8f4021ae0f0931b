"""The training loop of scripts/train_kitchen.py. It can be resumed, and then gives the same batches."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import torch

WARM_UP = 100
LEAST_RATE = 0.02
"""Learning rate at the end of the cosine, as a fraction of the highest rate."""
SAVE_SECONDS = 240


def learn(
    parts: torch.nn.Module,
    loss: Callable[[int], torch.Tensor],
    *,
    steps: int,
    rate: float,
    state: Path,
    after_step: Callable[[int], None] = lambda step: None,
) -> None:
    """Train with AdamW, a warm-up and a cosine schedule.

    Args:
                parts: the modules to train.
        loss: computes the loss of a step from its number, from 0. All randomness in it comes from this number.
        state: `STATE.pt` holds the weights and the optimizer, so that a killed training can continue. `STATE.json` has
            the learning curve, [step, mean loss of the last 50 steps].
        after_step: called with the number of finished steps.
    """
    matrices = [parameter for parameter in parts.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in parts.parameters() if parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98))
    checkpoint = state.with_suffix(".pt")
    first, history, recent = 0, [], []
    if checkpoint.exists():
        kept = torch.load(checkpoint, weights_only=True)
        parts.load_state_dict(kept["parts"])
        optimizer.load_state_dict(kept["optimizer"])
        first, history, recent = kept["step"], kept["history"], kept["recent"]
    saved = time.monotonic()
    for step in range(first, steps):
        warm = min(1.0, (step + 1) / WARM_UP)
        cosine = (1 + math.cos(math.pi * step / steps)) / 2
        for group in optimizer.param_groups:
            group["lr"] = rate * warm * (LEAST_RATE + (1 - LEAST_RATE) * cosine)
        value = loss(step)
        optimizer.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parts.parameters(), 1.0)
        optimizer.step()
        recent.append(value.item())
        if (step + 1) % 50 == 0:
            history.append([step + 1, round(sum(recent) / len(recent), 4)])
            print(
                f"{state.name} {step + 1}/{steps} loss {history[-1][1]:.4f}, {time.process_time():.0f} CPU s",
                flush=True,
            )
            recent = []
        after_step(step + 1)  # before the state is kept: a training killed in it does it again
        if time.monotonic() - saved > SAVE_SECONDS or step + 1 == steps:
            saved = time.monotonic()
            content = {"parts": parts.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
            torch.save({**content, "history": history, "recent": recent}, checkpoint.with_suffix(".part"))
            checkpoint.with_suffix(".part").rename(checkpoint)
            state.with_suffix(".json").write_text(json.dumps(history))
