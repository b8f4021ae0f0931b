import json
import random
from pathlib import Path

import pytest

from barista_bench.benchmarks.barista.relations import Relations, RelationsSampling
from barista_bench.core.task import Example
from barista_bench.data import frozen
from barista_bench.data.frozen import content_hash, read_frozen, write_frozen
from barista_bench.errors import DataError
from barista_bench.scene_graph import SceneGraph
from tests.graph_examples import graph_examples


@pytest.fixture
def examples(small_release: Path) -> list[Example]:
    items = graph_examples(Relations(), SceneGraph(small_release), RelationsSampling(frame_step=10))
    return [e for e in items if isinstance(e, Example)]


def test_lines_have_the_keys_of_the_release_and_a_version(examples: list[Example], tmp_path: Path) -> None:
    write_frozen(examples, tmp_path / "f.jsonl")
    record = json.loads((tmp_path / "f.jsonl").read_text().splitlines()[0])
    assert list(record) == ["example_id", "frames", "label", "metadata", "task_data", "task_name", "task_version"]
    assert record["task_name"] == "relation_extraction"
    assert record["frames"] == [{"frame_index": 0, "mp4_path": "v0/video.mp4", "video_id": "v0"}]
    with pytest.raises(DataError, match=r"g\.jsonl: no frozen example \(No such file.*Fix"):
        list(read_frozen(tmp_path / "g.jsonl"))


def test_the_hash_is_of_the_set_not_of_its_order(examples: list[Example]) -> None:
    shuffled = list(examples)
    random.Random(1).shuffle(shuffled)
    assert content_hash(shuffled) == content_hash(examples) != content_hash(examples[1:])


@pytest.mark.parametrize(
    ("break_it", "what"),
    [
        (lambda lines: [*lines, lines[0]], "line 25: .* repeats"),
        (lambda lines: [lines[0][:-5]], "line 1: no frozen example"),
        (lambda lines: ["[]"], "line 1: no frozen example"),
        (lambda lines: [lines[0].replace('relation_extraction"', 'other"')], "no task 'other' of barista"),
    ],
)
def test_a_damaged_file_names_the_line(examples: list[Example], tmp_path: Path, break_it: object, what: str) -> None:
    write_frozen(examples, tmp_path / "f.jsonl")
    lines = (tmp_path / "f.jsonl").read_text().splitlines()
    (tmp_path / "f.jsonl").write_text("\n".join(break_it(lines)) + "\n")
    with pytest.raises(DataError, match=what):
        list(read_frozen(tmp_path / "f.jsonl"))


def test_an_overlong_line_is_refused(examples: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_frozen(examples, tmp_path / "f.jsonl")
    with (tmp_path / "f.jsonl").open("a") as file:
        file.write(" " * 10_000 + "{}\n")
    monkeypatch.setattr(frozen, "MAX_LINE", 9_000)
    with pytest.raises(DataError, match=rf"line {len(examples) + 1} is longer than 9000 bytes"):
        list(read_frozen(tmp_path / "f.jsonl"))
