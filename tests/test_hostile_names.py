"""Hostile names in a release, in questions and of models: what reaches a terminal or a file for people is harmless."""

import csv
import json
import logging
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

import barista_bench.cli.app as command
from barista_bench.cli.commands import app
from barista_bench.files.text_out import LogFormatter
from tests.releases import CUP, MACHINE, document, write_release
from tests.served_standin import ServedStandIn

CATEGORY = '=HYPERLINK("http://evil.example","\x1b[2Jcup\u202e")'
VIDEO = "v\x1b]0;owned\x07\u2066"
QUIET = "--no-progress"  # bars go back to the start of their line
MODELS = ["=1+1\x1b[31m\u202ered", "@SUM(1)\n\x9b2Jerror: none"]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Three videos; one has a hostile name, all have hostile categories and values, and one has a reported record."""
    try:
        os.fsencode(VIDEO)
    except UnicodeEncodeError:
        pytest.skip("the names of files in this locale cannot hold every character")
    for number, (name, kind) in enumerate([("a", "capsule"), (VIDEO, "portafilter"), ("c", "fully automatic")]):
        content = document(kind)
        for category in content["categories"]:
            if category["id"] in (f"c-{CUP}", content["object_id_to_category_id"][CUP]):
                category["name"] = CATEGORY
        content["attributes"].append(
            {
                "object_id": MACHINE,
                "attribute_type": f"\x1b[31mstate{number}",
                "value": "+\u202eon",
                "image_ranges": [{"image_id_start": 5, "image_id_end": 4}],
            }
        )
        write_release(tmp_path / "release", name, content)
    return tmp_path / "release"


def output_of(*arguments: object) -> str:
    """The terminal output of a command; every line of it is printable."""
    done = CliRunner().invoke(app, list(map(str, arguments)))
    for stream in (done.stdout, done.stderr):
        for line in stream.split("\n"):
            assert line.isprintable(), line
            assert not line.startswith("error: none")
    assert done.exit_code in (0, 1)
    assert not done.exception or isinstance(done.exception, SystemExit), done.exception
    return f"{done.stdout}{done.stderr}"


def readable(path: Path) -> str:
    text = path.read_bytes().decode("utf-8")
    assert all(line.replace("\t", "").isprintable() for line in text.split("\n")), path
    return text


@pytest.mark.full
def test_hostile_names_do_no_harm(release: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert "\\x1b]0;owned" in output_of("validate", release, QUIET)
    output_of("show", "stats", release, "--out", tmp_path / "stats", "--no-plots", QUIET)
    assert "HYPERLINK" in readable(tmp_path / "stats" / "statistics.md")
    source = ("--source", release, "--sampling", "frame_step=10", "--no-cache", QUIET)
    source += ("--configs", "relations", "--configs", "grounding")
    dry = output_of("build", *source, "--dry-run", "--out", tmp_path / "x")
    assert "\\x1b[2Jcup\\u202e" in dry
    data = tmp_path / "barista"
    output_of("build", *source, "--out", data)
    runs = []
    with ServedStandIn() as server:
        for number, model in enumerate(MODELS):
            for task in ("relations", "grounding"):
                runs.append(tmp_path / "runs" / f"{task}{number}")
                served = ("--model", f"served:{model}", "--base-url", server.url)
                output_of(
                    "run", data, "--out", runs[-1], "--task", task, "--repetitions", 2, "--limit", 6, *served, QUIET
                )
    assert "\\x1b[31m" in output_of("score", *runs)
    assert "\\x1b[31m" in output_of("compare", *runs, "--csv", tmp_path / "compare.csv", "--permutations", 100)
    output_of("compare", "all", *runs, "--out", tmp_path / "csv", "--permutations", 100)
    output_of("report", *runs, "--out", tmp_path / "report", "--tables")
    output_of("compare", "settings", *runs[::2])
    output_of("show", "trace", VIDEO, 10, "--data", data)
    tables = [tmp_path / "compare.csv", *(tmp_path / "csv").glob("*.csv"), *(tmp_path / "report").rglob("*.csv")]
    assert len(tables) > 6
    cells = [cell for path in tables for row in csv.reader(readable(path).splitlines()) for cell in row]
    assert any("HYPERLINK" in cell or "=1+1" in cell for cell in cells)
    for cell in cells:
        assert not cell.startswith(("=", "@")), cell
        assert not cell.startswith(("+", "-")) or cell[1:2].isdigit() or cell in ("-", "–"), cell
    for path in [*(tmp_path / "report").rglob("*.tex"), tmp_path / "report/report.md", tmp_path / "report/report.html"]:
        assert readable(path)
    formatter = LogFormatter("%(levelname)s %(name)s: %(message)s")
    assert all(formatter.format(record).replace("\n", "").isprintable() for record in caplog.records)


def test_the_command_escapes_its_log_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, list[logging.Handler]] = {}
    monkeypatch.setattr(logging, "basicConfig", lambda **settings: given.update(settings))
    monkeypatch.setattr(command, "app", lambda: None)
    command.run_command()
    assert [type(handler.formatter) for handler in given["handlers"]] == [LogFormatter]


def test_an_error_that_quotes_a_file_is_one_printable_line(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text(json.dumps({"\x1b[2J\nerror": "\u202e"}))
    assert output_of("score", run).count("\n") == 1
