"""The mini kitchen judged end to end: by `lexical` with numbers, and by a tiny transformers model for the path."""

from pathlib import Path

import pytest

from barista_bench.data.folder import build
from barista_bench.judging.judge_folder import read_judge
from barista_bench.judging.scoring import score_judged
from barista_bench.judging.session import judge
from barista_bench.mini import write_kitchen
from tests.judging.judges import judged
from tests.one_run import run


@pytest.fixture(scope="module")
def kitchen_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """Referring and temporal VQA, each answered by the oracle and by chance; and `few`, two answers of chance."""
    folder = tmp_path_factory.mktemp("kitchen")
    write_kitchen(folder / "kitchen", videos=1, width=160, height=96, num_proc=1, progress=False)
    settings = {"configs": ["referring", "temporal_vqa"], "sampling": {"limit": 6}, "cache": False}
    data = build(folder / "kitchen", folder / "barista", **settings).folder
    runs = {}
    for task in ("referring", "temporal_vqa"):
        for model in ("oracle", "chance"):
            runs[task, model] = folder / f"{task}-{model}"
            run(data, runs[task, model], task=(task,), model=model, repetitions=2)
        runs[task, "few"] = folder / f"{task}-few"
        run(data, runs[task, "few"], task=(task,), model="chance", repetitions=1, limit=2)
    return runs


@pytest.mark.full
@pytest.mark.parametrize("task", ["referring", "temporal_vqa"])
def test_lexical_gives_the_oracle_full_marks_and_chance_few(
    task: str, kitchen_runs: dict[tuple[str, str], Path]
) -> None:
    means = {}
    for model in ("oracle", "chance"):
        results = judged(kitchen_runs[task, model], "lexical")
        assert results.coverage.judged == results.coverage.expected == 12
        means[model] = results.metrics["mean"].mean
    assert means["oracle"] == 1.0
    assert means["chance"] < 0.4


@pytest.mark.full
@pytest.mark.parametrize("task", ["referring", "temporal_vqa"])
def test_a_tiny_transformers_judge_goes_the_whole_way(task: str, kitchen_runs: dict[tuple[str, str], Path]) -> None:
    """It is randomly initialised and writes nonsense: every reply gets a status, and none becomes a zero."""
    few = kitchen_runs[task, "few"]
    settings = {
        "verdicts_per_answer": 2,
        "max_new_tokens": 8,
        "device": "cpu",
        "temperature": 1.0,
        "structured_output": False,
    }
    session = judge(few, "tiny", **settings)
    results = score_judged(session.run, session.folder).results
    criteria = {"referring": 1, "temporal_vqa": 2}[task]
    assert session.asked == 2 * criteria * len({*_answers(session.run.samples)})
    assert session.failed == 0
    assert results.judge.revision
    assert results.coverage.verdicts["parse_error"] + results.coverage.verdicts["truncated"] == 4 * criteria
    assert results.metrics == {}
    assert judge(few, "tiny", **settings).asked == 0


@pytest.mark.full
@pytest.mark.parametrize("task", ["referring", "temporal_vqa"])
def test_a_local_judge_is_held_to_its_form_by_default(task: str, kitchen_runs: dict[tuple[str, str], Path]) -> None:
    """The same nonsense, with a verdict in every reply, and the expected score by the form's limits."""
    few = kitchen_runs[task, "few"]
    settings = {"verdicts_per_answer": 1, "max_new_tokens": 700, "device": "cpu", "temperature": 1.0}
    session = judge(few, "tiny", **settings)
    run = score_judged(session.run, session.folder)
    results, verdicts = run.results, [verdict for each in run.verdicts.values() for verdict in each]
    assert results.coverage.verdicts["ok"] == len(verdicts) == 2 * {"referring": 1, "temporal_vqa": 2}[task]
    assert results.scoring["weighted"] == len(verdicts)
    assert 0 < results.metrics["mean"].mean < 1
    assert results.comparability.judge is not None
    assert results.comparability.judge.held
    described = read_judge(session.folder)
    assert "held to the JSON Schema" in described.note
    assert described.identity["reason_length"] == 600
    assert judge(few, "tiny", **settings).asked == 0
    assert judge(few, "tiny", **settings, structured_output=False).folder != session.folder


def _answers(samples: tuple) -> list[tuple[str, str]]:
    return [(sample.example.example_id, str(sample.prediction.value)) for sample in samples]
