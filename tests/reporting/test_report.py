"""Reports over hand-made runs: their content, and their resistance to hostile texts."""

import base64
import hashlib
import io
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from barista_bench.core.status import RARE_STATUSES, Status
from barista_bench.errors import ConfigError
from barista_bench.reporting import write_report
from barista_bench.reporting.pictures import spread_order
from barista_bench.runs.score.scoring import ScoredRun
from barista_bench.stats import by_thinking
from tests.reporting.made_runs import HOSTILE, Fruit, MadeExamples, MadeItem, made_run


class Page(HTMLParser):
    """Elements with their attributes, text outside scripts, and the content of each script and style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.raw: dict[str, str] = {}
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = dict(attrs).get("id") or tag if tag in ("script", "style") else None

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.raw[self._inside] = self.raw.get(self._inside, "") + data
        else:
            self.text += data + " "

    def block(self, name: str) -> Any:
        """A block, inflated as the script inflates it."""
        return json.loads(zlib.decompress(base64.b64decode(self.raw[name])))

    @property
    def index(self) -> dict[str, Any]:
        return json.loads(self.raw["index"])

    @property
    def task(self) -> dict[str, Any]:
        return self.block("task-0")

    @property
    def ids(self) -> list[str]:
        """Example ids in the order of the first task's samples."""
        return [sample[0] for sample in self.task["samples"]]

    @property
    def samples(self) -> list[dict[str, Any]]:
        """The details of all samples."""
        return [sample for name in self.raw if name.startswith("chunk-") for sample in self.block(name)]

    def tables(self) -> dict[str, dict[str, Any]]:
        """Every table of the page by its title."""
        names = [name for name in self.raw if name.startswith(("task-", "across", "paper-"))]
        every = [tab["board"]["table"] for tab in self.index["tabs"]]
        every += [table for name in names for table in _tables_in(self.block(name))]
        return {table["title"]: table for table in every}

    def rows(self, title: str) -> list[dict[str, str]]:
        """The texts of a table's rows by the names of its columns; `*` ends what asks for attention."""
        table = self.tables()[title]
        heads = [f"{c['group']}: {c['name']}" if c.get("group") else c["name"] for c in table["columns"]]
        return [dict(zip(heads, map(_in_words, row), strict=True)) for row in table["rows"]]


def _tables_in(block: Any) -> list[dict[str, Any]]:
    """Everything that has columns, at any depth."""
    if isinstance(block, dict):
        return [block] if "columns" in block else [t for value in block.values() for t in _tables_in(value)]
    return [table for value in block for table in _tables_in(value)] if isinstance(block, list) else []


def _in_words(cell: dict[str, Any]) -> str:
    return " ".join(filter(None, [cell["text"], cell.get("extra")])) + ("*" if cell.get("warn") else "")


def page_of(runs: Sequence[ScoredRun], out: Path, **settings: Any) -> Page:
    """The page of a report without comparisons."""
    return Page(write_report(runs, out, compare=False, **settings)[0].read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def runs() -> list[ScoredRun]:
    examples = MadeExamples(10, broken=frozenset({2}))
    return [
        replace(made_run(examples, name="bad", answer=f"{HOSTILE}, apple"), name=f"org/{HOSTILE}"),
        made_run(examples, name="oracle", statuses=[Status.OK], answer="apple, pear", folder="b"),
        made_run(examples, name="oracle", statuses=[Status.OK], left_out=4, folder="c"),
    ]


@pytest.fixture(scope="module")
def written(runs: list[ScoredRun], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_report(runs, tmp_path_factory.mktemp("report"), samples=8, compare=False)


@pytest.fixture(scope="module")
def page(written: tuple[Path, Path]) -> Page:
    return Page(written[0].read_text(encoding="utf-8"))


def test_tables_of_a_task(page: Page) -> None:
    hostile, full, partial = page.rows("Coverage")
    # Ten examples in two runs; statuses go round, so that each of the five has four samples.
    assert [hostile[f"samples by status: {name}"] for name in ("ok", "parse error", "not run")] == ["4", "4*", "0"]
    assert hostile["samples by status: infra error"] == "4*"
    assert (hostile["coverage (samples): expected"], hostile["coverage (samples): scored"]) == ("20", "16*")
    assert (hostile["coverage (samples): answered"], hostile["coverage (samples): answered %"]) == ("4", "20.0%")
    assert (full["model"], partial["model"]) == ("oracle (b)", "oracle (c)")
    assert partial["samples by status: not run"] == "8*"
    assert page.rows("Metrics")[1]["micro F1"] == "1.000 ± 0.000"
    assert page.rows("Metrics")[2]["model"] == "oracle (c) incomplete*"
    assert page.rows("Examples by preparation: micro F1")[0]["oracle (b)"] == "1.000"
    apple = next(row for row in page.rows("Scores per fruit") if row["fruit"] == "apple")
    assert (apple["oracle (b): answered"], apple["oracle (c): answered"]) == ("10", "6")
    assert page.rows("Timing")[1]["seconds: total"] == "10.0"
    assert page.rows("What went wrong")[0]["kind"] == "format"


def test_the_page_names_the_evaluated_data_and_flags_incomplete_runs(page: Page, written: tuple[Path, Path]) -> None:
    assert "oracle (c) is incomplete: 8 of 20 samples are not scored" in page.text
    assert "- oracle (c) is incomplete" in written[1].read_text(encoding="utf-8")
    for fact in ("garden", "fruit (version 3)", "0123456789ab", "release", "numpy 2.1"):
        assert fact in str(page.task["facts"])
    (task,) = page.index["tasks"]
    assert (task["examples"], task["count"]) == (10, 8)


def test_every_status_and_every_answer_is_in_the_samples(page: Page) -> None:
    answers = {answer["status"]: answer for sample in reversed(page.samples) for answer in sample["models"][0]}
    assert set(answers) == set(Status) - RARE_STATUSES
    refused, infra = answers["refused"], answers["infra_error"]
    assert (refused["error"], refused["text"]) == (f"why refused: {HOSTILE}", f"{HOSTILE}, apple")
    assert (refused["scores"], refused["failures"]) == ([0.0, 0.0], ["format"])
    assert {"parsed", "boxes"}.isdisjoint(refused)
    assert (infra["text"], infra["scores"], infra["rows"]) == (None, [None, None], [])


def test_costs_and_thoughts_are_shown_where_they_are_known(tmp_path: Path) -> None:
    examples = MadeExamples(40)
    ends = [Status.OK, Status.OK, Status.TRUNCATED_THINKING]
    runs = [
        made_run(examples, name="thinker", thinks=True, statuses=ends),
        made_run(examples, name="plain", statuses=[Status.OK], folder="b"),
    ]
    page = Page(write_report(runs, tmp_path, samples=1)[0].read_text(encoding="utf-8"))
    costs = {row["model"]: row for row in page.rows("Costs")}
    assert (costs["thinker"]["in all: output tokens"], costs["plain"]["in all: output tokens"]) == ("16,400", "800")
    assert (costs["thinker"]["a sample: thinking tokens"], costs["plain"]["a sample: thinking tokens"]) == ("195", "–")
    assert page.rows("Coverage")[1]["samples by status: truncated thinking"] == "26*"
    bins = page.rows("Score against tokens of thought")
    assert [row["tokens of thought"] for row in bins] == ["45", "145", "245", "345"]
    assert all(set(row) == {"tokens of thought", "micro F1: thinker"} for row in bins)
    (chart,) = [table["chart"] for table in page.task["metrics"] if "chart" in table]
    (series,) = chart["series"]
    for (_, mean, low, high), part in zip(series["points"], by_thinking(runs[0]), strict=True):
        assert low <= mean <= high
        assert mean == part.row.metric.mean
    assert sum(part.row.samples for part in by_thinking(runs[0])) == 80
    assert by_thinking(runs[1]) == ()


def test_explanations_and_scores_come_through_the_task(page: Page) -> None:
    assert page.index["tasks"][0]["scores"] == ["f1", "recall"]
    third = [sample[5][2] for sample in page.task["samples"]]
    missed, wrong = (page.index["kinds"].index(kind) for kind in ("missed", "hallucinated"))
    assert third[0] == [0.5, [0, 0], [missed, wrong]]
    assert third[-1] == [None, [page.index["statuses"].index("not_run")], []]
    first = page.samples[0]
    assert [(row["kind"], row["text"]) for row in first["models"][2][0]["rows"]] == [
        ("hit", "apple"),
        ("miss", "pear"),
        ("wrong", "plum"),
    ]
    assert json.loads(first["models"][2][0]["parsed"]) == {"words": ["apple", "plum"]}
    assert json.loads(first["reference"]) == {"words": ["apple", "pear"]}
    assert page.samples[-1]["models"][2] == []
    assert ["fruit rows", "0, 7"] in first["evidence"]


def test_boxes_of_truth_and_answer_are_bounded_and_those_without_a_place_are_left_out(page: Page) -> None:
    sample = page.samples[page.ids.index("fruit:video:5")]
    assert sample["boxes"] == [[0, "reference", HOSTILE[:120], [15.0, 20.0, 110.0, 90.0], None]]
    assert sample["models"][1][0]["boxes"] == [[0, "predicted", "", [12.0, 1e5, 100.0, 80.0], None]]
    assert sample["captions"] == ["as filmed", f"by {HOSTILE}"]


def test_metadata_become_filters_and_lists_count_for_each_value(page: Page) -> None:
    meta = {entry["key"]: entry for entry in page.task["filters"]}
    assert list(meta) == ["preparation", "activities"]  # every example has the same device
    assert meta["preparation"]["values"] == ["capsule", "moka"]
    by_id = dict(zip(page.ids, meta["preparation"]["codes"], strict=True))
    assert (by_id["fruit:video:0"], by_id["fruit:video:5"]) == ([0], [1])
    assert {len(codes) for codes in meta["activities"]["codes"]} == {2}


def test_hostile_texts_stay_text_and_the_page_names_no_place_in_the_network(page: Page) -> None:
    assert {tag for tag, _ in page.tags}.isdisjoint({"iframe", "object", "link", "base", "embed"})
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert not [attributes for _, attributes in page.tags if "style" in attributes]
    assert HOSTILE in page.text + page.raw["index"].encode().decode("unicode_escape")
    assert "49" not in page.text.replace(HOSTILE, "").split()
    assert "<" not in page.raw["index"]
    policy = next(a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv"))
    assert policy is not None
    for name in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.raw[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert {str(a[name]) for _, a in page.tags for name in ("src", "href", "srcset") if name in a} == {"#"}
    addresses = re.findall(r"https?://[^\s\"']*", page.raw["script"] + page.raw["style"])
    assert set(addresses) == {"http://www.w3.org/2000/svg"}  # a name, never loaded
    doors = r"innerHTML|fetch\(|XMLHttpRequest|eval\(|Function\(|insertAdjacentHTML|document\.write"
    assert not re.search(doors, page.raw["script"])


def test_pictures_are_scaled_and_a_missing_one_says_so(tmp_path: Path) -> None:
    page = page_of([made_run(MadeExamples(2, size=(1920, 1080), broken=frozenset({1})))], tmp_path)
    first, second = page.samples
    assert first["pictures"] == [{"file": n, "width": 1920, "height": 1080} for n in range(2)]
    assert Image.open(io.BytesIO(base64.b64decode(page.raw["picture-0"]))).size == (960, 540)
    assert (second["pictures"], [sample[4] for sample in page.task["samples"]]) == ([], [2, 0])
    assert second["problem"] == f"The images could not be read: {HOSTILE} cannot be decoded"


def test_a_picture_that_samples_share_is_stored_once(tmp_path: Path) -> None:
    class Same(MadeExamples):
        def __getitem__(self, index: int) -> MadeItem:
            return MadeItem(0, self.size, broken=False)

    page = page_of([made_run(Same(6))], tmp_path)
    assert sum(name.startswith("picture-") for name in page.raw) == 2
    assert [[placed["file"] for placed in sample["pictures"]] for sample in page.samples] == [[0, 1]] * 6


def test_size_is_bounded_and_omissions_are_named(tmp_path: Path) -> None:
    page = page_of([made_run(MadeExamples(12, size=(640, 360)))], tmp_path, max_bytes=1_000_000)
    assert (tmp_path / "report.html").stat().st_size < 1_000_000
    bare = [n for n, sample in enumerate(page.samples) if "size limit" in sample["problem"]]
    assert 0 < len(bare) < 12
    assert page.index["bare"] == len(bare)


def test_endless_answers_are_cut(tmp_path: Path) -> None:
    noise = "".join(hashlib.sha256(str(n).encode()).hexdigest() for n in range(5000))
    page = page_of([made_run(MadeExamples(12), answer=noise)], tmp_path, max_bytes=400_000)
    assert (tmp_path / "report.html").stat().st_size < 400_000
    answers = [answer["text"] for sample in page.samples for answer in sample["models"][0] if answer["text"]]
    assert all("more characters are left out of this report" in answer for answer in answers)


def test_equal_runs_give_equal_bytes(runs: list[ScoredRun], written: tuple[Path, Path], tmp_path: Path) -> None:
    write_report(runs, tmp_path, samples=8, compare=False)
    first, second = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (written[0].parent, tmp_path)
    )
    assert first == second
    assert not [path for path in first if path.suffix == ".partial"]


def test_a_second_report_leaves_no_table_of_the_first(tmp_path: Path) -> None:
    run, another = made_run(MadeExamples(2)), made_run(MadeExamples(2), task=named("trees"))
    for each in (another, run):
        write_report([each], tmp_path, compare=False, tables=True)
    tables = {path.name for path in (tmp_path / "report_tables").iterdir()}
    assert {"garden_fruit_coverage.csv", "garden_fruit_coverage.tex"} <= tables
    assert not any("trees" in name for name in tables)


def test_runs_over_other_examples_get_a_separate_section(tmp_path: Path) -> None:
    first, other = made_run(MadeExamples(3)), made_run(MadeExamples(4), folder="b")
    dataset = other.results.dataset.model_copy(update={"content_hash": "f" * 64})
    object.__setattr__(other, "results", other.results.model_copy(update={"dataset": dataset}))
    page = page_of([first, other], tmp_path)
    assert [task["heading"] for task in page.index["tasks"]] == [
        "garden / fruit (examples 0123456789ab)",
        "garden / fruit (examples ffffffffffff)",
    ]
    assert [(task["first"], task["count"]) for task in page.index["tasks"]] == [(0, 3), (3, 4)]
    assert page.block("across")["left_out"]  # two runs of one model and task: no rank agreement, and why


@pytest.mark.parametrize(
    ("changes", "heading"),
    [
        ({"changed_options": {"matcher": "exact"}}, ("option matcher by default", "option matcher 'exact'")),
        ({"protocol": "paper"}, ("protocol 'release'", "protocol 'paper'")),
    ],
)
def test_runs_that_are_not_comparable_are_apart_with_the_reason(
    tmp_path: Path, changes: dict[str, Any], heading: tuple[str, str]
) -> None:
    first, other = made_run(MadeExamples(3)), made_run(MadeExamples(3), folder="b")
    object.__setattr__(other, "results", other.results.model_copy(update=changes))
    page = Page(write_report([first, other], tmp_path)[0].read_text(encoding="utf-8"))
    assert [task["heading"] for task in page.index["tasks"]] == [f"garden / fruit ({words})" for words in heading]


def test_lone_surrogates_do_no_harm(tmp_path: Path) -> None:
    run = made_run(MadeExamples(2), name="bad \ud800 name", statuses=[Status.OK], answer="\ud800, \u2028")
    assert page_of([run], tmp_path).samples[0]["models"][0][0]["text"] == "\ud800, \u2028"


def test_nothing_to_report_is_refused_and_no_samples_leave_the_tables(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least one run"):
        write_report([], tmp_path)
    run = made_run(MadeExamples(2))
    with pytest.raises(ConfigError, match="0 or more"):
        write_report([run], tmp_path, samples=-1, compare=False)
    page = page_of([run], tmp_path, samples=0)
    assert page.rows("Coverage")
    assert page.task["samples"] == []


@pytest.mark.full
def test_markdown_is_short_and_leads_into_the_page(runs: list[ScoredRun], tmp_path: Path) -> None:
    examples = MadeExamples(3)
    many = [
        made_run(examples, name=f"model {n}", left_out=1, folder=f"{n}-{task}", task=named(f"task {task}"))
        for n in range(30)
        for task in range(15)
    ]
    text = write_report(many, tmp_path, samples=1, compare=False)[1].read_text()
    lines = text.splitlines()
    assert len(lines) < 200
    assert "more lines: see report.html]" in lines[-1]
    assert "- [task 7](report.html#garden_task_7): two pictures" in text


def named(name: str) -> Fruit:
    return type("NamedFruit", (Fruit,), {"name": name})()


@pytest.mark.parametrize("count", [0, 1, 2, 7, 64])
def test_order_of_pictures_takes_each_sample_once(count: int) -> None:
    assert sorted(spread_order(count)) == list(range(count))
