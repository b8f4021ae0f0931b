"""Every importer takes or counts each record of the same odd files, and loses no other record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.other_graphs.odd_files import IMPORTERS, Inapplicable, all_outcomes, heads, outcome, stated, table

REMEDY = "run python -m tests.other_graphs.odd_files"
CHECKED_OFTEN = ("a number in place of a record", "NaN in a polygon")
"""What most importers failed at before."""


@pytest.mark.parametrize("oddity", CHECKED_OFTEN)
@pytest.mark.parametrize("importer", IMPORTERS)
def test_a_bad_record_costs_that_record(importer: str, oddity: str, tmp_path: Path) -> None:
    try:
        found = outcome(IMPORTERS[importer], oddity, tmp_path)
    except Inapplicable:
        pytest.skip("the format cannot hold it")
    assert (found.kind, found.exit_code) == ("counted", 1), found
    assert found.message


def test_the_page_has_a_column_for_each_importer() -> None:
    assert stated().splitlines()[0] == heads(), REMEDY


@pytest.mark.full
@pytest.mark.timeout(900)
def test_every_record_of_every_odd_file_is_taken_or_counted_as_the_page_says() -> None:
    found = all_outcomes()
    broken = {place: row for place, row in found.items() if row.kind not in ("taken", "counted", "refused")}
    assert not broken
    assert all((row.exit_code == 0) == (row.kind == "taken") for row in found.values())
    assert table(found) == stated(), REMEDY
