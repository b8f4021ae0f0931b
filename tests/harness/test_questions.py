"""What inspect_ai and lmms-eval share, without either of them."""

import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

import pytest
from datasets import Dataset

from barista_bench import evaluate
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.prompt import Prompt, TextPart
from barista_bench.data.folder import build
from barista_bench.errors import ConfigError, ModelError
from barista_bench.harness import lmms_eval
from barista_bench.harness.batching import Batcher
from barista_bench.harness.questions import question_set, question_sets
from barista_bench.models import Completion, Failure, GenerationConfig, Request
from barista_bench.models.base import ScriptedModel
from barista_bench.runs.ask.runner import run
from barista_bench.runs.log.sample_log import SampleRecord, read_records
from barista_bench.runs.score.scoring import score

BOXES = BoxFormat("yxyx", 1000)


def test_recorded_answers_have_the_metrics_and_statuses_of_score(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path / "run", task="relations", model="chance", repetitions=2)
    ours = score(tmp_path / "run" / "relations").results
    (questions,) = question_sets({"data": str(dataset), "task": "relations"})
    samples = [
        questions.sample(record.example_id, Completion(record.text or ""), BoxFormat(), repetition=record.repetition)
        for record in read_records(tmp_path / "run" / "relations" / "samples.jsonl")
    ]
    metrics = questions.compute_metrics(samples)
    assert metrics == pytest.approx({**metrics, **{name: metric.mean for name, metric in ours.metrics.items()}})
    assert 0 < metrics["micro_f1"] < 1
    assert (metrics["samples"], metrics["ok"]) == (len(samples), ours.coverage.statuses["ok"])


def test_cut_refused_and_unreadable_answers_have_different_statuses(dataset: Path) -> None:
    (questions,) = question_sets({"data": str(dataset), "task": "relations"})
    answers = [Completion("no JSON"), Completion("[", "length"), Completion("", "refusal"), Completion("[]")]
    samples = [
        questions.sample(name, answer, BOXES) for name, answer in zip(questions.positions, answers, strict=False)
    ]
    counted = questions.compute_metrics(samples)
    assert [counted[status] for status in ("ok", "parse_error", "refused", "truncated")] == [1, 1, 1, 1]


def test_settings_open_the_same_questions_from_anywhere(dataset: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(dataset.parent)
    given = {"data": dataset.name, "task": "grounding", "protocol": "paper", "box_format": "yxyx/1000"}
    (questions,) = question_sets(given)
    monkeypatch.chdir("/")
    again = question_set(questions.key)
    assert (again.config.box_format, again.task.protocol) == (BOXES, "paper")
    assert again.examples.content_hash == questions.examples.content_hash


def test_videos_and_wordings_are_found_from_anywhere(dataset: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    ours = resources.files("barista_bench.benchmarks.barista").joinpath("prompts", "grounding.yaml")
    Path("mine.yaml").write_bytes(ours.read_bytes())
    given = {"data": str(dataset), "task": "grounding", "prompts": "mine.yaml", "root": "videos"}
    (questions,) = question_sets(given)
    assert (questions.config.prompts, questions.config.root) == (tmp_path / "mine.yaml", tmp_path / "videos")
    monkeypatch.chdir("/")
    assert question_set(questions.key).task.prompts.wording.startswith("file:")


def test_questions_that_this_process_has_not_opened_are_refused_with_a_remedy() -> None:
    with pytest.raises(ConfigError, match=r"has not opened these questions.*question_sets"):
        question_set("barista/relations@0123456789ab")


def test_a_setting_that_says_how_to_ask_is_refused(dataset: Path) -> None:
    with pytest.raises(ConfigError, match="no setting 'temperature' here"):
        question_sets({"data": str(dataset), "temperature": 0})


def test_messages_of_lmms_eval_hold_the_prompt_with_its_images_in_their_places(dataset: Path, monkeypatch) -> None:
    monkeypatch.setattr(lmms_eval, "HF_HOME", str(dataset.parent / "hub"))
    folder, names = lmms_eval.write_tasks({"data": str(dataset), "task": "all", "box_format": "yxyx/1000"})
    assert names == ["barista_grounding", "barista_relations"]
    assert {path.name for path in folder.iterdir()} == {f"{name}.{kind}" for name in names for kind in ("json", "yaml")}
    (questions,) = question_sets({"data": str(dataset), "task": "grounding", "box_format": "yxyx/1000"})
    name = next(iter(questions.positions))
    prompt = questions.task.prompt(questions.example(name), BOXES)
    system, user = lmms_eval.messages({"questions": questions.key, "example_id": name})
    written = "".join(part.get("text", "<image 0>\n") for part in user["content"])
    assert f"[system]\n{system['content'][0]['text']}\n[user]\n{written}" == prompt.as_text()
    assert [part["url"].size for part in user["content"] if part["type"] == "image"] == [(96, 64)]


def test_the_oracle_of_lmms_eval_scores_one(dataset: Path) -> None:
    (questions,) = question_sets({"data": str(dataset), "task": "grounding"})
    rows = list(lmms_eval.examples(Dataset.from_list([{"settings": questions.settings}])))
    assert str(dataset) not in json.dumps(rows)
    answered = [lmms_eval.process_results(row, [lmms_eval.target(row)])["metrics"] for row in rows]
    assert lmms_eval.primary(answered) == pytest.approx(1.0)


def test_a_class_that_takes_images_and_text_apart_is_refused(dataset: Path) -> None:
    with pytest.raises(ConfigError, match="texts stand between its images"):
        lmms_eval.visuals({"questions": "barista/relations@0", "example_id": "e"})


@pytest.mark.full
def test_a_task_that_no_text_answers_is_left_out_with_a_warning(
    small_kitchen: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"data": str(tmp_path / "made"), "benchmark": "extended", "task": "all"}
    sampling = {"mask_tracking": {"limit": 1, "spacing": 20}, "anticipation": {"limit": 2}}
    build(small_kitchen, tmp_path / "made", benchmark="extended", configs=[*sampling], sampling=sampling, cache=False)
    with caplog.at_level(logging.WARNING):
        assert [questions.task.name for questions in question_sets(settings)] == ["anticipation"]
    assert "left out: extended/mask_tracking" in caplog.text
    with pytest.raises(ConfigError, match="can answer no task here"):
        question_sets({**settings, "task": "mask_tracking"})


COUNT = 64


class Batched(ScriptedModel):
    """Fails on a whole batch with a request called `0`."""

    def __init__(self) -> None:
        super().__init__("batched", lambda name, seed: f"{name}/{seed}", batch_size=4)
        self.batches: list[list[str]] = []

    def generate(self, requests: list[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        self.batches.append([request.request_id for request in requests])
        if "0" in self.batches[-1]:
            raise RuntimeError("out of memory")
        return super().generate(requests, config)


def asked(name: int) -> Request:
    return Request(str(name), Prompt("", (TextPart("?"),)), (), seeds=(name,))


def test_each_thread_gets_its_own_answer_while_others_wait() -> None:
    model = Batched()
    batcher = Batcher(model)
    configs = [GenerationConfig(temperature=warmth) for warmth in (0.0, 1.0)]
    with ThreadPoolExecutor(COUNT) as threads:
        futures = {
            name: threads.submit(batcher.answer, batcher.put(asked(name), configs[name % 2]))
            for name in range(1, COUNT + 1)
        }
    assert {name: future.result().text for name, future in futures.items()} == {n: f"{n}/{n}" for n in futures}
    assert sorted(name for batch in model.batches for name in batch) == sorted(map(str, futures))
    assert all(len({int(name) % 2 for name in batch}) == 1 and len(batch) <= 4 for batch in model.batches)


def test_every_request_of_a_batch_that_failed_says_why() -> None:
    batcher = Batcher(Batched())
    waiting = [batcher.put(asked(name), GenerationConfig()) for name in range(4)]
    with pytest.raises(RuntimeError, match="out of memory"):
        batcher.answer(waiting[2])
    for other in (waiting[0], waiting[3]):
        with pytest.raises(ModelError, match="its batch failed: RuntimeError: out of memory"):
            batcher.answer(other)


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "harnesses.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def of_inspect_ai(records: list[SampleRecord]) -> str:
    """As `inspect log dump` prints a log of inspect_ai 0.3.285, for the fields that the program reads; one sample
    failed."""
    samples = [{"id": r.example_id, "epoch": r.repetition + 1, "output": {"completion": r.text}} for r in records]
    failed = {"id": records[0].example_id, "epoch": 9, "output": {"completion": ""}, "error": {"message": "time out"}}
    return json.dumps({"samples": [*samples, failed]}, indent=2)


def of_lmms_eval(records: list[SampleRecord]) -> str:
    """As --log_samples of lmms-eval 0.7.3 writes it: a line an example, with all of its repetitions."""
    texts: dict[str, list[str]] = {}
    for record in sorted(records, key=lambda record: record.repetition):
        texts.setdefault(record.example_id, []).append(record.text)
    lines = [{"metrics": {"example_id": name, "texts": answers}} for name, answers in texts.items()]
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.mark.parametrize(("name", "logged"), [("log.json", of_inspect_ai), ("log.jsonl", of_lmms_eval)])
def test_the_answers_of_a_log_have_the_metrics_of_the_run_that_gave_them(
    name: str, logged: Callable[[list[SampleRecord]], str], dataset: Path, tmp_path: Path
) -> None:
    ours = evaluate(dataset, "chance", task="relations", repetitions=2, out=tmp_path / "ours")
    log, answers = tmp_path / name, tmp_path / "answers.jsonl"
    log.write_text(logged(list(read_records(tmp_path / "ours" / "relations" / "samples.jsonl"))), encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM, str(log), "some model"]
    answers.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
    settings = {"task": "relations", "repetitions": 2, "box_format": "xyxy/1000"}
    theirs = evaluate(dataset, f"predictions:{answers}", out=tmp_path / "theirs", **settings)
    assert theirs.metrics["model"].unique().tolist() == ["some model"]
    columns = ["metric", "mean", "std", "low", "high", "scored"]
    assert theirs.metrics[columns].equals(ours.metrics[columns])
    assert ours.metrics["mean"].nunique() > 2
