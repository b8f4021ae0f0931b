"""The whole way: build, ask, score, report; baselines, a tiny vision-language model, a tiny sentence encoder."""

from pathlib import Path

import pytest

from barista_bench.api import evaluate
from barista_bench.core.settings import check_settings
from barista_bench.data.folder import build
from barista_bench.generate.generator import generate
from barista_bench.models.tiny import make_tiny_model
from barista_bench.reporting import write_report
from barista_bench.runs.ask.config import RunConfig
from barista_bench.runs.ask.opening import open_tasks
from barista_bench.runs.score.scoring import ScoredRun

pytest.importorskip("torch")


def asked(dataset: Path, model: str, out: Path, option: dict[str, str], **settings: object) -> ScoredRun:
    """Ask and score, greedily and once, as the paper does."""
    greedy = {"repetitions": 1, "temperature": 0.0, "progress": False, **settings}
    evaluation = evaluate(dataset, model, benchmark="tog_bench", task="t_stvg", out=out, option=option, **greedy)
    (run,) = evaluation.runs
    return run


@pytest.fixture(scope="module")
def runs(dataset: Path, encoder: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, ScoredRun]:
    folder = tmp_path_factory.mktemp("runs")
    names = ("oracle", "chance", "prior", "centre_box")
    return {model: asked(dataset, model, folder / model, {"encoder": encoder}) for model in names}


def test_oracle_chance_and_the_other_baselines_run_and_stand_where_they_belong(runs: dict[str, ScoredRun]) -> None:
    by_model = {model: run.results for model, run in runs.items()}
    fractions = {name: metric.mean for name, metric in by_model["oracle"].metrics.items() if name[0] in "OTSEI"}
    assert fractions == pytest.approx(dict.fromkeys(fractions, 1.0), abs=1e-9)
    assert len(fractions) == 37
    assert by_model["oracle"].coverage.answered == by_model["oracle"].coverage.expected
    main = {model: results.metrics["T-m_vIoU"].mean for model, results in by_model.items()}
    assert main["chance"] < 0.1
    assert main["prior"] < 0.2
    assert 0 < main["centre_box"] < 0.3
    assert by_model["centre_box"].metrics["T-Acc"].mean == 1
    assert set(by_model["oracle"].breakdowns) >= {"kind", "objects", "duration_bin"}
    recognition = by_model["oracle"].details[0]["recognition"]
    assert isinstance(recognition, dict)
    assert recognition["matcher"] == "embeddings"
    assert recognition["revision"], "the encoder is named by its content"


@pytest.mark.full
def test_the_report_holds_the_papers_tables(runs: dict[str, ScoredRun], tmp_path: Path) -> None:
    write_report(list(runs.values()), tmp_path / "report", compare=False)
    text = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    for title in ("Table 1", "Table 2", "Table 4", "Table 5", "Table 8", "Figure 5", "Recognition by the threshold"):
        assert title in text


@pytest.mark.full
def test_real_clips_go_the_whole_way(real_release: Path, encoder: str, tmp_path: Path) -> None:
    generate(real_release, tmp_path / "generated", ["tog_bench"])
    folder = build(tmp_path / "generated/tog_bench", tmp_path / "tog_bench", benchmark="tog_bench", cache=False).folder
    option = {"encoder": encoder}
    oracle = asked(folder, "oracle", tmp_path / "oracle", option).results
    assert oracle.metrics["ST-m_vIoU"].mean == pytest.approx(1)
    assert asked(folder, "chance", tmp_path / "chance", option).results.metrics["T-m_vIoU"].mean < 0.2
    tiny = str(make_tiny_model(tmp_path / "tiny"))
    run = asked(folder, tiny, tmp_path / "vlm", option, limit=2, max_new_tokens=8, batch_size=1)
    assert run.results.coverage.scored == 2


def test_the_oracle_scores_exactly_1_in_every_group(runs: dict[str, ScoredRun]) -> None:
    by_number = runs["oracle"].results.details[0]["by_number_of_objects"]
    assert isinstance(by_number, dict)
    assert {group["T-m_vIoU"] for group in by_number.values()} == {1.0}


def test_a_run_says_before_it_asks_that_scoring_needs_an_absent_encoder(
    dataset: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    absent, settings = {"encoder": "nobody/absent"}, {"benchmark": "tog_bench", "task": ("t_stvg",), "model": "oracle"}
    for option, is_said in ((absent, True), ({**absent, "matcher": "exact"}, False)):
        caplog.clear()
        texts = [f"{name}={value}" for name, value in option.items()]
        open_tasks(check_settings(RunConfig, {"data": str(dataset), "out": tmp_path, "option": texts, **settings}))
        assert ("`score` needs the encoder nobody/absent" in caplog.text) is is_said
