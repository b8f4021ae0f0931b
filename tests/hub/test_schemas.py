"""The Hub's files: what is documented is taken, and every kind of mistake is named."""

import pytest

from barista_bench.errors import DataError
from barista_bench.hub.checks import MAX_FILE, read_eval_results

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
        ("id: cais/hle", "id: cais/-hle", "0.dataset.id"),
        ("    task_id: default\n", "", "0.dataset.task_id: Field required"),
        ("task_id: default", "task_id: 'de fault'", "0.dataset.task_id"),
        ("  value: 20.90\n", "", "0.value: Field required"),
        ("value: 20.90", "value: 'high'", "0.value"),
        ("value: 20.90", "value: null", "0.value"),
        ("value: 20.90", "value: true", "0.value.*valid integer"),
        ("value: 20.90", "value: .nan", "0.value"),
        ("value: 20.90", "value: 20.9\n  score: 3", "0.score: Extra inputs"),
        ("revision: 5503434ddd", "revision: main5503434ddd", "0.dataset.revision"),
        ('"2025-01-15T10:30:00Z"', "2025-01-15T10:30:00Z", "0.date"),  # not quoted: YAML makes no text of it
        ('"2025-01-15T10:30:00Z"', "15 January", "0.date.*no ISO 8601 date"),
        ('"2025-01-15T10:30:00Z"', '"2025-13-45"', "0.date"),
        ("    url: https://huggingface.co/datasets/cais/hle\n", "", "0.source.url: Field required"),
        ("https://huggingface.co/datasets", "http://huggingface.co/datasets", "0.source.url.*https"),
        ("https://huggingface.co/datasets", "https://me:secret@huggingface.co", "0.source.url.*password"),
        ("notes: no-tools", "notes: " + "x" * 2000, "0.notes"),
        ("Idavidrein/gpqa, task_id: gpqa_diamond", "cais/hle, task_id: default", "two values"),
        (GOOD_RESULTS, "[]", "at least 1 item"),
        (GOOD_RESULTS, "a: 1", "valid list"),
        (GOOD_RESULTS, "- {", "no YAML"),
        (GOOD_RESULTS, "!!python/object/apply:os.system [ls]", "no YAML"),
        (GOOD_RESULTS, "[" * 5000, "no YAML"),
        (GOOD_RESULTS, "#" * (MAX_FILE + 1), "more than"),
    ],
)
def test_a_mistake_in_eval_results_is_named(old: str, new: str, said: str) -> None:
    text = GOOD_RESULTS.replace(old, new)
    assert text != GOOD_RESULTS
    with pytest.raises(DataError, match=f"(?s)hle.yaml: .*{said}.*Remedy"):
        read_eval_results(text, "hle.yaml")
