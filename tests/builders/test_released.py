"""The release's own frozen files load, run and score as ours do, and what they lack is named, never guessed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barista_bench.benchmarks import get_task, task_names
from barista_bench.builders.frozen import UNSAID, content_hash, read_frozen
from barista_bench.errors import BaristaError, ConfigError, DataError
from barista_bench.prompt import BoxFormat
from barista_bench.running.dataset import config_names, open_examples
from barista_bench.running.runner import run
from barista_bench.running.scoring import score
from barista_bench.task import Example, Prediction, Scored
from tests.builders.released_files import released_record, task_data, write_records

NAMES = task_names("barista")


def ours(folder: Path, name: str) -> list[Example]:
    return list(read_frozen(folder / f"frozen/{name}.jsonl"))


def released(folder: Path, name: str, path: Path) -> Path:
    return write_records(path, map(released_record, ours(folder, name)))


def changed(example: Example, change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    data = json.loads(json.dumps(task_data(example)))
    change(data)
    return released_record(example, data)


@pytest.mark.parametrize("name", NAMES)
def test_a_released_file_runs_as_it_is(name: str, six_frozen: Path, kitchen_release: Path, tmp_path: Path) -> None:
    file = released(six_frozen, name, tmp_path / "benchmark_examples.jsonl")
    session = run(file, tmp_path / "run", task=name, model="oracle", runs=1, root=kitchen_release)
    assert session.failed == 0
    results = score(tmp_path / "run").results
    assert results.coverage.statuses["ok"] == len(ours(six_frozen, name)) > 0
    assert results.figures[results.primary].mean == pytest.approx(1.0)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "referring"])
def test_answers_score_as_they_do_on_our_own_file(
    name: str, six_frozen: Path, kitchen_release: Path, tmp_path: Path
) -> None:
    task, boxes, rng = get_task("barista", name), BoxFormat("yxyx", 1000), random.Random(7)
    own = ours(six_frozen, name)
    read = list(read_frozen(released(six_frozen, name, tmp_path / "f.jsonl"), root=kitchen_release))
    samples: dict[str, list[Scored]] = {"own": [], "read": []}
    for one, other in zip(own, read, strict=True):
        right, wrong = task.reference_answer(one, boxes), task.random_answer(one, rng, boxes)
        text = rng.choice([right, wrong, "?", f"```json\n{right}\n```"])
        assert task.prompt(other, boxes) == task.prompt(one, boxes)
        for key, example in (("own", one), ("read", other)):
            parsed = task.parse(text, example.inputs, boxes)
            samples[key].append(Scored(example, parsed if isinstance(parsed, Prediction) else None))
    figures = {key: task.aggregate(found) for key, found in samples.items()}
    for found in figures.values():
        found.pop("per_category", None)  # hand_object's released interactions do not say what is held
    assert figures["read"] == figures["own"]


def test_a_referring_line_keeps_what_its_reference_says(six_frozen: Path, tmp_path: Path) -> None:
    own = ours(six_frozen, "referring")
    for one, other in zip(own, read_frozen(released(six_frozen, "referring", tmp_path / "f.jsonl")), strict=True):
        assert other.target["category"] == one.target["category"]
        assert other.target["reference"] == one.target["reference"]
        assert other.inputs["grid_box"] == one.inputs["grid_box"]
        facts: Any = other.target["facts"]
        described = {fact["text"] for fact in facts if fact["kind"] not in ("object", "relation")}
        assert described == {f["text"] for f in one.target["facts"] if f["kind"] not in ("object", "relation")}  # type: ignore[union-attr,call-overload,index]
        assert all(text in str(one.target["reference"]) for text in described)


def test_masks_that_the_file_lacks_are_those_of_the_annotations(
    six_frozen: Path, kitchen_release: Path, tmp_path: Path
) -> None:
    file = released(six_frozen, "relations", tmp_path / "f.jsonl")
    for one, other in zip(ours(six_frozen, "relations"), read_frozen(file, root=kitchen_release), strict=True):
        assert other.inputs["objects"] == one.inputs["objects"]
    with pytest.raises(DataError, match=r"line \d: .*no (masks|frame size).*--root"):
        list(read_frozen(file))


def test_masks_in_the_file_need_no_annotations(six_frozen: Path, tmp_path: Path) -> None:
    def with_masks(example: Example) -> dict[str, Any]:
        inputs: Any = example.inputs
        data = {**task_data(example), "frame_width": inputs["frame_width"], "frame_height": inputs["frame_height"]}
        masks = {item["mark"]: item["segmentation"] for item in inputs["objects"]}
        data["objects"] = [{**item, "segmentation": masks[item["display_id"]]} for item in data["objects"]]
        return released_record(example, data)

    own = ours(six_frozen, "relations")
    file = write_records(tmp_path / "f.jsonl", map(with_masks, own))
    for one, other in zip(own, read_frozen(file), strict=True):
        for left, right in zip(one.inputs["objects"], other.inputs["objects"], strict=True):  # type: ignore[arg-type]
            assert left["segmentation"] == right["segmentation"]  # type: ignore[index,call-overload]


def test_other_objects_in_the_annotations_are_an_error(six_frozen: Path, kitchen_release: Path, tmp_path: Path) -> None:
    def rename(data: dict[str, Any]) -> None:
        data["objects"][0]["category"] = "zebra"

    file = write_records(tmp_path / "f.jsonl", [changed(ours(six_frozen, "relations")[0], rename)])
    with pytest.raises(DataError, match="'zebra', the annotations"):
        list(read_frozen(file, root=kitchen_release))


@pytest.mark.parametrize("name", NAMES)
def test_any_missing_field_is_an_error_that_names_line_and_keys_or_needs_no_guess(
    name: str, six_frozen: Path, kitchen_release: Path, tmp_path: Path
) -> None:
    one = ours(six_frozen, name)[0]
    optional = {"frame_width", "frame_height", "bbox_format", "bbox_scale", "question", "allowed_relations"}
    for key in task_data(one):
        file = write_records(tmp_path / "f.jsonl", [changed(one, lambda data, key=key: data.pop(key))])
        if key in optional and not (name == "temporal_vqa" and key == "question"):
            (read,) = read_frozen(file, root=kitchen_release)
            assert read.inputs.get("frame_width", 128) == 128, "the annotations say it"
            continue
        with pytest.raises(DataError, match=rf"line 1: task_data.*: no field .*'{key}'") as told:
            list(read_frozen(file, root=kitchen_release))
        assert "the keys here are: " in str(told.value)


def test_a_frame_size_that_nobody_says_is_read_from_the_video(
    six_frozen: Path, kitchen_release: Path, tmp_path: Path
) -> None:
    def forget(data: dict[str, Any]) -> None:
        del data["frame_width"], data["frame_height"]

    one = ours(six_frozen, "grounding")[0]
    file = write_records(tmp_path / "f.jsonl", [changed(one, forget)])
    (tmp_path / "videos" / one.video_id).mkdir(parents=True)
    video = tmp_path / "videos" / one.video_id / "video.mp4"
    video.write_bytes((kitchen_release / one.video_id / "video.mp4").read_bytes())
    (read,) = read_frozen(file, root=tmp_path / "videos")
    assert read.inputs == one.inputs
    with pytest.raises(DataError, match="holds no frame size"):
        list(read_frozen(file))


BROKEN: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("grounding", lambda d: d.update(ground_truth_boxes=[[0, 0, 1001, 5]]), "integers from 0 to 1000"),
    ("grounding", lambda d: d.update(ground_truth_boxes=[[0, 0, 0.5, 5]]), "integers from 0 to 1000"),
    ("grounding", lambda d: d.update(ground_truth_boxes=[]), "a list with a box in it"),
    ("grounding", lambda d: d.update(bbox_format="yxyx"), "bbox_format is 'yxyx', not 'xyxy'"),
    ("grounding", lambda d: d.update(bbox_scale=1), "bbox_scale is 1, not 1000"),
    ("grounding", lambda d: d.update(gt_boxes=[[1, 1, 2, 2]]), "say different things"),
    ("grounding", lambda d: d.update(frame_width=0), "1 to 16384"),
    ("grounding", lambda d: d.update(frame_width=2**40), "whole number"),
    (
        "hand_object",
        lambda d: d["interactions"][0].update(hand_type="third"),
        r"\[0\].hand_type is 'third'",
    ),
    ("hand_object", lambda d: d["interactions"][0].update(hand_boxes=[]), "a list with a box in it"),
    ("hand_object", lambda d: d.update(interactions=[3]), "is 3, not an object"),
    ("activity", lambda d: d.update(correct_choice_id="ZZ"), "0 fit"),
    ("activity", lambda d: d["choices"].append(d["choices"][0]), "ids of their own"),
    ("activity", lambda d: d.update(choices=["one"]), "a list of choices"),
    ("relations", lambda d: d["relations"][0].update(source_id=999), "the number of one of the objects"),
    ("relations", lambda d: d["objects"].append(d["objects"][0]), "numbers of their own"),
    ("relations", lambda d: d.update(allowed_relations={"position": []}), "relation values"),
    ("temporal_vqa", lambda d: d.update(question=" "), "not a text"),
    ("temporal_vqa", lambda d: d.update(question="\ud800"), "not a text"),
]


@pytest.mark.parametrize(("name", "change", "what"), BROKEN)
def test_a_field_that_cannot_be_used_is_named(
    name: str,
    change: Callable[[dict[str, Any]], object],
    what: str,
    six_frozen: Path,
    kitchen_release: Path,
    tmp_path: Path,
) -> None:
    file = write_records(tmp_path / "f.jsonl", [changed(ours(six_frozen, name)[0], change)])
    with pytest.raises(DataError, match=rf"line 1: .*{what}.*Remedy"):
        list(read_frozen(file, root=kitchen_release))


@pytest.mark.parametrize(
    "choices",
    [
        lambda items: items,
        lambda items: {item["choice_id"]: item["text"] for item in items},
        lambda items: [item["text"] for item in items],
        lambda items: [{"id": item["choice_id"], "display_name": item["text"]} for item in items],
    ],
    ids=["objects", "mapping", "texts", "other names"],
)
def test_choices_are_read_in_whatever_shape(
    choices: Callable[[list[dict[str, str]]], object], six_frozen: Path, tmp_path: Path
) -> None:
    one = ours(six_frozen, "activity")[0]
    record = changed(one, lambda data: data.update(choices=choices(data["choices"])))
    (read,) = read_frozen(write_records(tmp_path / "f.jsonl", [record]))
    task = get_task("barista", "activity")
    assert task.prompt(read, BoxFormat()) == task.prompt(one, BoxFormat())
    assert read.target == one.target, "the class stands in the example's id"


@pytest.mark.parametrize("video_id", ["../up", "", "a/b", "/etc", 7, None, "\ud800"])
def test_a_video_id_that_is_no_folder_name_is_refused(video_id: object, six_frozen: Path, tmp_path: Path) -> None:
    own = json.loads((six_frozen / "frozen/grounding.jsonl").read_text().splitlines()[0])
    for record in (released_record(ours(six_frozen, "grounding")[0]), own):
        record["frames"][0]["video_id"] = video_id
        with pytest.raises(DataError, match=r"line 1: .*video_id"):
            list(read_frozen(write_records(tmp_path / "f.jsonl", [record])))


def test_the_path_of_the_video_in_the_file_is_never_followed(
    six_frozen: Path, kitchen_release: Path, tmp_path: Path
) -> None:
    file = released(six_frozen, "grounding", tmp_path / "f.jsonl")
    assert "etc/passwd" in file.read_text()
    opened = open_examples(file, "barista", "grounding", root=kitchen_release)
    images = opened[0].images(get_task("barista", "grounding"))
    assert images[0].size == (128, 64)


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"frames": 1e999}', "[" * 100_000, '"x"', "\ud800"])
def test_lines_that_are_no_records_are_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_bytes(text.encode(errors="surrogatepass") + b"\n")
    with pytest.raises(BaristaError, match=r"f.jsonl: line 1"):
        list(read_frozen(tmp_path / "f.jsonl"))


def test_infinite_numbers_in_metadata_are_refused(six_frozen: Path, tmp_path: Path) -> None:
    line = json.dumps(released_record(ours(six_frozen, "grounding")[0])).replace('"Brew coffee"', "1e999")
    (tmp_path / "f.jsonl").write_text(line + "\n")
    with pytest.raises(DataError, match="line 1"):
        list(read_frozen(tmp_path / "f.jsonl"))


@pytest.mark.parametrize("name", NAMES)
def test_a_field_that_our_own_line_lacks_is_named_with_its_line(name: str, six_frozen: Path, tmp_path: Path) -> None:
    good, other = (six_frozen / f"frozen/{name}.jsonl").read_text().splitlines()[:2]
    features = get_task("barista", name).features()
    for part in ("inputs", "target", "metadata"):
        for key in set(features[part]) - UNSAID.get(part, set()):
            record = json.loads(other)
            del (record if part == "metadata" else record["task_data"])[part][key]
            (tmp_path / "f.jsonl").write_text(f"{good}\n{json.dumps(record)}\n")
            with pytest.raises(DataError, match=rf"f.jsonl: line 2: {part} has no '{key}'. Remedy"):
                list(read_frozen(tmp_path / "f.jsonl"))
        record = json.loads(other)
        (record if part == "metadata" else record["task_data"])[part] = {}
        (tmp_path / "f.jsonl").write_text(f"{good}\n{json.dumps(record)}\n")
        with pytest.raises(DataError, match=rf"f.jsonl: line 2: {part} has no "):
            list(read_frozen(tmp_path / "f.jsonl"))


def test_a_dataset_that_is_a_script_is_an_error_in_words(tmp_path: Path) -> None:
    folder = tmp_path / "scripted"
    folder.mkdir()
    (folder / "scripted.py").write_text("raise SystemError('never run')\n")
    with pytest.raises(DataError, match=r"scripted: no config 'relations' .*Remedy"):
        open_examples(folder, "barista", "relations")
    with pytest.raises(DataError, match=r"scripted: no dataset here .*Remedy"):
        config_names(folder)


def test_a_released_file_has_one_identity_wherever_it_is_read(
    six_frozen: Path, kitchen_release: Path, tmp_path: Path
) -> None:
    file = released(six_frozen, "temporal_vqa", tmp_path / "f.jsonl")
    assert content_hash(read_frozen(file)) == content_hash(read_frozen(file, root=kitchen_release))


def test_the_release_says_no_split_so_asking_for_one_is_an_error(six_frozen: Path, tmp_path: Path) -> None:
    file = released(six_frozen, "temporal_vqa", tmp_path / "f.jsonl")
    with pytest.raises(ConfigError, match="no example of split 'test'"):
        open_examples(file, "barista", "temporal_vqa", split="test")


def test_the_papers_protocol_refuses_boxes_that_are_on_the_grid_alone(six_frozen: Path, tmp_path: Path) -> None:
    for name in ("grounding", "hand_object"):
        (read, *_) = read_frozen(released(six_frozen, name, tmp_path / "f.jsonl"))
        task = get_task("barista", name, protocol="paper")
        with pytest.raises(DataError, match="protocol=release"):
            task.aggregate([Scored(read, None)])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """The path of every value inside a JSON value."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield (*path, key)
        yield from places(inner, (*path, key))


@pytest.mark.parametrize("name", NAMES)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_whatever_stands_in_a_field_is_read_or_refused_in_words(
    name: str, data: st.DataObject, six_frozen: Path, kitchen_release: Path, tmp_path: Path
) -> None:
    record = released_record(ours(six_frozen, name)[0])
    *path, last = data.draw(st.sampled_from(list(places(record))))
    inside: Any = record
    for key in path:
        inside = inside[key]
    inside[last] = data.draw(JSON)
    file = tmp_path / "f.jsonl"
    file.write_text(json.dumps(record) + "\n")
    refusal = ""
    try:
        (read,) = read_frozen(file, root=kitchen_release)
    except DataError as error:
        refusal = str(error)
    if refusal:
        assert "line 1" in refusal
        assert "Remedy" in refusal
        return
    task = get_task("barista", name)
    assert task.prompt(read, BoxFormat()).as_text()
    assert isinstance(task.parse(task.reference_answer(read, BoxFormat()), read.inputs, BoxFormat()), Prediction)
    task.aggregate([Scored(read, None)])
