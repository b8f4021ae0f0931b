"""Run folders with chosen differences, written without running anything."""

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec

from barista_bench.core.status import Status
from barista_bench.runs.log.inputs import digest, sample_keys
from barista_bench.runs.log.sample_log import SampleRecord, seal
from tests.runs.made_logs import write_lines

DESCRIBED: dict[str, Any] = {
    "barista_bench": "0.2.0",
    "repetitions": 3,
    "data": {"path": "data", "root": None, "limit": None},
    "prompts": {"version": 1, "system": "", "user": "Which?", "sha256": "0" * 64, "wording": "ours v1"},
    "protocol": "release",
    "versions": {"numpy": "2.4.6", "torch": "2.11"},
    "identity": {
        "benchmark": "barista",
        "task": "relations",
        "task_version": 1,
        "split": "all",
        "content_hash": "c" * 64,
        "prompts_hash": None,
        "generation": {"temperature": 0.7, "stop": []},
        "model": {"name": "m", "revision": None, "settings": {}, "box_format": {"order": "xyxy", "scale": 1000}},
    },
}


def sample(
    example: str, repetition: int = 0, text: str | None = "yes", status: Status = Status.OK, **more: Any
) -> SampleRecord:
    prompt, media = more.pop("prompt", digest("prompt", example)), more.pop("media", digest("media", example))
    fingerprint = more.pop("fingerprint", digest(1, prompt, media))
    return SampleRecord("", fingerprint, example, repetition, status, text, prompt=prompt, media=media, **more)


SAMPLES = [sample(f"e{number:02}", run) for number in range(8) for run in range(3)]


def make(
    folder: Path,
    samples: Sequence[SampleRecord] = SAMPLES,
    change: Callable[[dict[str, Any]], object] = lambda described: None,
    scores: Sequence[dict[str, Any]] | None = None,
) -> Path:
    """A run folder; keys are made as a run makes them."""
    described = deepcopy(DESCRIBED)
    change(described)
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(described))
    model = {name: value for name, value in described["identity"]["model"].items() if name != "box_format"}
    generation = described["identity"]["generation"]
    key_of = sample_keys(model, generation)
    keyed = [
        msgspec.structs.replace(s, key=s.key or key_of(s.example_id, s.fingerprint, s.repetition)) for s in samples
    ]
    asked = {s.example_id: s.fingerprint for s in reversed(keyed)}
    lines = (json.dumps({"example_id": name, "fingerprint": asked[name]}) for name in sorted(asked))
    (folder / "inputs.jsonl").write_bytes(b"".join(seal(line.encode()) for line in lines))
    write_lines(folder / "samples.jsonl", keyed[::2])
    write_lines(folder / "samples-0.jsonl", keyed[1::2])
    if scores is not None:
        (folder / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in scores))
    return folder


def scored(values: dict[tuple[str, int], dict[str, float | None] | None]) -> list[dict[str, Any]]:
    return [
        {"example_id": example, "repetition": run, "video_id": "v", "status": "ok", "scores": scores}
        for (example, run), scores in values.items()
    ]


ASKED = ("prompt", "media", "fingerprint")


def changed(position: int, **values: Any) -> list[SampleRecord]:
    """SAMPLES with other values in one of them; all repetitions of an example have the same question."""
    asked = {name: value for name, value in values.items() if name in ASKED}
    old = SAMPLES[position]
    return [
        sample(record.example_id, record.repetition, **(values if record is old else asked))
        if record.example_id == old.example_id
        else record
        for record in SAMPLES
    ]
