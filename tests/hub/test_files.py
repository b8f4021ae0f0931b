"""Files of a submission and of a card: existing files are kept, documented fields are taken, and mistakes are named."""

from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard
from hypothesis import given, strategies as st

from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.checks import MAX_FILE, read_eval_results
from barista_bench.hub.files import ExistingFiles, IndexResult, all_files, merge_model_index, write_files
from tests.hub.made_results import results, row, submission
from tests.hub.standin import TOKEN


def test_results_of_other_tasks_and_other_benchmarks_stay() -> None:
    others = [
        {"dataset": {"id": "garden/BARISTA", "task_id": "grounding"}, "value": 12.0},
        {"dataset": {"id": "garden/BARISTA", "task_id": "relations"}, "value": 1.0},
        {"dataset": {"id": "cais/hle", "task_id": "relations"}, "value": 3.0},
    ]
    existing = ExistingFiles(b"# Card\n", yaml.safe_dump(others).encode())
    files = all_files(submission(), existing)
    written = yaml.safe_load(files.model[".eval_results/barista.yaml"])
    assert {(e["dataset"]["id"], e["dataset"]["task_id"]): e["value"] for e in written} == {
        ("garden/BARISTA", "grounding"): 12.0,
        ("garden/BARISTA", "relations"): 42.0,
        ("cais/hle", "relations"): 3.0,
    }
    assert files.model["README.md"].endswith(b"\n\n# Card\n")


def test_broken_results_in_the_repository_are_not_overwritten() -> None:
    made = submission()
    with pytest.raises(DataError, match=r"\.eval_results/barista\.yaml: 0\.value.*Fix"):
        all_files(made, ExistingFiles(b"", b"- dataset: {id: a/b, task_id: c}\n  value: high\n"))
    with pytest.raises(DataError, match=r"README.md: is not UTF-8.*Fix"):
        all_files(made, ExistingFiles(b"\xff\xfe"))


def test_writing_the_same_submission_again_changes_nothing(tmp_path: Path) -> None:
    made, out = submission(), tmp_path / "out"
    first = write_files(all_files(made), out)
    assert {path.relative_to(out).as_posix() for path in first} == {
        "model/.eval_results/barista.yaml",
        "model/README.md",
        "results/results/garden/fruit-8b/relations/results.json",
    }
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert write_files(all_files(made), out) == []
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_a_folder_with_other_files_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"thesis.txt.*Fix"):
        write_files(all_files(submission()), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("token", [TOKEN, "sk-abcdefghijklmnopqrstuvwxyz0"])
def test_a_token_in_results_or_card_is_never_published(token: str) -> None:
    changed = results()
    changed.generation["stop"] = [token]
    for made, existing in (
        (submission(), ExistingFiles(f"curl -H {token}\n".encode())),
        (submission(row(changed)), ExistingFiles()),
    ):
        with pytest.raises(DataError, match=r"looks like an access token.*Fix") as caught:
            all_files(made, existing)
        assert token not in str(caught.value)


CARD = """---
license: apache-2.0   # why
model-index:
- name: Fruit 8B
  results:
  - task: {type: text-generation}
    dataset: {type: cais/hle, name: HLE}
    metrics: [{type: accuracy, value: 20.9}]
  - task: {type: image-text-to-text, name: relations}
    dataset: {type: garden/BARISTA, name: old}
    metrics: [{type: micro_f1, value: 1.0}]
tags: [fruit,   'quoted']
---
# Fruit 8B

---
model-index: not this one
"""


def result(task: str = "relations", value: float = 42.0) -> IndexResult:
    return {
        "task": {"type": "image-text-to-text", "name": task},
        "dataset": {"type": "garden/BARISTA", "name": f"BARISTA ({task})"},
        "metrics": [{"type": "micro_f1", "value": value}],
    }


def index_of(card: str) -> list[dict[str, object]]:
    return yaml.safe_load(card.split("---")[1])["model-index"]


def test_only_our_old_entry_is_replaced() -> None:
    merged = merge_model_index(CARD, "unused", [result()])
    (entry,) = index_of(merged)
    assert entry["name"] == "Fruit 8B"
    values = [(r["dataset"]["type"], r["metrics"][0]["value"]) for r in entry["results"]]  # type: ignore[attr-defined]
    assert values == [("cais/hle", 20.9), ("garden/BARISTA", 42.0)]
    others = {"license": "apache-2.0", "model-index": index_of(merged), "tags": ["fruit", "quoted"]}
    assert yaml.safe_load(merged.split("---")[1]) == others
    assert merged.endswith(CARD[CARD.index("# Fruit 8B") :])


def test_a_card_keeps_its_line_ends() -> None:
    card = "---\nlicense: mit\n---\n# Fruit\n"
    merged = merge_model_index(card, "fruit-8b", [result()])
    assert merge_model_index(card.replace("\n", "\r\n"), "fruit-8b", [result()]) == merged.replace("\n", "\r\n")


@pytest.mark.parametrize(
    "line", ["language: no", "ratio: 16:9", "version: 1.10", "build: 012", "at: 2026-11-30", "empty:"]
)
def test_values_stay_as_they_are_written(line: str) -> None:
    """PyYAML reads some values in another way than the Hub, such as the language `no` as `false`."""
    merged = merge_model_index(f"---\n{line}\n---\n", "fruit-8b", [result()])
    assert merged.startswith(f"---\n{line}\nmodel-index:\n")


@pytest.mark.parametrize(
    "card",
    [
        "",
        "---\nlicense:\tmit\n---\n",
        "# Only text\n",
        "---\nlicense: mit\n---\n# Text\n",
        "---\r\nlicense: mit\r\ntags:\r\n- a\r\n---\r\n# Text\r\n",
        "---\nmodel-index:\n- name: a\n  results: []\n---\ntext",
        "---\n\n---\ntext\n",
        CARD,
    ],
)
def test_the_hub_client_reads_the_merged_card(card: str) -> None:
    merged = merge_model_index(card, "fruit-8b", [result()])
    read = ModelCard(merged, ignore_metadata_errors=False)
    read_back = {(r.dataset_type, r.task_name, r.metric_type, r.metric_value) for r in read.data.eval_results or ()}
    assert ("garden/BARISTA", "relations", "micro_f1", 42.0) in read_back
    assert merge_model_index(merged, "fruit-8b", [result()]) == merged


_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=20)


@given(
    data=st.dictionaries(
        _WORDS.filter(lambda key: key != "model-index"), st.one_of(_WORDS, st.lists(_WORDS), st.integers())
    ),
    body=_WORDS,
    first=st.booleans(),
)
def test_no_metadata_of_others_and_no_text_is_lost(data: dict[str, object], body: str, first: bool) -> None:
    content = {"model-index": [{"name": "a", "results": []}], **data} if first else data
    card = f"---\n{yaml.safe_dump(content, sort_keys=False, allow_unicode=True)}---\n{body}"
    merged = merge_model_index(card, "a", [result()])
    front = merged[4:].split("\n---\n", 1)
    read = yaml.safe_load(front[0])
    assert {key: value for key, value in read.items() if key != "model-index"} == data
    assert read["model-index"][0]["results"][0]["metrics"][0]["value"] == 42.0
    assert front[1] == body


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("license: [mit", "not YAML"),
        ("- a list", "not a mapping"),
        ("model-index: 3", "model-index"),
        ("model-index:\n- results: []", "0.name: Field required"),
        ("model-index: []\nmodel-index: []", "model-index"),
    ],
)
def test_a_card_that_cannot_be_added_to_is_refused(front: str, said: str) -> None:
    with pytest.raises(DataError, match=f"README.md.*({said}).*Fix"):
        merge_model_index(f"---\n{front}\n---\ntext", "a", [result()])


GOOD_RESULTS = """
- dataset:
    id: cais/hle
    task_id: default
    revision: 5503434ddd753f426f4b38109466949a1217c2bb
  value: 20.90
  verifyToken: eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9
  date: "2025-01-15T10:30:00Z"
  source:
    url: https://huggingface.co/datasets/cais/hle
    name: CAIS HLE
    org: cais
  notes: no-tools
- dataset: {id: Idavidrein/gpqa, task_id: gpqa_diamond}
  value: 0.412
"""


def test_the_documented_examples_are_taken() -> None:
    entries = read_eval_results(GOOD_RESULTS, "hle.yaml").root
    assert [(entry.dataset.id, entry.dataset.task_id, entry.value) for entry in entries] == [
        ("cais/hle", "default", 20.9),
        ("Idavidrein/gpqa", "gpqa_diamond", 0.412),
    ]
    assert entries[0].verify_token is not None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("id: cais/hle", "id: hle", "0.dataset.id.*write namespace/name"),
        ("id: cais/hle", "id: cais/../hle", "0.dataset.id"),
        ("task_id: default", "task_id: 'de fault'", "0.dataset.task_id"),
        ("  value: 20.90\n", "", "0.value: Field required"),
        ("value: 20.90", "value: 'high'", "0.value"),
        ("value: 20.90", "value: 20.9\n  score: 3", "0.score: Extra inputs"),
        ("revision: 5503434ddd", "revision: main5503434ddd", "0.dataset.revision"),
        ('"2025-01-15T10:30:00Z"', "2025-01-15T10:30:00Z", "0.date"),  # not quoted: YAML makes no text of it
        ('"2025-01-15T10:30:00Z"', "15 January", "0.date.*not an ISO 8601 date"),
        ("https://huggingface.co/datasets", "http://huggingface.co/datasets", "0.source.url.*https"),
        ("https://huggingface.co/datasets", "https://me:secret@huggingface.co", "0.source.url.*password"),
        ("notes: no-tools", "notes: " + "x" * 2000, "0.notes"),
        ("Idavidrein/gpqa, task_id: gpqa_diamond", "cais/hle, task_id: default", "two values"),
        (GOOD_RESULTS, "[]", "at least 1 item"),
        (GOOD_RESULTS, "- {", "not YAML"),
        (GOOD_RESULTS, "#" * (MAX_FILE + 1), "more than"),
    ],
)
def test_a_mistake_in_eval_results_is_named(old: str, new: str, said: str) -> None:
    text = GOOD_RESULTS.replace(old, new)
    assert text != GOOD_RESULTS
    with pytest.raises(DataError, match=f"(?s)hle.yaml: .*{said}.*Fix"):
        read_eval_results(text, "hle.yaml")
