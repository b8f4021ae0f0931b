"""Files of a submission: what exists is kept, secrets stop, writing is idempotent."""

from pathlib import Path

import pytest
import yaml

from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.files import Existing, all_files, write_files
from tests.hub.made_results import results, row, submission
from tests.hub.standin import TOKEN


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
