"""Several tasks in one start: one model, one stream of requests, a run folder each."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from barista_bench.cli.commands import app
from barista_bench.core.settings import check_settings
from barista_bench.data.folder import build
from barista_bench.errors import ConfigError
from barista_bench.runs.ask import runner
from barista_bench.runs.ask.asking import Asker
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.runner import estimate, estimate_text, run
from barista_bench.runs.score.scoring import score
from tests.runs.made_logs import read_folder
from tests.tiny_architectures import Architecture, make_tiny_model

TASKS = ("hand_object", "referring", "relations")


@pytest.fixture(scope="module")
def three_tasks(small_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("three") / "barista"
    sampling = {"limit": 20, "relations": {"frame_step": 10}}
    return build(small_release, out, configs=TASKS, sampling=sampling, frames="linked", cache=False).folder


@pytest.mark.full
def test_tasks_run_together_score_as_tasks_run_one_by_one(three_tasks: Path, tmp_path: Path) -> None:
    session = run(three_tasks, tmp_path / "together", task=TASKS, model="chance")
    assert session.asked == sum(3 * len(list((three_tasks / f"frozen/{task}.jsonl").open())) for task in TASKS)
    for task in TASKS:
        run(three_tasks, tmp_path / "alone", task=task, model="chance")
        score(tmp_path / "alone" / task), score(tmp_path / "together" / task)
        together, alone = (tmp_path / kind / task / "scores.jsonl" for kind in ("together", "alone"))
        assert together.read_bytes() == alone.read_bytes()
    for spelling in (",".join(TASKS), "all"):  # all that the dataset has
        assert run(three_tasks, tmp_path / "together", task=spelling, model="chance").asked == 0


def test_each_frame_is_decoded_once_for_all_tasks_that_want_it(
    three_tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    ask = Asker.ask

    def counted(self: Asker, *arguments: object) -> None:
        ask(self, *arguments)
        decoded.append(self.store.cache.made_count)

    monkeypatch.setattr(runner.Asker, "ask", counted)
    run(three_tasks, tmp_path, task=TASKS, model="oracle")
    frames = {
        (frame["video_id"], frame["frame_index"])
        for task in TASKS
        for line in (three_tasks / f"frozen/{task}.jsonl").open()
        for frame in json.loads(line)["frames"]
    }
    assert decoded == [len(frames)]


def test_the_seconds_of_a_session_are_divided_among_its_tasks(three_tasks: Path, tmp_path: Path) -> None:
    session = run(three_tasks, tmp_path, task=TASKS, model="oracle")
    parts = [json.loads((tmp_path / task / "sessions.jsonl").read_text())["seconds"] for task in TASKS]
    for stage, seconds in session.seconds.items():
        assert sum(part[stage] for part in parts) == pytest.approx(seconds)
    assert session.seconds["total"] >= session.seconds["wait"]
    timing = score(tmp_path / "relations").results.timing
    assert timing.samples_per_second is not None
    assert timing.samples_per_second > 0


def test_a_task_named_twice_is_refused(three_tasks: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="names one twice"):
        run(three_tasks, tmp_path, model="oracle", task=("relations", "relations"))
    with pytest.raises(ConfigError, match="all and more"):
        run(three_tasks, tmp_path, model="oracle", task=("relations", "all"))


def test_a_dry_run_counts_and_asks_nothing(three_tasks: Path, tmp_path: Path) -> None:
    config = check_settings(
        RunConfig,
        {"data": str(three_tasks), "model": "oracle", "out": tmp_path / "run", "task": TASKS, "repetitions": 2},
    )
    estimated = estimate(config)
    examples = {task: len(list((three_tasks / f"frozen/{task}.jsonl").open())) for task in TASKS}
    assert estimated.tasks == examples
    assert (estimated.requests, estimated.samples) == (sum(examples.values()), 2 * sum(examples.values()))
    assert estimated.images == sum(examples.values()) + examples["relations"]  # a relations prompt shows two
    assert "nothing was asked" in estimate_text(estimated)
    images_of = {"text_only:some/checkpoint": 0, "first_frame:tiny": sum(examples.values())}
    images_of["checkpoints/served:2"] = estimated.images  # a folder, and not a server's model
    for model, images in images_of.items():
        assert estimate(config.model_copy(update={"model": model})).images == images
    for model, remedy in (("served", "served:NAME"), ("text_only:orakle", "did you mean oracle")):
        with pytest.raises(ConfigError, match=remedy):
            estimate(config.model_copy(update={"model": model}))
    assert not (tmp_path / "run").exists()


def test_a_dry_run_leaves_out_answered_examples(three_tasks: Path, tmp_path: Path) -> None:
    run(three_tasks, tmp_path, task=TASKS, model="chance", repetitions=1)
    config = check_settings(
        RunConfig, {"data": str(three_tasks), "out": tmp_path, "task": TASKS, "model": "chance", "repetitions": 3}
    )
    estimated = estimate(config)
    assert estimated.samples == 2 * sum(estimated.tasks.values())


@pytest.mark.full
@pytest.mark.parametrize("kind", ["gemma3", "idefics3"])
def test_greedy_answers_are_the_same_from_any_batch_size_and_number_of_processes(
    kind: Architecture, three_tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relations show two images and the other tasks one, of different sizes, all in the same batches."""
    model = str(make_tiny_model(tmp_path / "model", kind))
    settings = {"task": "all", "model": model, "temperature": 0, "repetitions": 1, "limit": 4, "max_new_tokens": 6}

    def texts(name: str) -> dict[str, str | None]:
        return {r.example_id: r.text for task in TASKS for r in read_folder(tmp_path / name / task)}

    for batch_size in (1, 2, 8):
        out = tmp_path / f"batch{batch_size}"
        run(three_tasks, out, batch_size=batch_size, **settings)
        session = json.loads((out / TASKS[0] / "sessions.jsonl").read_text())
        checked_before = "logits of two examples together are "
        assert (session["batch_check"] or "").startswith(checked_before) == (batch_size > 1)
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", "2")
        run(three_tasks, tmp_path / "shared", **settings)
    assert len(texts("batch1")) == 12
    assert texts("batch1") == texts("batch2") == texts("batch8") == texts("shared")
    assert len(set(texts("batch1").values())) > 1


def test_one_task_lies_where_several_would_and_an_older_folder_is_gone_on_with(
    three_tasks: Path, tmp_path: Path
) -> None:
    settings = {"model": "chance", "repetitions": 1, "limit": 2}
    for task in ("relations", "referring"):
        assert run(three_tasks, tmp_path / "runs", task=task, **settings).asked == 2
    assert run(three_tasks, tmp_path / "runs", task=("relations", "referring"), **settings).asked == 0
    old = tmp_path / "runs" / "relations"  # what `out` itself was of one task
    assert run(three_tasks, old, task="relations", **settings).asked == 0
    with pytest.raises(ConfigError, match=r"holds a run with task 'relations', not 'referring'"):
        run(three_tasks, old, task="referring", **settings)
    with pytest.raises(ConfigError, match=r"is the run folder of one task. Fix: name that task"):
        run(three_tasks, old, task=("relations", "referring"), **settings)


@pytest.mark.full
@pytest.mark.usefixtures("ready_workers")
def test_the_number_of_processes_that_score_changes_no_byte(three_tasks: Path, tmp_path: Path) -> None:
    run(three_tasks, tmp_path, task=TASKS, model="chance", repetitions=2)
    files = [tmp_path / task / name for task in TASKS for name in ("results.json", "scores.jsonl")]
    written = []
    for number in ("1", "2"):
        done = CliRunner().invoke(app, ["score", str(tmp_path), "--num-proc", number])
        assert done.exit_code == 0, done.output
        written.append((done.stdout, [file.read_bytes() for file in files]))
        for file in files:
            file.unlink()
    assert written[0] == written[1]


@pytest.mark.full
@pytest.mark.usefixtures("ready_workers")
def test_a_run_that_cannot_be_scored_ends_the_command_in_one_line(three_tasks: Path, tmp_path: Path) -> None:
    run(three_tasks, tmp_path, task=TASKS, model="chance")
    (tmp_path / TASKS[0] / "run.json").write_text("{}")
    done = CliRunner().invoke(app, ["score", *(str(tmp_path / task) for task in TASKS), "--num-proc", "2"])
    assert done.exit_code == 1
    assert "run.json" in done.output
    assert "Traceback" not in done.output
