"""What a built folder says to the Hub: its leaderboards, by hash, and a picture on its card."""

from pathlib import Path

import jsonschema
import pytest
import yaml
from PIL import Image

from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from tests.releases import write_release

TEXT = {"type": "string"}
TASK_ENTRY = {
    "type": "object",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {"id": TEXT, "config": TEXT, "split": TEXT},
}
EVAL_FILE_SCHEMA = {
    "type": "object",
    "required": ["name", "description", "evaluation_framework", "tasks"],
    "additionalProperties": False,
    "properties": {
        **dict.fromkeys(("name", "description", "evaluation_framework"), TEXT),
        "tasks": {"type": "array", "minItems": 1, "items": TASK_ENTRY},
    },
}


@pytest.fixture(scope="module")
def built(small_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "barista"
    configs = ["grounding", "relations", "graph_frames"]
    return build(small_release, out, configs=configs, sampling={"frame_step": 20}, cache=False).folder


def test_each_task_built_has_leaderboards_over_all_and_over_test_videos_in_both_wordings_which_name_examples_by_hash(
    built: Path,
) -> None:
    described = yaml.safe_load((built / "eval.yaml").read_text())
    jsonschema.validate(described, EVAL_FILE_SCHEMA)
    boards = {task["id"]: (task["config"], task["split"]) for task in described["tasks"]}
    assert boards == {
        f"{name}{suffix}{wording}": (name, split)
        for name in ("grounding", "relations")
        for suffix, split in (("", "train+test"), ("_test", "test"))
        for wording in ("", "_release-4086ce5")
    }
    hashes = yaml.safe_load((built / "leaderboard.yaml").read_text())["content_hashes"]
    every, test = (open_examples(built, "barista", "relations", split=split).content_hash for split in ("all", "test"))
    assert every != test
    assert hashes["relations"] == hashes["relations_release-4086ce5"] == every
    assert hashes["relations_test"] == hashes["relations_test_release-4086ce5"] == test


def test_a_split_without_examples_has_no_leaderboard(tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    folder = build(tmp_path / "release", tmp_path / "out", configs=["relations"], cache=False).folder
    (split,) = {path.name.partition("-")[0] for path in (folder / "relations").iterdir()}
    boards = yaml.safe_load((folder / "eval.yaml").read_text())["tasks"]
    assert {board["split"] for board in boards} == {split}


def test_the_card_shows_the_picture_that_lies_beside_it_and_linked_sets_and_tables_have_none_of_it(
    built: Path, small_release: Path, tmp_path: Path
) -> None:
    with Image.open(built / "example.jpg") as picture:
        assert max(picture.size) <= 640
    assert "](example.jpg)" in (built / "README.md").read_text()
    for config, frames in (("relations", "linked"), ("graph_frames", "frozen")):
        settings = {"configs": [config], "sampling": {"frame_step": 20}, "frames": frames, "cache": False}
        folder = build(small_release, tmp_path / config, **settings).folder  # type: ignore[arg-type]
        assert not {"eval.yaml", "leaderboard.yaml", "example.jpg"} & {path.name for path in folder.iterdir()}
        assert "example.jpg" not in (folder / "README.md").read_text()
