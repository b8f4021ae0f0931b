"""Other harnesses, each in a separate environment with the wheel, made as docs/harnesses.md says."""

import itertools
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from barista_bench.core.training_videos import TrainingVideos
from barista_bench.data.rows import video_hashes
from barista_bench.runs.log.sample_log import read_records
from barista_bench.runs.score.results import read_results
from barista_bench.runs.score.scoring import read_scored
from tests import checkpoint_zoo
from tests.integrations.test_fresh_environments import run
from tests.integrations.test_torchvision import DECLARED
from tests.tiny_architectures import make_tiny_model
from tests.training.test_leaks import adapter_of

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]
JUDGING = Path(__file__).with_name("inspect_judging.py")
OURS = [sys.executable, "-m", "barista_bench.cli"]
SIBLINGS = ("vista", "handyvqa", "tog_bench", "egocot")
SYNONYMS = {"tog_bench": ["--option", "matcher=synonyms"]}
EXACT = 1e-9


def environment(request: pytest.FixtureRequest, wheel: Path, *installs: tuple[str, ...]) -> Path:
    """The scripts of an environment that is kept from one test run to the next; the wheel is installed again."""
    folder = request.config.cache.mkdir("harnesses") / installs[-1][-1]
    pip = [folder / "bin/python", "-m", "pip", "install", "--quiet"]
    complete, wanted = folder / "complete", "\n".join(itertools.chain(*installs))
    if not complete.is_file() or complete.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        run([sys.executable, "-m", "venv", folder], folder.parent)
        for requirements in (*installs, (f"{wheel}[run]",)):
            run([*pip, *requirements], folder.parent)
        complete.write_text(wanted)
    run([*pip, "--force-reinstall", "--no-deps", wheel], folder.parent)
    return folder / "bin"


@pytest.fixture(scope="module")
def inspect_ai(request: pytest.FixtureRequest, wheel: Path) -> Path:
    return environment(request, wheel, ("torch==2.13.0",), ("peft==0.21.2", "inspect_ai==0.3.285"))


@pytest.fixture(scope="module")
def lmms_eval(request: pytest.FixtureRequest, wheel: Path) -> Path:
    scripts = environment(
        request, wheel, ("torch==2.13.0",), ("torchvision==0.28.0", "filelock<4.3", "lmms-eval==0.7.3")
    )
    (packages,) = scripts.parent.glob("lib/python*/site-packages")
    (packages / "sitecustomize.py").write_text(DECLARED)  # its torchvision is built for CUDA
    model = packages / "lmms_eval/models/simple/qwen2_5_vl.py"  # takes only bfloat16
    model.write_text(model.read_text().replace('"torch_dtype": "bfloat16"', '"torch_dtype": "float32"'))
    return scripts


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`data`, a dataset of each benchmark, and `runs` of oracle and chance on all of them, scored."""
    work = tmp_path_factory.mktemp("work")
    run([*OURS, "mini", "kitchen", "--no-progress"], work)
    run([*OURS, "build", "--source", "kitchen", "--out", "data/barista", "--sampling", "limit=4"], work)
    for name in SIBLINGS:
        limit = [] if name == "vista" else ["--sampling", "limit=4"]  # scored by whole problem sets
        given = ["--families", name, "--per-subtask", "4", "--no-progress"]
        run([*OURS, "generate", "--source", "kitchen", "--out", f"releases/{name}", *given], work)
        release = ["--benchmark", name, "--source", f"releases/{name}/{name}"]
        run([*OURS, "build", *release, "--out", f"data/{name}", *limit], work)
    for model in ("oracle", "chance"):
        settings = ["--benchmark", "all", "--model", model, "--repetitions", "1", "--option", "matcher=synonyms"]
        run([*OURS, "run", "data", *settings, "--no-progress", "--out", f"runs/{model}"], work)
        run([*OURS, "score", *sorted((work / "runs" / model).glob("*/*"))], work)
    return work


def our_metrics(folder: Path) -> dict[str, float]:
    """By benchmark, task and figure."""
    return {
        f"{path.parent.parent.name}/{path.parent.name}/{name}": metric.mean
        for path in folder.glob("*/*/results.json")
        for name, metric in read_results(path).metrics.items()
    }


def inspect_name(benchmark: str, task: str) -> str:
    return f"barista_bench/{task}" if benchmark == "barista" else f"barista_bench/{benchmark}_{task}"


def inspect_logs(scripts: Path, work: Path, runs: str, logs: str, *arguments: str | Path) -> Iterator[dict]:
    """What `inspect eval` says of every task that has a run folder, asked benchmark by benchmark."""
    for benchmark in sorted((work / runs).iterdir()):
        tasks = [inspect_name(benchmark.name, folder.name) for folder in sorted(benchmark.iterdir())]
        data = ["-T", f"data=data/{benchmark.name}"]
        options = ["-T" if part == "--option" else f"option={part}" for part in SYNONYMS.get(benchmark.name, [])]
        shown = ["--display", "none", "--log-format", "json", "--log-dir", f"{logs}/{benchmark.name}"]
        run([scripts / "inspect", "eval", *tasks, *data, *options, *shown, *arguments], work)
    for path in sorted((work / logs).glob("*/*.json")):
        log = json.loads(path.read_text())
        assert log["status"] == "success", log["error"]["message"]
        yield log


def inspect_metrics(log: dict) -> dict[str, float]:
    called = log["samples"][0]["metadata"]["questions"].partition("@")[0]
    (scores,) = log["results"]["scores"]
    return {f"{called}/{name}": metric["value"] for name, metric in scores["metrics"].items()}


@pytest.mark.parametrize("model", ["oracle", "chance"])
def test_inspect_ai_gives_our_metrics_of_the_same_answers(inspect_ai, work, model):
    solvers = {
        "oracle": ["--solver", "barista_bench/oracle"],
        "chance": ["--solver", f"{JUDGING}@replay", "-S", f"runs={work}/runs/chance"],
    }
    asked = ["--model", "mockllm/model", *solvers[model]]
    theirs: dict[str, float] = {}
    for log in inspect_logs(inspect_ai, work, f"runs/{model}", f"inspect/{model}", *asked):
        theirs |= inspect_metrics(log)
    ours = our_metrics(work / "runs" / model)
    assert len({name.rpartition("/")[0] for name in ours}) == 17
    assert {name: theirs.get(name) for name in ours} == pytest.approx(ours, abs=EXACT)


def test_inspect_ai_asks_a_checkpoint_as_run_does(inspect_ai, work, tmp_path):
    """Sampled, in two repetitions, and in two steps."""
    checkpoint = make_tiny_model(tmp_path / "tiny")
    for benchmark, tasks in (("barista", "grounding,hand_object"), ("vista", "all")):
        settings = [
            "--model",
            checkpoint,
            "--device",
            "cpu",
            "--max-new-tokens",
            "12",
            "--repetitions",
            "2",
            "--no-progress",
        ]
        run([*OURS, "run", f"data/{benchmark}", "--task", tasks, *settings, "--out", f"tiny/{benchmark}"], work)
    run([*OURS, "score", *sorted((work / "tiny").glob("*/*"))], work)
    asked = ["--model", f"barista/{checkpoint}", "-M", "device=cpu", "--max-tokens", "12", "--epochs", "2"]
    ours, theirs, texts = our_metrics(work / "tiny"), dict[str, float](), dict[tuple[str, int], object]()
    for log in inspect_logs(inspect_ai, work, "tiny", "inspect/tiny", *asked):
        theirs |= inspect_metrics(log)
        for sample in log["samples"]:
            record = sample["scores"]["answers"]["metadata"]["record"]
            texts[sample["id"], sample["epoch"] - 1] = record["text"], record["earlier"], record["status"]
    scored = [read_scored(folder, data=work / "data" / folder.parent.name) for folder in (work / "tiny").glob("*/*")]
    records = [sample.record for run_folder in scored for sample in run_folder.samples]
    assert texts == {
        (record.example_id, record.repetition): (
            record.text,
            list(record.earlier) if record.earlier else None,
            record.status,
        )
        for record in records
    }
    assert len({text for text, _, _ in texts.values()}) > len(texts) / 2
    assert {name: theirs.get(name) for name in ours} == pytest.approx(ours, abs=EXACT)


def test_inspect_ai_marks_a_model_with_an_adapter_trained_on_the_videos(inspect_ai, work, tmp_path):
    """As `run` does: its figures have no rank."""
    hashes = video_hashes(work / "data/barista", ["relations"])
    seen = sorted(sha256 for videos in hashes.values() for sha256 in videos.values())[0]
    checkpoint = make_tiny_model(tmp_path / "tiny", "llava")
    adapter = adapter_of(checkpoint, tmp_path / "adapter", TrainingVideos(videos=frozenset({seen})))
    settings = [
        "--model",
        checkpoint,
        "--adapter",
        adapter,
        "--device",
        "cpu",
        "--max-new-tokens",
        "4",
        "--repetitions",
        "1",
    ]
    run(
        [*OURS, "run", "data/barista", "--task", "relations", *settings, "--no-progress", "--out", "adapted/barista"],
        work,
    )
    run([*OURS, "score", "adapted/barista/relations"], work)
    asked = ["--model", f"barista/{checkpoint}", "-M", "device=cpu", "-M", f"adapter={adapter}", "--max-tokens", "4"]
    (log,) = inspect_logs(inspect_ai, work, "adapted", "inspect/adapted", *asked)
    results = read_results(work / "adapted/barista/relations/results.json")
    assert inspect_metrics(log)["barista/relations/trained_on"] == results.trained_on == 1


@pytest.mark.parametrize("task", ["barista/referring", "barista/temporal_vqa", "egocot/cot"])
def test_a_grader_of_inspect_ai_gives_the_metrics_of_judge(inspect_ai, work, task):
    benchmark, name = task.split("/")
    command = [inspect_ai / "python", JUDGING, inspect_name(benchmark, name), f"data/{benchmark}"]
    theirs, ours = json.loads(run([*command, f"runs/oracle/{task}"], work).splitlines()[-1])
    assert 0 < ours["mean"] < 1
    assert {metric: theirs.get(metric) for metric in ours} == pytest.approx(ours, abs=EXACT)


def lmms_tasks(scripts: Path, work: Path, *arguments: str) -> Path:
    return Path(run([scripts / "barista-bench", "export", "lmms-eval-tasks", *arguments], work).strip())


def lmms_metrics(scripts: Path, work: Path, tasks: Path, out: str, *arguments: str) -> dict[str, dict[str, float]]:
    """What `lmms-eval` says, by task."""
    names = ",".join(sorted(path.stem for path in tasks.glob("*.yaml")))
    given = ["--include_path", tasks, "--tasks", names, "--output_path", out, "--log_samples"]
    given += ["--verbosity", "DEBUG"]  # otherwise it exits with 0 after an error
    run([scripts / "lmms-eval", *given, *arguments], work)
    (file,) = (work / out).rglob("*_results.json")
    results = json.loads(file.read_text())["results"]
    return {name: results[name]["metrics,none"] for name in names.split(",")}


@pytest.mark.parametrize("model", ["oracle", "chance"])
def test_lmms_eval_gives_our_metrics_of_the_same_answers(lmms_eval, work, model):
    """Of all tasks that ask one question; of ViSTa that is `conversation=single`, which changes no parser."""
    options = ["--option", "matcher=synonyms", "--option", "conversation=single"]
    tasks = lmms_tasks(lmms_eval, work, "data", "--benchmark", "all", *options)
    logs = work / f"logs_{model}"
    logs.mkdir()
    for path in sorted(tasks.glob("*.json")):
        settings = json.loads(json.loads(path.read_text())["settings"])
        records = read_records(work / "runs" / model / settings["benchmark"] / settings["task"][0] / "samples.jsonl")
        replies = [{"doc_id": n, "resps": [[record.text]]} for n, record in enumerate(in_order(path, records))]
        about = {"args": {"model": "recorded", "model_args": "", "limit": None}, "model_configs": {"task": path.stem}}
        (logs / path.name).write_text(json.dumps({**about, "logs": replies}))
    theirs = lmms_metrics(
        lmms_eval, work, tasks, f"lmms_{model}", "--model", "from_log", "--model_args", f"logs={logs}"
    )
    ours = our_metrics(work / "runs" / model)
    assert len(theirs) == 17
    flat = {f"{task}/{name}": value for task, metrics in theirs.items() for name, value in metrics.items()}
    assert {name: flat.get(name.replace("/", "_", 1)) for name in ours} == pytest.approx(ours, abs=EXACT)


def in_order(path: Path, records):
    """Records in the order in which lmms-eval has the examples of a task file."""
    from barista_bench.harness.questions import question_sets

    by_example = {record.example_id: record for record in records}
    (questions,) = question_sets(json.loads(json.loads(path.read_text(encoding="utf-8"))["settings"]))
    return [by_example[name] for name in questions.positions]


def test_lmms_eval_asks_its_own_model_class(lmms_eval, work, tmp_path):
    checkpoint = checkpoint_zoo.build("qwen2_5_vl", tmp_path / "qwen")
    boxes = ["--box-format", "xyxy/1000"]
    tasks = lmms_tasks(lmms_eval, work, "data/barista", "--task", "relations,activity", *boxes)
    model = ["--model", "qwen2_5_vl", "--model_args", f"pretrained={checkpoint},device=cpu,device_map=cpu"]
    theirs = lmms_metrics(
        lmms_eval, work, tasks, "lmms_qwen", *model, "--gen_kwargs", "temperature=0,max_new_tokens=12"
    )
    for task in ("relations", "activity"):
        (log,) = (work / "lmms_qwen").rglob(f"*_samples_barista_{task}.jsonl")
        answers = [json.loads(line)["metrics"] for line in log.read_text().splitlines()]
        lines = [{"example_id": answer["example_id"], "answer": answer["texts"][0]} for answer in answers]
        file = tmp_path / f"{task}.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        settings = ["--task", task, "--model", f"predictions:{file}", "--repetitions", "1", *boxes, "--no-progress"]
        run([*OURS, "run", "data/barista", *settings, "--out", f"predictions/barista/{task}"], work)
        run([*OURS, "score", f"predictions/barista/{task}"], work)
        assert len({line["answer"] for line in lines}) > 2
    ours = our_metrics(work / "predictions")
    flat = {f"{task}/{name}": value for task, metrics in theirs.items() for name, value in metrics.items()}
    assert {name: flat.get(name.replace("/", "_", 1)) for name in ours} == pytest.approx(ours, abs=EXACT)
