"""The target libraries can read an export back, and it agrees with the dataset and the release."""

import json
import shutil
from pathlib import Path

import datasets
import msgspec
import numpy as np
import pytest
from PIL import Image
from pycocotools.coco import COCO

from barista_bench.benchmarks import get_task
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import ParseError
from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.data.rows import local_splits
from barista_bench.errors import ConfigError, DataError
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.release import Terms, read_terms
from barista_bench.training.exporting import PARQUET, export_training_set
from tests.one_run import run

TRAINING = 3
"""Videos of the release that its split trains on."""


def rows_of(folder: Path) -> datasets.Dataset:
    return datasets.Dataset.from_parquet(str(folder / PARQUET), cache_dir=str(folder.parent / "cache"))


def text_of(turns: list[dict]) -> str:
    return "".join(part["text"] or "" for turn in turns for part in turn["content"])


@pytest.mark.full
@pytest.mark.parametrize("written", ["xyxy/1000", "yxyx/1000", "xyxy/1"])
def test_chats_answer_in_the_form_that_the_parser_reads(written: str, built: Path, tmp_path: Path) -> None:
    box_format = BoxFormat.parse(written)
    done = export_training_set(built, tmp_path / "out", "chat", box_format=box_format)
    answers = {row["example_id"]: row for row in rows_of(tmp_path / "out")}
    assert len(answers) == done.rows
    asked = set()
    for name in local_splits(built):
        if name.startswith("graph_"):
            continue
        task = get_task("barista", name)
        for loaded in open_examples(built, "barista", name, split="train"):
            example = loaded.example
            row = answers[example.example_id]
            asked.add(name)
            assert text_of(row["completion"]) == task.reference_answer(example, box_format)
            prediction = task.parse(text_of(row["completion"]), example.inputs, box_format)
            assert not isinstance(prediction, ParseError)
            assert not task.failures(example, prediction)
            assert text_of(row["prompt"]) == "".join(
                part.get("text", "") for turn in task.prompt(example, box_format).messages() for part in turn["content"]
            )
            shown = loaded.images(task)
            assert [np.asarray(image).tolist() for image in row["images"]] == [
                np.asarray(image).tolist() for image in shown
            ]
    assert asked == {name for name in local_splits(built) if not name.startswith("graph_")}


def test_a_linked_set_is_exported_as_the_frozen_one(release: Path, tmp_path: Path) -> None:
    for frames in ("frozen", "linked"):
        build(release, tmp_path / frames, configs=("relations",), frames=frames, cache=False, progress=False)
        export_training_set(tmp_path / frames, tmp_path / f"{frames}_chat", "chat", box_format=BoxFormat())
    assert (tmp_path / "frozen_chat" / PARQUET).read_bytes() == (tmp_path / "linked_chat" / PARQUET).read_bytes()


def test_a_task_that_is_not_answered_in_text_is_not_exported_as_chat(release: Path, tmp_path: Path) -> None:
    configs, sampling = ("mask_tracking", "temporal_scene_graph"), {"frames": 2, "spacing": 1, "limit": 4}
    data = build(
        release, tmp_path / "data", benchmark="extended", configs=configs, sampling=sampling, cache=False
    ).folder
    export_training_set(data, tmp_path / "out", "chat", box_format=BoxFormat())
    assert {row["example_id"].partition(":")[0] for row in rows_of(tmp_path / "out")} == {"temporal_scene_graph"}
    with pytest.raises(ConfigError, match="no text answers it"):
        export_training_set(data, tmp_path / "out", "chat", tasks=["mask_tracking"], box_format=BoxFormat())


def test_preferences_are_the_wrong_answers_of_a_run(built: Path, tmp_path: Path) -> None:
    run(built, tmp_path / "run", task="relations", model="chance", repetitions=2)
    export_training_set(built, tmp_path / "out", "preference", run=tmp_path / "run")
    rows = rows_of(tmp_path / "out")
    task, box_format = get_task("barista", "relations"), BoxFormat()
    examples = {e.example_id: e for e in open_examples(built, "barista", "relations", split="train").examples}
    logged = [json.loads(line) for line in (tmp_path / "run" / "samples.jsonl").read_text().splitlines()]
    wrong = set()
    for record in logged:
        if example := examples.get(record["example_id"]):
            prediction = task.parse(record["text"], example.inputs, box_format)
            if isinstance(prediction, ParseError) or task.failures(example, prediction):
                wrong.add((example.example_id, record["text"]))
    assert {(row["example_id"], text_of(row["rejected"])) for row in rows} == wrong
    assert all(text_of(r["chosen"]) == task.reference_answer(examples[r["example_id"]], box_format) for r in rows)


def test_a_run_without_mistakes_gives_no_pairs(built: Path, tmp_path: Path) -> None:
    run(built, tmp_path / "run", task="relations", model="oracle", repetitions=1)
    with pytest.raises(ConfigError, match="nothing to export"):
        export_training_set(built, tmp_path / "out", "preference", run=tmp_path / "run")
    assert not (tmp_path / "out").exists()


def test_coco_instances_have_the_masks_and_boxes_of_the_release(built: Path, release: Path, tmp_path: Path) -> None:
    done = export_training_set(built, tmp_path / "out", "coco", root=release)
    coco = COCO(str(tmp_path / "out" / "annotations.json"))
    graph, seen = SceneGraph(release), 0
    for image in coco.loadImgs(coco.getImgIds()):
        video, frame = image["file_name"].split("/")
        of_frame = {instance.object.id: instance for instance in graph[video].instances(int(frame[:6]))}
        with Image.open(tmp_path / "out" / "images" / image["file_name"]) as picture:
            assert picture.size == (image["width"], image["height"])
        for annotation in coco.loadAnns(coco.getAnnIds(imgIds=image["id"])):
            instance = of_frame.pop(annotation["object_id"])
            assert annotation["bbox"] == list(instance.bbox)
            assert (coco.annToMask(annotation).astype(bool) == graph[video].mask(instance)).all()
            assert coco.loadCats(annotation["category_id"])[0]["name"] == instance.object.category
            seen += 1
        assert not of_frame
    assert seen == done.rows
    assert done.videos == TRAINING


def test_the_terms_of_the_data_go_along(built: Path, release: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(built, data)
    terms = Terms(title="Homes", licence="cc-by-nc-4.0", licence_note="All.", citation="@misc{x}", homepage="https://x")
    manifest = json.loads((data / "barista_bench.json").read_text())
    (data / "barista_bench.json").write_text(json.dumps({**manifest, "terms": msgspec.to_builtins(terms)}))
    done = export_training_set(data, tmp_path / "out", "coco", root=release)
    assert read_terms(done.folder) == terms
    assert any("cc-by-nc-4.0" in note for note in done.notes)
    assert read_terms(export_training_set(built, tmp_path / "free", "coco", root=release).folder) is None


def test_davis_pictures_have_the_masks_of_the_release(built: Path, release: Path, tmp_path: Path) -> None:
    """Of overlapping objects the smaller one is on top."""
    export_training_set(built, tmp_path / "out", "davis", root=release)
    folder, graph = tmp_path / "out", SceneGraph(release)
    objects = json.loads((folder / "Annotations" / "objects.json").read_text())
    pictures = sorted((folder / "Annotations").glob("*/*.png"))
    assert len({path.parent for path in pictures}) == TRAINING
    for path in pictures:
        video, frame = graph[path.parent.name], int(path.stem)
        assert (folder / "JPEGImages" / video.video_id / f"{path.stem}.jpg").exists()
        with Image.open(path) as picture:
            assert picture.mode == "P"
            indices = np.asarray(picture)
        numbers = {name: int(number) for number, (name, _) in objects[video.video_id].items()}
        expected = np.zeros_like(indices)
        masks = [(video.mask(instance), instance.object.id) for instance in video.instances(frame)]
        for mask, name in sorted(masks, key=lambda item: (-item[0].sum(), item[1])):
            expected[mask] = numbers[name]
        assert (indices == expected).all()


def test_masks_of_another_video_are_refused(built: Path, release: Path, tmp_path: Path) -> None:
    other = tmp_path / "release"
    for folder in release.iterdir():
        (other / folder.name).mkdir(parents=True)
        (other / folder.name / "coco_annotation.json").write_bytes((folder / "coco_annotation.json").read_bytes())
        (other / folder.name / "video.mp4").write_bytes((folder / "video.mp4").read_bytes() + b"\0")
    with pytest.raises(DataError, match="is another video"):
        export_training_set(built, tmp_path / "out", "davis", root=other)


@pytest.mark.parametrize(
    "settings",
    [
        *({"form": form} for form in ("chat", "preference", "davis")),
        *({"form": "coco", **more} for more in ({"box_format": BoxFormat()}, {"tasks": ["relations"]})),
        {"form": "chat", "box_format": BoxFormat(), "run": "run"},
    ],
)
def test_options_that_a_format_lacks_are_refused(settings: dict, built: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Fix"):
        export_training_set(built, tmp_path / "out", **settings)
