"""People answer what models are asked, and rate answers as judges do."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect

from barista_bench.api import compare, evaluate, load_results
from barista_bench.benchmarks import get_task
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example
from barista_bench.core.frame_times import FrameTimes
from barista_bench.data.dataset import ExampleSet
from barista_bench.data.folder import build
from barista_bench.data.frozen import read_frozen
from barista_bench.data.loaded_example import LoadedExample
from barista_bench.errors import ConfigError
from barista_bench.judging.human import human_agreement, read_ratings
from barista_bench.judging.scoring import all_judged
from barista_bench.judging.session import judge
from barista_bench.reporting import write_report
from barista_bench.runs.log.sample_log import encode_record, read_records
from barista_bench.runs.log_reader import LogReader
from barista_bench.runs.score.scoring import score
from barista_bench.stats import answer_agreement
from barista_bench.studio.people import AnswerRoutes, AskedTask, SampledQuestion, question_json, sample_examples
from barista_bench.studio.rating import RatingRoutes, SentRating
from barista_bench.studio.workspace import open_workspace
from tests.reporting.browser import SHOWN, Watched
from tests.studio.killing import complaints, killed_studio
from tests.studio.serving import Visitor, visiting

TASKS = ["activity", "grounding", "referring"]


@pytest.fixture(scope="module")
def data(asked_data: Path) -> Path:
    return asked_data


@pytest.fixture(scope="module")
def runs(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models on a task that judges score."""
    folder = tmp_path_factory.mktemp("rated")
    for model in ("oracle", "chance"):
        evaluate(data, model, task="referring", repetitions=1, limit=4, out=folder / model)
    return folder


def examples_of(data: Path, task: str) -> list[Example]:
    return list(read_frozen(data / "frozen" / f"{task}.jsonl", "barista"))


def test_a_sample_is_in_proportion_and_grows(data: Path) -> None:
    task, examples = get_task("barista", "grounding"), examples_of(data, "grounding")
    few, more = sample_examples(task, examples, 8), sample_examples(task, examples, 20)
    assert more[:8] == few == sample_examples(task, examples, 8)
    assert len(set(more)) == 20
    assert sorted(sample_examples(task, examples, 10_000)) == list(range(len(examples)))
    everywhere, sampled = (Counter(examples[index].label for index in part) for part in (range(len(examples)), more))
    assert all(abs(sampled[label] - 20 * count / len(examples)) < 2.5 for label, count in everywhere.items())


def test_examples_that_are_scored_together_are_sampled_together(
    generated: Callable[[str], Path], tmp_path: Path
) -> None:
    build(generated("vista"), tmp_path / "data", benchmark="vista", cache=False)
    task, pair = get_task("vista", "all"), list(read_frozen(tmp_path / "data" / "frozen" / "all.jsonl", "vista"))
    examples = [
        replace(
            example, example_id=f"{example.example_id} {number}", inputs={**example.inputs, "problem_set": str(number)}
        )
        for number in range(5)
        for example in pair
    ]
    drawn = sample_examples(task, examples, len(pair) + 1)
    assert len(drawn) == 2 * len(pair)
    assert {task.resampling_unit(examples[at]) for at in drawn[: len(pair)]}.isdisjoint(
        task.resampling_unit(examples[at]) for at in drawn[len(pair) :]
    )


class WithoutTruth(ExampleSet):
    """Examples stripped to the parts that a model may see, and the frames."""

    def __init__(self, whole: ExampleSet) -> None:
        self.whole = whole
        self.examples = tuple(self._bare(at, example) for at, example in enumerate(whole.examples))

    @staticmethod
    def _bare(at: int, example: Example) -> Example:
        return replace(example, example_id=f"example {at}", label="", target={}, metadata={}, evidence={})

    def __getitem__(self, index: int) -> LoadedExample:
        return replace(self.whole[index], example=self.examples[index])

    def video_hashes(self) -> dict[str, str]:
        return {}

    def media_times(self, index: int) -> FrameTimes | None:
        return self.whole.media_times(index)


def test_the_page_depends_only_on_data_that_models_see(data: Path, out: Path) -> None:
    answering = AnswerRoutes(open_workspace([data], person="anna", out=out))
    drawn = answering._questions_of(3)
    assert {question.task.name for question in drawn} == set(TASKS)
    for question in drawn:
        opened = question.asked_task.opened
        bare = replace(opened, examples=WithoutTruth(opened.examples))
        blind = SampledQuestion(
            AskedTask(bare, question.asked_task.inputs, question.asked_task.config), question.position, "t", "k"
        )
        assert {**question_json(blind), "question": ""} == {**question_json(question), "question": ""}
        assert question.example.example_id not in json.dumps(question_json(question))


def answered_by_page(asked: dict[str, Any], references: dict[str, Any]) -> object:
    """A true answer, in the form in which the page hands it in."""
    task, examples = references[asked["task"]]
    texts = {task.prompt(example, BoxFormat()).as_text(): example for example in examples}
    example = texts[asked["prompt"]]
    reference = task.reference_answer(example, BoxFormat())
    if asked["form"] == "choice":
        return str(example.target["choice_id"])
    return json.loads(reference) if asked["form"] == "fields" else reference


@pytest.fixture(scope="module")
def references(data: Path) -> dict[str, Any]:
    return {name: (get_task("barista", name), examples_of(data, name)) for name in TASKS}


@pytest.mark.full
def test_a_persons_answers_are_a_run_that_can_be_continued(data: Path, references: dict[str, Any], out: Path) -> None:
    def begun() -> Iterator[tuple[Visitor, dict[str, Any]]]:
        with visiting(data, out=out) as visitor:
            yield visitor, visitor.json("/api/people/next", {"number": 2})

    for visitor, asked in begun():
        assert (asked["done"], asked["total"]) == (0, 6)
        first = {
            "number": 2,
            "question": asked["question"],
            "answer": answered_by_page(asked, references),
            "seconds": 4.25,
        }
        assert visitor.json("/api/people/answer", first)["done"] == 1
        assert visitor.json("/api/people/answer", first)["done"] == 1
    for visitor, asked in begun():
        assert asked["done"] == 1
        while asked.get("question"):
            answer = {"question": asked["question"], "answer": answered_by_page(asked, references), "seconds": 1}
            asked = visitor.json("/api/people/answer", {"number": 2, **answer})
        assert (asked["done"], asked["total"]) == (6, 6)
    folders = [out / "anna" / "barista" / name for name in TASKS]
    results = [score(folder).results for folder in folders]
    assert {result.model.name for result in results} == {"human:anna"}
    assert [result.coverage.scored for result in results] == [2, 2, 2]
    assert all(result.coverage.expected > 2 for result in results)
    assert [result.metrics[result.primary].mean for result in results[:2]] == [1.0, pytest.approx(1.0)]
    with LogReader(folders[0]) as first_log, LogReader(folders[1]) as second, LogReader(folders[2]) as third:
        seconds = [record.seconds for log in (first_log, second, third) for record in log]
    assert sorted(seconds) == [1, 1, 1, 1, 1, 4.25]


NO_ANSWERS: dict[str, tuple[object, ...]] = {
    "answer": ("Z", ["A"], None, {"A": 1}),
    "question": ("0" * 24, 7),
    "seconds": (-1, "soon"),
    "number": (0, 10**9),
    "reference": (True,),
}


def test_a_body_that_is_no_answer_is_not_logged(data: Path, out: Path) -> None:
    with visiting(data, out=out) as visitor:
        body = {"number": 2, "question": first_of(data, out, "activity"), "answer": "A", "seconds": 1.0}
        for name, value in ((name, value) for name, values in NO_ANSWERS.items() for value in values):
            assert "Fix" in visitor.refusal("/api/people/answer", {**body, name: value}), name
    assert not out.exists()


def first_of(data: Path, out: Path, task: str) -> str:
    """The page's name for a question of a task."""
    drawn = AnswerRoutes(open_workspace([data], person="anna", out=out))._questions_of(2)
    return next(question.token for question in drawn if question.task.name == task)


def test_an_unreadable_or_deeply_nested_answer_is_refused_in_words_and_not_logged(data, out):
    token = first_of(data, out, "grounding")
    with visiting(data, out=out) as visitor:
        body = {"number": 2, "question": token, "answer": {"bboxes": "left of the cup"}, "seconds": 1}
        assert "cannot be read" in visitor.refusal("/api/people/answer", body)
        for depth in (100, 800, 900, 950, 990, 100_000):
            nested = "[" * depth + "]" * depth
            deep = f'{{"number": 2, "question": "{token}", "answer": {nested}, "seconds": 1}}'
            assert "Fix" in visitor.refusal("/api/people/answer", deep.encode()), depth
    assert not out.exists()


@pytest.mark.parametrize("person", ["..", "a/../../b", "/etc", "a\0b", "", " ", ".hidden", "a\u202eb", "\u200b"])
def test_a_person_named_like_a_path_is_refused(data: Path, out: Path, person: str) -> None:
    with pytest.raises(ConfigError, match="--by"):
        open_workspace([data], person=person, out=out)


def test_ratings_are_blind_and_read_back(runs: Path, out: Path) -> None:
    with visiting(runs, out=out) as visitor:
        rated = visitor.json("/api/rating")
        assert rated["total"] == 8
        assert not [name for name in ("oracle", "chance") if name in json.dumps(rated)]
        for body in (
            b"{",
            {"answer": rated["answer"], "scores": {}},
            {"answer": rated["answer"], "scores": {"correctness": 11}},
            {"answer": rated["answer"], "scores": {"correctness": 4.5}},
            {"answer": rated["answer"], "scores": {"correctness": 4, "wit": 9}},
            {"answer": "another", "scores": {"correctness": 4}},
        ):
            assert visitor.answer("/api/rating/scores", body)[0] == 400
        assert not out.exists()
        visitor.json("/api/rating/scores", {"answer": rated["answer"], "scores": {"correctness": 4}})
    with visiting(runs, out=out) as visitor:
        second = visitor.json("/api/rating")
        assert (second["done"], second["answer"] != rated["answer"]) == (1, True)
        visitor.json("/api/rating/scores", {"answer": second["answer"], "scores": {"correctness": 10}})
    ratings = read_ratings(out / "ratings-anna.jsonl")
    assert [(rating.score, rating.criterion, rating.repetition) for rating in ratings] == [
        (4, "correctness", 0),
        (10, "correctness", 0),
    ]
    answers = load_results(runs).samples.set_index(["model", "example_id"])["text"]
    for asked, rating in zip((rated, second), ratings, strict=True):
        assert asked["text"] in answers[rating.model, rating.example_id]


def test_two_studios_of_a_person_lose_no_rating(runs: Path, out: Path) -> None:
    studios = [RatingRoutes(open_workspace([runs], person="anna", out=out)) for _ in range(2)]
    with ThreadPoolExecutor(2) as both:
        rated = [
            both.submit(studios[at % 2]._rate, SentRating(answer.token, dict.fromkeys(answer.rubric.names, 5)))
            for at, answer in enumerate(studios[0]._answers_to_rate())
        ]
        assert {answer.result()["total"] for answer in rated} == {8}
    assert len(read_ratings(out / "ratings-anna.jsonl")) == 8


def test_people_and_judges_are_compared_by_these_ratings(runs: Path, tmp_path: Path, out: Path) -> None:
    folders = [shutil.copytree(runs / name / "referring", tmp_path / name) for name in ("oracle", "chance")]
    judged = [judged_run for folder in folders for judged_run in all_judged(judge(folder, "lexical").run)]
    with visiting(*folders, out=out) as visitor:
        rated = visitor.json("/api/rating")
        while rated.get("answer"):
            body = {"answer": rated["answer"], "scores": {"correctness": 5}}
            rated = visitor.json("/api/rating/scores", body)
    (agreement,) = human_agreement(judged, read_ratings(out / "ratings-anna.jsonl"))
    assert (agreement.judge, agreement.rated, agreement.n) == ("lexical", 8, 8)


def test_a_rating_of_an_answer_that_has_changed_since_does_not_count(
    runs: Path, tmp_path: Path, out: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither on the page, which asks for it again and says why, nor beside a judge."""
    folder = shutil.copytree(runs / "oracle" / "referring", tmp_path / "oracle")
    studio = RatingRoutes(open_workspace([folder], person="anna", out=out))
    rated = studio._answers_to_rate()
    for answer in rated:
        studio._rate(SentRating(answer.token, {"correctness": 5}))
    file = folder / "samples.jsonl"
    text = "something else stands there now"
    records = [
        msgspec.structs.replace(record, text=text) if record.example_id == rated[0].given_by[0][1] else record
        for record in read_records(file)
    ]
    file.write_bytes(b"".join(encode_record(record).removesuffix(b"\n") + b"\n" for record in records))

    studio = RatingRoutes(open_workspace([folder], person="anna", out=out))
    again = studio._next_answer()
    assert (again["done"], again["text"]) == (len(rated) - 1, text)
    assert again["problems"] == ["1 of your ratings are of answers that have changed since: they do not count"]
    judged = all_judged(judge(folder, "lexical").run)
    (agreement,) = human_agreement(judged, read_ratings(out / "ratings-anna.jsonl"))
    assert (agreement.rated, "1 ratings are of answers that have changed since" in caplog.text) == (
        len(rated) - 1,
        True,
    )
    done = studio._rate(SentRating(again["answer"], {"correctness": 9}))
    assert (done["done"], done["problems"]) == (len(rated), [])
    assert sorted(rating.score for rating in read_ratings(out / "ratings-anna.jsonl")) == [5] * (len(rated) - 1) + [9]


def test_one_answer_of_two_runs_is_rated_once_for_both(runs: Path, data: Path, tmp_path: Path, out: Path) -> None:
    evaluate(data, "oracle", task="referring", repetitions=2, limit=4, out=tmp_path / "again")
    with visiting(runs / "oracle", tmp_path / "again", out=out) as visitor:
        rated = visitor.json("/api/rating")
        assert rated["total"] == 4
        visitor.json("/api/rating/scores", {"answer": rated["answer"], "scores": {"correctness": 7}})
    ratings = read_ratings(out / "ratings-anna.jsonl")
    assert len({(rating.model, rating.repetition) for rating in ratings}) == len(ratings) == 3


def test_a_run_that_cannot_be_read_costs_no_other_its_ratings(
    data: Path, runs: Path, tmp_path: Path, out: Path
) -> None:
    folder = shutil.copytree(runs, tmp_path / "runs")
    (folder / "chance" / "referring" / "samples.jsonl").write_bytes(b"")
    broken = tmp_path / "runs" / "broken" / "run.json"
    broken.parent.mkdir()
    broken.write_text("{")
    with visiting(data, folder, out=out) as visitor:
        assert visitor.json("/api/studio")["rated"] == 2
        rated = visitor.json("/api/rating")
    assert rated["total"] == 4
    assert ["no finished sample" in problem for problem in rated["problems"]] == [True]


def drag(page: Page) -> None:
    box = page.locator(".sheet").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.25 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.75 * box["height"], steps=4)
    page.mouse.up()


@pytest.mark.full
def test_the_report_lists_a_person_beside_models(chromium: Browser, data: Path, tmp_path: Path, out: Path) -> None:
    with chromium.new_context(viewport={"width": 1280, "height": 860}) as context:
        watched = Watched(context.new_page())
        page = watched.page
        with killed_studio(data, by="anna", out=out) as address:
            page.goto(address)
            page.get_by_role("link", name="Answer").first.click()
            page.get_by_label("questions of each task").fill("1")
            page.get_by_role("button", name="start").click()
            answer_shown(page, "Question 1 of 3")
            expect(page.get_by_role("heading", name="Question 2 of 3")).to_be_visible()
        with killed_studio(data, by="anna", out=out) as address:
            page.goto(address)
            page.goto(page.url.partition("#")[0] + "#/answer?number=1")
            answer_shown(page, "Question 2 of 3")
            answer_shown(page, "Question 3 of 3")
            expect(page.get_by_role("heading", name="All questions are answered")).to_be_visible()
        assert not complaints(watched)
        human = load_results(out / "anna")
        boxes = next(run for run in human.runs if run.task.name == "grounding").samples[0].record.text
        assert boxes is not None
        assert json.loads(boxes)["bboxes"] == [[pytest.approx(side, abs=3) for side in (200, 250, 700, 750)]]
        oracle = evaluate(data, "oracle", task="all", repetitions=1, out=tmp_path / "oracle")
        assert compare([human, oracle])["examples"].tolist() == [1, 1, 1]
        agreed = {row.task: row for row in answer_agreement([*human.runs, *oracle.runs])}
        assert agreed.keys() == set(TASKS)
        assert all(row.raters == ("human:anna", "oracle") and row.examples == 1 for row in agreed.values())
        assert agreed["activity"].same in (0, 1)
        report, _ = write_report([*human.runs, *oracle.runs], tmp_path / "report")
        page.goto(report.as_uri())
        page.locator(SHOWN).first.wait_for()
        expect(page.get_by_role("row").filter(has_text="human:anna").first).to_be_visible()
        expect(page.get_by_text("human:anna is incomplete").first).to_be_attached()


def answer_shown(page: Page, heading: str) -> None:
    """Answer the question on the page, in any number of steps."""
    expect(page.get_by_role("heading", name=heading)).to_be_visible()
    expect(page.get_by_role("status")).to_have_text(heading.replace("Q", "q"))
    if page.get_by_role("group", name="answers").is_visible():
        page.get_by_role("radio").nth(1).focus()
        page.keyboard.press("Space")
        page.keyboard.press("Enter")
        return
    if page.get_by_role("button", name="add bbox").is_visible():
        page.get_by_role("button", name="add bbox").click()
        drag(page)
    else:
        page.get_by_label("answer", exact=True).fill("Description: A red cup on the machine.")
    page.get_by_role("button", name="answer", exact=True).click()


@pytest.mark.full
def test_answers_are_rated_by_mouse_and_kept_when_killed(chromium: Browser, runs: Path, out: Path) -> None:
    with chromium.new_context() as context:
        watched = Watched(context.new_page())
        page = watched.page
        for number, given in enumerate((3, 9)):
            with killed_studio(runs, by="anna", out=out) as address:
                page.goto(address)
                page.get_by_role("link", name="Rate").first.click()
                expect(page.get_by_role("heading", name=f"Answer {number + 1} of 8")).to_be_visible()
                page.get_by_role("radio", name=str(given), exact=True).check()
                page.get_by_role("button", name="rate", exact=True).click()
                expect(page.get_by_role("heading", name=f"Answer {number + 2} of 8")).to_be_visible()
        assert not complaints(watched)
    assert [rating.score for rating in read_ratings(out / "ratings-anna.jsonl")] == [3, 9]
