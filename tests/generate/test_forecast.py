"""The forecast says what `generate` then makes, and what to do about each reason for which it makes no more."""

from itertools import chain
from pathlib import Path

import pytest
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.generate.candidates import DIVISIBLE, TOO_FEW, UNPROVED
from barista_bench.generate.family import FAMILIES
from barista_bench.generate.forecast import LARGEST, forecast, remedy_of
from barista_bench.generate.generator import generate
from barista_bench.generate.statements import Statement
from tests.generate.lemonade import lemonade


def all_statements(kind: type[Statement] = Statement) -> set[type[Statement]]:
    return {kind}.union(*map(all_statements, kind.__subclasses__()))


def test_the_forecast_counts_the_items_that_generate_makes(small_release: Path, tmp_path: Path) -> None:
    expected = forecast(small_release, ["egocot", "tog_bench"], per_subtask=3)
    reports = generate(small_release, tmp_path / "made", ["egocot", "tog_bench"], per_subtask=3)
    assert expected.items == {r.family: {row.subtask: row.sampled for row in r.subtasks} for r in reports}
    assert 0 < len(expected.obstacles) <= LARGEST
    assert [row.candidates for row in expected.obstacles] == sorted((r[1] for r in expected.obstacles), reverse=True)


def test_every_reason_has_a_remedy() -> None:
    reasons = [
        UNPROVED,
        TOO_FEW,
        DIVISIBLE,
        "an action: it has less than 3 frames of its own",
        "it lasts more than 4 s",
    ]
    for reason in chain(reasons, (kind.unmet for kind in all_statements())):
        assert remedy_of(reason)


def test_a_dry_run_writes_nothing_and_a_run_needs_a_folder(small_release: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    flags = ["generate", "--source", str(small_release), "--families", "egocot"]
    done = CliRunner().invoke(cli.app, [*flags, "--dry-run"])
    assert done.exit_code == 0, done.output
    assert "egocot: " in done.output
    assert "Fix: " in done.output
    assert sorted(tmp_path.iterdir()) == before
    refused = CliRunner().invoke(cli.app, flags)
    assert refused.exit_code != 0
    assert "--dry-run" in refused.output


@pytest.mark.parametrize("family", FAMILIES)
def test_a_short_clip_of_look_alike_things_gives_questions(tmp_path: Path, family: str) -> None:
    """Two lemons, two cups, actions of a third of a second; without its domain file."""
    least = {"vista": 15, "handyvqa": 5, "tog_bench": 4, "egocot": 40}
    expected = forecast(lemonade(tmp_path), [family])
    assert sum(expected.items[family].values()) >= least[family], expected
