"""A participant's page, used by a person with a link."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from barista_bench.api import load_results
from barista_bench.studio.study import AnswerLog
from barista_bench.studio.study_scores import study_scores
from tests.reporting.browser import Watched
from tests.studio.studying import invited, study_at
from tests.studio.test_accessibility import serious_faults


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return tmp_path / "study"


def answer_shown(page: Page) -> None:
    """Answer the question on the page, in any number of steps."""
    if page.get_by_role("group", name="answers").is_visible():
        named = page.get_by_text("Choose the answer “")
        choice = (named.inner_text().split("“")[1].rstrip("”.")) if named.count() else "A"
        page.get_by_role("radio", name=choice).first.check()
    elif page.get_by_role("button", name="add bbox").is_visible():
        page.get_by_role("button", name="add bbox").click()
        box = page.locator(".sheet").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.25 * box["height"])
        page.mouse.down()
        page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.75 * box["height"], steps=4)
        page.mouse.up()
    else:
        page.get_by_label("answer", exact=True).fill("Description: A red cup on the machine.")
    page.get_by_role("button", name="answer", exact=True).click()


def go_through(page: Page, look: Callable[[], None] = lambda: None) -> list[str]:
    """The headings of all that is shown, up to the thanks, after a look at each."""
    headings = list[str]()
    while True:
        expect(page.locator("main h2")).not_to_have_text(headings[-1] if headings else "")
        headings.append(page.locator("main h2").inner_text())
        look()
        if headings[-1] == "Thank you":
            return headings
        begin = page.get_by_role("button", name="start").or_(page.get_by_role("button", name="go on"))
        if begin.is_visible():
            begin.click()
            continue
        answer_shown(page)
        if headings[-1].startswith("Practice"):
            expect(page.get_by_role("heading", name="The right answer")).to_be_visible()
            look()
            page.get_by_role("button", name="next").click()


@pytest.mark.full
def test_a_participant_goes_from_the_link_to_the_thanks(chromium: Browser, study: Path, asked_data: Path) -> None:
    links = invited(study, asked_data, "anna", items=2, overlap=2)
    with study_at(study), chromium.new_context(viewport={"width": 1280, "height": 860}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        page.goto(links["anna"])
        expect(page.get_by_text("Thank you for taking part.")).to_be_visible()
        assert "token" not in page.url
        page.get_by_role("button", name="start").click()
        expect(page.get_by_role("heading", name="Practice 1 of 2")).to_be_visible()
        page.reload()
        expect(page.get_by_role("button", name="start")).to_be_visible()
        headings = go_through(page)
        assert sum(heading.startswith("Practice") for heading in headings) == 6
        assert sum(heading.startswith("Question ") for heading in headings) == 12  # four a task, two of them checks
        assert page.locator("#count").inner_text() == "12 of 12"
        assert not [*watched.console, *watched.dialogs]
        page.reload()
        expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    (anna,) = study_scores(study, load_results(study).runs)
    assert (anna.answered, anna.attention_passed, anna.attention_asked, anna.practised) == (6, 3, 3, 6)
    assert len(AnswerLog(study / "anna" / "answers.jsonl").answers) == 18


@pytest.mark.full
def test_a_box_that_a_question_names_by_numbers_is_drawn(chromium: Browser, study: Path, asked_data: Path) -> None:
    links = invited(study, asked_data, "anna", tasks=["referring"], items=2, overlap=2)
    with study_at(study), chromium.new_context() as context:
        page = context.new_page()
        page.goto(links["anna"])
        page.get_by_role("button", name="start").click()
        expect(page.locator(".sheet rect.given")).to_have_count(1)


@pytest.mark.integration
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_checker_of_accessibility_has_no_serious_fault_to_report(
    chromium: Browser, axe: str, study: Path, asked_data: Path, scheme: Literal["light", "dark"]
) -> None:
    links = invited(study, asked_data, "anna", items=1, overlap=1)
    tablet = {"width": 820, "height": 1180}
    with study_at(study), chromium.new_context(color_scheme=scheme, viewport=tablet, has_touch=True) as context:
        page = context.new_page()
        page.goto(links["anna"])
        expect(page.get_by_role("button", name="start")).to_be_visible()
        faults = list[list[str]]()
        shown = go_through(page, lambda: faults.extend(serious_faults(page, axe)))
        assert (len(shown) > 12, faults) == (True, [])
