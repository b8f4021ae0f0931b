"""The answers to a reader's questions about each task's best model, and the data behind a report's figures."""

import base64
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from PIL import Image

from barista_bench.core.example import FrameRef
from barista_bench.core.status import Status
from barista_bench.core.task import Task
from barista_bench.reporting.analyses import Analyses, analyse
from barista_bench.reporting.breakdowns import KeyGroups
from barista_bench.reporting.leaderboard import TaskStanding
from barista_bench.reporting.pictures import LARGE, LEAST
from barista_bench.reporting.provenance import data_digest, report_provenance
from barista_bench.reporting.questions import answer_questions
from barista_bench.reporting.report import Section, build_report
from barista_bench.runs.log.sessions import session_dates
from barista_bench.runs.score.results import Breakdown, MetricValue
from barista_bench.runs.score.scoring import ScoredRun
from tests.reporting.made_runs import HOSTILE, MadeExamples, MadeItem, made_run
from tests.reporting.test_report import page_of

EXAMPLES = MadeExamples(10)


def answering(name: str, answer: str, examples: MadeExamples = EXAMPLES) -> ScoredRun:
    return made_run(examples, name=name, answer=answer, statuses=[Status.OK], folder=name)


def clips(count: int) -> MadeExamples:
    """Examples of two frames."""
    examples = MadeExamples(count)
    examples.examples = tuple(
        replace(example, frames=(*example.frames, FrameRef(example.video_id, 7))) for example in examples.examples
    )
    return examples


def section(*runs: ScoredRun, permutations: int = 200) -> Section:
    (only_section,) = build_report(runs, analyses=analyse(runs, permutations=permutations)).sections
    return only_section


def short(made: Section) -> list[str]:
    return [f"{cell.text} {cell.extra}".strip() for cell in made.answers]


def test_each_answer_is_a_mark_and_one_number_with_the_statistics_behind_it() -> None:
    made = section(answering("strong", "apple, pear"), answering("weak", "kiwi"), answering("chance", "kiwi"))
    assert short(made) == [
        *("strong 1.000", "yes +1.000 against chance", "–", "– one frame"),
        *("nothing", "nowhere 1.000"),
    ]
    (best,) = made.answers[0].notes
    assert best.startswith("1.000 against 0.000 of weak: +1.000 [")
    assert best.endswith(" on 10 resampling units.")
    assert made.answers[2].notes == ("Not run: text_only:strong.",)
    assert made.about == "two pictures, and the fruit in them"


def test_a_model_that_is_no_better_than_the_nearest_guess_does_not_beat_guessing() -> None:
    made = section(answering("one", "apple"), answering("chance", "kiwi"), answering("prior", "apple"))
    assert short(made)[1] == "no +0.000 against prior"
    assert [note.partition(" of ")[2].partition(":")[0] for note in made.answers[1].notes] == ["chance", "prior"]
    below = section(answering("one", "kiwi"), answering("prior", "apple, pear"))
    assert short(below)[1] == "no −1.000 against prior"


def test_images_and_their_order_are_told_by_the_models_that_lack_them() -> None:
    examples = clips(10)
    made = section(
        answering("good", "apple, pear", examples),
        answering("text_only:good", "kiwi", examples),
        answering("shuffled_frames:good", "apple, pear", examples),
        answering("first_frame:good", "apple", examples),
    )
    assert short(made)[2:4] == ["yes +1.000 against text only", "no +0.000 against shuffled frames"]
    assert ["first frame" in note for note in made.answers[3].notes] == [False, True]


def test_a_difference_is_likely_if_only_the_correction_doubts_it_and_never_for_few_videos() -> None:
    many = [answering(name, answer, MadeExamples(6)) for name, answer in (("good", "apple, pear"), ("chance", "kiwi"))]
    few = [answering(name, answer, MadeExamples(5)) for name, answer in (("good", "apple, pear"), ("chance", "kiwi"))]
    several = [answering(name, "kiwi", MadeExamples(6)) for name in ("prior", "centre_box")]
    assert short(section(*many, *several))[1] == "likely +1.000 against chance"
    made = section(*few)
    assert short(made)[1] == "? +1.000 against chance"
    assert "too few videos to tell" in made.answers[1].notes[0]


def test_without_a_model_no_question_is_answered() -> None:
    assert short(section(answering("oracle", "apple, pear"), answering("chance", "kiwi"))) == [
        "no model was asked",
        *["–"] * 5,
    ]
    alone = section(answering("mine", "plum"), answering("oracle", "apple, pear"))
    assert alone.answers[0].notes == ("No other model to compare mine with.",)


def test_the_commonest_failure_and_the_weakest_group_lead_to_their_samples() -> None:
    groups = KeyGroups("kind", {"a": of(5, one=0.25), "b": of(4, one=0.75), "c": of(1, one=0.0)}, 0)
    cells = answer_questions(TaskStanding("garden / fruit", {"one": answering("one", "apple")}), Analyses(), groups)
    assert (cells[5].text, cells[5].extra) == ("kind: a", "0.250 on 5 examples")
    assert cells[5].query == (("key", "kind"), ("value", "a"), ("model", "one"))
    assert cells[5].notes == ("micro F1 by kind: 0.250 for a, against 0.750 for b and 0.667 for all examples.",)
    missing = section(answering("one", "apple")).answers[4]
    assert (missing.text, missing.extra, missing.query) == (
        *("missed", "20 of 20"),
        (("failure", "missed"), ("model", "one")),
    )


def of(examples: int, **means: float) -> dict[str, Breakdown]:
    """A group of examples, and the figure of each model on it."""
    metrics = {name: MetricValue(mean=mean, std=None, repetitions=[mean]) for name, mean in means.items()}
    return {name: Breakdown(examples=examples, metric=metric) for name, metric in metrics.items()}


def test_the_head_of_a_report_has_the_origin_of_its_metrics(tmp_path: Path) -> None:
    for name, days in (("a", ("2026-01-02", "2026-01-05")), ("b", ("2026-01-03",))):
        (tmp_path / name).mkdir()
        lines = [f'{{"seconds": {{}}, "ended": "{day}T10:00:00+00:00"}}' for day in days]
        (tmp_path / name / "sessions.jsonl").write_text("\n".join(["{}", '{"seconds": {}}', *lines]))
    runs = [replace(answering(name, "apple"), folder=tmp_path / name) for name in ("a", "b")]
    made = report_provenance([TaskStanding("garden / fruit", {"a": runs[0], "b": runs[1]})])
    assert made.line == (
        "garden, data 0123456789ab · 10 videos, 10 examples, 40 answers · 1 frame · release protocol · "
        "prompts ours v1 · temperature 0.7, at most 64 tokens, 2 repetitions · barista_bench 0.1.0 · "
        "run 2026-01-02 to 2026-01-05"
    )
    data, models = made.tables
    assert data.rows[0][1].text == "0123456789ab"
    assert [row[0].text for row in models.rows] == ["a", "b"]
    assert models.note == "Versions: barista_bench 0.1.0, numpy 2.1, pillow 12.0."
    assert session_dates(tmp_path / "a") == ["2026-01-02", "2026-01-05"]


@pytest.mark.parametrize("order", [1, -1])
def test_several_sets_have_a_digest_that_does_not_depend_on_their_order(order: int) -> None:
    runs = [answering("a", "apple"), answering("a", "apple")]
    dataset = runs[1].results.dataset.model_copy(update={"content_hash": "f" * 64})
    runs[1] = replace(runs[1], results=runs[1].results.model_copy(update={"dataset": dataset}))
    assert data_digest(runs[::order]) == data_digest(runs)
    assert data_digest(runs) not in ("0123456789ab", "f" * 12)


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
