"""The report's answer to "why does it fail", in a real browser."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from barista_bench.api import load_results, run_folders
from barista_bench.diagnosis.running import DiagnoseConfig, diagnose
from barista_bench.models import Request
from barista_bench.reporting import write_report
from barista_bench.runs.ask import runner
from tests.diagnosis.test_diagnose import Reader
from tests.reporting.browser import Watched, opened

pytestmark = pytest.mark.full


class HalfReader(Reader):
    """Sees the objects of every second example."""

    def _answer(self, request: Request) -> str:
        if list(self._examples).index(request.request_id) % 2:
            return self._task.reference_answer(self._examples[request.request_id], self.box_format)
        return super()._answer(request)


@pytest.fixture
def written(kitchen_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(runner, "load_model", lambda *_: HalfReader(kitchen_data))
    settings = {"task": ("relations",), "model": "reader", "limit": 12, "workers": 1, "repetitions": 2}
    diagnose(DiagnoseConfig(data=str(kitchen_data), out=tmp_path / "runs", **settings))
    runs = load_results(run_folders(tmp_path / "runs")).runs
    return write_report(runs, tmp_path / "page")[0].as_uri()


def _bottom(watched: Watched, selector: str) -> float:
    box = watched.page.locator(selector).bounding_box()
    assert box is not None
    return box["y"] + box["height"]


def test_the_first_screen_gives_the_cause_and_a_sample_shows_its_aid(chromium: Browser, written: str) -> None:
    with opened(chromium, written) as watched:
        page = watched.page
        page.locator("#why").wait_for()
        assert _bottom(watched, "#why .lead") <= 860, "without scrolling"
        assert "Given true object boxes, its micro F1 rises by .3" in page.locator("#why .lead").inner_text()
        page.evaluate("location.hash = '#barista_relations'")
        page.locator("#count").wait_for()
        assert page.locator("#why").count() == 0
        page.locator("#by-key").select_option(label="cause of the error")
        page.locator("#by-value").select_option(label="objects")
        expect(page.locator("#count")).to_have_text("6 of 12")
        page.locator("a[data-row]").first.click()
        told = page.get_by_text("Told: objects", exact=True)
        told.wait_for()
        told.click()
        assert "Facts of this video" in page.locator("pre", has_text="Facts of this video").first.inner_text()
        assert page.get_by_text("Answer, told objects", exact=True).count()
        assert watched.console == []
