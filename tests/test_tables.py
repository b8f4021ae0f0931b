"""The renderers of a table: each shows all of it, and none lets a text out of its cell."""

import csv
import io
import json
import re

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from barista_bench.tables import (
    Cell,
    Column,
    RangedScore,
    Table,
    markdown_page,
    to_csv,
    to_html,
    to_json,
    to_latex,
    to_markdown,
    to_text,
)
from tests.reporting.made_runs import HOSTILE
from tests.test_text_out import FORMULAS

ODD = Table(
    f"Odd & {HOSTILE}",
    (Column("model", numeric=False), Column("50% _score_", "a#b"), Column("50% _score_", "a#b")),
    (
        (Cell("=HYPERLINK(1)"), Cell("0.5", "± 0.1", notes=("[0.4, 0.6]", "95 % answered")), Cell("-0.25")),
        (Cell(f"x_{HOSTILE}\nnext"), Cell("1"), Cell("–")),
    ),
)


def test_csv_has_every_part_and_no_formula() -> None:
    head, first, second = csv.reader(io.StringIO(to_csv(ODD)))
    assert head == ["model", *["a#b: 50% _score_" + end for end in ("", " spread", " notes", "")]]
    assert first == ["'=HYPERLINK(1)", "0.5", "± 0.1", "[0.4, 0.6]; 95 % answered", "-0.25"]
    assert second == [f"x_{HOSTILE} next", "1", "", "", "–"]


def test_latex_is_booktabs_and_escaped() -> None:
    text = to_latex(ODD)
    assert text.startswith("\\begin{tabular}{lrr}\n\\toprule\n")
    assert "a\\#b: 50\\% \\_score\\_" in text
    assert "0.5 ± 0.1 [0.4, 0.6] & -0.25 \\\\" in text
    assert "\\{\\{7*7\\}\\}" in text
    assert text.count("\\\\\n") == 3
    assert text.rstrip().endswith("\\bottomrule\n\\end{tabular}")


def read_csv(table: Table) -> list[list[str]]:
    return list(csv.reader(io.StringIO(to_csv(table))))


def test_tables_for_people_have_a_minus_sign_and_csv_a_hyphen() -> None:
    table = Table.of("t", ("model", "difference"), (("a-b −1", -0.0421), ("c", Cell(-0.0, "± −0.1"))))
    assert [row[1].text for row in table.rows] == ["−0.042", "0.000"]
    assert to_csv(table) == "model,difference,difference spread\na-b −1,-0.0421,\nc,-0.0,± -0.1\n"
    assert "& $-$0.042" in to_latex(table)


def test_a_column_given_by_its_name_is_numeric_where_it_holds_no_text() -> None:
    table = Table.of("t", ("name", "n", Column("p", numeric=True)), (("a", 1200, "< 0.001"), (None, None, None)))
    assert [column.numeric for column in table.columns] == [False, True, True]
    assert to_markdown(table)[1] == "| --- | ---: | ---: |"
    assert to_latex(table).startswith("\\begin{tabular}{lrr}")
    assert "\\caption{50 \\% of a\\_b \\& c}" in to_latex(table, "50 % of a_b & c")


def test_files_for_programs_hold_numbers_as_they_are_and_people_see_them_rounded() -> None:
    third = 1 / 3
    rows = ((12345, third, RangedScore(0.5, 0.25, 1.0)), (None, float("nan"), RangedScore(1.0, float("nan"), 2.0)))
    table = Table.of("t", ("n", "x", "r"), rows, "said")
    assert to_csv(table).splitlines() == [
        "n,x,r,r notes",
        f'12345,{third!r},0.5,"[0.250, 1.000]"',
        ',,1.0,"[–, 2.000]"',
    ]
    assert json.loads(json.dumps(to_json(table), allow_nan=False)) == {
        "title": "t",
        "columns": ["n", "x", "r"],
        "rows": [[12345, third, [0.5, 0.25, 1.0]], [None, None, [1.0, None, 2.0]]],
        "note": "said",
    }
    assert to_markdown(table)[2:] == [
        "| 12,345 | 0.333 | 0.500 \\[0.250, 1.000\\] |",
        "| – | – | 1.000 \\[–, 2.000\\] |",
    ]
    assert to_text(table).splitlines()[1].split() == ["12,345", "0.333", "0.500", "[0.250,", "1.000]"]
    assert re.findall(r"<td>(.*?)</td>", to_html(table))[:3] == ["12,345", "0.333", "0.500 [0.250, 1.000]"]


def test_a_page_has_headings_notes_and_counts_the_rows_that_it_leaves_out() -> None:
    table = Table.of("Odd | title", ("n",), ((1,), (Cell(2, warn=True),), (3,)), "a <note>")
    page = markdown_page("All", [table, Table.of("", ("m",), ())])
    assert page == (
        "# All\n\n## Odd \\| title\n\n| n |\n| ---: |\n| 1 |\n| **2** |\n| 3 |\n\na &lt;note&gt;\n\n| m |\n| ---: |\n"
    )
    assert to_markdown(table, 1) == ["| n |", "| ---: |", "| 1 |", "| … 2 more |"]


def test_a_frame_is_a_table_whose_missing_values_are_empty() -> None:
    frame = pd.DataFrame({"name": ["a", None], "n": [1, 2], "x": [0.1, float("nan")], "of": [("b", 1), {"c": 2}]})
    table = Table.of_frame("t", frame)
    assert table.values == (("a", 1, 0.1, "('b', 1)"), (None, 2, None, "{'c': 2}"))
    assert Table.of_frame("t", frame[:0]).heads == ("name", "n", "x", "of")


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_a_csv_file_is_a_formula(text: str) -> None:
    rows = read_csv(Table.of("t", (text, "n", "x"), ((text, -1, -0.5), ("cup", None, Cell(2.0, text, notes=(text,))))))
    for cell in (rows[0][0], rows[1][0], *rows[2][3:]):
        assert cell.isprintable()
        assert not cell.startswith(("=", "+", "-", "@", "＝"))
    assert [row[1:3] for row in rows] == [["n", "x"], ["-1", "-0.5"], ["", "2.0"]], "numbers stay numbers"


@pytest.mark.parametrize("number", ["-1", "+0.5", "-3.2e-05", "-12%", "-1,234.5"])
def test_a_number_written_as_text_is_no_formula(number: str) -> None:
    assert read_csv(Table.of("t", ("a",), ((number,),)))[1] == [number]


TEXTS = st.text() | st.sampled_from([HOSTILE, "a|b <img> [x](y)", "\x1b[2J\nerror", "_&%$#{}~^\\x", "\u202e=1"])


@given(TEXTS)
def test_no_text_leaves_its_cell_in_any_format(text: str) -> None:
    table = Table.of(text, (text, Column(text, text)), ((text, Cell(1, text, notes=(f"[{text}",))),), text)
    assert [len(row) for row in read_csv(table)] == [len(read_csv(table)[0])] * 2
    lines = to_markdown(table)
    assert len(lines) == 3
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines} == {3}
    assert not re.search("[<>]", markdown_page(text, [table]))
    html = to_html(table)
    assert set(re.findall(r"<[^>]*>", html)) <= set(re.findall(r"<[^>]*>", to_html(Table.of("", "ab", (("x", 1),)))))
    body = to_latex(table).split("\\midrule")[1].split("\\bottomrule")[0]
    assert body.count("\n") == 2
    assert not re.search(r"(?<!\\)[%#]", body)
    assert len(to_text(table).split("\n")) == 2
    for written in (to_csv(table), *lines, html, to_latex(table), to_text(table)):
        assert written.replace("\n", "").isprintable()
