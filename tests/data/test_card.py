"""The dataset cards agree with the tasks: metadata that the Hub and `datasets` read, parameters, protocols."""

import dataclasses
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml
from datasets.info import DatasetInfosDict
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCard
from PIL import Image

from barista_bench.benchmarks import BENCHMARKS, get_benchmark, get_task, task_class, task_names
from barista_bench.core.options import rules_of
from barista_bench.data.dataset import config_names, open_examples
from barista_bench.data.folder import build
from barista_bench.data.manifest import published_card, read_manifest, sampling_text
from barista_bench.data.origin import config_names_of
from barista_bench.data.rows import row_features
from barista_bench.data.tables import GRAPH_TABLES, table_features
from tests.releases import write_release

CARD = Path(__file__).resolve().parents[2] / "dataset_cards" / "barista.md"
NAMES = task_names("barista")


@pytest.fixture(scope="module")
def card() -> DatasetCard:
    return DatasetCard.load(CARD)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_card_describes_every_task_and_holds_the_filters_of_the_hub(name: str) -> None:
    assert str(DatasetCard.load(CARD.with_name(f"{name}.md"))) == str(published_card(name)), "run scripts/dataset_card"
    card = DatasetCard.load(CARD.with_name(f"{name}.md"), ignore_metadata_errors=False)
    data = card.data.to_dict()
    assert set(data["size_categories"]) <= {"n<1K", "1K<n<10K", "10K<n<100K"}
    assert set(data["annotations_creators"]) <= {"expert-generated", "machine-generated"}
    assert all(source == "original" or source.startswith("extended|") for source in data["source_datasets"])
    assert (data["license"] == "other") == ("license_name" in data) == ("license_link" in data)
    assert set(MetadataConfigs.from_dataset_card_data(card.data)) >= set(task_names(name))
    assert not re.findall(r"\{[a-z_]+\}", card.text)
    for section in ("Configs", "Splits", "How it was made", "Licence", "Limits", "Citation"):
        assert f"\n## {section}\n" in card.text


def test_the_hub_reads_licence_and_every_config_with_its_splits(card: DatasetCard) -> None:
    assert card.data.license == "cc-by-nc-4.0"
    assert "Apache-2.0" in card.text
    configs = MetadataConfigs.from_dataset_card_data(card.data)
    assert set(configs) == set(config_names_of("barista"))
    for name, config in configs.items():
        files = {entry["split"]: entry["path"] for entry in config["data_files"]}
        assert files == {"train": f"{name}/train-*", "test": f"{name}/test-*"}
    assert configs.get_default_config_name() == "grounding"


@pytest.mark.parametrize("name", config_names_of("barista"))
def test_the_features_in_the_card_equal_the_features_of_the_task_or_table(name: str, card: DatasetCard) -> None:
    features = DatasetInfosDict.from_dataset_card_data(card.data)[name].features
    expected = table_features(name) if name in GRAPH_TABLES else row_features(get_task("barista", name), "frozen")
    assert features == expected


@pytest.mark.parametrize("name", NAMES)
def test_parameters_notes_and_both_protocols_come_from_the_task(name: str, card: DatasetCard) -> None:
    task = get_task("barista", name)
    (row,) = [line for line in card.text.splitlines() if line.startswith(f"| `{name}` | {task.sampling.limit} |")]
    for key in ("limit", "seed", *task.sampling.names()):
        value = getattr(task.sampling, key)
        assert value is None or f"{key}={value}" in row
    assert f"| `{name}` | {task.row_note} |" in card.text
    shown = sampling_text(dataclasses.asdict(dataclasses.replace(task.sampling, videos=("v1",))))
    assert "videos=('v1',)" in shown
    rules = rules_of(task_class("barista", name).options)
    assert rules
    for rule in rules:
        assert f"| `{name}` | {rule.rule} | {rule.release} | {rule.paper} | {rule.changes} |" in card.text
        assert "|" not in f"{rule.rule}{rule.release}{rule.paper}", "a bar would end the cell"
    assert get_benchmark("barista").citation in card.text


@pytest.mark.parametrize("protocol", ["release", "paper"])
@pytest.mark.full
def test_a_built_folder_says_which_protocol_it_follows(protocol: str, small_release: Path, tmp_path: Path) -> None:
    chosen = {"configs": ["hand_object", "referring"], "options": {"protocol": protocol}}
    made = build(small_release, tmp_path / "out", sampling={"frame_step": 10}, cache=False, **chosen)
    assert read_manifest(made.folder)["protocol"] == protocol
    card = DatasetCard.load(made.folder / "README.md")
    assert f"protocol `{protocol}`" in card.text
    infos = DatasetInfosDict.from_dataset_card_data(card.data)
    assert ("protocol" in infos["referring"].features["metadata"]) == (protocol == "paper")
    assert "protocol" not in infos["hand_object"].features["metadata"], "the examples are the same"


def test_every_built_and_published_card_has_the_canary() -> None:
    assert str(published_card("barista")).count("BARISTA-BENCH CANARY GUID ") == 1


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


def test_each_built_task_has_leaderboards_over_all_and_test_videos_in_both_wordings_by_hash(built: Path) -> None:
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


def test_only_the_card_of_a_frozen_set_shows_a_picture(built: Path, small_release: Path, tmp_path: Path) -> None:
    with Image.open(built / "example.jpg") as picture:
        assert max(picture.size) <= 640
    assert "](example.jpg)" in (built / "README.md").read_text()
    for config, frames in (("relations", "linked"), ("graph_frames", "frozen")):
        settings = {"configs": [config], "sampling": {"frame_step": 20}, "frames": frames, "cache": False}
        folder = build(small_release, tmp_path / config, **settings).folder  # type: ignore[arg-type]
        assert not {"eval.yaml", "leaderboard.yaml", "example.jpg"} & {path.name for path in folder.iterdir()}
        assert "example.jpg" not in (folder / "README.md").read_text()


SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name not in ("extended", "made")])
def test_each_benchmark_has_a_script_with_its_name(name: str) -> None:
    assert f'["build", "--benchmark", "{name}"]' in (SCRIPTS / f"{name}.py").read_text()


def test_a_script_builds_the_named_configs(generated: Callable[[str], Path], tmp_path: Path) -> None:
    source, out = generated("handyvqa"), tmp_path / "out"
    settings = ["--source", source, "--out", out, "--configs", "action", "--frames", "linked"]
    subprocess.run([sys.executable, SCRIPTS / "handyvqa.py", *settings], check=True)
    assert config_names(out) == ("action",)
