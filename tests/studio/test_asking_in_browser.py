"""The texts of pages that ask people: before, beside and instead of the fields."""

import threading
from pathlib import Path

import pytest
from playwright.sync_api import expect

from barista_bench.api import evaluate
from barista_bench.studio import rating
from barista_bench.studio.rating import ScoredRun, read_scored
from tests.studio.annotating_page import Visited
from tests.studio.serving import visiting

pytestmark = pytest.mark.full


def test_answer_says_before_it_starts_which_tasks_and_how_many_questions_there_are(
    asked_data: Path, visited: Visited
) -> None:
    with visited(asked_data) as watched:
        page = watched.page
        page.get_by_role("link", name="Answer").first.click()
        expect(page.get_by_text("60 questions of 3 tasks, 0 answered")).to_be_visible()
        page.get_by_label("questions of each task").fill("2")
        page.get_by_label("questions of each task").press("Tab")
        expect(page.get_by_text("6 questions of 3 tasks, 0 answered")).to_be_visible()
        for task in ("activity", "grounding", "referring"):
            expect(page.get_by_role("row").filter(has_text=f"barista: {task}")).to_contain_text("2")
        assert not watched.console


def test_the_plan_counts_answered_questions(asked_data: Path, out: Path) -> None:
    with visiting(asked_data, out=out) as anna:
        asked = anna.json("/api/people/next", {"number": 2})
        answer = {"choice": "A", "fields": {"bboxes": []}, "text": "Description: A cup."}[asked["form"]]
        body = {"number": 2, "question": asked["question"], "answer": answer, "seconds": 1}
        anna.json("/api/people/answer", body)
        tasks = {row["task"]: row for row in anna.json("/api/people/plan?number=2")["tasks"]}
    assert {name: (row["questions"], row["answered"]) for name, row in tasks.items()} == {
        name: (2, int(name == asked["task"])) for name in ("activity", "grounding", "referring")
    }


def test_an_incomplete_answer_names_its_missing_parts(asked_data: Path, visited: Visited) -> None:
    with visited(asked_data) as watched:
        page = watched.page
        page.goto(page.url.partition("#")[0] + "#/answer?number=2")
        missing = set[str]()
        for number in range(1, 7):
            expect(page.get_by_role("heading", name=f"Question {number} of 6")).to_be_visible()
            expect(page.locator("main")).not_to_contain_text("JSON", use_inner_text=True)
            add = page.get_by_role("button", name="add bbox")
            if add.is_visible():
                add.click()
            page.get_by_role("button", name="answer", exact=True).click()
            missing.add(page.get_by_role("alert").inner_text())
            expect(page.get_by_role("heading", name=f"Question {number} of 6")).to_be_visible()
            if add.is_visible():
                page.get_by_role("button", name="remove").click()
            elif page.get_by_role("group", name="answers").is_visible():
                page.get_by_role("radio").first.check()
            else:
                page.get_by_label("answer", exact=True).fill("Description: A cup.")
            page.get_by_role("button", name="answer", exact=True).click()
        boxes = "Missing: bbox: left, bbox: top, bbox: right, bbox: bottom."
        assert missing == {boxes, "Missing: one of the answers.", "Missing: answer."}


def test_the_models_prompt_is_folded_behind_the_question(asked_data: Path, visited: Visited) -> None:
    with visited(asked_data) as watched:
        page = watched.page
        page.goto(page.url.partition("#")[0] + "#/answer?number=2")
        prompt = page.locator("details", has_text="The model's prompt")
        expect(prompt.locator("p")).to_be_hidden()
        prompt.locator("summary").click()
        expect(prompt.locator("p")).to_contain_text("[user]")


def test_the_question_holds_its_choices_once(asked_data: Path, out: Path) -> None:
    with visiting(asked_data, out=out) as anna:
        asked = anna.json("/api/people/next", {"number": 1})
        while asked["form"] != "choice":
            answer = {"bboxes": []} if asked["form"] == "fields" else "Description: A cup."
            body = {"number": 1, "question": asked["question"], "answer": answer, "seconds": 1}
            asked = anna.json("/api/people/answer", body)
    told = "\n".join(part for part in asked["parts"] if isinstance(part, str))
    assert not [choice for choice in asked["choices"].values() if choice in told]
    assert all(choice in asked["prompt"] for choice in asked["choices"].values())


def test_rate_says_how_many_runs_are_scored(
    asked_data: Path, tmp_path: Path, visited: Visited, monkeypatch: pytest.MonkeyPatch
) -> None:
    for model in ("oracle", "chance"):
        evaluate(asked_data, model, task="referring", repetitions=1, limit=2, out=tmp_path / "runs" / model)
    second, seen = threading.Event(), list[Path]()

    def held(folder: Path, **options: object) -> ScoredRun:
        if seen:
            assert second.wait(60)
        seen.append(folder)
        return read_scored(folder, options={})

    monkeypatch.setattr(rating, "read_scored", held)
    with visited(tmp_path / "runs") as watched:
        page = watched.page
        page.get_by_role("link", name="Rate").first.click()
        expect(page.get_by_text("1 of 2 runs scored")).to_be_visible()
        expect(page.get_by_role("progressbar", name="runs scored")).to_have_attribute("value", "1")
        second.set()
        expect(page.get_by_role("heading", name="Answer 1 of")).to_be_visible()


def test_pages_with_keyboard_shortcuts_have_a_button_that_lists_them(small_release: Path, visited: Visited) -> None:
    with visited(small_release) as watched:
        page = watched.page
        keys = page.get_by_role("button", name="keyboard shortcuts")
        expect(page.get_by_role("link", name="v1", exact=True)).to_be_visible()
        expect(keys).to_be_hidden()
        page.get_by_role("link", name="v1", exact=True).click()
        expect(page.locator(".player[data-frame]")).to_be_visible()
        keys.click()
        expect(page.get_by_role("dialog", name="keyboard shortcuts").get_by_text("search this video")).to_be_visible()
