"""The release's frozen files load, run and score as ours do; missing parts are named and never guessed."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from barista_bench.benchmarks import get_task, read_wording, task_names
from barista_bench.benchmarks.barista.released_sets import released_parameters, released_sampling
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, Prediction, Scored
from barista_bench.core.prompt import PromptTexts
from barista_bench.data.dataset import config_names, open_examples
from barista_bench.data.folder import build
from barista_bench.data.frozen import UNRELEASED_FIELDS, content_hash, read_frozen, released_line
from barista_bench.errors import BaristaError, ConfigError, DataError
from barista_bench.runs.score.scoring import score
from tests.data.released_files import released_record, task_data, write_records
from tests.data.released_runs import ours
from tests.one_run import run
from tests.released_clone import write_prompts

NAMES = task_names("barista")


def released(folder: Path, name: str, path: Path) -> Path:
    return write_records(path, map(released_record, ours(folder, name)))


def changed(example: Example, change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    data = json.loads(json.dumps(task_data(example)))
    change(data)
    return released_record(example, data)


Read = Callable[..., list[Example]]


@pytest.fixture
def read(kitchen_release: Path, tmp_path: Path) -> Read:
    """Reads released records, or our own lines, beside the release that they are of."""

    def read(*records: dict[str, Any], root: Path | None = kitchen_release) -> list[Example]:
        return list(read_frozen(write_records(tmp_path / "f.jsonl", records), root=root))

    return read


@pytest.mark.parametrize("name", NAMES)
def test_a_released_file_runs_unchanged(name: str, six_frozen: Path, kitchen_release: Path, tmp_path: Path) -> None:
    file = released(six_frozen, name, tmp_path / "benchmark_examples.jsonl")
    session = run(file, tmp_path / "run", task=name, model="oracle", repetitions=1, root=kitchen_release)
    assert session.failed == 0
    results = score(tmp_path / "run").results
    assert results.coverage.statuses["ok"] == len(ours(six_frozen, name)) > 0
    assert results.metrics[results.primary].mean == pytest.approx(1.0)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "referring"])
def test_answers_score_as_they_do_on_our_own_file(name: str, six_frozen: Path, read: Read) -> None:
    task, box_format, rng = get_task("barista", name), BoxFormat("yxyx", 1000), random.Random(7)
    examples = ours(six_frozen, name)
    samples: dict[str, list[Scored]] = {"own": [], "read": []}
    for mine, other in zip(examples, read(*map(released_record, examples)), strict=True):
        right, wrong = task.reference_answer(mine, box_format), task.random_answer(mine, rng, box_format)
        text = rng.choice([right, wrong, "?", f"```json\n{right}\n```"])
        assert task.prompt(other, box_format) == task.prompt(mine, box_format)
        for key, example in (("own", mine), ("read", other)):
            parsed = task.parse(text, example.inputs, box_format)
            samples[key].append(Scored(example, parsed if isinstance(parsed, Prediction) else None))
    metrics = {key: task.aggregate(scored) for key, scored in samples.items()}
    for metric in metrics.values():
        metric.pop("per_category", None)  # hand_object's released interactions lack the held object
    assert metrics["read"] == metrics["own"]


def test_a_referring_line_keeps_the_facts_of_its_reference(six_frozen: Path, read: Read) -> None:
    examples = ours(six_frozen, "referring")
    for example, other in zip(examples, read(*map(released_record, examples)), strict=True):
        for field in ("category", "reference", "attributes", "relations"):
            assert other.target[field] == example.target[field]
        assert other.inputs == example.inputs
        assert str(other.target["sentence"]).endswith(".")
        assert other.metadata["preparation"] == "unknown"
        assert get_task("barista", "referring").frame_times(other) is None  # no line says when a frame was filmed


def test_masks_come_from_the_annotations_whose_objects_must_equal_those_on_the_line(
    six_frozen: Path, read: Read
) -> None:
    examples = ours(six_frozen, "relations")
    records = list(map(released_record, examples))
    assert [other.inputs for other in read(*records)] == [example.inputs for example in examples]
    with pytest.raises(DataError, match=r"line 1-\d: .*no masks.*--root"):
        read(*records, root=None)
    records[0]["task_data"]["object_id_category_lines"][0] = "  1: zebra"
    with pytest.raises(DataError, match=r"are not the objects that the annotations .*--root"):
        read(records[0])


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_field_is_an_error_that_names_it(name: str, six_frozen: Path, read: Read) -> None:
    example = ours(six_frozen, name)[0]
    for key in task_data(example):
        record = changed(example, lambda data, key=key: data.pop(key))
        if (name, key) in (("referring", "question"), ("activity", "question"), ("temporal_vqa", "num_frames")):
            assert read(record)  # wording, and facts that the frames give
        elif (name, key) != ("temporal_vqa", "category"):  # a pair may have no category
            with pytest.raises(DataError, match=rf"line 1: task_data: .*`{key}`.*Fix"):
                read(record)


def test_every_line_that_cannot_be_read_is_named(six_frozen: Path, read: Read) -> None:
    records = [released_record(example) for example in ours(six_frozen, "grounding")]
    for number in (0, 1, 3):
        records[number]["task_data"]["phrase"] = ""
    records[4]["task_data"]["bbox_scale"] = "big"
    records.append(records[2])
    last = rf"line {len(records)}: "
    with pytest.raises(DataError, match=rf"line 1-2, 4: task_data.phrase.*line 5: task_data.bbox_scale.*{last}"):
        read(*records)


def test_a_frame_size_missing_from_the_line_is_read_only_from_the_video(
    six_frozen: Path, kitchen_release: Path, tmp_path: Path, read: Read
) -> None:
    example = ours(six_frozen, "referring")[0]
    video = tmp_path / "videos" / example.video_id / "video.mp4"
    video.parent.mkdir(parents=True)
    video.write_bytes((kitchen_release / example.video_id / "video.mp4").read_bytes())
    (other,) = read(released_record(example), root=tmp_path / "videos")
    assert other.inputs == example.inputs
    with pytest.raises(DataError, match="holds no frame size"):
        read(released_record(example), root=None)


BROKEN: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("grounding", lambda d: d.update(ground_truth_boxes=[[0, 0, 1001, 5]]), "not within 0 to 1000"),
    ("grounding", lambda d: d.update(ground_truth_boxes=[[0, 0, 0.5, 5]]), "ground_truth_boxes"),
    ("grounding", lambda d: d.update(ground_truth_boxes=[[0, 0, 5]]), "ground_truth_boxes"),
    ("grounding", lambda d: d.update(ground_truth_boxes=[]), "ground_truth_boxes"),
    ("grounding", lambda d: d.update(bbox_format="yxyx"), "bbox_format"),
    ("grounding", lambda d: d.update(bbox_scale=1), "not within 0 to 1"),
    ("grounding", lambda d: d.update(phrase=""), "phrase"),
    ("grounding", lambda d: d.update(frame_width=0), "frame_width"),
    ("grounding", lambda d: d.update(frame_width=2**40), "frame_width"),
    ("hand_object", lambda d: d["ground_truth"][0].update(hand_type="third"), "hand_type"),
    ("hand_object", lambda d: d["ground_truth"][0].update(hand_boxes=[]), "hand_boxes"),
    ("hand_object", lambda d: d.update(ground_truth=[3]), "ground_truth"),
    ("activity", lambda d: d.update(correct_choice_id="ZZ"), "'ZZ' is not one of the choices' ids"),
    ("activity", lambda d: d["choices"].append(d["choices"][0]), "two choices have one id"),
    ("activity", lambda d: d.update(choices=["one"]), "choices"),
    ("relations", lambda d: d["ground_truth_relations"][0].update(source_id=999), "999"),
    ("relations", lambda d: d.update(ground_truth_relations=[]), "ground_truth_relations"),
    ("relations", lambda d: d["object_id_category_lines"].pop(), "object_id_category_lines"),
    ("temporal_vqa", lambda d: d.update(question=""), "question"),
    ("temporal_vqa", lambda d: d.update(reference_answer=""), "reference_answer"),
    ("temporal_vqa", lambda d: d.update(question="\ud800"), "no frozen example"),
]


@pytest.mark.parametrize(("name", "change", "what"), BROKEN)
def test_a_field_that_cannot_be_used_is_named(
    name: str, change: Callable[[dict[str, Any]], object], what: str, six_frozen: Path, read: Read
) -> None:
    with pytest.raises(DataError, match=rf"line 1: .*{what}.*Fix"):
        read(changed(ours(six_frozen, name)[0], change))


@pytest.mark.parametrize("name", NAMES)
def test_a_set_keeps_its_identity_as_released(
    name: str, six_frozen: Path, kitchen_release: Path, tmp_path: Path
) -> None:
    examples = ours(six_frozen, name)
    file = tmp_path / "f.jsonl"
    file.write_text("".join(released_line(example, "?") + "\n" for example in examples))
    read = list(read_frozen(file, root=kitchen_release))
    assert content_hash(read) == content_hash(examples)
    assert [released_line(example) for example in read] == file.read_text().splitlines()


def test_build_writes_the_released_layout(kitchen_release: Path, tmp_path: Path) -> None:
    out = tmp_path / "released"
    settings: dict[str, Any] = {"configs": ["grounding", "activity"], "sampling": {"limit": 5}}
    built = build(kitchen_release, out, layout="release", **settings)
    assert sorted(path.name for path in out.iterdir()) == [
        *("activity_mcq.config.json", "activity_mcq.jsonl", "grounding.config.json", "grounding.jsonl")
    ]
    config = json.loads((out / "grounding.config.json").read_text())
    assert (config["limit"], config["task_params"]["sample_fraction"]) == (5, 0.1)
    for named in built.configs:
        upstream = get_task("barista", named.name).upstream_name
        assert content_hash(read_frozen(out / f"{upstream}.jsonl", root=kitchen_release)) == named.content_hash
    with pytest.raises(ConfigError, match="is there already"):
        build(kitchen_release, out, layout="release", **settings)


def test_frozen_sentences_equal_the_wording(kitchen_release: Path, tmp_path: Path) -> None:
    prompt_file = write_prompts(tmp_path)
    settings: dict[str, Any] = {"configs": ["referring", "activity"], "sampling": {"limit": 1}, "layout": "release"}
    sentences = {}
    for name, prompts in (("ours", None), ("theirs", prompt_file)):
        build(kitchen_release, tmp_path / name, prompts=prompts, **settings)
        files = [tmp_path / name / f"{task}.jsonl" for task in ("referring", "activity_mcq")]
        sentences[name] = [json.loads(file.read_text())["task_data"]["question"] for file in files]
    for ours_, theirs, wording in zip(*sentences.values(), ("referring", "activity"), strict=True):
        frozen = read_wording("barista", wording, prompt_file).text("frozen_question", frame_count="4")
        assert (theirs, ours_ != theirs) == (frozen, True)
    assert "{box}" in sentences["ours"][0], "the place for the box is not filled in, as released"
    with pytest.raises(ConfigError, match=r"only in the layout release.*Fix"):
        build(kitchen_release, tmp_path / "set", configs=["activity"], prompts=prompt_file)


def test_a_wording_without_a_frozen_sentence_uses_ours(six_frozen: Path) -> None:
    (example, *_) = ours(six_frozen, "referring")
    texts = PromptTexts(1, "", "Describe {box}.", "0" * 64)
    plain, ours_ = get_task("barista", "referring", texts), get_task("barista", "referring")
    said = Prediction({"description": "A cup."})
    assert plain.show_to_judge(example, said) == ours_.show_to_judge(example, said)


def test_the_seed_of_the_preparation_equals_the_seed_of_the_drawn_questions() -> None:
    sampling = replace(get_task("barista", "temporal_vqa").sampling, sampling_seed=5, seed=7)
    params = released_parameters("temporal_vqa", sampling)
    assert params["shuffle_seed"] == 5
    assert released_sampling("temporal_vqa", params, shuffle_seed=7, limit=sampling.limit) == sampling


@pytest.mark.parametrize("name", NAMES)
def test_a_set_from_an_earlier_version_of_its_task_is_refused(name: str, six_frozen: Path, read: Read) -> None:
    records = [json.loads(line) for line in (six_frozen / f"frozen/{name}.jsonl").read_text().splitlines()]
    for record in records:
        record["task_version"] -= 1
    with pytest.raises(DataError, match=rf"line 1-\d: frozen by version \d of barista/{name}, .*Fix: build"):
        read(*records)


@pytest.mark.parametrize("video_id", ["../up", "", "a/b", "/etc", 7, None, "\ud800"])
def test_a_video_id_that_cannot_name_a_folder_is_refused(video_id: object, six_frozen: Path, read: Read) -> None:
    line = json.loads((six_frozen / "frozen/grounding.jsonl").read_text().splitlines()[0])
    for record in (released_record(ours(six_frozen, "grounding")[0]), line):
        record["frames"][0]["video_id"] = video_id
        with pytest.raises(DataError, match=r"line 1: .*video_id"):
            read(record)


def test_the_path_of_a_video_is_never_followed(six_frozen: Path, kitchen_release: Path, tmp_path: Path) -> None:
    file = released(six_frozen, "grounding", tmp_path / "f.jsonl")
    assert "etc/passwd" in file.read_text()
    opened = open_examples(file, "barista", "grounding", root=kitchen_release)
    assert opened[0].images(get_task("barista", "grounding"))[0].size == (128, 64)


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"frames": 1e999}', "[" * 100_000, '"x"', "\ud800"])
def test_lines_without_a_record_are_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_bytes(text.encode(errors="surrogatepass") + b"\n")
    with pytest.raises(BaristaError, match=r"f.jsonl: line 1"):
        list(read_frozen(tmp_path / "f.jsonl"))


@pytest.mark.parametrize("name", NAMES)
def test_a_field_that_our_own_line_lacks_is_named_with_its_line(name: str, six_frozen: Path, read: Read) -> None:
    good, other = map(json.loads, (six_frozen / f"frozen/{name}.jsonl").read_text().splitlines()[:2])
    features = get_task("barista", name).features()
    for part in ("inputs", "target", "metadata"):
        holder = other if part == "metadata" else other["task_data"]
        whole = holder[part]
        for key in set(features[part]) - UNRELEASED_FIELDS.get(part, set()):
            holder[part] = {name: value for name, value in whole.items() if name != key}
            with pytest.raises(DataError, match=rf"f.jsonl: line 2: {part} has no '{key}'. Fix"):
                read(good, other)
        holder[part] = {}
        with pytest.raises(DataError, match=rf"f.jsonl: line 2: {part} has no "):
            read(good, other)
        holder[part] = whole


def test_a_dataset_in_the_form_of_a_script_is_refused_with_a_message(tmp_path: Path) -> None:
    folder = tmp_path / "scripted"
    folder.mkdir()
    (folder / "scripted.py").write_text("raise SystemError('never run')\n")
    with pytest.raises(DataError, match=r"scripted: no config 'relations' .*Fix"):
        open_examples(folder, "barista", "relations")
    with pytest.raises(DataError, match=r"scripted: no dataset here .*Fix"):
        config_names(folder)


def test_a_released_file_has_one_identity_and_no_splits(
    six_frozen: Path, kitchen_release: Path, tmp_path: Path
) -> None:
    file = released(six_frozen, "temporal_vqa", tmp_path / "f.jsonl")
    assert content_hash(read_frozen(file)) == content_hash(read_frozen(file, root=kitchen_release))
    with pytest.raises(ConfigError, match="no example of split 'test'"):
        open_examples(file, "barista", "temporal_vqa", split="test")


def test_the_papers_protocol_refuses_boxes_that_exist_only_on_the_grid(six_frozen: Path, read: Read) -> None:
    for name in ("grounding", "hand_object"):
        (other,) = read(released_record(ours(six_frozen, name)[0]), root=None)
        task = get_task("barista", name, options={"protocol": "paper"})
        with pytest.raises(DataError, match="protocol=release"):
            task.aggregate([Scored(other, None)])


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


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_any_value_of_a_field_is_read_or_refused_in_words(
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
        assert "Fix" in refusal
        return
    task = get_task("barista", name)
    assert task.prompt(read, BoxFormat()).as_text()
    assert isinstance(task.parse(task.reference_answer(read, BoxFormat()), read.inputs, BoxFormat()), Prediction)
    task.aggregate([Scored(read, None)])
