"""What a built folder says of itself: the card for people, the manifest for programs."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from datasets.info import DatasetInfosDict
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCard, DatasetCardData

from barista_bench import __version__
from barista_bench.builders.barista import CITATION, LICENCE, TASK_CONFIGS
from barista_bench.builders.media import LostExample
from barista_bench.builders.rows import FramesMode
from barista_bench.errors import DataError
from barista_bench.scene_graph import Problem

MANIFEST = "barista_bench.json"
"""Written last into a finished folder; a folder with anything else in it is never overwritten."""

_FRAMES_NOTE = {
    "frozen": "`images` holds what the model sees, in order: frames as JPEG, overlays as PNG.",
    "linked": "`frames` holds `{video, indices}`, the video's path relative to the data root; "
    "`barista_bench.frames.link_frames` turns it into frames that decode on access.",
}
_CONFIG_NOTES = {
    "grounding": "a frame and a phrase, and the boxes of all objects that the phrase names",
    "hand_object": "a frame, and every interaction of a hand with an object: boxes and hand",
    "referring": "a frame and a box, and what a description of that object must say",
    "activity": "frames of one activity, its lettered choices, and the right one",
    "temporal_vqa": "frames of a clip, and a question about what changes in it",
    "relations": "a frame, raw and with numbered masks, and all relations between the numbered objects",
    "graph_frames": "a frame of a video",
    "graph_instances": "one object on one frame: box and mask",
    "graph_attributes": "a range of frames on which an object has an attribute value",
    "graph_relations": "a range of frames on which a relation holds between two objects",
    "graph_activities": "an activity segment",
    "graph_steps": "a process step",
}


@dataclass(frozen=True, slots=True)
class BuiltConfig:
    """One config of the folder. `content_hash` identifies the frozen examples (SHA-256), None for graph tables."""

    name: str
    rows: Mapping[str, int]
    content_hash: str | None = None
    candidates: int | None = None
    skipped: Sequence[str] = ()
    lost: Sequence[LostExample] = ()
    preparations: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, int] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Built:
    """What `build` wrote: `empty` are tasks without an example, `problems` the release's, `source` its origin."""

    folder: Path
    configs: tuple[BuiltConfig, ...]
    empty: tuple[str, ...]
    problems: tuple[Problem, ...]
    source: Mapping[str, Any]


def write_card(folder: Path, built: Built, infos: DatasetInfosDict, frames: FramesMode) -> None:
    data = DatasetCardData(
        license=LICENCE,
        pretty_name="BARISTA",
        task_categories=["image-text-to-text", "visual-question-answering"],
        language=["en"],
        tags=["egocentric", "video", "scene-graph", "benchmark"],
    )
    infos.to_dataset_card_data(data)
    MetadataConfigs(
        {
            config.name: {
                "data_files": [{"split": split, "path": f"{config.name}/{split}-*"} for split in config.rows],
                **({"default": True} if config.name == TASK_CONFIGS[0] else {}),
            }
            for config in built.configs
        }
    ).to_dataset_card_data(data)
    body = resources.files("barista_bench.dataset_cards").joinpath("barista.md").read_text(encoding="utf-8")
    for name, value in _card_values(built, frames).items():
        body = body.replace(f"{{{name}}}", value)
    DatasetCard(f"---\n{data.to_yaml()}\n---\n\n{body}").save(folder / "README.md")


def _card_values(built: Built, frames: FramesMode) -> dict[str, str]:
    tasks = [config for config in built.configs if config.content_hash]
    source = built.source
    return {
        "config_table": "\n".join(f"| `{config.name}` | {_CONFIG_NOTES[config.name]} |" for config in built.configs),
        "frames_note": _FRAMES_NOTE[frames],
        "version": __version__,
        "source": f"`{source['id']}` at `{source['sha']}`" if source["kind"] == "hub" else "a local release folder",
        "protocol": "release",
        "provenance_table": "\n".join(
            f"| `{c.name}` | {sum(c.rows.values())} | {c.candidates} | {len(c.skipped) + len(c.lost)} "
            f"| {', '.join(f'{k}={v}' for k, v in c.sampling.items() if v is not None)} | `{c.content_hash}` |"
            for c in tasks
        ),
        "citation": CITATION,
    }


def write_manifest(folder: Path, built: Built, frames: FramesMode, root: Path) -> None:
    """Last file of all: its presence says that the folder is complete."""
    counts = Counter(problem.severity for problem in built.problems)
    manifest = {
        "version": __version__,
        "protocol": "release",
        "frames": frames,
        "source": dict(built.source),
        "data_root": os.path.relpath(root.resolve(), built.folder.resolve()) if frames == "linked" else None,
        "problems": {"errors": counts["error"], "warnings": counts["warning"]},
        "configs": [dataclasses.asdict(config) for config in built.configs],
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """The manifest of a built folder.

    Raises:
        DataError: the folder is none, or was not finished.
    """
    path = Path(folder) / MANIFEST
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: no built dataset here ({error}). Remedy: run `barista-bench build`") from error
