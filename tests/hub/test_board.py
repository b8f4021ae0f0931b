"""The leaderboard: its rows, its ranking, and its list of refusals."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from barista_bench.errors import DataError
from barista_bench.hub.board import Board, BoardEntry, fetch_results, read_board
from barista_bench.hub.board_tables import entry_ranks, overview, refusals, tables
from barista_bench.hub.checks import MAX_FILE
from barista_bench.hub.files import results_files
from barista_bench.hub.submission import Submission
from barista_bench.runs.score.results import Results
from tests.hub.forging import Forgery
from tests.hub.made_results import HASH, judged, results, row, submission
from tests.hub.standin import UploadStandIn

RECORD = results().comparability


def entry(model: str, value: float, low: float | None, high: float | None, coverage: float = 1.0) -> BoardEntry:
    return BoardEntry(model, RECORD, "micro_f1", "", value, low, high, 3, coverage, None, "0.1.0", {})


def publish(root: Path, made: Results, *, allow_incomplete: bool = False) -> Path:
    """As `publish submission` puts it into a results dataset. Returns the folder of the leaderboard."""
    judge = judged(made) if made.primary.startswith("lexical_") else None
    return put(root, submission(row(made, judge), allow_incomplete=allow_incomplete, model_repo=made.model.name))


def put(root: Path, made: Submission) -> Path:
    files = results_files(made)
    for path, content in files.items():
        (root / "board" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "board" / path).write_bytes(content)
    return (root / "board" / next(iter(files))).parent


def test_a_model_with_an_adapter_is_shown_as_an_adapted_model(tmp_path: Path) -> None:
    made = results(model="a/tuned", values=(0.6, 0.6))
    made.model.settings["adapter"] = "5f" * 32
    publish(tmp_path, made)
    publish(tmp_path, results(model="a/plain", values=(0.6, 0.6)))
    shown = {str(row[0]) for row in overview(read_board(tmp_path / "board")).values}
    assert shown == {"a/plain", "a/tuned + adapter 5f5f5f5f5f5f"}


def test_the_board_shows_submissions_with_intervals_and_ranks(tmp_path: Path) -> None:
    publish(tmp_path, results(model="a/first", values=(0.6, 0.6), interval=(0.55, 0.65)))
    publish(tmp_path, results(model="a/tied", values=(0.58, 0.58), interval=(0.52, 0.63)))
    publish(tmp_path, results(model="a/last", values=(0.3, 0.3), interval=(0.25, 0.35)))
    publish(tmp_path, results("referring", model="a/last", values=(0.9, 0.9)))
    board = read_board(tmp_path / "board")
    assert not board.refused
    relations = {table.title: table for table in tables(board)}["relations"]
    assert relations.heads[:5] == ("rank", "model", "value", "95% low", "95% high")
    took = relations.heads.index("output tokens a sample")
    assert relations.heads[took : took + 3] == ("output tokens a sample", "seconds a sample", "revision")
    assert {row[took : took + 2] for row in relations.values} == {(15.0, 0.25)}  # and no dollars
    assert [row[:5] for row in relations.values] == [
        (1, "a/first", 60.0, 55.0, 65.0),
        (1, "a/tied", 58.0, 52.0, 63.0),
        (3, "a/last", 30.0, 25.0, 35.0),
    ]
    summary = overview(board)
    assert summary.heads == ("model", "mean rank", "referring (ours v2)", "relations (ours v2)")
    assert summary.values[0] == ("a/last", 2.0, "61.0 (1)", "30.0 [25.0, 35.0] (3)")
    assert summary.values[1][:3] == ("a/first", None, "")
    assert all("self-reported" in table.note for table in (*tables(board), summary))


def test_an_incomplete_result_is_shown_without_a_rank(tmp_path: Path) -> None:
    publish(tmp_path, results(model="a/part", values=(0.9, 0.9), missing=50), allow_incomplete=True)
    publish(tmp_path, results(model="a/whole", values=(0.5, 0.5)))
    (table,) = tables(read_board(tmp_path / "board"))
    assert [(row[0], row[1], row[6]) for row in table.values] == [(1, "a/whole", 1.0), (None, "a/part", 0.75)]
    assert "incomplete" in str(overview(read_board(tmp_path / "board")).values)


def test_results_in_another_wording_are_in_a_separate_table(tmp_path: Path) -> None:
    for model, wording in (("a/one", "ours v2"), ("a/two", "ours v1"), ("a/three", "release@4086ce5")):
        publish(tmp_path, results(model=model, wording=wording))
    board = read_board(tmp_path / "board")
    shown = [(table.title, [row[1] for row in table.values]) for table in tables(board)]
    assert shown == [("relations", ["a/two"]), ("relations", ["a/one"]), ("relations_release-4086ce5", ["a/three"])]
    wordings = [re.findall("in the wording ([^;]+);", table.note) for table in tables(board)]
    assert wordings == [["ours v1"], ["ours v2"], ["release@4086ce5"]]
    assert overview(board).heads == (
        *("model", "mean rank", "relations (ours v1)"),
        "relations_release-4086ce5 (release@4086ce5)",
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"options": {"matcher": "exact"}}, "option matcher 'exact'"),
        ({"limit": 50}, "limit 50"),
        ({"protocol": "paper"}, "protocol 'paper'"),
        ({"split": "test"}, "split 'test'"),
    ],
)
def test_entries_that_are_not_comparable_share_no_table_and_the_reason_is_given(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    publish(tmp_path, results(model="a/one"))
    publish(tmp_path, results(model="a/two", **changes), allow_incomplete="limit" in changes)
    board = read_board(tmp_path / "board")
    assert not board.refused
    by_model = {table.values[0][1]: table for table in tables(board)}
    assert by_model["a/one"].title == "relations"
    assert by_model["a/two"].title.startswith("relations_")
    assert f"stands apart from other tables of the task by {why}" in by_model["a/two"].note


def test_settings_are_shown_beside_the_metrics_and_keep_no_model_from_a_rank(tmp_path: Path) -> None:
    publish(tmp_path, results(model="a/one", settings={"dtype": "float32"}))
    publish(tmp_path, results(model="a/two", values=(0.4,)))
    (table,) = tables(read_board(tmp_path / "board"))
    beside = {row[1]: str(row[-1]) for row in table.values}
    assert table.heads[-1] == "settings"
    assert "temperature 0.7" in beside["a/one"]
    assert "dtype float32" in beside["a/one"]
    assert "box order xyxy" in beside["a/two"]


def test_the_rules_of_the_dataset_decide_which_examples_and_judges_count(tmp_path: Path) -> None:
    publish(tmp_path, results(model="a/one"))
    publish(tmp_path, results(model="a/two", content_hash="cd" * 32))
    publish(tmp_path, results("referring", model="a/one"))
    rules = f"content_hashes: {{relations: {HASH}, referring: {HASH}}}\njudges: [someone/else]\n"
    (tmp_path / "board" / "leaderboard.yaml").write_text(rules)
    board = read_board(tmp_path / "board")
    assert [entry.model for entry in board.entries] == ["a/one"]
    reasons = {refusal.path: refusal.reason for refusal in board.refused}
    assert "other examples" in reasons["results/a/two/relations/results.json"]
    assert "'maker/judge' is none of leaderboard.yaml" in reasons["results/a/one/referring/results.json"]
    (tmp_path / "board" / "leaderboard.yaml").write_text("content_hashes: {relations: abc}")
    with pytest.raises(DataError, match=r"leaderboard.yaml: content_hashes.relations.*Fix"):
        read_board(tmp_path / "board")


def test_results_on_other_examples_get_their_own_table_or_are_refused_by_the_published_set(tmp_path: Path) -> None:
    publish(tmp_path, results(model="a/one"))
    publish(tmp_path, results(model="a/two", content_hash="cd" * 32))
    shown = tables(read_board(tmp_path / "board"))
    assert [(table.title, len(table.values)) for table in shown] == [("relations", 1), ("relations", 1)]
    # A results dataset takes pull requests from anyone: its own rules do not outweigh the published dataset's.
    (tmp_path / "board" / "leaderboard.yaml").write_text(f"content_hashes: {{relations: {'cd' * 32}}}\n")
    (tmp_path / "published").mkdir()
    with pytest.raises(DataError, match=r"no leaderboard.yaml with content_hashes.*Fix"):
        read_board(tmp_path / "board", tmp_path / "published")
    (tmp_path / "published" / "leaderboard.yaml").write_text(f"content_hashes: {{relations: {HASH}}}\n")
    board = read_board(tmp_path / "board", tmp_path / "published")
    assert [entry.model for entry in board.entries] == ["a/one"]
    assert [refusal.path for refusal in board.refused] == ["results/a/two/relations/results.json"]


def test_an_entry_with_missing_verdicts_has_no_rank(tmp_path: Path) -> None:
    made = results("referring", model="a/one")
    part = judged(made)
    verdicts = {"ok": 675, "missing": 225}
    coverage = part.coverage.model_copy(update={"verdicts": verdicts})
    part = part.model_copy(update={"coverage": coverage, "scoring": {"plain": 675}})
    with pytest.raises(DataError, match=r"225 verdicts missing.*Fix"):
        submission(row(made, part), model_repo="a/one")
    put(tmp_path, submission(row(made, part), model_repo="a/one", allow_incomplete=True))
    (entry,) = read_board(tmp_path / "board").entries
    assert (entry.coverage, entry.is_complete) == (0.75, False)


_VALUES = st.tuples(st.integers(0, 100), st.integers(0, 20), st.integers(0, 20), st.booleans())


@given(st.lists(_VALUES, max_size=12))
def test_a_rank_counts_the_entries_that_are_better_beyond_both_intervals(
    drawn: list[tuple[int, int, int, bool]],
) -> None:
    entries = [
        entry(str(number), value, value - below, value + above, 1.0 if whole else 0.5)
        for number, (value, below, above, whole) in enumerate(drawn)
    ]
    ranked = entry_ranks(entries)
    for rank, ranked_entry in zip(ranked, entries, strict=True):
        better = sum(other.is_complete and other.low > ranked_entry.high for other in entries)  # type: ignore[operator]
        assert rank == (better + 1 if ranked_entry.is_complete else None)
    assert not any(entry.is_complete for entry in entries) or 1 in ranked


def test_a_value_without_an_interval_counts_as_a_point() -> None:
    entries = [entry("a", 50, None, None), entry("b", 49, 47, 51), entry("c", 40, None, None)]
    assert entry_ranks(entries) == [1, 1, 3]


def written(content: bytes) -> Forgery:
    return lambda folder: (folder / "results.json").write_bytes(content)


SPOILT: dict[str, Forgery] = {
    "Invalid JSON": written(b"<script>alert(1)</script>"),
    "Invalid JSON: recursion limit": written(b"[" * 100_000),
    "is larger than": written(b" " * (MAX_FILE + 1)),
}


@pytest.mark.parametrize(("said", "spoil"), SPOILT.items(), ids=SPOILT)
def test_a_bad_submission_is_listed_with_the_reason_and_the_others_are_shown(
    tmp_path: Path, spoil: object, said: str
) -> None:
    publish(tmp_path, results(model="c/good"))
    bad = publish(tmp_path, results(model="a/one"))
    spoil(bad)
    board = read_board(tmp_path / "board")
    assert [entry.model for entry in board.entries] == ["c/good"]
    ((path, reason),) = refusals(board).values
    assert str(path).startswith("results/a/one/")
    assert said in str(reason)
    assert str(tmp_path) not in str(reason)


def test_an_empty_dataset_has_empty_tables(tmp_path: Path) -> None:
    board = read_board(tmp_path)
    assert board == Board((), ())
    assert tables(board) == []
    assert overview(board).values == ()
    with pytest.raises(DataError, match="no folder"):
        read_board(tmp_path / "absent")


def test_a_dataset_on_the_hub_is_fetched_without_files_that_cannot_be_submissions(tmp_path: Path) -> None:
    publish(tmp_path, results(model="a/one"))
    root = tmp_path / "board"
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.json")}
    files["results/b/two/relations/results.json"] = b" " * (MAX_FILE + 1)
    files["model.safetensors"] = b"0" * 100
    with UploadStandIn() as hub:
        hub.make("garden/results", "dataset", files)
        folder, refused = fetch_results("garden/results", tmp_path / "copy", endpoint=hub.endpoint)
        asked = [request.path for request in hub.requests if "/resolve/" in request.path]
    assert [refusal.path for refusal in refused] == ["results/b/two/relations/results.json"]
    assert not any("two" in path or "safetensors" in path for path in asked)
    assert [entry.model for entry in read_board(folder).entries] == ["a/one"]


def test_the_board_imports_only_packages_of_a_space() -> None:
    """A Space installs pydantic, PyYAML and huggingface_hub, and gets the package's files."""
    program = (
        "import sys; import barista_bench.hub.board_tables\n"
        "heavy = ('torch', 'transformers', 'datasets', 'evaluate', 'av', 'numpy', 'PIL', 'pycocotools', 'scipy',"
        " 'msgspec', 'pyarrow', 'typer')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.full
def test_the_spaces_page_is_made_from_a_folder(tmp_path: Path) -> None:
    python = os.environ.get("BARISTA_GRADIO_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import gradio"], capture_output=True).returncode:
        pytest.skip(
            "gradio is not installed: the Space's page is not made (BARISTA_GRADIO_PYTHON names another Python)"
        )
    publish(tmp_path, results(model="a/one"))
    root = Path(__file__).resolve().parents[2]
    program = (
        "import app, sys; from barista_bench.hub.board_tables import overview\n"
        "board = app.load(sys.argv[1]); blocks = app.page(sys.argv[1])\n"
        "print(len(board.entries), type(blocks).__name__, overview(board).values[0][0])"
    )
    environment = {**os.environ, "PYTHONPATH": f"{root / 'scripts' / 'leaderboard'}{os.pathsep}{root}"}
    command = [python, "-c", program, str(tmp_path / "board")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == ["1", "Blocks", "a/one"], done.stderr
