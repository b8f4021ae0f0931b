"""Files of a results dataset that contradict themselves or each other: none is shown, and none costs another."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barista_bench.hub import board as board_module
from barista_bench.hub.board import Board, RefusedSubmission, read_board
from barista_bench.hub.board_tables import overview, refusals, tables
from barista_bench.hub.files import results_files
from barista_bench.tables import Table
from tests.conftest import MadeOnce
from tests.hub.forging import Forgery, edit, first, submit
from tests.judging.judges import VQA

RELATIONS = "relations"


@pytest.fixture(scope="module")
def honest_board(honest_run: Path, judged_run: Path, made_once: MadeOnce) -> Path:
    """What `publish submission` writes of two honest runs, as a results dataset."""

    def make(out: Path) -> None:
        for run in (honest_run, judged_run):
            for name, content in results_files(submit(run)).items():
                (out / name).parent.mkdir(parents=True, exist_ok=True)
                (out / name).write_bytes(content)

    return made_once("honest_board", make)


def in_results(field: str, value: object) -> Forgery:
    return lambda model: edit(model / RELATIONS / "results.json", field, value)


def in_judged(field: str, value: object) -> Forgery:
    return lambda model: edit(model / VQA / "judged.json", field, value)


def recorded(field: str, name: str, value: object) -> Forgery:
    """A field, and its value in the record of the figures."""
    return both(in_results(field, value), in_results(f"comparability.{name}", value))


def both(*forgeries: Forgery) -> Forgery:
    def forge(model: Path) -> None:
        for forgery in forgeries:
            forgery(model)

    return forge


def metric(**values: object) -> Callable[[Any], Any]:
    return lambda metric: {**metric, **values}


def primary(**values: object) -> Forgery:
    return in_results("metrics.micro_f1", metric(**values))


def every_run(**values: object) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    return lambda details: [{**detail, **values} for detail in details]


def _better(model: Path) -> None:
    """A better value, in the figure and in its runs."""
    primary(mean=0.99, repetitions=[0.99, 0.99], std=0.0, low=0.98, high=1.0)(model)


def _called(name: str) -> Forgery:
    """Another primary metric, with all that belongs to it."""
    best = {"mean": 1.0, "std": 0.0, "repetitions": [1.0, 1.0], "low": 1.0, "high": 1.0}
    return both(
        in_results("primary", name),
        in_results("metrics", lambda metrics: {**metrics, name: best}),
        in_results("details", every_run(**{name: 1.0})),
    )


def _of(**fields: object) -> Forgery:
    """Results of another task, benchmark or split, in the folder of that leaderboard."""

    def forge(model: Path) -> None:
        path = model / RELATIONS / "results.json"
        for name, value in fields.items():
            edit(path, f"dataset.{name}", value)
            edit(path, f"comparability.{name}", value) if name != "config" else None
        dataset = json.loads(path.read_text())["dataset"]
        name = dataset["task"] + ("" if dataset["split"] == "all" else f"_{dataset['split']}")
        (model / RELATIONS).rename(model / name)

    return forge


def written(content: Callable[[bytes], bytes]) -> Forgery:
    def forge(model: Path) -> None:
        path = model / RELATIONS / "results.json"
        path.write_bytes(content(path.read_bytes()))

    return forge


def _moved(to: str) -> Forgery:
    def forge(model: Path) -> None:
        (model.parents[1] / to).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(model / RELATIONS, model.parents[1] / to)

    return forge


METRICS: dict[str, Forgery] = {
    "a better value": _better,
    "an interval below its value": primary(low=0.0, high=0.01),
    "an interval that ends above 1": primary(high=1.5),
    "an interval without a low end": primary(low=None),
    "another deviation": primary(std=0.5),
    "a run more than were run": primary(repetitions=[0.5] * 3, mean=0.5),
    "a mean that is not that of its runs": primary(mean=0.9, high=1.0),
    "details with other runs": in_results("details", every_run(micro_f1=0.99)),
    "a figure that no detail has": in_results("metrics", lambda all: {**all, "charm": next(iter(all.values()))}),
    "a group's interval that does not hold it": in_results(
        "breakdowns", first(first(lambda cell: {**cell, "metric": {**cell["metric"], "low": 0.999, "high": 1.0}}))
    ),
    "a figure of the forger's own as the primary one": _called("charm"),
    "a number as NaN": written(lambda text: text.replace(b'"mean": 0', b'"mean": NaN, "x": 0', 1)),
    "a number as text": primary(mean="high"),
}
_FIT = {"format": "xyxy/1000", "answers": 8, "mean_best_iou": 0.9, "boxes": 8, "without_area": 0, "outside": 0}
_FIT |= {"better_format": None, "better_iou": None}
COUNTS: dict[str, Forgery] = {
    "a thousand runs and one": in_results("repetitions", 1001),
    "no examples": both(in_results("dataset.examples", 0), in_results("coverage.expected", 0)),
    "more examples than the limit": recorded("dataset.limit", "limit", 3),
    "more answered than scored": in_results("coverage.answered", lambda count: count + 1),
    "more expected than asked": in_results("coverage.expected", lambda count: count + 1),
    "statuses that do not add up": in_results("coverage.statuses.ok", 1),
    "a status of the forger's own": in_results("coverage.statuses", lambda s: {**s, "brilliant": 1}),
    "more boxes outside than boxes": in_results("box_fit", _FIT | {"outside": 9}),
    "more odd answers than answers": in_results("notes", {"ended oddly": 10**6}),
    "trained on its videos": in_results("trained_on", 2),
    "a task version below 0": both(
        in_results("dataset.task_version", -1), in_results("comparability.task_version", -1)
    ),
}
COSTS: dict[str, Forgery] = {
    "seconds below 0": in_results("timing.costs.seconds", metric(total=-5.0, mean=-5.0 / 24)),
    "tokens of 1e308": in_results("timing.costs", lambda c: {**c, "output_tokens": _cost(1e308)}),
    "a mean that is not total by samples": in_results("timing.costs.seconds.mean", 1e-9 + 0.5),
    "more samples than there are": in_results("timing.costs.seconds.samples", 10**6),
    "a cost of the forger's own": in_results("timing.costs", lambda c: {**c, "kindness": _cost(0.0)}),
    "tokens in all that are others than the samples'": in_results("timing.output_tokens", 7),
}


def _cost(total: float) -> dict[str, object]:
    return {"total": total, "mean": total / 24, "samples": 24}


NAMES: dict[str, Forgery] = {
    "an unknown benchmark": _of(benchmark="latte"),
    "an unknown split": _of(split="mine"),
    "another leaderboard's folder": lambda model: (model / RELATIONS).rename(model / "grounding"),
    "an unknown protocol": recorded("protocol", "protocol", "mine"),
    "a wording that is markup": both(
        in_results("prompts.wording", "<b>1"), in_results("comparability.wording", "<b>1")
    ),
    "a record that says other options": in_results("comparability.options", {"matcher": "exact"}),
    "a record with a judge": in_results("comparability.judge", {"name": "maker/judge"}),
    "another model's name": in_results("model.name", "garden/other"),
    "another maker's folder": _moved("weeds/fruit-8b/relations"),
    "a folder too deep": _moved("garden/fruit-8b/best/relations"),
    "a maker that is no name": _moved("..garden/fruit-8b/relations"),
    "a baseline": in_results("model.name", "oracle"),
    "a model that sees less": in_results("model.settings.ablation", "text_only"),
    "a hash that is none": recorded("dataset.content_hash", "content_hash", "00"),
    "a version that commands a terminal": in_results("barista_bench", "0.1\x1b[2J"),
    "a package's version of two lines": in_results("versions", {"numpy": "2\n3"}),
    "a field of the forger's own": in_results("verified", True),
    "another version of the schema": in_results("schema_version", 3),
    "a floor without its judge": lambda model: (model / VQA / "judged.json").unlink(),
    "no UTF-8": written(lambda text: b"\xff\xfe" + text),
    "a link to another's results": lambda model: _link(model),
}


def _link(model: Path) -> None:
    path = model / RELATIONS / "results.json"
    path.rename(model.parents[2] / "elsewhere.json")
    path.symlink_to(model.parents[2] / "elsewhere.json")


JUDGED: dict[str, Forgery] = {
    "a better mean": in_judged("metrics.mean.mean", 0.99),
    "a criterion's interval that does not hold it": in_judged("metrics.accuracy", metric(low=0.999, high=1.0)),
    "more judged than finished": in_judged("coverage.judged", 10**6),
    "fewer finished than the run": in_judged("coverage.finished", 1),
    "verdicts that do not add up": in_judged("coverage.verdicts.ok", 1),
    "scorings that do not add up": in_judged("scoring.plain", 1),
    "more inferred than weighted": in_judged("scoring.inferred", 10**6),
    "another number of verdicts": in_judged("verdicts_per_answer", 9),
    "categories that do not add up": in_judged("per_category", first(lambda group: {**group, "judged": 1})),
    "a spread of verdicts below 0": in_judged("sd_of_verdicts", {"mean": -1.0}),
    "answers of another set": in_judged("answers.content_hash", "ab" * 32),
    "another model": in_judged("model", "garden/other"),
    "other repetitions": in_judged("repetitions", 1),
    "verdicts that came along": both(
        in_judged("method", "released"), in_judged("comparability.judge.method", "released")
    ),
    "a floor as the judge": both(in_judged("judge.name", "lexical"), in_judged("comparability.judge.name", "lexical")),
    "tokens that the verdicts did not take": in_judged("output_tokens", 1),
}
FORGERIES = METRICS | COUNTS | COSTS | NAMES | JUDGED


def test_the_board_shows_files_without_forgery(honest_board: Path) -> None:
    board = read_board(honest_board)
    assert [entry.metric for entry in board.entries] == ["micro_f1", "judge_score"]
    assert board.refused == ()


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_file_is_not_shown_and_costs_no_other(name: str, honest_board: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(honest_board, tmp_path / "board"))
    model = root / "results/garden/fruit-8b"
    FORGERIES[name](model)
    board = read_board(root)
    assert len(board.entries) == 1, [entry.model for entry in board.entries]
    (refused,) = {refused.path: refused for refused in board.refused}.values()
    assert refused.reason
    assert str(tmp_path) not in refused.reason


def texts(table: Table) -> list[str]:
    return [str(value) for row in (*table.values, table.heads, (table.title, table.note)) for value in row]


LONG = "x" * 400_000
ESCAPES = "red \x1b[31m \u202e \n | <b>"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model.settings", {"dtype": LONG}),
        ("model.settings", {ESCAPES: ESCAPES}),
        ("model.revision", ESCAPES),
        ("model.settings", {"adapter": ESCAPES}),
        ("generation", {LONG: LONG}),
    ],
)
def test_a_cell_is_one_line_of_bounded_length(field: str, value: object, honest_board: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(honest_board, tmp_path / "board"))
    in_results(field, value)(root / "results/garden/fruit-8b")
    board = read_board(root)
    assert len(board.entries) == 2
    for table in (*tables(board), overview(board)):
        assert all(text.isprintable() and len(text) <= 500 for text in texts(table))


def test_a_refusal_is_one_line_of_bounded_length() -> None:
    board = Board((), (RefusedSubmission(f"results/{ESCAPES}", LONG),))
    assert all(text.isprintable() and len(text) <= 500 for text in texts(refusals(board)))


def test_many_files_of_one_submitter_cost_no_other(
    honest_board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_module, "MAX_FILES", 30)
    root = Path(shutil.copytree(honest_board, tmp_path / "board"))
    for number in range(50):
        (root / f"results/aaa/{number:02}").mkdir(parents=True)
        (root / f"results/aaa/{number:02}/junk.json").touch()
    board = read_board(root)
    assert len(board.entries) == 2
    assert "holds 50 files: files after the first 30 are not read" in board.refused[0].reason
    rows = refusals(board).values
    assert len(rows) == 21
    assert rows[-1] == ("results/aaa", "11 more files are refused")


def test_a_submitter_appears_in_a_bounded_number_of_tables(
    honest_board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_module, "MAX_TABLES", 3)
    root = Path(shutil.copytree(honest_board, tmp_path / "board"))
    _copies(root, "aaa", 5, lambda number: f"{number:02x}" * 32)
    board = read_board(root)
    assert len(board.entries) == 3 + 2
    assert [refused.reason for refused in board.refused] == [
        "aaa has results in 3 tables already. Fix: use `publish submission`"
    ] * 2


def test_one_submitter_does_not_decide_which_results_the_overview_shows(honest_board: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(honest_board, tmp_path / "board"))
    _copies(root, "aaa", 5, lambda number: "ab" * 32)
    content_hash = json.loads((root / "results/garden/fruit-8b/relations/results.json").read_text())["dataset"]
    _copies(root, "meadow", 1, lambda number: content_hash["content_hash"])
    shown = {str(row[0]): row for row in overview(read_board(root)).values}
    assert {"garden/fruit-8b", "meadow/m0"} <= shown.keys()
    assert "aaa/m0" not in shown


def _copies(root: Path, submitter: str, count: int, hash_of: Callable[[int], str]) -> None:
    """Honest results under other names, on other examples."""
    for number in range(count):
        model = root / f"results/{submitter}/m{number}"
        shutil.copytree(root / "results/garden/fruit-8b/relations", model / RELATIONS)
        in_results("model.name", f"{submitter}/m{number}")(model)
        recorded("dataset.content_hash", "content_hash", hash_of(number))(model)


def test_files_beside_the_submitters_folders_are_refused_together(honest_board: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(honest_board, tmp_path / "board"))
    for number in range(30):
        (root / f"results/{number:02}.json").touch()
    board = read_board(root)
    assert len(board.entries) == 2
    assert refusals(board).values[-1] == ("results", "10 more files are refused")


def test_a_plug_ins_task_is_shown_where_the_rules_name_its_leaderboard(honest_board: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(honest_board, tmp_path / "board"))
    model = root / "results/garden/fruit-8b"
    shutil.rmtree(model / VQA)
    _of(benchmark="latte", task="foam", config="foam")(model)
    content_hash = json.loads((model / "foam/results.json").read_text())["dataset"]["content_hash"]
    assert not read_board(root).entries
    (root / "leaderboard.yaml").write_text(f"content_hashes: {{foam: {content_hash}}}")
    assert [entry.record.task for entry in read_board(root).entries] == ["foam"]
