"""Files of a submission: what exists is kept, secrets stop, the dataset folder is checked, writing is idempotent."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from barista_bench.data.dataset import open_examples
from barista_bench.data.folder import build
from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.files import Existing, all_files, write_files
from tests.hub.made_results import results, row, submission
from tests.hub.standin import TOKEN


@pytest.fixture(scope="module")
def built(small_release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "barista"
    return build(small_release, out, configs=["relations"], sampling={"frame_step": 20}, cache=False).folder


@pytest.fixture
def dataset(built: Path, tmp_path: Path) -> Path:
    """A copy that a test may break."""
    return Path(shutil.copytree(built, tmp_path / "dataset"))


def test_results_of_other_tasks_and_other_benchmarks_stay() -> None:
    others = [
        {"dataset": {"id": "garden/BARISTA", "task_id": "grounding"}, "value": 12.0},
        {"dataset": {"id": "garden/BARISTA", "task_id": "relations"}, "value": 1.0},
        {"dataset": {"id": "cais/hle", "task_id": "relations"}, "value": 3.0},
    ]
    existing = Existing(b"# Card\n", yaml.safe_dump(others).encode())
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
    with pytest.raises(DataError, match=r"\.eval_results/barista\.yaml: 0\.value.*Remedy"):
        all_files(made, Existing(b"", b"- dataset: {id: a/b, task_id: c}\n  value: high\n"))
    with pytest.raises(DataError, match=r"README.md: is not UTF-8.*Remedy"):
        all_files(made, Existing(b"\xff\xfe"))


def test_writing_the_same_submission_again_changes_nothing(tmp_path: Path) -> None:
    made, out = submission(), tmp_path / "out"
    first = write_files(all_files(made), out)
    assert {path.relative_to(out).as_posix() for path in first} == {
        "model/.eval_results/barista.yaml",
        "model/README.md",
        "dataset/eval.yaml",
        "results/results/garden/fruit-8b/relations/results.json",
    }
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert write_files(all_files(made), out) == []
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"thesis.txt.*Remedy"):
        write_files(all_files(submission()), out)
    assert [path.name for path in out.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("token", [TOKEN, "sk-abcdefghijklmnopqrstuvwxyz0", "AIza" + "x" * 35])
def test_a_token_in_results_or_card_is_never_published(token: str) -> None:
    with pytest.raises(DataError, match=r"looks like an access token.*Remedy") as caught:
        all_files(submission(), Existing(f"curl -H {token}\n".encode()))
    assert token not in str(caught.value)
    changed = results()
    changed.generation["stop"] = [token]
    leaky = submission(row(changed))
    with pytest.raises(DataError, match="access token") as caught:
        all_files(leaky)
    assert token not in str(caught.value)


# ------------------------------------------------------------------------------------------------ the dataset folder


def test_a_built_dataset_is_published_with_its_card_and_eval_yaml(tmp_path: Path, dataset: Path) -> None:
    files = all_files(submission(), dataset=dataset)
    below = {path.relative_to(dataset).as_posix() for path in dataset.rglob("*") if path.is_file()}
    assert set(files.dataset) == below | {"eval.yaml", "leaderboard.yaml"}
    out = tmp_path / "out"
    write_files(files, out)
    assert write_files(files, out) == []
    for name in below:
        assert (out / "dataset" / name).read_bytes() == (dataset / name).read_bytes()


def test_a_published_dataset_says_by_hash_of_what_examples_each_leaderboard_is(dataset: Path) -> None:
    files = all_files(submission(), dataset=dataset)
    rules = yaml.safe_load(files.dataset["leaderboard.yaml"])  # type: ignore[arg-type]
    every, test = (
        open_examples(dataset, "barista", "relations", split=split).content_hash for split in ("all", "test")
    )
    assert rules == {
        "content_hashes": {
            "relations": every,
            "relations_test": test,
            "relations_release-4086ce5": every,
            "relations_test_release-4086ce5": test,
        }
    }


def _no_card(folder: Path) -> None:
    (folder / "README.md").unlink()


def _no_licence(folder: Path) -> None:
    path = folder / "README.md"
    path.write_text(path.read_text().replace("\nlicense: ", "\nlicence: "))


def _no_metadata(folder: Path) -> None:
    (folder / "README.md").write_text("# BARISTA\n")


def _no_files(folder: Path) -> None:
    for path in (folder / "relations").glob("test-*"):
        path.unlink()


def _another_config(folder: Path) -> None:
    path = folder / "barista_bench.json"
    manifest = json.loads(path.read_text())
    manifest["configs"].append({**manifest["configs"][0], "name": "grounding"})
    path.write_text(json.dumps(manifest))


def _linked(folder: Path) -> None:
    path = folder / "barista_bench.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "frames": "linked"}))


def _link(folder: Path) -> None:
    (folder / "frozen" / "more.jsonl").symlink_to("/etc/hostname")


def _stranger(folder: Path) -> None:
    (folder / "notes.txt").write_text("private")


def _unfinished(folder: Path) -> None:
    (folder / "barista_bench.json").unlink()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_no_card, "has no card"),
        (_no_licence, "license: Field required"),
        (_no_metadata, "valid dictionary"),
        (_no_files, "configs.relations: no file relations/test-"),
        (_another_config, "'grounding' is in the card or in the folder only"),
        (_linked, "links to videos of this machine"),
        (_link, "frozen/more.jsonl is a link"),
        (_stranger, "notes.txt is not of a built dataset"),
        (_unfinished, "no built dataset here"),
    ],
)
def test_a_dataset_folder_that_is_not_fit_is_refused(dataset: Path, spoil: object, said: str) -> None:
    assert callable(spoil)
    spoil(dataset)
    with pytest.raises(DataError, match=rf"{said}.*Remedy"):
        all_files(submission(), dataset=dataset)
