"""The counterparts of the paper's figures: means, their groups, and omissions."""

import math
import random

import numpy as np
import pytest

from barista_bench.benchmarks.vista.matching import All, VirtualHome
from barista_bench.benchmarks.vista.paper_tables import BASELINE, paper_tables
from barista_bench.core.example import Scored
from barista_bench.core.model_samples import ModelSamples
from barista_bench.tables import RangedScore, Table
from tests.vista.made import by_set, example, match, scored

PLACES = [
    ("virtual_home", 1, "objects"),
    ("virtual_home", 2, "general"),
    ("virtual_home", 3, "permutation"),
    ("virtual_home", 2, "permutation"),
    ("real_world", 1, "tracking"),
    ("real_world", 3, "general"),
    ("minecraft", 2, "general"),
]


def run(seed: int, *, sets: int = 4, frames: int = 16, environments: tuple[str, ...] = ()) -> tuple[Scored, ...]:
    """Random scores for a few sets of every place."""
    rng = random.Random(seed)
    samples = []
    for environment, level, kind in PLACES:
        for number in range(sets):
            for at, label in enumerate("abc"):
                about = {"level": level, "kind": kind, "environment": environment, "frames": frames}
                asked = example(f"{environment}/{level}/{kind}/{number}", f"v{at}", reference=[label], **about)
                if not environments or environment in environments:
                    samples.append(scored(asked, {name: rng.randint(0, 5) * 1.0 for name in "abc"}))
    return tuple(samples)


def model_samples(model: str, *runs: tuple[Scored, ...]) -> ModelSamples:
    return ModelSamples(model, All(), runs)


def f1s(samples: tuple[Scored, ...], *group: object) -> list[float]:
    keys = ("environment", "level", "type")
    matched = [match(of_set) for of_set in by_set(samples).values()]
    return [
        metrics.f1
        for metrics in matched
        if metrics.f1 is not None
        and all(want in (None, getattr(metrics.metadata, k)) for k, want in zip(keys, group, strict=True))
    ]


def chart(items: list[Table], title: str) -> Table:
    (only,) = [item for item in items if item.drawn and item.title.startswith(title)]
    return only


def test_the_table_has_a_row_for_every_environment_level_and_type_in_the_papers_order() -> None:
    samples = run(1)
    table = paper_tables([model_samples("m", samples)])[0]
    assert table.heads == ("environment", "level", "type", "problem sets", "m", BASELINE)
    assert [row[:4] for row in table.values] == [
        ("virtual home", 1, "objects", 4),
        ("virtual home", 2, "general", 4),
        ("virtual home", 2, "permutation", 4),
        ("virtual home", 3, "permutation", 4),
        ("real world", 1, "tracking", 4),
        ("real world", 3, "general", 4),
        ("minecraft", 2, "general", 4),
        ("all", None, None, 28),
    ]
    values = f1s(samples, "virtual_home", 2, "permutation")
    half = 1.96 * np.std(values, ddof=1) / (math.sqrt(4) + 1e-6)
    cell = table.values[2][4]
    assert isinstance(cell, RangedScore)
    assert cell == pytest.approx((np.mean(values), np.mean(values) - half, np.mean(values) + half))
    assert isinstance(table.values[-1][5], RangedScore)
    assert table.values[-1][5].value == pytest.approx(1 / 6)


def test_runs_are_averaged_within_each_set_before_the_interval() -> None:
    first, second = run(1), run(2)
    table = paper_tables([model_samples("m", first, second)])[0]
    means = [(a + b) / 2 for a, b in zip(f1s(first, None, None, None), f1s(second, None, None, None), strict=True)]
    cell = table.values[-1][4]
    assert cell.value == pytest.approx(np.mean(means))
    assert cell.high - cell.value == pytest.approx(1.96 * np.std(means, ddof=1) / (math.sqrt(28) + 1e-6))


def test_a_set_that_two_tasks_ask_for_counts_once() -> None:
    everything, home = run(1), run(1, environments=("virtual_home",))
    both = [model_samples("m", everything), ModelSamples("m", VirtualHome(), (home,))]
    assert paper_tables(both)[0].values == paper_tables([model_samples("m", everything)])[0].values


def test_a_row_of_one_set_has_no_interval_and_no_samples_make_no_table() -> None:
    assert isinstance(paper_tables([model_samples("m", run(1, sets=1))])[0].values[0][4], float)
    assert paper_tables([]) == paper_tables([model_samples("m", ())]) == []


def test_a_model_without_an_environment_has_no_cell_there() -> None:
    home = model_samples("home", run(2, environments=("virtual_home",)))
    table = paper_tables([model_samples("all", run(1)), home])[0]
    assert table.heads[4:] == ("all", "home", BASELINE)
    assert [row[5] is None for row in table.values] == [False] * 4 + [True] * 3 + [False]


def test_sequence_lengths_are_drawn_over_all_environments_and_for_each() -> None:
    samples = run(1)
    items = paper_tables([model_samples("m", samples)])
    overall = chart(items, "Figure 3b")
    assert list(overall.series) == ["m", BASELINE]
    assert list(overall.series["m"]) == [1, 2, 3]
    assert overall.series["m"][2].value == pytest.approx(np.mean(f1s(samples, None, 2, None)))
    home = chart(items, "Figure 13a")
    assert home.series["m"][2].value == pytest.approx(np.mean(f1s(samples, "virtual_home", 2, None)))
    titles = [item.title for item in items]
    assert not any(title.startswith("Figure 15a") for title in titles)  # Minecraft has one level here


def test_permutations_are_compared_with_general_problem_sets() -> None:
    samples = run(1)
    items = paper_tables([model_samples("m", samples)])
    general, order = chart(items, "Figure 4: general"), chart(items, "Figure 4: permutation")
    assert list(general.series["m"]) == [2, 3]
    assert order.series["m"][2].value == pytest.approx(np.mean(f1s(samples, None, 2, "permutation")))
    assert order.series[BASELINE][2].value == pytest.approx(1 / 6)


def test_single_actions_are_bars_by_environment_and_type() -> None:
    bars = chart(paper_tables([model_samples("m", run(1))]), "Figure 3a")
    assert bars.drawn == "bar"
    assert list(bars.series["m"]) == ["virtual home: objects", "real world: tracking"]


def test_numbers_of_frames_are_compared_where_a_model_was_shown_several() -> None:
    few, many = run(1, frames=2), run(2, frames=8)
    models = [model_samples("dual:x (two)", few), model_samples("dual:x (eight)", many), model_samples("other", run(3))]
    items = paper_tables(models)
    general, single = chart(items, "Figure 5"), chart(items, "Figure 16")
    (points,) = general.series.values()
    assert [(x, y.value) for x, y in points.items()] == [
        (2, pytest.approx(np.mean(f1s(few, None, None, "general")))),
        (8, pytest.approx(np.mean(f1s(many, None, None, "general")))),
    ]
    assert list(single.series) == ["dual:x: objects", "dual:x: tracking"]
    assert not any(item.title.startswith(("Figure 5", "Figure 16")) for item in paper_tables(models[1:]))


def test_a_model_that_was_shown_several_numbers_of_frames_has_a_column_for_each() -> None:
    few, many = model_samples("m", run(1, frames=2)), model_samples("m", run(2, frames=8))
    table, alone = paper_tables([few, many, model_samples("n", run(3))])[0], paper_tables([few])[0]
    assert table.heads[4:] == ("m, 2 frames", "m, 8 frames", "n", BASELINE)
    assert [row[4] for row in table.values] == [row[4] for row in alone.values]


def test_the_cluttered_table_is_compared_simulated_and_filmed() -> None:
    samples = []
    for number, name in enumerate(("recognize_small_object_habitat", "recognize_small_object_real")):
        for at, label in enumerate("abc"):
            about = {"level": 1, "kind": "objects", "environment": "real_world"}
            asked = example(f"real_life/extrapyramidal/object/{name}", f"v{at}", reference=[label], **about)
            asked.metadata["release_type"] = "object"
            right = dict(zip("abc", (5.0 * (other == label) for other in "abc"), strict=True))
            samples.append(scored(asked, right if number else {"a": 5.0, "b": 0.0, "c": at * 1.0}))
    compared = chart(paper_tables([model_samples("x", tuple(samples))]), "Figure 17")
    assert compared.series == {
        "x": {"recognize small object habitat": match(samples[:3]).f1, "recognize small object real": 1.0}
    }
