"""What inspect_ai and lmms-eval share, without either of them."""

import json
import logging
from importlib import resources
from pathlib import Path

import pytest
from datasets import Dataset

from barista_bench.core.boxes import BoxFormat
from barista_bench.data.folder import build
from barista_bench.errors import ConfigError
from barista_bench.harness import lmms_eval
from barista_bench.harness.questions import question_set, question_sets
from barista_bench.models import Completion
from barista_bench.runs.ask.runner import run
from barista_bench.runs.log.sample_log import read_records
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


def test_cut_refused_and_unreadable_answers_are_told_apart(dataset: Path) -> None:
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
