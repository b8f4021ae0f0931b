"""From any sample of a report into its moment of the video."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from barista_bench.api import evaluate
from barista_bench.data.folder import build
from barista_bench.studio.workspace import open_workspace
from tests.reporting.browser import Watched
from tests.studio.serving import studio_at, visiting


@pytest.fixture(scope="module")
def run(small_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a frozen dataset, which does not say where its videos lie."""
    folder = tmp_path_factory.mktemp("inspected")
    settings = {"configs": ["relations"], "sampling": {"frame_step": 10}, "cache": False}
    build(small_release, folder / "data", **settings)
    evaluate(folder / "data", task="relations", model="chance", runs=1, out=folder / "runs")
    return folder / "runs"


def test_a_run_brings_the_dataset_that_it_was_made_on(run: Path, small_release: Path, out: Path) -> None:
    workspace = open_workspace([run, small_release], person="anna", out=out)
    assert [folder.resolve() for folder in workspace.datasets] == [(run.parent / "data").resolve()]


def test_every_example_is_known_by_its_video_and_frames(run: Path, small_release: Path, out: Path) -> None:
    with visiting(run, small_release, out=out) as visitor:
        asked = visitor.json("/api/moment?video=v1&frame=10")["asked"]
        assert [entry["task"] for entry in asked] == ["relations"]
        example = visitor.json(f"/api/example?id={asked[0]['id']}")
        assert (example["video"], example["frames"]) == ("v1", [10])
        assert visitor.answer("/api/example?id=none")[0] == 404


@pytest.mark.full
def test_a_sample_of_the_report_leads_to_its_frame_and_question(chromium, run, small_release, out):
    workspace = open_workspace([run, small_release], person="anna", out=out)
    with studio_at(workspace) as address, chromium.new_context() as context:
        watched = Watched(context.new_page())
        page = watched.page
        page.goto(address)
        page.get_by_role("link", name="Runs", exact=True).click()
        page.get_by_role("link", name="relations", exact=True).first.click()
        page.locator(".tile a").first.click()
        page.get_by_role("link", name="see this moment of the video").click()
        expect(page.locator(".player[data-frame]")).to_be_visible()
        expect(page.locator("details[open] summary")).to_contain_text("relations")
        page.go_back()
        expect(page.get_by_role("link", name="see this moment of the video")).to_be_visible()
        assert not watched.console


def test_datasets_with_tasks_of_one_name_are_all_open(run, small_release, tmp_path, out):
    other = tmp_path / "other"
    build(small_release, other, configs=["relations"], sampling={"frame_step": 7}, cache=False)
    with visiting(run.parent / "data", other, small_release, out=out) as visitor:
        asked = [visitor.json(f"/api/moment?video=v1&frame={frame}")["asked"] for frame in (10, 7)]
    assert [len(questions) for questions in asked] == [1, 1]
