"""The page in a real browser: first screen, filters, deep links, keys, pictures; no text of a model does anything."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page, expect

from barista_bench.core.status import Status
from barista_bench.reporting import write_report
from tests.reporting.browser import Watched, opened
from tests.reporting.made_runs import HOSTILE, Fruit, MadeExamples, made_run

pytestmark = pytest.mark.full
TASK = "#garden_fruit"
FIRST = f"{TASK}/fruit%3Avideo%3A0"
BAD = f"org/{HOSTILE}"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    examples = MadeExamples(10, broken=frozenset({2}))
    runs = [
        replace(made_run(examples, name=BAD, answer=f"{HOSTILE}, apple"), name=BAD),
        made_run(examples, name="good", statuses=[Status.OK], answer="apple, pear", folder="b"),
        made_run(examples, name="chance", statuses=[Status.OK], answer="plum", folder="c"),
        made_run(examples, name="cut", statuses=[Status.OK], left_out=4, folder="d"),
    ]
    for metrics in (run.results.metrics for run in runs):
        for name, value in metrics.items():
            metrics[name] = value.model_copy(update={"low": 0.0, "high": 1.0})
    return write_report(runs, tmp_path_factory.mktemp("report"))[0].as_uri()


@pytest.fixture(scope="module")
def browser(chromium: Browser, written: str) -> Iterator[Watched]:
    with opened(chromium, written) as watched:
        yield watched


@pytest.fixture
def page(browser: Watched, written: str) -> Iterator[Page]:
    """The first screen; whichever test uses it, the console stays empty and the page sends no request outside."""
    browser.page.goto("about:blank")
    browser.page.set_viewport_size({"width": 1280, "height": 860})
    browser.page.goto(written)
    browser.page.locator("table.board").wait_for()
    browser.console.clear()
    browser.requests.clear()
    yield browser.page
    assert browser.console == []
    assert browser.dialogs == []
    assert all(url.startswith(("file:", "data:image/")) for url in browser.requests)


def visit(page: Page, hash_: str, shown: str = "main h2") -> None:
    page.evaluate("hash => { location.hash = hash; }", hash_)
    page.locator(shown).first.wait_for()


def texts(page: Page, selector: str) -> list[str]:
    return page.locator(selector).all_text_contents()


def shown(page: Page, count: int) -> None:
    expect(page.locator("#count")).to_have_text(f"{count} of 10")


def test_the_leaderboard_is_in_the_order_of_scores_with_baselines_below(page: Page) -> None:
    assert texts(page, ".board tbody:not(.unranked) th") == ["good", "cut", BAD]
    assert texts(page, ".board .unranked th")[1:] == ["chance"]
    assert texts(page, ".board tbody:first-of-type tr:first-child .gap") == ["△ likely ahead"]
    page.get_by_role("button", name="micro F1").click()
    page.get_by_role("button", name="micro F1").click()
    assert texts(page, ".board tbody:not(.unranked) th") == [BAD, "cut", "good"]
    assert page.locator("th[aria-sort=ascending]").count() == 1
    assert "12 of 20 samples scored" in page.locator(".board tr", has_text="cut").text_content()
    assert "samples scored" not in page.locator(".board tr", has_text="good").first.text_content()


def test_the_meaning_of_a_metric_shows_on_hover_and_on_focus(page: Page) -> None:
    explained = page.get_by_role("tooltip", include_hidden=True)
    expect(explained).to_be_hidden()
    page.locator(".about").hover()
    expect(explained).to_contain_text(Fruit.primary_note)
    page.mouse.move(0, 0)
    expect(explained).to_be_hidden()
    page.locator(".about").focus()
    expect(explained).to_be_visible()


def test_a_models_name_leads_to_its_failures_in_all_tasks_and_its_metric_to_failures_in_one_task(page: Page) -> None:
    page.locator(".board tbody th a", has_text="cut").click()
    expect(page.locator("main h2")).to_have_text("Failures of cut")
    assert texts(page, ".kind") == ["missed 12×", "hallucinated 12×"]
    page.keyboard.press("Escape")
    page.locator(".board tr", has_text="cut").locator("td a").first.click()
    expect(page.locator("#by-model")).to_have_value("cut")
    expect(page.locator("#by-failure")).to_have_value("any")
    shown(page, 6)


def test_a_hostile_model_has_a_screen_of_its_failures_too(page: Page) -> None:
    page.locator(".board tbody th a", has_text="org/").click()
    expect(page.locator("main h2")).to_have_text(f"Failures of {BAD}")


def test_questions_are_a_row_a_task_with_statistics_a_click_away(page: Page) -> None:
    assert texts(page, ".questions thead th")[2] == "does it beat guessing?"
    assert texts(page, ".questions td")[1] == "yes +1.000 against chance"
    statistics = page.locator(".answers .under", has_text="of chance").first
    expect(statistics).to_have_count(0)
    page.get_by_text("the statistics behind them").click()
    expect(statistics).to_contain_text("resampling units")


def test_the_head_names_the_data_of_the_metrics_and_more_on_demand(page: Page) -> None:
    head = page.locator("#provenance")
    expect(head).to_contain_text("data 0123456789ab")
    head.locator("summary").click()
    expect(head.locator("h3")).to_have_text(["Data", "Models"])
    head.locator("summary").click()


def test_a_table_that_is_cut_says_so_until_it_is_scrolled_to_its_end(page: Page) -> None:
    hint = page.locator(".scroll-frame:has(.board) .hint")
    expect(hint).to_be_hidden()
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate("for (const cell of document.querySelectorAll('.board td')) cell.style.minWidth = '30rem'")
    expect(hint).to_be_visible()
    page.evaluate("(area => { area.scrollLeft = area.scrollWidth })(document.querySelector('.scroll:has(.board)'))")
    expect(hint).to_be_hidden()


def test_a_task_has_metrics_failures_and_one_breakdown_and_metrics_lead_to_samples(page: Page) -> None:
    page.locator(".board a.task").click()
    expect(page.locator("main h2")).to_have_text("garden / fruit")
    titles = texts(page, "main > section > h3")
    assert titles == [
        "Metrics",
        "Each model and the next",
        "Repetitions",
        "What went wrong",
        "Examples by preparation: micro F1",
        "Samples",
    ]
    row = page.locator("section", has_text="What went wrong").locator("tr", has_text="format")
    row.locator("td a").first.click()
    expect(page.locator("#by-failure")).to_have_value("format")
    expect(page.locator("#by-model")).to_have_value(BAD)
    shown(page, 8)


def test_three_clicks_lead_to_the_examples_on_which_one_model_is_better(page: Page) -> None:
    page.locator(".board a.task").click()
    page.locator("section", has_text="Each model and the next").locator("tbody tr").first.locator("a").first.click()
    expect(page.locator("#by-better")).to_have_value("good")
    page.locator(".tile a").first.click()
    expect(page.locator(".card h3")).to_have_count(2)
    assert texts(page, ".card h3") == ["good", "cut"]
    assert texts(page, ".card mark") == ["pear", "plum"]


def test_filters_narrow_the_gallery_appear_in_the_address_and_reset(page: Page) -> None:
    visit(page, f"{TASK}?all=1", "#count")
    shown(page, 10)
    page.locator("#by-status").select_option("not_run")
    shown(page, 4)
    assert page.url.endswith(f"{TASK}?status=not_run")
    page.locator("#by-model").select_option("good")
    expect(page.locator("#samples .alert")).to_contain_text("No sample matches")
    page.go_back()
    shown(page, 4)
    page.locator("#reset").click()
    shown(page, 10)
    page.locator("#by-key").select_option("preparation")
    page.locator("#by-value").select_option("moka")
    shown(page, 5)
    page.locator("#by-model").select_option(BAD)
    page.locator("#by-least").fill("0.6")
    page.locator("#by-least").press("Enter")
    shown(page, 0)


def test_the_gallery_is_ordered_by_score_and_by_disagreement(page: Page) -> None:
    visit(page, f"{TASK}?model=good&order=up", "#count")
    first = page.locator(".tile a").first
    expect(first).to_contain_text("1.00")
    visit(page, f"{TASK}?order=apart", "#count")
    expect(page.locator(".tile:first-child .chip").first).to_be_visible()
    chips = texts(page, ".tile:first-child .chip")
    assert [chip.partition(" ")[0] for chip in chips] == ["A", "B", "C", "D"], "as the legend names the models"
    scores = [float(chip.partition(" ")[2][1:]) for chip in chips if not chip.endswith("–")]
    assert max(scores) - min(scores) == 1.0


def test_a_tile_has_the_question_and_the_wrong_answer_beside_the_true_one(page: Page) -> None:
    visit(page, f"{TASK}?model=chance", ".tile .line")
    first = page.locator(".tile").first
    expect(first.locator(".question")).to_contain_text("Which?")
    assert texts(page, ".tile:first-child .line") == ["chance: wrong plum", "true apple; pear"]
    expect(first.locator(".chip")).to_contain_text("chance")


def test_search_reads_ids_and_answers(page: Page) -> None:
    visit(page, f"{TASK}?all=1", "#count")
    page.keyboard.press("/")
    expect(page.locator("#by-text")).to_be_focused()
    page.locator("#by-text").fill("video_3 ")
    page.keyboard.press("Enter")
    shown(page, 1)
    page.locator("#by-text").fill("it is red.")  # only in the details
    page.keyboard.press("Enter")
    shown(page, 10)


def test_a_deep_link_opens_its_sample_and_keys_page_and_return(page: Page, written: str) -> None:
    page.goto("about:blank")
    page.goto(f"{written}{FIRST}?key=preparation&value=capsule")
    heading = page.locator("main h2")
    expect(heading).to_have_text("fruit:video:0")
    expect(page.locator(".crumbs")).to_contain_text("1 of 5")
    page.keyboard.press("j")
    expect(heading).to_have_text("fruit:video:2")
    page.keyboard.press("k")
    expect(heading).to_have_text("fruit:video:0")
    page.keyboard.press("Escape")
    shown(page, 5)
    page.keyboard.press("Escape")
    expect(page.locator("table.board")).to_be_visible()


def test_a_link_to_a_sample_that_is_not_there_says_so(page: Page) -> None:
    visit(page, f"{TASK}/no%2Fsuch", ".alert")
    expect(page.locator("main .alert")).to_contain_text("has no sample no/such")


def test_arrows_move_through_the_gallery_and_enter_opens(page: Page) -> None:
    visit(page, f"{TASK}?all=1", ".tile")
    page.locator(".tile a").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(page.locator('[data-row="1"]')).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main h2")).to_have_text(f"fruit:{HOSTILE}:1")


def test_hostile_texts_are_shown_and_do_nothing(page: Page) -> None:
    visit(page, f"{TASK}?model={BAD}".replace(" ", "%20"), ".tile")
    page.locator(".tile a").nth(1).click()
    expect(page.locator("main h2")).to_have_text(f"fruit:{HOSTILE}:1")
    page.locator("#side-0").select_option(label=BAD)
    expect(page.locator(".card pre").first).to_contain_text(HOSTILE)
    assert HOSTILE[:100] in "".join(texts(page, "main svg text"))
    assert page.evaluate("[...document.images].every(i => i.src.startsWith('data:image/'))")
    assert page.evaluate(
        "[...document.querySelectorAll('*')].every(e => ![...e.attributes].some(a => /^on/.test(a.name)))"
    )
    assert page.locator("iframe, object, embed, link, base").count() == 0


def test_a_script_that_reaches_the_page_is_refused_by_its_policy(chromium: Browser, written: str) -> None:
    with opened(chromium, written) as watched:
        page = watched.page
        page.evaluate("document.body.append(Object.assign(document.createElement('script'), {textContent: 'ran = 1'}))")
        page.evaluate("document.body.append(Object.assign(new Image(), {src: 'https://evil.example/pixel.png'}))")
        page.wait_for_timeout(200)
        assert page.evaluate("window.ran === undefined")
        assert any("Content Security Policy" in message for message in watched.console)


def test_pictures_carry_boxes_that_keys_and_layers_hide(page: Page) -> None:
    visit(page, f"{FIRST}?better=good", ".pictures img")
    assert page.locator(".pictures img").count() == 2
    box = page.locator(".frame .reference rect")
    expect(box).to_have_count(1)
    expect(page.locator(".frame .m0 rect")).to_have_count(1)
    page.keyboard.press("b")
    expect(page.locator(".frame rect")).to_have_count(0)
    page.keyboard.press("b")
    page.locator(".layer.reference").click()
    expect(box).to_have_count(0)
    page.locator(".layer.reference").click()
    expect(box).to_have_count(1)
    left, width = page.evaluate(
        "(() => { const [b, i] = ['.reference rect', '.frame img'].map(s => document.querySelector(s)"
        ".getBoundingClientRect()); return [(b.left - i.left) / i.width, b.width / i.width] })()"
    )
    assert (left, width) == (pytest.approx(10 / 320, abs=0.02), pytest.approx(100 / 320, abs=0.02))


def test_runs_are_switched_by_tab_and_by_key(page: Page) -> None:
    visit(page, f"{FIRST}?model={BAD}".replace(" ", "%20"), ".card")
    state = page.locator(".card .state").first
    expect(state).to_contain_text("ok")
    page.locator(".card .tabs button").nth(1).click()
    expect(state).to_contain_text("parse error")
    page.keyboard.press("r")
    expect(state).to_contain_text("ok")


def test_theme_follows_the_system_until_it_is_chosen_and_help_opens(page: Page) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(colour) != light
    page.keyboard.press("t")
    page.keyboard.press("t")
    expect(page.locator("#theme")).to_have_text("theme: light")
    assert page.evaluate(colour) == light
    page.emulate_media(color_scheme="light")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.locator("#help button").click()
    expect(page.locator("#help")).to_be_hidden()


@pytest.mark.parametrize("hash_", ["", TASK, FIRST])
def test_nothing_is_wider_than_a_phone(page: Page, hash_: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, hash_)
    # As wide as tables of many tasks.
    page.evaluate("for (const cell of document.querySelectorAll('th, td')) cell.style.minWidth = '30rem'")
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
