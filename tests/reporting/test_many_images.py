"""Samples of many images, of none that can be read, of several steps, and with long lists of options."""

import base64
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
from PIL import Image

from barista_bench.core.example import Status
from barista_bench.core.task import FrameRef, Task
from barista_bench.reporting.pictures import LARGE, LEAST
from barista_bench.runs.score.scoring import ScoredRun
from tests.reporting.made_runs import HOSTILE, MadeExamples, MadeItem, made_run
from tests.reporting.test_report import page_of


class Clip(MadeItem):
    """32 different images of 640 x 360."""

    def images(self, task: Task) -> Sequence[Image.Image]:
        first, _ = super().images(task)
        return [first.rotate(number).convert("RGB") for number in range(32)]


class Clips(MadeExamples):
    def __init__(self, count: int) -> None:
        super().__init__(count, size=(640, 360))
        self.examples = tuple(
            replace(sample, frames=tuple(FrameRef(sample.video_id, 30 * n) for n in range(32)))
            for sample in self.examples
        )

    def __getitem__(self, index: int) -> MadeItem:
        return Clip(index, self.size, broken=False)


def test_of_many_images_each_is_smaller_and_all_are_there(tmp_path: Path) -> None:
    page = page_of([made_run(Clips(2), statuses=[Status.OK])], tmp_path)
    (first, _) = page.samples
    assert len(first["pictures"]) == 32
    assert {(placed["width"], placed["height"]) for placed in first["pictures"]} == {(640, 360)}
    stored = Image.open(io.BytesIO(base64.b64decode(page.raw["picture-0"])))
    assert LEAST <= stored.width < LARGE[0] / 2
    assert page.task["samples"][0][2] == "video_0 · frames 0, 30, 60, 90, 120, 150, …, 930 (32 in all)"


def test_many_images_stay_within_the_size_of_the_page(tmp_path: Path) -> None:
    page = page_of([made_run(Clips(12), statuses=[Status.OK])], tmp_path, max_bytes=3_000_000)
    assert (tmp_path / "report.html").stat().st_size < 3_000_000
    assert 0 < sum(bool(sample["pictures"]) for sample in page.samples) < 12


def test_runs_whose_videos_are_elsewhere_are_reported_without_pictures(tmp_path: Path) -> None:
    examples = MadeExamples(5, broken=frozenset(range(5)))
    page = page_of([made_run(examples)], tmp_path)
    assert all(sample["pictures"] == [] and "cannot be decoded" in sample["problem"] for sample in page.samples)
    assert [sample[4] for sample in page.task["samples"]] == [0] * 5
    assert len(page.samples[0]["models"][0]) == 2


def in_steps(run: ScoredRun, *earlier: str) -> ScoredRun:
    samples = [replace(s, record=msgspec.structs.replace(s.record, earlier=earlier)) for s in run.samples]
    return replace(run, samples=tuple(samples))


def test_answers_of_earlier_steps_are_shown_and_endless_ones_cut(tmp_path: Path) -> None:
    run = made_run(MadeExamples(2), statuses=[Status.OK])
    page = page_of([in_steps(run, "I see a tap.", HOSTILE)], tmp_path)
    assert page.samples[0]["models"][0][0]["earlier"] == ["I see a tap.", HOSTILE]
    page = page_of([in_steps(run, *["x" * 30_000] * 40)], tmp_path)
    earlier = page.samples[0]["models"][0][0]["earlier"]
    assert len(earlier) == 20
    assert all("more characters are left out" in error for error in earlier)


def test_long_lists_of_options_are_in_the_prompt_and_are_no_filter(tmp_path: Path) -> None:
    examples = MadeExamples(3)
    options = [f"option {number} {HOSTILE}" for number in range(250)]
    examples.examples = tuple(
        replace(example, inputs={"hint": "\n".join(options)}, metadata={**example.metadata, "options": options})
        for example in examples.examples
    )
    page = page_of([made_run(examples, statuses=[Status.OK])], tmp_path)
    assert options[0] in page.samples[0]["prompt"]
    assert "options" not in {entry["key"] for entry in page.task["filters"]}
