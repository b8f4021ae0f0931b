"""Generated questions are reviewed in the page, and every verdict is in the review file at once."""

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, expect

from barista_bench.generate.review import read_review, review_bytes
from barista_bench.studio.workspace import open_workspace
from tests.reporting.browser import Watched
from tests.studio.killing import complaints, killed_studio
from tests.studio.serving import Visitor, studio_at, visiting

HOSTILE = "<img src=x onerror=alert(1)> {{7*7}}"


@pytest.fixture
def review(generated: Callable[[str], Path], tmp_path: Path) -> Path:
    """A review file without verdicts, with the items file beside it."""
    made = generated("handyvqa").parent
    for name in ("review.jsonl", "handyvqa.items.jsonl"):
        shutil.copy(made / name, tmp_path / name)
    return tmp_path / "review.jsonl"


def verdict(row: dict[str, Any], given: str, **changes: object) -> dict[str, object]:
    kept = {name: row[name] for name in ("file", "item", "question", "choices")}
    return {**kept, "verdict": given, **changes}


def test_items_come_with_their_moments(review: Path, small_kitchen: Path, out: Path) -> None:
    with visiting(review, small_kitchen, out=out) as visitor:
        items = visitor.json("/api/review")["items"]
    written = [json.loads(line) for line in (review.parent / "handyvqa.items.jsonl").read_text().splitlines()]
    assert [item["item"] for item in items] == [f"handyvqa/{row['id']}" for row in written]
    assert [item["moment"]["span"] for item in items] == [row["span"] for row in written]
    assert {item["kind"] for item in items} == {"graph"}


def test_verdicts_are_in_the_file(review: Path, out: Path) -> None:
    with visiting(review, out=out) as visitor:
        first, second, third, *_ = visitor.json("/api/review")["items"]
        visitor.json("/api/review/verdict", verdict(first, "accept"))
        visitor.json("/api/review/verdict", verdict(second, "reject", reason="unclear"))
        revised = visitor.json("/api/review/verdict", verdict(third, "revise", reason="unclear", question="Which?"))
    rows = list(read_review(review).values())
    assert [(row.verdict, row.reason, row.reviewer) for row in rows[:3]] == [
        ("accept", "", "anna"),
        ("reject", "unclear", "anna"),
        ("revise", "unclear", "anna"),
    ]
    assert rows[2].question == revised["question"] == "Which?"


BROKEN = (b"", b"[" * 10_000, b'{"file": "\xff"}', [])
CHANGED: tuple[dict[str, object], ...] = (
    *({"verdict": ""}, {"file": -1}, {"file": 7}, {"item": "handyvqa/../../etc/passwd"}, {"more": 1}),
    *({"reviewer": "somebody else"}, {"question": "changed, though only accepted"}),
    *({"verdict": "reject"}, {"verdict": "reject", "reason": " "}, {"verdict": "revise", "reason": "x" * 20_000}),
    {"verdict": "revise", "reason": "short", "choices": ["one"]},
    *({"verdict": "revise", "reason": "empty", "question": text} for text in ("", " \n")),
)


def test_a_bad_verdict_body_is_refused_and_changes_nothing(review: Path, out: Path) -> None:
    before = review.read_bytes()
    with visiting(review, out=out) as visitor:
        item = visitor.json("/api/review")["items"][0]
        for body in (*BROKEN, *(verdict(item, "accept") | changes for changes in CHANGED)):
            assert "Fix" in visitor.refusal("/api/review/verdict", body), body
    assert review.read_bytes() == before


def test_two_studios_on_one_review_file_lose_no_verdict(review: Path, out: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(review)
    with (
        studio_at(open_workspace([review], person="anna", out=out)) as first,
        studio_at(open_workspace([link], person="ben", out=out)) as second,
        ThreadPoolExecutor(2) as both,
    ):
        studios = Visitor(first), Visitor(second)
        items = studios[0].json("/api/review")["items"][:20]
        sent = [
            both.submit(studios[at % 2].json, "/api/review/verdict", verdict(item, "accept"))
            for at, item in enumerate(items)
        ]
        names = [answer.result()["reviewer"] for answer in sent]
        assert names == [("anna", "ben")[number % 2] for number in range(len(items))]
    rows = read_review(review)
    assert {rows[item["item"]].verdict for item in items} == {"accept"}
    assert link.is_symlink()


def test_a_revision_is_not_accepted_as_if_it_were_the_original(review: Path, out: Path) -> None:
    with visiting(review, out=out) as visitor:
        item = visitor.json("/api/review")["items"][0]
        revised = visitor.json("/api/review/verdict", verdict(item, "revise", reason="short", question="Which?"))
        again = verdict({**item, **revised}, "accept")
        assert visitor.answer("/api/review/verdict", again)[0] == 400
    assert next(iter(read_review(review).values())).verdict == "revise"


def test_items_of_an_unknown_family_are_shown_without_a_moment(review: Path, out: Path) -> None:
    rows = list(read_review(review).values())
    review.write_bytes(review_bytes([msgspec.structs.replace(rows[0], item="../../etc/passwd"), *rows[1:]]))
    with visiting(review, out=out) as visitor:
        foreign, known, *_ = visitor.json("/api/review")["items"]
    assert (foreign["moment"], foreign["revisable"]) == (None, False)
    assert known["moment"]


@pytest.mark.full
def test_a_killed_review_continues_where_it_was(
    chromium: Browser, review: Path, small_kitchen: Path, out: Path
) -> None:
    rows = list(read_review(review).values())
    review.write_bytes(review_bytes([msgspec.structs.replace(rows[0], question=HOSTILE), *rows[1:]]))
    with chromium.new_context() as context:
        watched = Watched(context.new_page())
        page = watched.page
        with killed_studio(review, small_kitchen, by="anna", out=out) as address:
            page.goto(address)
            page.get_by_role("link", name="Questions").click()
            expect(page.get_by_text(HOSTILE)).to_be_visible()
            expect(page.locator(".player[data-frame]")).to_be_visible()
            page.keyboard.press("a")
            expect(page.get_by_role("heading", name=f"1 of {len(rows)} reviewed")).to_be_visible()
            page.keyboard.press("x")
            page.keyboard.type("the video shows two")
            page.keyboard.press("Enter")
            expect(page.get_by_role("heading", name=f"2 of {len(rows)} reviewed")).to_be_visible()
            page.keyboard.press("r")
            page.get_by_label("question").fill("Which of them?")
            page.get_by_label("reason").fill("clumsy")
            page.get_by_role("button", name="revise", exact=True).click()
            expect(page.get_by_role("heading", name=f"3 of {len(rows)} reviewed")).to_be_visible()
        assert [row.verdict for row in read_review(review).values()][:4] == ["accept", "reject", "revise", ""]
        with killed_studio(review, small_kitchen, by="anna", out=out) as address:
            page.goto(address)
            page.get_by_role("link", name="Questions").click()
            expect(page.get_by_role("heading", name=f"Question 4: 3 of {len(rows)} reviewed")).to_be_visible()
            expect(page.get_by_text(rows[3].question).first).to_be_visible()
        assert not complaints(watched)
    assert list(read_review(review).values())[2].question == "Which of them?"
