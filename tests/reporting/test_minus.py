"""A minus is a minus where people read, and a hyphen where programs do."""

from __future__ import annotations

from barista_bench.reporting import export
from barista_bench.reporting.tables import Column, Table, cells


def test_people_see_a_minus_sign_and_files_for_programs_hold_what_these_read() -> None:
    table = Table(
        "t", (Column("model", numeric=False), Column("difference")), (cells("a-b", -0.0421), cells("c", -0.0))
    )
    assert [row[1].text for row in table.rows] == ["−0.042", "0.000"]
    assert export.csv(table) == "model,difference\na-b,-0.042\nc,0.000\n"
    assert "a-b & $-$0.042" in export.latex(table)
