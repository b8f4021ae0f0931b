"""Resuming, reading, compacting and comparing runs of a million samples, beside what one would write first.

    python perf/sample_log.py [--records 1000000] [--quick]

Two run folders of records of about 1 kB are written to a temporary folder (2.6 GB; every 20th sample failed once
before it was answered). Each step runs in a process of its own: CPU seconds, and peak memory above that of a process
that has only imported the package. Beside it stands `[json.loads(line) for line in file]`, and a set of finished keys
made from it; both must find the same keys. Read the ratios: times less, or memory less, than that.
"""

import argparse
import hashlib
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from barista_bench import __version__
from barista_bench.runs.diff import diff
from barista_bench.runs.log.inputs import INPUTS_FILE, sample_keys
from barista_bench.runs.log.log_reader import LogReader, compact, finished_samples
from barista_bench.runs.log.sample_log import log_files, sample_digest, seal

RANKS = 4
MODEL = {"name": "org/model", "revision": "0" * 40, "settings": {"dtype": "bfloat16"}}
GENERATION = {"temperature": 0.7, "max_new_tokens": 4096}
KEY_OF = sample_keys(MODEL, GENERATION)
DESCRIBED = {
    "barista_bench": __version__,
    "identity": {
        "benchmark": "barista",
        "task": "relations",
        "task_version": 1,
        "split": "all",
        "content_hash": "0" * 64,
        "prompts_hash": "0" * 64,
        "model": MODEL | {"box_format": {"order": "xyxy", "scale": 1000}},
        "generation": GENERATION,
    },
    "runs": 3,
    "data": {"path": "barista", "root": None, "limit": None},
    "prompts": {"version": 1, "system": "", "user": "Which relations hold?", "sha256": "0" * 64},
    "protocol": "release",
    "versions": {},
}
ANSWER = [{"subject": "left hand", "relation": "holding", "object": f"portafilter {n}"} for n in range(8)]


def write_run(folder: Path, count: int, changed_each: int) -> None:
    """A run folder; the first answer and every `changed_each`-th after it are others."""
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(DESCRIBED))
    files = [(folder / f"samples-{rank}.jsonl").open("wb") for rank in range(RANKS)]
    with (folder / INPUTS_FILE).open("wb") as inputs:
        for number in range(0, count, 3):
            record = made_record(number, "")
            inputs.write(line_of({name: record[name] for name in ("example_id", "fingerprint")}))
    for number in range(count):
        record = made_record(number, "changed" if number % changed_each == 0 else "")
        file = files[number // 3 % RANKS]
        if number % 20 == 0:
            file.write(line_of(record | {"status": "infra_error", "text": None, "error": "HTTP 503"}))
        file.write(line_of(record))
    for file in files:
        file.close()


def line_of(content: dict[str, object]) -> bytes:
    return seal(json.dumps(content).encode())


def made_record(number: int, change: str) -> dict[str, object]:
    fingerprint = hashlib.sha256(b"%d" % (number // 3)).hexdigest()
    example_id, run = f"relations:P{number // 3 % 185:03}_kitchen:{number // 3}", number % 3
    return {
        "key": KEY_OF(example_id, fingerprint, run),
        "fingerprint": fingerprint,
        "example_id": example_id,
        "run": run,
        "status": "ok",
        "text": json.dumps([*ANSWER, number, change]),
        "reasoning": None,
        "finish_reason": "stop",
        "error": None,
        "input_tokens": 1800,
        "output_tokens": 160,
        "seconds": 0.31,
        "prompt": fingerprint[::-1],
        "media": fingerprint,
        "batch_size": 8,
        "rank": number // 3 % RANKS,
    }


def plain_lines(folder: Path) -> Iterator[str]:
    for path in log_files(folder):
        with path.open() as file:
            yield from file


def nothing(folder: Path) -> object:
    return folder.name


def naive(folder: Path) -> int:
    records = [json.loads(line) for line in plain_lines(folder)]
    return len({record["key"] for record in records if record["status"] != "infra_error"})


def resume(folder: Path) -> int:
    return len(finished_samples(folder))


def naive_latest(folder: Path) -> int:
    """The last record of each key, as one would hold them for scoring."""
    return len({record["key"]: record for record in map(json.loads, plain_lines(folder))})


def read(folder: Path) -> int:
    with LogReader(folder, keep=True) as reader:
        return sum(record.text is not None for record in reader)


def ask_for_each(folder: Path) -> float:
    """Microseconds to ask whether one sample is finished."""
    finished = finished_samples(folder)
    records = (made_record(number, "") for number in range(min(len(finished), 100_000)))
    asked: list[Any] = [[record[name] for name in ("key", "fingerprint", "example_id", "run")] for record in records]
    begun = time.perf_counter()
    assert all(sample_digest(*sample) in finished for sample in asked)
    return (time.perf_counter() - begun) / len(asked) * 1e6


def compare(folder: Path) -> int:
    return diff(folder, folder.with_name("second")).counts["answer"]


def tidy(folder: Path) -> int:
    return compact(folder).after


def measured(step: Callable[[Path], object], folder: Path) -> tuple[object, float, float]:
    """What a step found, its CPU seconds, and the peak of its process in MiB."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measure, (step, folder))


def _measure(step: Callable[[Path], object], folder: Path) -> tuple[object, float, float]:
    begun = time.process_time()
    result = step(folder)
    seconds = time.process_time() - begun
    return result, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="20,000 records")
    options = parser.parse_args()
    count = 20_000 if options.quick else options.records
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "first"
        write_run(folder, count, changed_each=count + 1)
        write_run(folder.with_name("second"), count, changed_each=10)
        size = sum(path.stat().st_size for path in log_files(folder))
        print(f"{count:,} samples in {RANKS} logs, {size / 2**30:.2f} GiB, {size / count:.0f} bytes a sample\n")
        _, _, base = measured(nothing, folder)
        plain, plain_seconds, plain_peak = measured(naive, folder)
        _, latest_seconds, latest_peak = measured(naive_latest, folder)
        print(f"{'step':34}{'CPU s':>9}{'MiB':>8}{'faster':>9}{'smaller':>9}")
        row("naive: json.loads of every line", plain_seconds, plain_peak - base)
        row("naive: dict of the last records", latest_seconds, latest_peak - base)
        for name, step, expected, beside in (
            ("finished_samples (resume)", resume, count, (plain_seconds, plain_peak)),
            ("LogReader (scoring)", read, count, (latest_seconds, latest_peak)),
            ("diff of two such runs", compare, (count - 1) // 10, (2 * latest_seconds, 2 * latest_peak - base)),
            ("compact", tidy, count, (latest_seconds, latest_peak)),
        ):
            result, seconds, peak = measured(step, folder)
            assert result == expected, (name, result)
            row(name, seconds, peak - base, beside[0] / seconds, (beside[1] - base) / (peak - base))
        assert plain == count
        micros, _, _ = measured(ask_for_each, folder)
        print(f"\none sample looked up: {micros:.1f} microseconds")


def row(name: str, seconds: float, memory: float, faster: float = 1, smaller: float = 1) -> None:
    print(f"{name:34}{seconds:9.2f}{memory:8.0f}{faster:8.1f}x{smaller:8.1f}x")


if __name__ == "__main__":
    main()
