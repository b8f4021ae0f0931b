"""Build the files of a submission for each repository.

Model-index metadata is merged into a model's card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import yaml
from huggingface_hub.repocard import REGEX_YAML_BLOCK

from barista_bench.errors import DataError
from barista_bench.files.owned_folders import SUBMISSION, replacing_folder
from barista_bench.files.paths import confine
from barista_bench.files.reading import PlainLoader
from barista_bench.files.text_out import holds_key
from barista_bench.hub.checks import MAX_FILE, EvalResults, dump_yaml, load_yaml, read_eval_results, read_model_index
from barista_bench.hub.submission import IndexResult, Submission, as_json, public_judged, public_results

README: Final = "README.md"


class Files(NamedTuple):
    """The files of a submission's two repositories. Each mapping has paths in the repository and contents."""

    model: Mapping[str, bytes]
    results: Mapping[str, bytes]


class ExistingFiles(NamedTuple):
    """The current files of a model repository: its card, and the results that our file already holds."""

    card: bytes = b""
    eval_results: bytes | None = None


def all_files(submission: Submission, existing: ExistingFiles | None = None) -> Files:
    """Return all files of a submission.

    Args:
        existing: current files of the model repository. Its card and its results for other tasks are kept.

    Raises:
        DataError: an existing file is invalid, or a file would hold a secret.
    """
    files = Files(model_files(submission, existing or ExistingFiles()), results_files(submission))
    for folder, contents in files._asdict().items():
        refuse_secrets(contents, folder)
    return files


def eval_results_path(benchmark: str) -> str:
    """Return the path of our file in a model repository."""
    return f".eval_results/{benchmark}.yaml"


def model_files(submission: Submission, existing: ExistingFiles) -> dict[str, bytes]:
    """Return `.eval_results/<benchmark>.yaml` and README.md of the model repository.

    Entries on other leaderboards stay.
    """
    path = eval_results_path(submission.benchmark)
    results = submission.eval_results()
    if existing.eval_results is not None:
        replaced = {entry.leaderboard for entry in results.root}
        earlier = read_eval_results(existing.eval_results, path).root
        results = EvalResults([*(entry for entry in earlier if entry.leaderboard not in replaced), *results.root])
    text = dump_yaml(results.model_dump(mode="json", by_alias=True, exclude_none=True))
    name = submission.target.model_repo.partition("/")[2]
    try:
        card = existing.card.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{README}: is not UTF-8 ({error.reason}). Fix: correct the card") from error
    readme = merge_model_index(card, name, [submission.index_result(row) for row in submission.rows])
    return {path: text.encode(), README: readme.encode()}


def results_files(submission: Submission) -> dict[str, bytes]:
    """Return the files `results/<org>/<model>/<leaderboard>/results.json` and `judged.json` of a results dataset."""
    files = {}
    for row in submission.rows:
        folder = f"results/{submission.target.model_repo}/{row.task_id}"
        files[f"{folder}/results.json"] = as_json(public_results(row, submission.target))
        judged = public_judged(row, submission.target)
        if judged is not None:
            files[f"{folder}/judged.json"] = as_json(judged)
    return files


def refuse_secrets(files: Mapping[str, bytes], where: str, token: str | None = None) -> None:
    """Raise DataError if a file contains `token` or a text that looks like an access token."""
    for name, data in files.items():
        if holds_key(data.decode(errors="replace")) or (token and token.encode() in data):
            raise DataError(f"{where}: {name}: contains text that looks like an access token. Fix: take it out")


def write_files(files: Files, out: str | Path) -> list[Path]:
    """Write `out`/model and `out`/results.

    Returns:
        The new or changed files. Empty if the same submission is written again.

    Raises:
        ConfigError: `out` may not be replaced (`replacing_folder`).
    """
    out = Path(out)
    folders = files._asdict().items()
    new_contents = {f"{folder}/{name}": data for folder, contents in folders for name, data in contents.items()}
    changed_paths = [
        path for name, data in new_contents.items() if not (path := out / name).is_file() or path.read_bytes() != data
    ]
    present = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    if not changed_paths and present == {*new_contents, SUBMISSION.manifest}:
        return []
    with replacing_folder(out, SUBMISSION) as fresh:
        for name, content in new_contents.items():
            target = confine(fresh, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    return changed_paths


KEY: Final = "model-index"


def merge_model_index(text: str, model_name: str, results: Sequence[IndexResult]) -> str:
    """Return the card with `results` in its metadata.

    Entries for the same dataset and task are replaced. Other entries, other metadata and the card's text stay. Comments
    in the metadata are lost, as with the hub client.

    Args:
        text: text of a README.md, which may be empty.
        model_name: name for the entry if the card has no entry yet.

    Raises:
        DataError: the card's metadata cannot be read.
    """
    if len(text) > MAX_FILE:
        raise DataError(f"{README}: has more than {MAX_FILE} characters. Fix: give a model card")
    header = REGEX_YAML_BLOCK.match(text)
    metadata = load_yaml(header[2], README) if header else None
    if not isinstance(metadata, dict | None):
        raise DataError(f"{README}: its metadata is not a mapping. Fix: write `name: value` between the --- lines")
    index = dump_yaml({KEY: _merged_index((metadata or {}).get(KEY), model_name, results)})
    front = _with_entry(header[2], index) if header and metadata else index
    body = text[header.end() :] if header else f"\n{text}" if text else ""
    head = f"---\n{front}---\n"
    return (head.replace("\n", "\r\n") if header and header[1].endswith("\r\n") else head) + body


def _with_entry(front: str, entry: str) -> str:
    """Return the metadata with an entry in place of the one of the same name.

    Other values stay as they are written: `language: no` is Norwegian for the Hub, but PyYAML reads it as `false`.
    """
    root, added = (cast(yaml.MappingNode, yaml.compose(text, Loader=PlainLoader)) for text in (front, entry))
    root.value, root.flow_style = list({pair[0].value: pair for pair in root.value + added.value}.values()), False
    return yaml.serialize(root, Dumper=yaml.SafeDumper, allow_unicode=True, width=1000)


def _merged_index(existing: object, model_name: str, results: Sequence[IndexResult]) -> list[dict[str, Any]]:
    if existing is None:
        return [{"name": model_name, "results": list(results)}]
    index = read_model_index(existing, f"{README}: {KEY}")
    identities = {_identity(result) for result in results}
    merged = [
        {**entry, "results": [result for result in entry["results"] if _identity(result) not in identities]}
        for entry in index
    ]
    merged[0]["results"] += results
    return merged


def _identity(result: object) -> tuple[str, str] | None:
    """Return the dataset repository and leaderboard of a result, or None if the result does not have our format."""
    match result:
        case {"dataset": {"type": str(dataset)}, "task": {"name": str(task)}}:
            return dataset, task
        case _:
            return None
