"""What tasks declare of their primary metric is true: the sums of its terms give it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from barista_bench.benchmarks import BENCHMARKS, task_class
from barista_bench.data.folder import build
from barista_bench.runs.ask import runner
from barista_bench.runs.decide.opening import rival_offsets
from barista_bench.runs.score.scoring import read_scored

DECLARED = {
    name: [task for task in BENCHMARKS[name].task_names if task_class(name, task).decided_by is not None]
    for name in BENCHMARKS
}


def test_means_and_micro_f1_are_declared_and_nothing_else() -> None:
    assert DECLARED == {
        "barista": ["hand_object", "referring", "activity", "relations", "temporal_vqa"],
        "vista": [],
        "handyvqa": [],
        "tog_bench": ["t_stvg"],
        "egocot": ["cot"],
        "extended": ["open_activity", "anticipation"],
    }


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name, tasks in DECLARED.items() if tasks])
@pytest.mark.parametrize("model", ["chance", "oracle"])
def test_the_sums_of_the_terms_give_the_primary_metric(
    name: str, model: str, source_of: Callable[[str], Path], tmp_path: Path
) -> None:
    data = build(source_of(name), tmp_path / "data", benchmark=name, sampling={"limit": 20}, cache=False).folder
    options = ("matcher=exact",) if name == "tog_bench" else ()
    split = "dev" if name == "egocot" else "all"  # answers of the other split are hidden
    runner.run(
        data, tmp_path / "run", task=tuple(DECLARED[name]), model=model, repetitions=2, option=options, split=split
    )
    for task in DECLARED[name]:
        offsets = rival_offsets(read_scored(tmp_path / "run" / task))
        assert np.isclose(offsets.sum(), 0.0, atol=1e-6)
