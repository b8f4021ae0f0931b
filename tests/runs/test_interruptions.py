"""Runs that are killed, resumed, and spread over processes: nothing lost, nothing asked twice, results the same."""

import json
import random
import signal
import subprocess
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from barista_bench.errors import ConfigError
from barista_bench.runs.log.sample_log import log_files, read_records
from barista_bench.runs.log_reader import finished_samples
from barista_bench.runs.score.scoring import score
from tests.one_run import run
from tests.processes import PROCESSES
from tests.runs.made_logs import read_folder
from tests.runs.slow_run import slow_run

SAMPLES = 24 * 3


def start(
    dataset: Path, out: Path, asked: Path, pause: float, batch_size: int, workers: int = 2, world: int = 1
) -> list[BaseProcess]:
    started = []
    for rank in range(world):
        process = PROCESSES.Process(
            target=slow_run, args=(dataset, out, asked, pause, batch_size, workers, rank, world), daemon=True
        )
        process.start()
        started.append(process)
    return started


def ended(processes: list[BaseProcess]) -> list[int | None]:
    """Their exit codes; a signal's is negative."""
    for process in processes:
        process.join(300)
    return [process.exitcode for process in processes]


def comparable(folder: Path) -> dict[str, object]:
    """Results without what may differ between equal runs."""
    data = json.loads((folder / "results.json").read_text())
    del data["timing"]
    return data


def lines_in(folder: Path) -> int:
    return sum(log.read_bytes().count(b"\n") for log in log_files(folder))


def finished(folder: Path) -> set[str]:
    return {record.key for record in read_folder(folder) if record.is_finished} if log_files(folder) else set()


@pytest.mark.full
def test_a_run_killed_twenty_times_with_changed_settings_ends_as_if_never_killed(dataset: Path, tmp_path: Path) -> None:
    rng = random.Random(0)
    out, asked = tmp_path / "killed", tmp_path / "asked"
    kills, most_lost = 0, 0
    while kills < 20:
        world, batch_size, workers = rng.choice([1, 1, 2, 3]), rng.choice([1, 2, 3]), rng.choice([1, 2, 4])
        done_before = finished(out)
        processes = start(dataset, out, asked, 0.02, batch_size, workers, world)
        wanted = lines_in(out) + rng.randint(0, 4)
        while all(p.exitcode is None for p in processes) and lines_in(out) < wanted:
            time.sleep(0.005)
        for process in processes:
            process.kill()
        returned = ended(processes)
        kills += any(code == -signal.SIGKILL for code in returned)
        most_lost += batch_size * 3 * world
        if kills % 3 == 0:  # a line cut in the middle, as a full disk or a lost machine leaves it
            for log in log_files(out):
                with log.open("ab") as file:
                    file.write(b'{"key": "torn')
        assert done_before <= finished(out)
        if returned == [0] * world:
            break
    assert kills >= 10
    assert ended(start(dataset, out, asked, 0.0, 8)) == [0]

    whole = tmp_path / "whole"
    assert ended(start(dataset, whole, tmp_path / "once", 0.0, 8)) == [0]
    score(out), score(whole)
    assert comparable(out) == comparable(whole)
    assert (out / "scores.jsonl").read_bytes() == (whole / "scores.jsonl").read_bytes()
    # Samples whose line was written are never asked again: at most one batch of each killed process was asked twice.
    keys = [record.key for log in log_files(out) for record in read_records(log)]
    assert len(keys) == len(set(keys)) == SAMPLES
    lines = sum(len(file.read_text().splitlines()) for file in tmp_path.glob("asked-*"))
    assert SAMPLES <= lines <= SAMPLES + most_lost


@pytest.mark.full
def test_two_processes_under_accelerate_launch_share_the_videos_and_one_resumes(dataset: Path, tmp_path: Path) -> None:
    """A run that was started on two processes continues on one, and scores as one that was never shared."""
    out, whole = tmp_path / "relations", tmp_path / "whole"
    command = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    command += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    command += ["-m", "barista_bench.cli", "--quiet", "run", str(dataset), "--out", str(tmp_path), "--model", "chance"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    assert [path.name for path in log_files(out)] == ["samples-0.jsonl", "samples-1.jsonl"]
    videos = [{r.example_id.split(":")[1] for r in read_records(path)} for path in log_files(out)]
    assert videos[0].isdisjoint(videos[1])
    assert len(videos[0] | videos[1]) == 6

    assert run(dataset, out, model="chance").asked == 0
    run(dataset, whole, model="chance")
    assert score(out).results.metrics == score(whole).results.metrics
    assert (out / "scores.jsonl").read_bytes() == (whole / "scores.jsonl").read_bytes()


@pytest.mark.full
def test_a_start_with_other_processes_is_refused_while_some_are_at_work(dataset, tmp_path, monkeypatch):
    """On its own, or as a rank of a larger launch with other videos: it would ask the same now."""
    processes = start(dataset, tmp_path / "run", tmp_path / "asked", 0.5, 1, world=2)
    try:
        while len(list((tmp_path / "run").glob("*.launch")) if (tmp_path / "run").exists() else []) < 2:
            assert processes[0].exitcode is None
            time.sleep(0.02)
        for variables in ({}, {"RANK": "3", "WORLD_SIZE": "4"}):
            for name, value in variables.items():
                monkeypatch.setenv(name, value)
            with pytest.raises(ConfigError, match=r"another start still writes samples-[01]\.jsonl"):
                run(dataset, tmp_path / "run", model="chance")
    finally:
        for process in processes:
            process.kill()
        ended(processes)


def test_shared_runs_score_byte_for_byte_as_a_single_process(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(dataset, tmp_path / "alone", model="chance")
    world = 4
    for rank in range(world):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(world))
        run(dataset, tmp_path / "shared", model="chance", batch_size=rank + 1)
    score(tmp_path / "alone"), score(tmp_path / "shared")
    alone, shared = ((tmp_path / name / "scores.jsonl").read_bytes() for name in ("alone", "shared"))
    assert alone == shared
    assert comparable(tmp_path / "alone") == comparable(tmp_path / "shared")
    assert len(finished_samples(tmp_path / "shared")) == SAMPLES
