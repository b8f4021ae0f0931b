"""Check folders that go to the Hub unchanged: built datasets and Spaces, including metrics. All checks are offline.

The Hub checks the card again before it accepts a file (`Pusher.publish`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from huggingface_hub import DatasetCard, RepoCard, SpaceCard
from pydantic import TypeAdapter, ValidationError

from barista_bench.benchmarks.graph_evidence import UNVERIFIED_REMEDY
from barista_bench.core.leaderboards import EVAL_FILE, RULES_FILE
from barista_bench.data.manifest import DEFAULT_BENCHMARK, MANIFEST, PICTURE, read_manifest, rows_of_configs
from barista_bench.data.origin import config_names_of
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.reading import first_complaint
from barista_bench.hub.checks import DatasetCardMetadata, RepoId, SpaceCardMetadata, check_schema
from barista_bench.hub.files import README, refuse_secrets

_NO_TEXT: Final = (".parquet", ".jpg", ".png")
_CHUNK: Final = 2**22
_OVERLAP: Final = 2**10
"""Bytes by which chunks overlap. An access token is shorter."""
METRIC_APP: Final = Path(str(resources.files("barista_bench.metrics"))) / "app.py"
"""The program of every metric's Space. It is added on publication, since it lies outside the metrics' folders."""


@dataclass(frozen=True, slots=True)
class Publication:
    """A checked folder and its target repository.

    Args:
        files: all files to upload, by path in the repository. A metric's program comes from outside the folder.
        outdated: patterns of repository files that are deleted if the folder lacks them.
    """

    folder: Path
    repo_id: str
    repo_type: Literal["dataset", "space"]
    files: Mapping[str, Path]
    outdated: tuple[str, ...] = ()
    space_sdk: str | None = None

    def refuse_secrets(self, token: str | None = None) -> None:
        """Raise DataError if a file holds `token` or another access token. Tables and pictures are not searched."""
        for name, path in self.files.items():
            if not name.endswith(_NO_TEXT):
                with path.open("rb") as file:
                    end = b""
                    while chunk := file.read(_CHUNK):
                        refuse_secrets({name: end + chunk}, str(self.folder), token)
                        end = chunk[-_OVERLAP:]


def check_publication(folder: str | Path, repo: str) -> Publication:
    """Check a folder whose README.md declares a built dataset or a gradio Space.

    Raises:
        ConfigError: `repo` is not a valid repository name, or `evaluate` would not find the metric under this name.
        DataError: the folder cannot be published, or a text in it holds an access token.
    """
    folder = Path(folder)
    try:
        TypeAdapter(RepoId).validate_python(repo)
    except ValidationError as error:
        raise ConfigError(f"--repo: {first_complaint(error)}. Fix: give org/name") from error
    checked_folder = _check_folder(folder, repo, _files(folder))
    checked_folder.refuse_secrets()
    return checked_folder


def _check_folder(folder: Path, repo: str, files: dict[str, Path]) -> Publication:
    if MANIFEST in files:
        manifest = read_manifest(folder)
        configs = config_names_of(str(manifest.get("benchmark", DEFAULT_BENCHMARK)))
        _check_dataset(folder, manifest, files, configs)
        return Publication(folder, repo, "dataset", files, tuple(f"{name}/*" for name in ("frozen", *configs)))
    metadata = _card(SpaceCard, folder, files)
    if "sdk" not in metadata:
        problem = f"is not a built dataset (no {MANIFEST}) and no Space (no sdk in {README})"
        raise DataError(f"{folder}: {problem}. Fix: build it, or give a Space such as metrics/mean_ap")
    card = check_schema(SpaceCardMetadata, metadata, str(folder / README))
    # `evaluate` loads org/name from the file name.py.
    name, script = repo.partition("/")[2], f"{folder.resolve().name}.py"
    if "metric" in card.tags and script in files:
        if script != f"{name}.py":
            raise ConfigError(f"--repo: evaluate would not find {script} in {repo}. Fix: call it {script[:-3]}")
        files.setdefault(METRIC_APP.name, METRIC_APP)
    if card.app_file not in files:
        raise DataError(f"{folder / README}: app_file: no {card.app_file} there. Fix: name the Space's program")
    return Publication(folder, repo, "space", files, space_sdk=card.sdk)


def _files(folder: Path) -> dict[str, Path]:
    """Return all files of the folder by relative path, without Python's caches."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no folder. Fix: give a built dataset, or a Space such as metrics/mean_ap")
    files = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for path in (Path(parent, name) for name in sorted((*folders, *names))):
            name = path.relative_to(folder).as_posix()
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise DataError(f"{folder}: {name} is a link or no plain file. Fix: put the file itself there")
            if path.name.startswith("."):
                raise DataError(f"{folder}: {name} is hidden. Fix: move it away")
            if path.is_file():
                files[name] = path
    return files


def _card(kind: type[RepoCard], folder: Path, files: Mapping[str, Path]) -> dict[str, Any]:
    """Return the metadata of the folder's card, as read by the hub client."""
    path = folder / README
    if README not in files:
        raise DataError(f"{path}: there is no card. Fix: build the dataset again, or write one")
    try:
        return kind.load(path).data.to_dict()
    except (ValueError, yaml.YAMLError) as error:
        raise DataError(f"{path}: {' '.join(str(error).split())[:300]}. Fix: correct the card") from error


def _check_dataset(
    folder: Path, manifest: Mapping[str, Any], files: Mapping[str, Path], configs: tuple[str, ...]
) -> None:
    """Refuse a folder with files that `build` does not write, or with a card that lacks a config or a split's files."""
    if manifest.get("frames") == "linked":
        raise DataError(f"{folder}: its frames are links to videos of this machine. Fix: build with --frames frozen")
    if count := manifest.get("unverified"):
        raise DataError(
            f"{folder}: {count} of its release's items are unverified. Fix: {UNVERIFIED_REMEDY}, and build again"
        )
    for name in files:
        if name.partition("/")[0] not in {MANIFEST, README, EVAL_FILE, RULES_FILE, PICTURE, "frozen", *configs}:
            raise DataError(f"{folder}: {name} is not of a built dataset. Fix: move it away")
    path = folder / README
    card = check_schema(DatasetCardMetadata, _card(DatasetCard, folder, files), str(path))
    source = manifest.get("source")
    terms = source.get("terms") if isinstance(source, dict) else None
    if isinstance(terms, dict) and card.license != terms.get("licence"):
        problem = f"is {card.license!r}, but the data of {terms.get('title')} are under {terms.get('licence')!r}"
        raise DataError(f"{path}: license: {problem}. Fix: publish it under that licence, or not at all")
    built_configs, card_configs = set(rows_of_configs(folder)), {config.config_name for config in card.configs}
    if built_configs != card_configs:
        name = sorted(built_configs ^ card_configs)[0]
        raise DataError(f"{path}: configs: {name!r} is in the card or in the folder only. Fix: build it again")
    for config in card.configs:
        for pattern in (split.path for split in config.data_files):
            if not any(Path(name).match(pattern) for name in files):
                raise DataError(f"{path}: configs.{config.config_name}: no file {pattern}. Fix: build it again")
