"""Run folders of the released harness (upstream.md 1.3) as run folders of ours: `score` and `report` take them.

A folder holds `predictions.jsonl` and, beside it, `benchmark_examples.jsonl`. Each folder becomes one run of the new
folder; model, provider, task and examples must be the same in all. What the release says of a sample stands:

| the release's record | status here |
|---|---|
| `error` begins with `provider_error: `, or there is no text at all | infra_error, never scored |
| `finish_reason` names a refusal or a safety block | refused |
| `finish_reason` names the token limit | truncated; counts if it can be read all the same |
| `error` begins with `parse_error: ` | parse_error, its truth counts |
| otherwise | ok, or parse_error where our parser cannot read it |

One difference remains: the release counts a provider error as wrong in activity recognition and relation extraction
(upstream.md 1.8 and 1.9), while here it lowers the coverage. How many there are is in the log and in the result.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from barista_bench.atomic_files import replacing_folder
from barista_bench.benchmarks import get_task, task_class
from barista_bench.builders.frozen import write_frozen
from barista_bench.builders.media import file_sha256
from barista_bench.errors import ConfigError
from barista_bench.models import ModelIdentity
from barista_bench.prompt import BoxFormat
from barista_bench.prompt_sets import PromptTexts
from barista_bench.running.keys import digest, sample_key
from barista_bench.running.log import SampleLog, SampleRecord
from barista_bench.running.released_run import (
    PARSE_ERROR,
    PREDICTIONS,
    PROVIDER_ERROR,
    Predicted,
    Source,
    Usage,
    check_same,
    read_source,
)
from barista_bench.running.run_folder import (
    OWN_EXAMPLES,
    log_file,
    refuse_taken,
    run_description,
    sessions_file,
    write_run,
)
from barista_bench.running.shards import Shard
from barista_bench.task import ParseError, ProtocolName, Status, Task

log = logging.getLogger(__name__)

_CUT = ("max_tokens", "max_output_tokens", "length")
_REFUSED = ("safety", "refus", "content_filter", "prohibited", "blocklist", "recitation", "spii")
_ORDERS = {"qwen": "xyxy", "gemini": "yxyx", "gemma": "yxyx", "gpt": "yxyx"}
"""How the release has each family write boxes (upstream.md 1.4)."""


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """What was imported.

    Args:
        folder: the new run folder.
        task: the task's name here.
        runs: folders that were read.
        statuses: samples by status.
        unanswered: examples times runs without any record: they are missing in the coverage.
        kept_failures: samples that the release could not read and our parser could; they stay failures.
        new_failures: samples that the release could read and our parser cannot.
    """

    folder: Path
    task: str
    runs: int
    statuses: Mapping[Status, int]
    unanswered: int
    kept_failures: tuple[str, ...]
    new_failures: tuple[str, ...]


def import_run(
    folders: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    examples: str | Path | None = None,
    root: str | Path | None = None,
    box_format: BoxFormat | None = None,
    benchmark: str = "barista",
    protocol: ProtocolName = "release",
) -> ImportedRun:
    """Make a run folder of ours from one folder of the released harness, or from several as repetitions.

    Args:
        folders: of the released harness, in the order of the runs.
        out: the new folder; must not exist, or be empty.
        examples: the frozen file that was run, where a folder does not hold `benchmark_examples.jsonl`.
        root: the release; needed where the frozen file leaves something out, and to show pictures in reports.
        box_format: how the model was asked to write boxes; None takes the release's convention for its family.
        benchmark: whose run it is.
        protocol: whose rules it is scored by.

    Raises:
        DataError: a file is missing or damaged, a record is of no example, repeats, or is of another task or model;
            names file and line.
        ConfigError: `out` is taken, the folders are not runs of the same thing, or the box format is not known.
    """
    sources = [Path(folders)] if isinstance(folders, str | Path) else [Path(folder) for folder in folders]
    out = Path(out).absolute()
    if not sources:
        raise ConfigError("no folder to import. Remedy: name at least one")
    refuse_taken(out)
    read = [read_source(folder, examples, root, benchmark) for folder in sources]
    first = read[0]
    for other in read[1:]:
        check_same(first, other)
    name = task_class(benchmark, first.predicted[0].task_name).name
    task = get_task(benchmark, name, _prompts(read), protocol=protocol)
    task.refuse_other_protocol(first.examples)
    importer = _Importer(task, first, box_format or family_format(first.model, first.provider))
    with replacing_folder(out) as partial:
        importer.write(partial, read, data=out / OWN_EXAMPLES, root=root)
    return importer.result(out, len(read))


def family_format(model: str, provider: str | None) -> BoxFormat:
    """The order in which the released harness has a family write boxes; the model's name goes before the provider's.

    Raises:
        ConfigError: neither names a family that the release speaks of.

    >>> family_format("Qwen/Qwen3.5-27B", "openai"), family_format("gemini-3-flash", None)
    (BoxFormat(order='xyxy', scale=1000), BoxFormat(order='yxyx', scale=1000))
    """
    for text in (model, provider or ""):
        orders = {order for family, order in _ORDERS.items() if family in text.casefold()}
        if len(orders) == 1:
            return BoxFormat("xyxy" if orders == {"xyxy"} else "yxyx", 1000)
    raise ConfigError(
        f"{model} ({provider}): the release has no box format for it. Remedy: say how it was asked to write boxes "
        "with --box-format, e.g. yxyx/1000"
    )


def _prompts(sources: Sequence[Source]) -> PromptTexts:
    """Stands for the release's own wording, of which only the texts that were sent are known."""
    sent = sorted({one.prompt_text or "" for source in sources for one in source.predicted})
    text = "The released harness asked this in its own words: see prompt_text in its predictions.jsonl."
    return PromptTexts(version=0, system="", user=text, sha256=digest(*sent))


class _Importer:
    """Turns records into samples and writes the run folder."""

    def __init__(self, task: Task, source: Source, boxes: BoxFormat) -> None:
        self.task, self.boxes, self.examples = task, boxes, source.examples
        self.content_hash, self.generation = source.content_hash, source.generation
        settings: dict[str, str | int | float | bool | None] = {"provider": source.provider, "harness": "released"}
        self.model = asdict(ModelIdentity(source.model, settings=settings))
        self.by_id = {example.example_id: example for example in source.examples}
        self.statuses: Counter[Status] = Counter()
        self.kept_failures: list[str] = []
        self.new_failures: list[str] = []

    def write(self, folder: Path, sources: Sequence[Source], *, data: Path, root: str | Path | None) -> None:
        write_frozen(self.examples, folder / OWN_EXAMPLES)
        alone = Shard(0, 1)
        fingerprints = set()
        with SampleLog(log_file(folder, alone)) as samples:
            for run_index, source in enumerate(sources):
                for one in source.predicted:
                    record = self._record(one, run_index)
                    fingerprints.add(record.fingerprint)
                    samples.append(record)
        with sessions_file(folder, alone).open("w", encoding="utf-8") as file:
            for source in sources:
                latency = sum(one.latency_ms or 0.0 for one in source.predicted) / 1000
                # Requests may have run side by side: no seconds of the run, and no rates are made from them.
                file.write(json.dumps({"seconds": {"latency": latency}}) + "\n")
        write_run(folder, self._described(sources, fingerprints, data, root))
        if self.statuses[Status.INFRA_ERROR]:
            log.warning(
                "%d provider errors are not scored; the release counts them as wrong in activity and relations",
                self.statuses[Status.INFRA_ERROR],
            )

    def result(self, folder: Path, runs: int) -> ImportedRun:
        missing = len(self.examples) * runs - self.statuses.total()
        kept, new = tuple(self.kept_failures), tuple(self.new_failures)
        return ImportedRun(folder, self.task.name, runs, dict(self.statuses), missing, kept, new)

    def _described(
        self, sources: Sequence[Source], fingerprints: set[str], data: Path, root: str | Path | None
    ) -> dict[str, Any]:
        """`run.json`, and in it `imported`: what it was made from."""
        described = run_description(
            self.task,
            content_hash=self.content_hash,
            prompts_hash=digest(sorted(fingerprints)),
            model=self.model,
            boxes=self.boxes,
            generation=self.generation,
        )
        return described | {
            "runs": len(sources),
            "data": {"path": str(data), "root": str(Path(root).absolute()) if root else None, "limit": None},
            "imported": [
                {
                    "folder": source.folder.name,
                    "predictions_sha256": file_sha256(source.folder / PREDICTIONS),
                    "thinking_tokens": sum((one.usage and one.usage.thinking_tokens) or 0 for one in source.predicted),
                }
                for source in sources
            ],
        }

    def _record(self, one: Predicted, run_index: int) -> SampleRecord:
        status, error = self._status(one)
        self.statuses[status] += 1
        asked = one.prompt_text or ""
        fingerprint = digest("imported", self.task.benchmark, self.task.name, self.task.version, one.example_id, asked)
        usage = one.usage or Usage()
        infrastructure = status is Status.INFRA_ERROR
        return SampleRecord(
            key=sample_key(one.example_id, fingerprint, self.model, self.generation, run_index),
            fingerprint=fingerprint,
            example_id=one.example_id,
            run=run_index,
            status=status,
            text=None if infrastructure or error == _KEPT else one.raw_text or "",
            finish_reason=one.finish_reason,
            error=f"{one.error} ({error})" if error == _KEPT else error,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            seconds=(one.latency_ms or 0.0) / 1000,
            prompt=digest(asked) if asked else "",
        )

    def _status(self, one: Predicted) -> tuple[Status, str | None]:
        """Status and reason; a reason of `_KEPT` says that the text has to be left out for the verdict to stand."""
        finish, error = (one.finish_reason or "").casefold(), one.error or ""
        if any(word in finish for word in _REFUSED):
            return Status.REFUSED, error or f"finish_reason {one.finish_reason}"
        unread = error.startswith(PARSE_ERROR)
        if error.startswith(PROVIDER_ERROR) or (one.raw_text is None and not unread):
            return Status.INFRA_ERROR, error or "the record holds no text"
        parsed = self.task.parse(one.raw_text or "", self.by_id[one.example_id].inputs, self.boxes)
        cut = any(word in finish for word in _CUT)
        failed = Status.TRUNCATED if cut else Status.PARSE_ERROR
        if unread and not isinstance(parsed, ParseError):
            self.kept_failures.append(one.example_id)
            return failed, _KEPT
        if isinstance(parsed, ParseError):
            if not unread:
                self.new_failures.append(one.example_id)
            return failed, error or parsed.reason
        return (Status.TRUNCATED, f"finish_reason {one.finish_reason}") if cut else (Status.OK, None)


_KEPT = "our parser reads it; the release's verdict stands, so that scores are the release's"
