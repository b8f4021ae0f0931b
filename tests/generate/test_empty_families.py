"""A family without questions costs no other, and is reported with its reasons."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.errors import DataError
from barista_bench.generate.generator import generate
from tests.conftest import MadeOnce

PLAIN = ("egocot", "tog_bench")
"""What `small_release` has something for; its videos show too little for vista."""


@pytest.fixture(scope="module")
def plain(small_release: Path, made_once: MadeOnce) -> Path:
    """A release of both."""
    return made_once("plain_families", lambda out: generate(small_release, out, PLAIN, per_subtask=2))


@pytest.mark.full
def test_the_command_writes_other_families_and_reports_why_one_is_missing(small_release: Path, tmp_path: Path) -> None:
    reports = generate(small_release, tmp_path / "out", ["vista", *PLAIN], per_subtask=2)
    assert [(report.family, report.sampled > 0) for report in reports] == [
        ("vista", False),
        ("egocot", True),
        ("tog_bench", True),
    ]
    alone = generate(small_release, tmp_path / "alone", PLAIN, per_subtask=2)
    assert reports[1:] == alone
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {path.name for path in (tmp_path / "alone").iterdir()} | {"vista.report.json"}
    refused = [row["refused"] for row in json.loads((tmp_path / "out/vista.report.json").read_text())["subtasks"]]
    assert any("too few answers that the graph excludes" in reasons for reasons in refused)
    assert "x too few answers that the graph excludes" in reports[0].shortage


def test_nothing_is_written_where_nothing_is_found_or_strict_asks_for_all(small_release: Path, tmp_path: Path) -> None:
    wanted = r"vista finds nothing to ask: \d+ x .*; \d+ x .*\. Fix: annotate what is missing"
    with pytest.raises(DataError, match=rf"{wanted}(\n|$)"):
        generate(small_release, tmp_path / "out", ["vista"], per_subtask=2)
    with pytest.raises(DataError, match=f"{wanted}, or leave the family out"):
        generate(small_release, tmp_path / "out", ["vista", *PLAIN], per_subtask=2, strict=True)
    assert not (tmp_path / "out").exists()


def test_the_command_warns_and_succeeds(small_release: Path, tmp_path: Path) -> None:
    flags = ["--source", str(small_release), "--families", "vista,egocot", "--per-subtask", "2", "--no-progress"]
    done = CliRunner().invoke(cli.app, ["generate", *flags, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert [line for line in done.stderr.splitlines() if line.startswith("warning: vista finds nothing to ask: ")]


def test_a_review_of_items_that_a_family_no_longer_asks_is_refused(
    small_release: Path, plain: Path, tmp_path: Path
) -> None:
    review = tmp_path / "review.jsonl"
    review.write_text((plain / "review.jsonl").read_text().replace('"egocot/', '"vista/'))
    with pytest.raises(DataError, match=r"^vista/.* is in the review, but is not generated"):
        generate(small_release, tmp_path / "again", ["vista", "tog_bench"], per_subtask=2, review=review)


def test_a_family_with_only_rejected_items_keeps_its_verdicts(small_release: Path, plain: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (plain / "review.jsonl").read_text().splitlines()]
    for row in rows:
        if row["item"].startswith("egocot/"):
            row.update(verdict="reject", reason="dull", reviewer="ada")
    review = tmp_path / "review.jsonl"
    review.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reports = generate(small_release, tmp_path / "again", PLAIN, per_subtask=2, review=review)
    rejected = sum(row.get("verdict") == "reject" for row in rows)
    assert reports[0].sampled == 0
    assert sum(row.refused.get("rejected by review", 0) for row in reports[0].subtasks) == rejected
    kept = [json.loads(line) for line in (tmp_path / "again/review.jsonl").read_text().splitlines()]
    assert sum(row["verdict"] == "reject" for row in kept) == rejected
