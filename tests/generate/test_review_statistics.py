"""Reviews of the same items by several people and a lead."""

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from barista_bench.cli.commands import app
from barista_bench.errors import DataError
from barista_bench.generate.review import ReviewedItem, Verdict, review_bytes
from barista_bench.generate.review_statistics import ReviewStatistics, decided_review, read_votes, review_statistics

BLANK = ReviewedItem(
    item="", subtask="aog", video_id="v", proof="p", question="Which?", choices=("a", "b"), correct=(0,)
)
VERDICTS: dict[str, Verdict] = {"a": "accept", "r": "reject", "e": "revise", ".": ""}


def write(path: Path, verdicts: str, **fields: object) -> Path:
    """One letter per item: accept, reject, revise (e), or no verdict."""
    rows = (
        msgspec.structs.replace(
            BLANK, item=f"egocot/{number:05}", verdict=VERDICTS[letter], reviewer=path.stem, reason="unclear", **fields
        )
        for number, letter in enumerate(verdicts)
    )
    path.write_bytes(review_bytes(rows))
    return path


def reviewed(folder: Path, *verdicts: str, lead: str = "") -> ReviewStatistics:
    files = [write(folder / f"r{number}.jsonl", letters) for number, letters in enumerate(verdicts)]
    return review_statistics(read_votes(files, write(folder / "lead.jsonl", lead) if lead else None))


def test_keeping_3172_of_4300_items_is_a_retention_of_73_8_percent(tmp_path: Path) -> None:
    kept, rejected, split = 3100, 1100, 100
    first = "a" * kept + "r" * rejected + "a" * split
    second = "a" * kept + "r" * rejected + "r" * split
    lead = "." * (kept + rejected) + "a" * 72 + "r" * 28
    files = [write(tmp_path / "ada.jsonl", first), write(tmp_path / "ben.jsonl", second)]
    result = review_statistics(read_votes(files, write(tmp_path / "lead.jsonl", lead)))
    assert (result.items, result.total.accepted, result.total.reasons) == (4300, 3172, {"unclear": 1128})
    assert (result.compared, result.agreed, result.adjudicated, result.undecided) == (4300, 4200, 100, ())
    shown = CliRunner().invoke(app, ["generate", "reviewed", *map(str, files), "--lead", f"{tmp_path}/lead.jsonl"])
    assert shown.exit_code == 0
    assert "73.8% of 4300" in shown.output


def test_alpha_is_what_its_definition_gives_by_hand(tmp_path: Path) -> None:
    """Of 8 verdicts on compared items, 5 accept and 3 reject; one item has a pair of both: 1 - 2 / (2 * 5 * 3 / 7)."""
    result = reviewed(tmp_path, "aaraa", "arra.")
    assert (result.compared, result.agreed) == (4, 3)
    assert result.alpha == pytest.approx(1 - 2 / (30 / 7))
    assert reviewed(tmp_path, "aa", "aa").alpha is None, "without disagreement there is nothing to expect by chance"
    assert reviewed(tmp_path, "ar").alpha is None


def test_the_majority_decides_and_the_lead_before_it(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{number}.jsonl", letters) for number, letters in enumerate(("aar.", "arr.", "aar."))]
    assert [row.verdict for row in decided_review(files).values()] == ["accept", "accept", "reject", ""]
    lead = write(tmp_path / "lead.jsonl", "r.a.")
    assert [row.verdict for row in decided_review(files, lead).values()] == ["reject", "accept", "accept", ""]
    assert review_statistics(read_votes(files, lead)).overruled == 2


@pytest.mark.parametrize(
    ("verdicts", "question"), [(("a", "r"), "Which?"), (("a", "r", "e"), "Which?"), (("e", "e"), "Why?")]
)
def test_an_item_without_a_majority_needs_the_lead(tmp_path: Path, verdicts: tuple[str, ...], question: str) -> None:
    files = [write(tmp_path / f"{number}.jsonl", letter) for number, letter in enumerate(verdicts)]
    write(files[0], verdicts[0], question=question)  # two revisions with different texts do not agree either
    assert review_statistics(read_votes(files)).undecided == ("egocot/00000",)
    with pytest.raises(DataError, match=r"egocot/00000: .*Fix: .*--lead"):
        decided_review(files)
    assert decided_review(files, write(tmp_path / "lead.jsonl", "a"))["egocot/00000"].verdict == "accept"


def test_reviews_of_different_items_are_refused(tmp_path: Path) -> None:
    files = [write(tmp_path / "ada.jsonl", "a"), write(tmp_path / "ben.jsonl", "a", proof="q")]
    with pytest.raises(DataError, match=r"ben.jsonl: egocot/00000: is another item"):
        read_votes(files)
