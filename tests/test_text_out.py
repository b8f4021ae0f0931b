"""Text on its way out: nothing of others commands a terminal, ends a line, a cell or a tag, or is a formula."""

import ast
import logging
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest
from hypothesis import given, strategies as st

import barista_bench
from barista_bench.files import text_out

PACKAGE = Path(barista_bench.__file__).parent
HOSTILE = ["\x1b]0;x\x07", "\x9b2J", "a\u202eb\u2066", "\r\nerror: none", "\ud800", "\x85\u2028x", "\x00"]
FORMULAS = [
    "=HYPERLINK(1)",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "＝1+1",
    "\u200b=1",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_line_on_the_terminal_is_one_printable_line(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    text_out.echo(f"model {text}", "second", color="red", err=True)
    text_out.echo(text)
    captured = capsys.readouterr()
    for stream, lines in ((captured.err, 2), (captured.out, 1)):
        assert stream.count("\n") == lines
        assert stream.replace("\n", "").isprintable()


@pytest.mark.parametrize("text", HOSTILE)
def test_a_line_of_a_log_is_one_printable_line(text: str) -> None:
    formatter = text_out.LogFormatter("%(levelname)s %(name)s: %(message)s")
    record = logging.LogRecord("barista_bench.x", logging.WARNING, "x.py", 1, "of %s", (text,), None)
    assert formatter.format(record).isprintable()
    assert record.args == (text,), "other handlers get what was logged"
    try:
        raise ValueError(text)
    except ValueError as error:
        record.exc_info = (type(error), error, error.__traceback__)
    line = formatter.format(record)
    assert "Traceback" in line
    assert line.replace("\n", "").isprintable()


@given(st.text())
def test_markdown_text_is_one_line_that_closes_nothing(text: str) -> None:
    shown = text_out.markdown(text)
    assert shown.isprintable()
    assert not {"<", ">"} & set(shown)
    assert all(shown[at - 1] == "\\" for at, letter in enumerate(shown) if letter in "|[]`*~")


@pytest.mark.parametrize("text", [*HOSTILE, "<script>alert(1)</script>", "\"'&"])
def test_a_page_holds_printable_text_without_tags(text: str) -> None:
    environment = jinja2.Environment(autoescape=True, finalize=text_out.prepare_for_template)
    page = environment.from_string('<p title="{{ text }}">{{ text }}</p>').render(text=text)
    assert page.replace("\n", "").isprintable()
    assert page.count("<") == page.count(">") == page.count('"') == 2


DOORS = ("files/text_out.py", "tables.py")
METHODS = (".to_csv", ".to_latex", ".to_markdown", ".to_html", ".to_string", ".echo", ".secho")
FUNCTIONS = {"print", "csv.writer", "csv.DictWriter", "tqdm.write", "warnings.warn"}
ROUND_THE_DOOR = {("generate/vista/release.py", "csv.writer"): "the release's own metadata.csv, with texts as they are"}
FILES_FOR_PEOPLE = (".md", ".csv", ".tex", ".html")
WRITING = {"write_text", "write_bytes", "write_whole", "save", "open", "atomic_write", "savefig"}
WRITERS_OF_FILES = {
    "annotate/decisions.py": "reads a table of confidences; what it writes is JSON",
    "stats/tables.py": "tables.to_csv",
    "runs/ask/sweep.py": "tables.to_csv",
    "runs/ask/watching.py": "tables.to_csv",
    "cli/run_commands.py": "opens a page in the browser, and writes nothing",
    "cli/judge_commands.py": "cross_text.as_markdown",
    "reporting/__init__.py": "text_out.markdown, render_html, tables.to_csv, tables.to_latex",
    "scene_graph/statistics_files.py": "tables.markdown_page",
    "cli/data_commands.py": "tables.markdown_page",
    "cli/generate_commands.py": "audit_page, which render_html's environment escapes",
    "data/manifest.py": "names of configs and figures, which are ours",
    "hub/files.py": "YAML metadata of a card, which escapes, and a dataset's files as they are",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in DOORS:
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def calls(tree: ast.Module) -> Iterator[str]:
    """The called function as written: `print`, `csv.writer`, `frame.to_csv`."""
    return (ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call))


@pytest.mark.full
def test_every_print_and_writer_of_tables_escapes_its_text() -> None:
    entrances = {
        (name, call)
        for name, tree in modules()
        for call in calls(tree)
        if call in FUNCTIONS or (call.endswith(METHODS) and call != "text_out.echo")
    }
    assert entrances == set(ROUND_THE_DOOR)
    names = ("stdout", "stderr", "__stdout__", "__stderr__")
    streams = {
        (name, ast.unparse(node))
        for name, tree in modules()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and ast.unparse(node) in [f"sys.{stream}" for stream in names])
        or (isinstance(node, ast.ImportFrom) and node.module == "sys" and any(a.name in names for a in node.names))
    }
    assert not streams


@pytest.mark.full
def test_every_module_that_writes_files_for_people_is_listed_with_its_way_to_escape() -> None:
    writers = set()
    for name, tree in modules():
        names = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is str)
        if any(text.endswith(FILES_FOR_PEOPLE) and len(text) < 40 for text in names):
            writers |= {name} if {call.rsplit(".", 1)[-1] for call in calls(tree)} & WRITING else set()
    assert writers == set(WRITERS_OF_FILES)


@pytest.mark.full
def test_every_template_escapes_its_text() -> None:
    environments = [
        (name, node)
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Environment"
    ]
    # summary.txt is a file of the release, written as the release writes it
    assert [name for name, _ in environments] == ["interchange/released_folder.py", "reporting/html.py"]
    assert {"autoescape", "finalize"} <= {keyword.arg for keyword in environments[1][1].keywords}
