"""Reading any release of annotations: files to values, values to typed records, and the cost of each mistake."""

import json
from pathlib import Path
from typing import Annotated

import msgspec
import pytest

from barista_bench.benchmarks.release_records import (
    PlacedRecord,
    annotation_files,
    convert_record,
    elements,
    keep_first,
    media_folder,
    read_each,
    read_values,
)
from barista_bench.errors import DataError, RecordError
from barista_bench.scene_graph import ProblemLog


class Cup(msgspec.Struct):
    name: str
    sizes: list[Annotated[float, msgspec.Meta(ge=0, le=100)]] = []


def values_of(tmp_path: Path, name: str, content: bytes) -> tuple[list[PlacedRecord], list[str]]:
    (tmp_path / name).write_bytes(content)
    log = ProblemLog(name)
    return list(read_values(tmp_path / name, log)), [f"{problem.key}: {problem.what}" for problem in log]


def cups_of(values: list[PlacedRecord]) -> tuple[list[str], list[str]]:
    log = ProblemLog("cups.json")
    cups = [
        cup.name
        for _, cup in read_each(values, lambda placed: convert_record(placed.value, Cup), log, "the cup is left out")
    ]
    return cups, [str(problem) for problem in log]


def test_a_bad_line_costs_itself_and_rows_count_it(tmp_path: Path) -> None:
    values, problems = values_of(tmp_path, "a.jsonl", b'{"name": "a"}\n\n{\n{"name": "b"}\n')
    assert [(placed.key, placed.row) for placed in values] == [("line 1", 0), ("line 4", 2)]
    (problem,) = problems
    assert problem.startswith("line 3: is not JSON")


def test_a_line_that_is_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barista_bench.benchmarks.release_records.MAX_RECORD", 20)
    values, problems = values_of(tmp_path, "a.jsonl", b'{"name": "a"}\n{"name": "' + b"x" * 40 + b'"}\n{"name": "b"}')
    assert [placed.key for placed in values] == ["line 1", "line 3"]
    assert problems == ["line 2: is longer than 20 bytes; it is left out"]


@pytest.mark.parametrize(
    "name", [rb'"\ud800"', b'"\xff"', b"NaN", b"Infinity", b"1e999", b"[]"], ids=lambda name: name.decode("latin-1")
)
def test_a_value_of_the_wrong_type_costs_its_element(tmp_path: Path, name: bytes) -> None:
    content = b'[{"name": "a"}, {"name": ' + name + b'}, {"name": "b", "sizes": [1]}]'
    ((whole,), problems) = values_of(tmp_path, "cups.json", content)
    assert not problems
    cups, problems = cups_of(list(elements(whole.value, ProblemLog("cups.json"))))
    assert cups == ["a", "b"]
    (problem,) = problems
    what = (
        "`array`" if name == b"[]" else "`float`" if name == b"1e999" else "NaN, an infinity, or text that is not UTF-8"
    )
    assert problem.startswith(f"error: cups.json: [1].name: Expected `str`, got {what}")
    assert problem.endswith("; the cup is left out. Fix: correct it")


@pytest.mark.parametrize("size", [b"NaN", b"1e999", b"-Infinity", b'"nan"'])
def test_no_number_beyond_all_bounds_reaches_a_record(tmp_path: Path, size: bytes) -> None:
    ((whole,), _) = values_of(tmp_path, "cups.json", b'{"name": "a", "sizes": [1, ' + size + b"]}")
    with pytest.raises(RecordError) as raised:
        convert_record(whole.value, Cup)
    assert raised.value.key == "sizes[1]"


def test_fields_beside_the_known_ones_do_no_harm(tmp_path: Path) -> None:
    ((whole,), _) = values_of(tmp_path, "cups.json", rb'{"name": "\ud83d\ude00", "\ud800": 1, "other": "\udfff"}')
    assert convert_record(whole.value, Cup).name == "\U0001f600"
    assert json.dumps(list(map(str, whole.value))).isascii()  # type: ignore[call-overload]


def test_a_value_other_than_a_list_and_a_missing_field_are_named() -> None:
    log = ProblemLog("cups.json")
    assert list(elements({"name": "a"}, log, "cups")) == []
    assert "error: cups.json: cups: is a dict, no list of records" in str(log.listed[0])
    assert "[0]: Object missing required field `name`" in cups_of([PlacedRecord("[0]", {})])[1][0]


def test_of_two_records_of_one_name_the_first_is_kept() -> None:
    log, kept = ProblemLog("a.json"), {"x": 1}
    keep_first(kept, "x", 2, log, "[1].id")
    keep_first(kept, "y", 3, log, "[2].id")
    assert kept == {"x": 1, "y": 3}
    assert [str(problem).partition(" stands")[0] for problem in log] == ["error: a.json: [1].id: 'x'"]


def test_annotation_files_are_chosen_by_depth_and_name(tmp_path: Path) -> None:
    for name in ("b.json", "A.JSONL", "notes.txt", "_x.json", "sub/a.json", "sub/deep/a.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("[]")
    files = annotation_files(tmp_path, "cups", lambda path: not path.name.startswith("_"), ("*", "*/*"))
    assert [path.relative_to(tmp_path).as_posix() for path in files] == ["A.JSONL", "b.json", "sub/a.json"]
    assert annotation_files(tmp_path / "notes.txt", "cups", lambda path: False, ()) == [tmp_path / "notes.txt"]
    for root, message in ((tmp_path / "gone", "no such file or folder"), (tmp_path / "sub/deep", "holds no .json")):
        with pytest.raises(DataError, match=f"{message}.*Fix"):
            annotation_files(root, "cups", lambda path: False, ("*",))


def test_media_are_read_beside_the_annotations_unless_named(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("[]")
    assert media_folder(file, None) == media_folder(tmp_path, None) == tmp_path
    assert media_folder(file, tmp_path / "videos") == tmp_path / "videos"
