"""Reports over hand-made runs: what they show, and what hostile texts cannot do to them."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from barista_bench.errors import ConfigError
from barista_bench.reporting import write_report
from barista_bench.reporting.markdown import escaped, fenced
from barista_bench.reporting.pictures import spread_order
from barista_bench.running.scoring import ScoredRun
from barista_bench.task import Status
from tests.reporting.made_runs import HOSTILE, MadeExamples, made_run


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

    @property
    def data(self) -> dict:
        return json.loads(self.raw["data"])


@pytest.fixture(scope="module")
def runs() -> list[ScoredRun]:
    examples = MadeExamples(10, broken=frozenset({2}))
    return [
        made_run(examples, name=f"org/{HOSTILE}", answer=f"{HOSTILE}, apple"),
        made_run(examples, name="oracle", statuses=[Status.OK], answer="apple, pear", folder="b"),
        made_run(examples, name="oracle", statuses=[Status.OK], left_out=4, folder="c"),
    ]


@pytest.fixture(scope="module")
def written(runs: list[ScoredRun], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_report(runs, tmp_path_factory.mktemp("report"), samples=8)


@pytest.fixture(scope="module")
def page(written: tuple[Path, Path]) -> Page:
    return Page(written[0].read_text(encoding="utf-8"))


def tables(markdown: str) -> dict[str, list[dict[str, str]]]:
    """Heading -> rows of the pipe table below it."""
    found = {}
    for part in markdown.split("\n### ")[1:]:
        rows = [re.split(r"(?<!\\) \| ", line[2:-2]) for line in part.splitlines() if line.startswith("| ")]
        if rows:
            found[part.splitlines()[0]] = [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]
    return found


def test_tables_of_the_markdown_report(written: tuple[Path, Path]) -> None:
    found = tables(written[1].read_text(encoding="utf-8"))
    assert list(found)[:4] == ["Overview", "Further figures", "By preparation", "Per fruit"]
    hostile, full, partial = found["Overview"]
    # Ten examples in two runs; statuses go round, so that each of the five has four samples.
    assert [hostile[f"samples by status: {name}"] for name in ("ok", "parse error", "not run")] == ["4", "**4**", "0"]
    assert hostile["samples by status: infra error"] == "**4**"
    assert (hostile["coverage (samples): expected"], hostile["coverage (samples): scored"]) == ("20", "**16**")
    assert (hostile["coverage (samples): answered"], hostile["coverage (samples): answered %"]) == ("4", "20.0 %")
    assert full["model"] == "oracle (b)"
    assert full["primary: micro f1"] == "1.000 ± 0.000"
    assert partial["model"] == "**oracle (c) incomplete**"
    assert partial["samples by status: not run"] == "**8**"
    assert found["By preparation"][0]["oracle (b): micro f1"] == "1.000"
    apple = next(row for row in found["Per fruit"] if row["fruit"] == "apple")
    assert (apple["oracle (b): answered"], apple["oracle (c): answered"], apple["oracle (b): rate"]) == (
        "10",
        "6",
        "0.500",
    )
    assert found["Timing"][1]["seconds: total"] == "10.0"
    assert found["Timing"][1]["samples / s"] == "2.00"


def test_incomplete_runs_are_flagged_before_everything_else(page: Page, written: tuple[Path, Path]) -> None:
    assert page.text.index("oracle (c) is incomplete: 8 of 20 samples are not scored") < page.text.index("Overview")
    assert "> **Attention.** oracle (c) is incomplete" in written[1].read_text(encoding="utf-8")


def test_page_says_what_was_evaluated(page: Page) -> None:
    for fact in ("garden / fruit", "fruit (version 3)", "0123456789ab", "release", "numpy 2.1", "8 of 10 examples"):
        assert fact in page.text


def test_every_status_and_every_answer_is_in_the_samples(page: Page) -> None:
    answers = [answer for sample in page.data["samples"] for answer in sample["models"][0]["answers"]]
    assert {answer["status"] for answer in answers} == set(Status)
    refused = next(answer for answer in answers if answer["status"] == "refused")
    assert refused["error"] == f"why refused: {HOSTILE}"
    assert refused["text"] == f"{HOSTILE}, apple"
    assert refused["scores"] == [0.0, 0.0]
    infra = next(answer for answer in answers if answer["status"] == "infra_error")
    assert infra["text"] is None
    assert infra["scores"] == [None, None]
    assert infra["rows"] == []


def test_explanations_and_scores_come_through_the_task(page: Page) -> None:
    assert page.data["sections"][0]["scores"] == ["f1", "recall"]
    sample = page.data["samples"][0]["models"][2]
    assert sample["means"] == [0.5, 0.5]
    rows = [(row["verdict"], row["text"]) for row in sample["answers"][0]["rows"]]
    assert rows == [("hit", "apple"), ("miss", "pear"), ("wrong", "plum")]
    assert page.data["samples"][-1]["models"][2]["answers"] == []
    assert ["fruit rows", "0, 7"] in page.data["samples"][0]["evidence"]


def test_hostile_texts_stay_text(page: Page) -> None:
    assert {tag for tag, _ in page.tags}.isdisjoint({"img", "iframe", "object", "a", "link", "base"})
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert HOSTILE in page.text
    assert "49" not in page.text.replace(HOSTILE, "").replace("490", "").split()
    policy = next(a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv"))
    assert policy is not None
    for name in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.raw[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy


def test_page_names_no_place_in_the_network(page: Page) -> None:
    references = [a[name] for _, a in page.tags for name in ("src", "href", "srcset") if name in a]
    assert references == []
    assert "http" not in page.raw["script"] + page.raw["style"]
    assert "innerHTML" not in page.raw["script"]


def test_pictures_are_scaled_and_a_missing_one_says_so(runs: list[ScoredRun], tmp_path: Path) -> None:
    examples = MadeExamples(2, size=(1920, 1080), broken=frozenset({1}))
    written = write_report([made_run(examples)], tmp_path)
    page = Page(written[0].read_text(encoding="utf-8"))
    urls = json.loads(page.raw["pictures-0"])
    assert len(urls) == 2
    head, encoded = urls[0].split(",")
    assert head == "data:image/jpeg;base64"
    assert Image.open(io.BytesIO(base64.b64decode(encoded))).size == (960, 540)
    assert json.loads(page.raw["pictures-1"]) == []
    assert page.data["samples"][1]["problem"] == f"The images could not be read: {HOSTILE} cannot be decoded"
    assert (tmp_path / "report_images" / "0-0.jpg").is_file()
    assert "](report_images/0-1.jpg)" in written[1].read_text(encoding="utf-8")


def test_size_is_bounded_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    examples = MadeExamples(12, size=(640, 360))
    written = write_report([made_run(examples)], tmp_path, max_bytes=1_000_000)
    assert written[0].stat().st_size < 1_000_000
    page = Page(written[0].read_text(encoding="utf-8"))
    bare = [n for n, sample in enumerate(page.data["samples"]) if "size limit" in sample["problem"]]
    assert 0 < len(bare) < 12
    assert f"without pictures, because the report has reached its size limit: {len(bare)}." in page.text


def test_endless_answers_are_cut(tmp_path: Path) -> None:
    run = made_run(MadeExamples(12), answer="<" * 300_000)
    page, text = write_report([run], tmp_path, max_bytes=2_000_000)
    assert page.stat().st_size < 2_000_000
    assert "more characters are left out of this report" in page.read_text(encoding="utf-8")
    assert text.stat().st_size < 100_000


def test_equal_runs_give_equal_bytes(runs: list[ScoredRun], written: tuple[Path, Path], tmp_path: Path) -> None:
    again = write_report(runs, tmp_path, samples=8)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in written]
    assert not list(tmp_path.rglob("*.partial"))


def test_runs_over_other_examples_get_a_section_of_their_own(tmp_path: Path) -> None:
    one, other = made_run(MadeExamples(3)), made_run(MadeExamples(4))
    dataset = other.results.dataset.model_copy(update={"content_hash": "f" * 64})
    object.__setattr__(other, "results", other.results.model_copy(update={"dataset": dataset}))
    page = Page(write_report([one, other], tmp_path)[0].read_text(encoding="utf-8"))
    assert [s["heading"] for s in page.data["sections"]] == [
        "garden / fruit (all, 01234567)",
        "garden / fruit (all, ffffffff)",
    ]
    assert [s["section"] for s in page.data["samples"]] == [0] * 3 + [1] * 4


def test_lone_surrogates_and_odd_numbers_do_no_harm(tmp_path: Path) -> None:
    run = made_run(MadeExamples(2), name="bad \ud800 name", statuses=[Status.OK], answer="\ud800, \u2028")
    page = Page(write_report([run], tmp_path)[0].read_text(encoding="utf-8"))
    assert page.data["samples"][0]["models"][0]["answers"][0]["text"] == "\ud800, \u2028"


def test_nothing_to_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least one run"):
        write_report([], tmp_path)
    with pytest.raises(ConfigError, match="0 or more"):
        write_report([made_run(MadeExamples(2))], tmp_path, samples=-1)


def test_no_samples_leaves_the_tables(tmp_path: Path) -> None:
    page = Page(write_report([made_run(MadeExamples(2))], tmp_path, samples=0)[0].read_text(encoding="utf-8"))
    assert "Overview" in page.text
    assert "browser" not in [attributes.get("id") for _, attributes in page.tags]


def test_markdown_escapes_and_fences() -> None:
    assert escaped("a\nb |<i> [x](y) `c`") == r"a b \|&lt;i&gt; \[x\](y) \`c\`"
    assert fenced("a ``` b").splitlines() == ["````text", "a ``` b", "````"]


@pytest.mark.parametrize("count", [0, 1, 2, 7, 64])
def test_order_of_pictures_takes_each_sample_once(count: int) -> None:
    assert sorted(spread_order(count)) == list(range(count))


def dump_dom(url: str, profile: Path) -> tuple[str, list[str]]:
    """The page as the browser made it, and its console."""
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={profile}", "--enable-logging=stderr", "--v=0", "--dump-dom", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_hostile_texts_in_a_browser(written: tuple[Path, Path], tmp_path: Path) -> None:
    text, console = dump_dom(f"{written[0].as_uri()}#sample-1", tmp_path)
    assert console == []
    dom = Page(text)
    images = [attributes for tag, attributes in dom.tags if tag == "img"]
    assert len(images) == 2
    assert all(set(image) == {"src", "alt"} for image in images)
    assert f"fruit:{HOSTILE}:1" in dom.text


SCRIPTED = """
const press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const set = (id, value, kind) => {
  document.getElementById(id).value = value;
  document.getElementById(id).dispatchEvent(new Event(kind));
};
const title = () => document.querySelector("#sample h3").textContent.split(":").pop();
const count = () => document.querySelectorAll("#list li").length;
const seen = {};
press("j"); press("j"); press("k"); seen.second = title();
document.querySelectorAll("#sample .tabs")[0].children[1].click();
seen.status = document.querySelector("#sample .state").textContent.trim();
press("j"); seen.kept = document.querySelector("#sample .tabs [aria-pressed=true]").textContent;
seen.problem = document.querySelector("#sample .alert").textContent;
set("by-status", "not_run", "change"); seen.not_run = count();
set("by-status", "", "change"); set("by-model", "oracle (b)", "change");
seen.cards = document.querySelectorAll("#sample .card").length;
set("by-model", "", "change"); set("by-order", "up", "change"); seen.lowest = title();
set("by-order", "down", "change"); seen.highest = [title(), count()]; press("j"); seen.next = title();
set("by-text", "video_3 ", "input"); seen.found = count();
set("by-text", "no such text", "input"); seen.none = document.getElementById("sample").textContent;
document.title = JSON.stringify(seen);
"""
"""What a reader does, as a script; the page's policy forbids it, so the test takes the policy out."""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_paging_filtering_and_sorting_in_a_browser(written: tuple[Path, Path], tmp_path: Path) -> None:
    text = written[0].read_text(encoding="utf-8")
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    scripted = tmp_path / "scripted.html"
    scripted.write_text(text.replace("</body>", f"<script>{SCRIPTED}</script></body>"), encoding="utf-8")
    dom, console = dump_dom(scripted.as_uri(), tmp_path)
    assert console == []
    seen = json.loads(html.unescape(re.findall("<title>(.*?)</title>", dom, re.DOTALL)[0]))
    assert "cannot be decoded" in seen.pop("problem")
    assert seen == {
        "second": "1",
        "status": "■ refused",
        "kept": "run 1",
        "not_run": 3,
        "cards": 1,
        "lowest": "1",
        "highest": ["0", 8],
        "next": "5",
        "found": 1,
        "none": "No sample passes these filters.",
    }
