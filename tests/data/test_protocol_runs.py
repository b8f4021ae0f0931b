"""The protocol through build, run and score: recorded everywhere, and never mixed."""

import json
from pathlib import Path

import pytest

from barista_bench.data.folder import build
from barista_bench.errors import ConfigError
from barista_bench.runs.score.scoring import score
from tests.one_run import run


@pytest.mark.parametrize("protocol", ["release", "paper"])
def test_results_name_the_protocol_and_follow_it(protocol: str, six_frozen: Path, tmp_path: Path) -> None:
    run(six_frozen, tmp_path / "run", task="hand_object", model="oracle", repetitions=1, protocol=protocol)
    results = score(tmp_path / "run").results
    assert results.protocol == protocol
    assert json.loads((tmp_path / "run/run.json").read_text())["protocol"] == protocol
    # The oracle answers on the grid, which only the released rules call exactly right.
    assert (results.metrics["object_iou"].mean == pytest.approx(1.0, abs=1e-9)) == (protocol == "release")


def test_a_run_is_not_continued_under_other_rules(six_frozen: Path, tmp_path: Path) -> None:
    run(six_frozen, tmp_path / "run", task="grounding", model="oracle", repetitions=1)
    with pytest.raises(ConfigError, match="protocol"):
        run(six_frozen, tmp_path / "run", task="grounding", model="oracle", repetitions=1, protocol="paper")


def test_sets_of_the_paper_are_run_by_the_paper_alone(
    kitchen_release: Path, kitchen_split: str, tmp_path: Path
) -> None:
    settings = {"configs": ["activity", "referring"], "sampling": {"limit": 4}, "split_file": kitchen_split}
    made = build(kitchen_release, tmp_path / "papers", options={"protocol": "paper"}, cache=False, **settings)
    for name in ("activity", "referring"):
        with pytest.raises(ConfigError, match="was frozen by the protocol 'paper', not 'release'"):
            run(made.folder, tmp_path / f"{name}_release", task=name, model="oracle", repetitions=1)
        run(made.folder, tmp_path / name, task=name, model="oracle", repetitions=1, protocol="paper")
        results = score(tmp_path / name).results
        assert results.metrics[results.primary].mean == pytest.approx(1.0)
