"""From the datasets' own layouts to questions: imported graphs are valid, proved, and answered by the oracle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.errors import DataError
from barista_bench.generate.family import FAMILIES
from barista_bench.generate.generator import generate
from barista_bench.hub.files import all_files
from barista_bench.hub.publishing import check_publication
from barista_bench.hub.submission import make_submission
from barista_bench.other_graphs.importing import import_graphs
from barista_bench.runs.score.scoring import score
from barista_bench.scene_graph import SceneGraph, validate
from tests.generate.claims import held_against
from tests.generate.test_proof import differing, faults
from tests.hub.made_results import DATASET, MODEL
from tests.one_run import run
from tests.other_graphs.stand_ins import write_pvsg, write_visor

SAMPLING = {
    "grounding": {"in_activities": False, "fraction": 1.0, "with_relations": False, "limit": 6},
    "mask_tracking": {"spacing": 2, "limit": 3},
}
ASKED = {"pvsg": {"tog_bench", "egocot", "handyvqa"}, "visor": {"egocot"}}
"""Families that find something to ask of the small stand-ins."""
BUILT = {
    ("pvsg", "barista"): {"grounding"},
    ("pvsg", "extended"): {"mask_tracking"},
    ("visor", "barista"): {"grounding"},
}
"""Tasks whose answers the sources leave nothing open of."""

EXACT = {"tog_bench": {"matcher": "exact"}}
"""Without the sentence encoder."""


@pytest.mark.full
@pytest.mark.parametrize("name", ASKED)
def test_imported_graphs_are_valid_and_their_questions_are_proved(
    name: str, graphs: dict[str, Path], tmp_path: Path
) -> None:
    assert not validate(graphs[name]).problems
    reports = generate(graphs[name], tmp_path / "made", list(FAMILIES), per_subtask=10)
    asked = tuple(report.family for report in reports if report.sampled)
    assert set(asked) == ASKED[name]
    assert all(report.shortage for report in reports if not report.sampled)
    assert not list(faults(graphs[name], tmp_path / "made", asked))
    assert not list(differing(tmp_path / "made", asked))


@pytest.mark.full
@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_the_oracle_answers_all_that_is_built(
    name: str, benchmark: str, graphs: dict[str, Path], tmp_path: Path
) -> None:
    source = graphs[name]
    if benchmark in FAMILIES:
        if benchmark not in ASKED[name]:
            pytest.skip("nothing to ask")
        generate(source, tmp_path / "generated", [benchmark], per_subtask=4)
        source = tmp_path / "generated" / benchmark
    sampling = {task: SAMPLING[task] for task in SAMPLING if task in BENCHMARKS[benchmark].task_names}
    settings = {"benchmark": benchmark, "configs": BENCHMARKS[benchmark].task_names, "sampling": sampling}
    if benchmark not in FAMILIES and (name, benchmark) not in BUILT:
        with pytest.raises(DataError, match="no example for any of"):
            build(source, tmp_path / "data", cache=False, **settings)
        return
    built = build(source, tmp_path / "data", cache=False, **settings)
    names = {config.name for config in built.configs}
    assert names == BUILT.get((name, benchmark), names)
    for task in names:
        asked = {"benchmark": benchmark, "task": task, "split": "dev" if benchmark == "egocot" else "all"}
        run(tmp_path / "data", tmp_path / task, model="oracle", repetitions=1, **asked)
        results = score(tmp_path / task, options=EXACT.get(benchmark)).results
        assert results.metrics[results.primary].mean == pytest.approx(1.0), task


@pytest.mark.full
@pytest.mark.parametrize("name", ASKED)
def test_nothing_is_claimed_of_a_third_withheld_from_a_source_that_all_of_it_denies(
    name: str, small_kitchen: Path, graphs: dict[str, Path], tmp_path: Path
) -> None:
    write = {"pvsg": write_pvsg, "visor": write_visor}[name]
    import_graphs(name, write(small_kitchen, tmp_path / "source", withheld=1 / 3), tmp_path / "graphs")
    held = held_against(tmp_path / "graphs", graphs[name])
    assert not held.denied
    assert held.counts[True] > 20


@pytest.mark.full
def test_licence_and_citation_go_along_and_no_other_licence_is_published(
    graphs: dict[str, Path], tmp_path: Path
) -> None:
    settings = {"configs": ["grounding"], "sampling": {"grounding": SAMPLING["grounding"]}, "cache": False}
    build(graphs["visor"], tmp_path / "own", **settings)
    generate(graphs["visor"], tmp_path / "generated", ["egocot"], per_subtask=4)
    build(tmp_path / "generated" / "egocot", tmp_path / "other", benchmark="egocot", cache=False)
    for folder in (tmp_path / "own", tmp_path / "other"):
        card = (folder / "README.md").read_text()
        assert "license: cc-by-nc-4.0" in card
        assert "visor2022" in card
        assert check_publication(folder, "org/name").files
        (folder / "README.md").write_text(card.replace("license: cc-by-nc-4.0", "license: mit"))
        with pytest.raises(DataError, match=r"under 'cc-by-nc-4.0'.*or not at all"):
            check_publication(folder, "org/name")
    manifest = json.loads((tmp_path / "own" / "barista_bench.json").read_text())
    assert manifest["source"]["terms"]["title"] == "VISOR"


@pytest.mark.full
def test_the_submission_of_a_run_holds_figures_and_no_data(graphs: dict[str, Path], tmp_path: Path) -> None:
    """No question, answer or reference leaves the machine, so that the licence of the data is not touched."""
    generate(graphs["visor"], tmp_path / "generated", ["egocot"], per_subtask=4)
    data = build(tmp_path / "generated" / "egocot", tmp_path / "data", benchmark="egocot", cache=False).folder
    examples = open_examples(data, "egocot", "cot").examples
    lines = [{"format": "barista_bench.predictions/1", "box_format": "xyxy/1000", "model": MODEL}]
    lines += [{"example_id": example.example_id, "answer": "A"} for example in examples]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    model = f"predictions:{tmp_path / 'answers.jsonl'}"
    run(data, tmp_path / "run", benchmark="egocot", task="cot", model=model, repetitions=1)
    score(tmp_path / "run")
    target = {"model_repo": MODEL, "dataset_repo": DATASET}
    files = all_files(make_submission([tmp_path / "run"], target, dataset=data, allow_incomplete=True))
    sent = b"".join(content for repository in files for content in repository.values()).decode()
    assert MODEL in sent
    said = [*(str(example.inputs["question"]) for example in examples), *(example.example_id for example in examples)]
    assert said
    assert not [text for text in said if text in sent]
    assert not [video_id for video_id in SceneGraph(graphs["visor"]).video_ids if video_id in sent]
