"""`diagnose` over ordinary runs: planned, killed, resumed, scored and worded."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import barista_bench
from barista_bench.aids.texts import AidBook
from barista_bench.api import load_results, run_folders
from barista_bench.benchmarks import get_task
from barista_bench.cli.commands import app
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT
from barista_bench.data.dataset import open_examples
from barista_bench.diagnosis.conditions import default_design, ids_by_condition, plan
from barista_bench.diagnosis.estimates import Estimate
from barista_bench.diagnosis.records import SameAnswer, adjusted_p_values, compared_shares, read_diagnoses
from barista_bench.diagnosis.running import DiagnoseConfig, diagnose, plan_tasks
from barista_bench.diagnosis.sentences import finding_sentences, headline_sentence
from barista_bench.diagnosis.views import same_answer
from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.checks import check_model
from barista_bench.models import Completion, GenerationConfig, ModelIdentity, Request
from barista_bench.plots import draw
from barista_bench.reporting import write_report
from barista_bench.reporting.aided import DiagnosisFolders, aided_answers, find_diagnoses
from barista_bench.runs.ask import runner
from barista_bench.runs.score.scoring import ScoredRun, score
from barista_bench.tables import Table, number_columns, text_columns
from tests.diagnosis.conftest import Aids
from tests.diagnosis.reasoners import reason
from tests.diagnosis.responders import diagnosis_of

LIMIT = 12


class Reader:
    """Sees relations perfectly and objects not at all: without the text of an aid it says nothing."""

    def __init__(self, data: Path, stop_after: int | None = None) -> None:
        self.identity, self.box_format, self.batch_size = ModelIdentity("reader"), DEFAULT_BOX_FORMAT, 4
        self._task = get_task("barista", "relations")
        self._examples = {e.example_id: e for e in open_examples(data, "barista", "relations").examples}
        self.asked, self._stop_after = 0, stop_after

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion]]:
        self.asked += len(requests)
        if self._stop_after is not None and self.asked > self._stop_after:
            raise KeyboardInterrupt
        return [[Completion(self._answer(request))] * len(request.seeds) for request in requests]

    def _answer(self, request: Request) -> str:
        text = request.prompt.as_text()
        example = self._examples[request.request_id]
        return reason(self._task, example, text, self.box_format) if "Facts of this video" in text else "[]"


@pytest.fixture
def config(kitchen_data: Path, tmp_path: Path) -> DiagnoseConfig:
    settings = {"task": ("relations",), "model": "reader", "limit": LIMIT, "workers": 1}
    return DiagnoseConfig(data=str(kitchen_data), out=tmp_path / "diagnosis", **settings)


def test_a_diagnosis_names_objects_for_a_reader_that_lacks_only_objects(
    config: DiagnoseConfig, kitchen_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "load_model", lambda *_: Reader(kitchen_data))
    lines: list[str] = []
    (found,) = diagnose(config, tell=lines.append)
    assert lines[0].startswith(f"relations: {4 * LIMIT} answers about {LIMIT} examples")
    told = found.levels["objects"]
    assert (found.plain.value, told.gain.value, told.uptake.value, found.remainder.value) == (0, 1, 1, 0)
    assert told.inert.value is not None
    assert told.inert.value < 0.1
    assert read_diagnoses([config.out]) == [found]
    assert "Given true object boxes, its micro F1 rises by 1.00" in " ".join(
        finding_sentences(found, *adjusted_p_values([found]))
    )


def test_a_model_with_unreadable_aided_answers_is_not_diagnosed(
    config: DiagnoseConfig, kitchen_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(kitchen_data)
    monkeypatch.setattr(reader, "_answer", lambda request: "?" if "Facts of" in request.prompt.as_text() else "[]")
    monkeypatch.setattr(runner, "load_model", lambda *_: reader)
    (found,) = diagnose(config)
    (adjusted,) = adjusted_p_values([found])
    assert f"{LIMIT} of {LIMIT} answers cannot be read" in headline_sentence(found, adjusted)
    without_views = found.model_copy(update={"has_views": False})
    assert ["--view all" in headline_sentence(each, adjusted) for each in (found, without_views)] == [True, False]
    assert not any("does not use" in sentence for sentence in finding_sentences(found, adjusted))


def test_a_diagnosis_first_reports_a_model_that_gives_one_answer_to_all_questions(
    config: DiagnoseConfig, kitchen_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(kitchen_data)
    monkeypatch.setattr(reader, "_answer", lambda request: "[ ]")
    monkeypatch.setattr(runner, "load_model", lambda *_: reader)
    (found,) = diagnose(config)
    (adjusted,) = adjusted_p_values([found])
    assert found.same_answer == SameAnswer(text="[ ]", count=LIMIT, answers=LIMIT)
    assert "the difference, .00 [" in " ".join(finding_sentences(found, adjusted))
    sentence = f"the same answer to {LIMIT} of {LIMIT} questions: \u201c[ ]\u201d"
    assert sentence in finding_sentences(found, adjusted)[0]
    assert headline_sentence(found, adjusted).startswith(finding_sentences(found, adjusted)[0])


@pytest.mark.parametrize("name", ["text", "letter"])
def test_an_answer_is_the_same_if_its_text_or_its_letter_is(aids_of: Aids, name: str) -> None:
    task, examples, _ = aids_of("activity")
    places = range(len(task.choices(examples[0])))
    asked = [task.with_order(examples[0], [*places[turn:], *places[:turn]]) for turn in places]
    letters = ["A"] * len(places) if name == "letter" else [task.correct_choices(each)[0] for each in asked]
    given = [
        (each, f"ANSWER: {letter}", task.parse(f"ANSWER: {letter}", each.inputs, DEFAULT_BOX_FORMAT))
        for each, letter in zip(asked, letters, strict=True)
    ]
    text = task.choices(asked[0])[letters[0]] if name == "text" else "A"
    right = len(places) if name == "text" else 1
    assert same_answer(task, given) == SameAnswer(text=text, count=len(places), answers=len(places), right=right)


def test_a_choice_is_favoured_if_half_of_the_answers_name_it_and_it_is_rarely_right() -> None:
    for count, right, is_favoured in ((7, 3, True), (7, 4, False), (5, 0, False), (7, None, False)):
        assert SameAnswer(text="A", count=count, answers=12, right=right).is_favoured == is_favoured
    assert not SameAnswer(text="", count=7, answers=12, right=0).is_favoured


def test_the_text_of_a_choice_is_named_if_its_letter_is_as_frequent(aids_of: Aids) -> None:
    task, examples, _ = aids_of("activity")
    given = [(examples[0], "A", task.parse("ANSWER: A", examples[0].inputs, DEFAULT_BOX_FORMAT))] * 2
    found = same_answer(task, given)
    assert found is not None
    assert found.text == task.choices(examples[0])["A"]


@pytest.mark.parametrize(("repetitions", "sentence"), [(1, "to 11 of 12 questions"), (2, "11 of 12 times")])
def test_repeated_answers_are_not_called_questions(repetitions: int, sentence: str) -> None:
    unknown = Estimate(value=None)
    values = {"metric": "f1", "by_words": False, "left_out": {}, "unreadable": {}, "text": unknown, "levels": {}}
    same = SameAnswer(text="A", count=11, answers=12)
    found = diagnosis_of(**values, plain=unknown, remainder=unknown, same_answer=same, repetitions=repetitions)
    assert finding_sentences(found, {}) == [f" gives the same answer {sentence}: \u201cA\u201d."]


@pytest.mark.full
def test_a_killed_diagnosis_continues_and_says_the_same(
    config: DiagnoseConfig, kitchen_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "load_model", lambda *_: Reader(kitchen_data))
    whole = diagnose(config.model_copy(update={"out": tmp_path / "whole"}))
    for stop_after in (5, 17):
        monkeypatch.setattr(runner, "load_model", lambda *_, after=stop_after: Reader(kitchen_data, after))
        with pytest.raises(KeyboardInterrupt):
            diagnose(config)
    last = Reader(kitchen_data)
    monkeypatch.setattr(runner, "load_model", lambda *_: last)
    assert diagnose(config) == whole
    assert 0 < last.asked < 4 * LIMIT, "what was answered is not asked again"
    (config.out / "diagnosis.json").write_text("{")
    assert diagnose(config) == whole
    assert last.asked < 4 * LIMIT, "a finished diagnosis asks nothing"


def test_an_aided_run_contains_its_aid_and_enters_no_leaderboard(kitchen_data: Path, tmp_path: Path) -> None:
    settings = {"task": "relations", "model": "oracle", "repetitions": 1, "limit": 4}
    runner.run(kitchen_data, tmp_path, aid="objects", **settings)
    results = score(tmp_path / "relations").results
    assert results.model.name == "aided:oracle"
    identity = json.loads((tmp_path / "relations/run.json").read_text())["identity"]
    assert identity["model"]["settings"]["aid"] == "objects"
    with pytest.raises(DataError, match="or is told more: a diagnosis"):
        check_model(results, "results.json")
    with pytest.raises(ConfigError, match="use another --out"):
        runner.run(kitchen_data, tmp_path, aid="objects:inert", **settings)


def test_paths_ask_each_example_in_one_order_even_within_a_video(aids_of: Aids) -> None:
    task, examples, book = aids_of("temporal_vqa")
    planned = plan(examples, book)
    asked = {design: sum(map(len, ids_by_condition(planned, design).values())) for design in ("paths", "full")}
    assert asked["paths"] == sum(2 * len(each.order) + 1 + len(each.false) for each in planned)
    assert asked["full"] == sum(2 * 2 ** len(each.order) - 1 + len(each.false) for each in planned)
    counts: dict[tuple[str, frozenset[str]], dict[tuple[str, ...], int]] = {}
    for each in planned:
        orders = counts.setdefault((each.example.video_id, frozenset(each.order)), {})
        orders[each.order] = orders.get(each.order, 0) + 1
    for (_, levels), orders in counts.items():
        if len(levels) == 2 and sum(orders.values()) > 1:
            assert max(orders.values()) - min(orders.values()) <= 1
    assert default_design(task, ["objects", "states"]) == "paths"
    assert default_design(get_task("barista", "grounding"), ["states", "relations"]) == "full"
    assert default_design(get_task("barista", "hand_object"), ["marks"]) == "full", "F1 over frames is no mean"


def test_a_report_says_why_a_model_fails_and_ranks_no_aided_run(
    config: DiagnoseConfig, kitchen_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "load_model", lambda *_: Reader(kitchen_data))
    levels = AidBook.levels
    first = next(iter(open_examples(kitchen_data, "barista", "relations").examples)).example_id
    monkeypatch.setattr(
        AidBook, "levels", lambda book, example, wanted: example.example_id != first and levels(book, example, wanted)
    )
    diagnose(config)
    assert [run.parent.name for run in run_folders(tmp_path)] == ["none"]
    monkeypatch.undo()
    runner.run(kitchen_data, tmp_path / "prior", task="relations", model="prior", repetitions=1, limit=LIMIT)
    result = CliRunner().invoke(app, ["report", str(tmp_path), "--out", str(tmp_path / "page"), "--no-compare"])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "page/report.html").read_text()
    assert "Given true object boxes, its micro F1 rises by 1.00" in page
    assert "aided:" not in page
    assert "; prior, which guesses, gets ." in page
    assert f"{LIMIT - 1} of {LIMIT} examples of 4 videos; left out: 1 (no aid with an inert control)" in page
    assert "is incomplete" not in page, "the plain run asks every question"


def test_a_diagnosis_belongs_to_the_run_that_has_its_examples(
    config: DiagnoseConfig, kitchen_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(limit: int) -> tuple[list[ScoredRun], DiagnosisFolders]:
        runner.run(kitchen_data, tmp_path / str(limit), task="relations", model="reader", repetitions=1, limit=limit)
        return find_diagnoses(load_results([config.out, tmp_path / str(limit)]).runs)

    monkeypatch.setattr(runner, "load_model", lambda *_: Reader(kitchen_data))
    diagnose(config)
    shown, _ = found(LIMIT - 1)
    assert len(shown) == 2, "a run of fewer examples replaces no plain run"
    (run,), diagnosed = found(LIMIT)
    assert run.folder == tmp_path / str(LIMIT) / "relations"
    assert diagnosed[run.folder] == [config.out]
    titles = {title for texts in aided_answers(run, [config.out], 100).values() for title, _ in texts}
    assert {"Told: objects", "Answer, told objects", "Answer, told nothing"} <= titles
    page, _ = write_report([*load_results(config.out).runs, run], tmp_path / "page", compare=False)
    assert "Given true object boxes, its micro F1 rises by 1.00" in page.read_text()


def test_a_guess_about_more_examples_than_the_diagnosis_is_said_to_be_about_more(
    config: DiagnoseConfig, kitchen_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "load_model", lambda *_: Reader(kitchen_data))
    diagnose(config)
    runner.run(kitchen_data, tmp_path / "reader", task="relations", model="reader", repetitions=1)
    monkeypatch.undo()
    runner.run(kitchen_data, tmp_path / "prior", task="relations", model="prior", repetitions=1)
    runs = load_results([config.out, tmp_path / "reader", tmp_path / "prior"]).runs
    page = write_report(runs, tmp_path / "page", compare=False)[0].read_text()
    count = runs[-1].results.dataset.examples
    assert count > LIMIT
    assert re.search(rf"; prior, which guesses, gets [.\d]+ on all {count} examples\.", page)


def test_a_report_names_models_by_their_labels_and_contains_no_path(
    config: DiagnoseConfig, kitchen_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(kitchen_data)
    monkeypatch.setattr(runner, "load_model", lambda *_: reader)
    for folder in ("you", "me"):
        reader.identity = ModelIdentity(f"/home/{folder}/llava")
        diagnose(config.model_copy(update={"out": tmp_path / folder}))
    runner.run(
        kitchen_data, tmp_path / "own", task="relations", model="reader", name="ours", repetitions=1, limit=LIMIT
    )
    runs = load_results([tmp_path]).runs
    page, _ = write_report(runs, tmp_path / "page", compare=False, tables=True, figures=True)
    assert all(f"{label} gives the same answer" in page.read_text() for label in ("ours", "llava"))
    numbers = (page.parent / "report_figures/why_it_fails.csv").read_text()
    assert "ours in relations" in numbers
    assert "llava in relations" in numbers
    written = [path for path in page.parent.rglob("*") if path.suffix in {".html", ".md", ".csv", ".tex", ".svg"}]
    assert not [path.name for path in written if "/home/" in path.read_text()]
    compared = CliRunner().invoke(app, ["compare", str(tmp_path)]).output
    assert "difference of shares" in compared
    assert "/home/" not in compared


def test_a_diagnosis_names_a_local_model_without_its_path(
    config: DiagnoseConfig, kitchen_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(kitchen_data)
    reader.identity = ModelIdentity("/home/me/llava")
    monkeypatch.setattr(runner, "load_model", lambda *_: reader)
    flags = ["--task", "relations", "--limit", str(LIMIT), "--model", "/home/me/llava", "--out", str(config.out)]
    printed = CliRunner().invoke(app, ["diagnose", str(kitchen_data), *flags]).output
    assert "llava gives the same answer" in printed
    assert "/home/me" not in printed
    (found,) = diagnose(config.model_copy(update={"name": "ours", "out": config.out.with_name("named")}))
    assert found.model == "ours"


def test_a_guess_is_not_compared_with_itself(config: DiagnoseConfig, tmp_path: Path) -> None:
    diagnose(config.model_copy(update={"model": "prior"}))
    page, _ = write_report(load_results([config.out]).runs, tmp_path / "page", compare=False)
    assert "prior misses" in page.read_text()
    assert "which guesses, gets" not in page.read_text()


def test_python_compares_no_plain_run_of_a_diagnosis_beside_the_models_own_run(
    config: DiagnoseConfig, kitchen_data: Path, tmp_path: Path
) -> None:
    settings = {"task": "relations", "repetitions": 1, "limit": LIMIT}
    for model in ("chance", "oracle"):
        runner.run(kitchen_data, tmp_path / model, model=model, **settings)
    diagnose(config.model_copy(update={"model": "chance"}))
    folders = [config.out, tmp_path / "chance", tmp_path / "oracle"]
    assert len(barista_bench.compare(folders, permutations=20)) == 1
    assert len(barista_bench.compare([config.out, tmp_path / "oracle"], permutations=20)) == 1


def test_a_dry_run_prints_the_plan_and_asks_nothing(kitchen_data: Path, tmp_path: Path) -> None:
    flags = ["--task", "relations", "--model", "oracle", "--limit", str(LIMIT), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, ["diagnose", str(kitchen_data), *flags, "--dry-run"])
    assert result.exit_code == 0, result.output
    assert f"{4 * LIMIT} answers" in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.full
def test_python_diagnoses_as_the_command_does(
    config: DiagnoseConfig, kitchen_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "load_model", lambda *_: Reader(kitchen_data))
    found = barista_bench.diagnose(
        kitchen_data, "reader", out=config.out, task="relations", limit=LIMIT, workers=1, design="full"
    )
    assert found.diagnoses == tuple(diagnose(config))
    assert "Given true object boxes, its micro F1 rises by 1.00" in repr(found)
    assert "<table" in found._repr_html_()


@pytest.mark.full
def test_the_shares_of_two_models_are_compared_in_pairs(
    config: DiagnoseConfig, kitchen_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Knowing(Reader):
        """Sees the objects too."""

        def __init__(self, data: Path) -> None:
            super().__init__(data)
            self.identity = ModelIdentity("knowing")

        def _answer(self, request: Request) -> str:
            return self._task.reference_answer(self._examples[request.request_id], self.box_format)

    for name, kind in (("a", Reader), ("b", Knowing)):
        monkeypatch.setattr(runner, "load_model", lambda *_, kind=kind: kind(kitchen_data))
        diagnose(config.model_copy(update={"out": tmp_path / name}))
    diagnoses = read_diagnoses([tmp_path / "a", tmp_path / "b"])
    (row,) = compared_shares(diagnoses).values
    assert row[:4] == ("relations", "objects", "reader", "knowing")
    assert row[4].value == pytest.approx(1.0)
    result = CliRunner().invoke(app, ["compare", str(tmp_path / "a"), str(tmp_path / "b")])
    assert result.exit_code == 0, result.output
    assert "difference of shares" in result.output


def test_only_the_named_levels_are_given(kitchen_data: Path, tmp_path: Path) -> None:
    settings = {"task": ("temporal_vqa",), "model": "chance", "limit": 8, "aid": ("moment", "marks")}
    (planned,) = plan_tasks(DiagnoseConfig(data=str(kitchen_data), out=tmp_path, **settings))
    told = {part.level for condition in planned.conditions for part in condition}
    assert told <= {"moment", "marks"}
    assert "moment" in told


def test_a_signed_bar_is_drawn_on_both_sides_of_zero(tmp_path: Path) -> None:
    table = Table.of("Why", [*text_columns("part"), *number_columns("", "a")], [("x", 0.4), ("y", -0.2), ("z", 0.1)])
    metric = draw(replace(table, drawn="stack"))
    spans = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in metric.axes[0].patches)
    assert np.allclose(np.abs(spans).max(), 0.5)
    assert np.isclose(min(min(span) for span in spans), -0.2)
