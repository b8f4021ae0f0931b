"""The request to each side: its command, in a separate process, and the place of its answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

from environments import interpreter
from questions import MAX_PIXELS, MIN_PIXELS

HERE, ROOT = Path(__file__).resolve().parent, Path(__file__).resolve().parents[2]
OURS, LMMS_EVAL, VLLM = "barista_bench", "lmms-eval", "vLLM"
PEERS = (LMMS_EVAL, VLLM)
Answers = dict[str, list[str]]
"""The answers to each prompt, by its id."""

_OUR_FLAGS = """\
--task={task} --model={model} --device=cpu --dtype=float32 --limit={count} --repetitions={repetitions}
--temperature={temperature} --max-new-tokens={new_tokens} --batch-size={batch} --out={out}/run"""
_LMMS_EVAL_FLAGS = f"""\
--model=qwen2_5_vl --tasks=prompts --include_path={{out}}/tasks --output_path={{out}}/results --log_samples
--model_args=pretrained={{model}},device=cpu,device_map=cpu,min_pixels={MIN_PIXELS},max_pixels={MAX_PIXELS}
--limit={{count}} --repeats={{repetitions}} --batch_size={{answers}}"""
_LMMS_EVAL_TASK = """\
task: prompts
dataset_path: parquet
dataset_kwargs: {{data_files: {{test: "{prompts}"}}}}
test_split: test
output_type: generate_until
doc_to_messages: !function prompts.doc_to_messages
doc_to_visual: !function prompts.doc_to_visual
doc_to_text: !function prompts.doc_to_text
doc_to_target: id
process_results: !function prompts.process_results
generation_kwargs: {{max_new_tokens: {new_tokens}, temperature: {temperature}}}
filter_list: [{{name: all, filter: [{{function: take_first_k, k: {repetitions}}}]}}]
metric_list: [{{metric: answered, aggregation: mean, higher_is_better: true}}]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One process's requests: the first `count` prompts of a task in the dataset folder `data`, `batch` at a time.

    `prompts` has the same prompts as Parquet (`questions.export`). The process works in `out`, which is empty.
    """

    data: Path
    task: str
    prompts: Path
    model: Path
    out: Path
    count: int
    repetitions: int
    temperature: float
    batch: int
    new_tokens: int


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one process: seconds by wall clock, CPU seconds, and its largest resident memory."""

    wall: float
    cpu: float
    peak_mib: float


def ask(side: str, job: Job) -> tuple[Cost, Answers]:
    """Start a side, wait for its end, and read its answers."""
    shutil.rmtree(job.out, ignore_errors=True)
    job.out.mkdir(parents=True)
    command = ["taskset", "-c", "0,1", *_command(side, job)]
    with (job.out / "log").open("w") as log:
        begun = time.perf_counter()
        process = subprocess.Popen(command, cwd=job.out, env=_variables(side), stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{side} failed: see {job.out / 'log'}")
    cost = Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
    return cost, {OURS: _our_answers, LMMS_EVAL: _lmms_eval_answers}.get(side, _written_answers)(job)


def _variables(side: str) -> dict[str, str]:
    offline = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    # Little memory, any core, and the engine within the process, which starts sooner.
    vllm = {"CPU_KVCACHE_SPACE": "1", "CPU_OMP_THREADS_BIND": "nobind", "ENABLE_V1_MULTIPROCESSING": "0"}
    path = {"PYTHONPATH": str(ROOT) if side == OURS else ""}
    return os.environ | offline | path | {f"VLLM_{name}": value for name, value in vllm.items()}


def _command(side: str, job: Job) -> list[str | Path]:
    values = {**asdict(job), "answers": job.batch * job.repetitions}
    if side == OURS:
        flags = [flag.format_map(values) for flag in _OUR_FLAGS.split()]
        return [sys.executable, "-m", "barista_bench.cli", "run", job.data, *flags]
    if side == LMMS_EVAL:
        _write_lmms_eval_task(job)
        return [interpreter(side), "-m", "lmms_eval", *(flag.format_map(values) for flag in _LMMS_EVAL_FLAGS.split())]
    return [interpreter(side), HERE / "ask_vllm.py", json.dumps(asdict(job), default=str)]


def _write_lmms_eval_task(job: Job) -> None:
    tasks = job.out / "tasks"
    tasks.mkdir()
    shutil.copy(HERE / "lmms_eval_prompts.py", tasks / "prompts.py")
    (tasks / "prompts.yaml").write_text(_LMMS_EVAL_TASK.format_map(asdict(job)))


def _our_answers(job: Job) -> Answers:
    answers: Answers = defaultdict(list)
    (log,) = (job.out / "run").glob("*/samples.jsonl")
    records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for record in sorted(records, key=lambda record: record["repetition"]):
        answers[record["example_id"]].append(record["text"])
    return dict(answers)


def _lmms_eval_answers(job: Job) -> Answers:
    files = list((job.out / "results").rglob("*_samples_prompts.jsonl"))
    if not files:  # it ends with 0 in any case
        raise SystemExit(f"{LMMS_EVAL} failed: see {job.out / 'log'}")
    records = [json.loads(line) for line in files[0].read_text(encoding="utf-8").splitlines()]
    given = {record["target"]: record["filtered_resps"] for record in records}
    return {key: [texts] if isinstance(texts, str) else texts for key, texts in given.items()}


def _written_answers(job: Job) -> Answers:
    answers: Answers = json.loads((job.out / "answers.json").read_text(encoding="utf-8"))
    return answers
