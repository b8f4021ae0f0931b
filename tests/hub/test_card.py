"""model-index metadata, merged into cards."""

import pytest
import yaml
from huggingface_hub import ModelCard
from hypothesis import given, strategies as st

from barista_bench.errors import DataError
from barista_bench.hub.files import IndexResult, merge_model_index

CARD = """---
# kept: who made it
license: apache-2.0   # kept too
model-index:
- name: Fruit 8B
  results:
  - task: {type: text-generation}
    dataset: {type: cais/hle, name: HLE}
    metrics: [{type: accuracy, value: 20.9}]
  - task: {type: image-text-to-text, name: relations}
    dataset: {type: garden/BARISTA, name: old}
    metrics: [{type: micro_f1, value: 1.0}]

# belongs to the tags
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


def test_our_old_entry_is_replaced_and_everything_else_stays_by_the_byte() -> None:
    merged = merge_model_index(CARD, "unused", [result()])
    (entry,) = index_of(merged)
    assert entry["name"] == "Fruit 8B"
    values = [(r["dataset"]["type"], r["metrics"][0]["value"]) for r in entry["results"]]  # type: ignore[attr-defined]
    assert values == [("cais/hle", 20.9), ("garden/BARISTA", 42.0)]
    head, tail = CARD[: CARD.index("model-index:")], CARD[CARD.index("\n# belongs to the tags") :]
    assert merged.startswith(head)
    assert merged.endswith(tail)


@pytest.mark.parametrize(
    "card",
    [
        "",
        "# Only text\n",
        "---\nlicense: mit\n---\n# Text\n",
        "---\r\nlicense: mit\r\ntags:\r\n- a\r\n---\r\n# Text\r\n",
        "---\nmodel-index:\n- name: a\n  results: []\n---\ntext",
        "---\n\n---\ntext\n",
        CARD,
    ],
)
def test_the_hub_client_reads_what_was_merged(card: str) -> None:
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
        ("license: [mit", "no YAML"),
        ("- a list", "no mapping"),
        ("{license: mit}", "in braces"),
        ("model-index: 3", "model-index"),
        ("model-index:\n- results: []", "0.name: Field required"),
        ("model-index:\n- name: a\n  results: 3", "0.results"),
        ("model-index: []\nmodel-index: []", "model-index"),
        ("model-index:\n- &a {name: a, results: []}\nother: *a", "anchors|no YAML"),
    ],
)
def test_a_card_that_cannot_be_added_to_is_refused(front: str, said: str) -> None:
    with pytest.raises(DataError, match=f"README.md.*({said}).*Remedy"):
        merge_model_index(f"---\n{front}\n---\ntext", "a", [result()])
