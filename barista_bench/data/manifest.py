"""Describe a built folder: `barista_bench.json` is for programs, README.md (the dataset card) for people."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from barista_bench.benchmarks import Benchmark, get_benchmark, get_task
from barista_bench.benchmarks.graph_evidence import UNVERIFIED
from barista_bench.core.options import rules_of
from barista_bench.core.prompt import fill
from barista_bench.data.rows import FramesMode, row_features
from barista_bench.data.tables import GRAPH_TABLES, table_features
from barista_bench.errors import DataError
from barista_bench.files.owned_folders import DATASET, MAX_MANIFEST
from barista_bench.files.reading import read_bounded_json
from barista_bench.scene_graph import Problem
from barista_bench.scene_graph.release import Terms
from barista_bench.version import __version__

if TYPE_CHECKING:  # `datasets` is slow to load, and reading a manifest does not need it
    from datasets.info import DatasetInfosDict
    from huggingface_hub import DatasetCard

DEFAULT_BENCHMARK = "barista"
"""The default benchmark of commands."""
MANIFEST = DATASET.manifest
"""The file that is written last into a finished folder. It lists all files of the folder."""
PICTURE = "example.jpg"
"""The picture on the card of a folder of frozen frames."""
_CARDS = "barista_bench.dataset_cards"
"""The package with the texts of cards: a body shared by all cards, and a text per benchmark in `about/`."""
_SIZES = {10**3: "n<1K", 10**4: "1K<n<10K", 10**5: "10K<n<100K", 10**6: "100K<n<1M", 10**7: "1M<n<10M"}
_FRAMES_NOTE = {
    "frozen": """\
`images` contains the images that a model sees, in order: frames as JPEG, overlays as PNG. `messages` is the prompt: a
chat for `apply_chat_template` of transformers, whose parts `{"type": "image"}` mark the places of the images, in order.
It follows the set's protocol with the default options; for a task with several steps it is the first question. `answer`
is the reference as a model would write it (for several steps, to the last question; null if it is hidden). Both write
boxes in the format of `box_format`: `xyxy/1000` is `[x0, y0, x1, y1]`, integers from 0 to 1000 over the width or height
of the image. `prompt_set` names the prompts of `barista_bench`, which are not part of the SHA-256 below.""",
    "linked": """\
`frames` contains `{video, indices}`, with the video's path relative to the data root. After `barista_bench.register()`,
or with `barista_bench.media.frames.link_frames`, it contains frames that are decoded on access.""",
}
_TABLE_NOTES = {
    "graph_frames": "a frame of a video",
    "graph_instances": "one object on one frame: box and mask",
    "graph_attributes": "a range of frames on which an object has an attribute value",
    "graph_relations": "a range of frames on which a relation holds between two objects",
    "graph_activities": "an activity segment",
    "graph_steps": "a process step",
}


@dataclass(frozen=True, slots=True)
class LostExample:
    """An example whose frames or images cannot be made."""

    example_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class BuiltConfig:
    """One config of the folder. `content_hash` is the SHA-256 of the frozen examples; None for graph tables."""

    name: str
    rows: Mapping[str, int]
    content_hash: str | None = None
    candidates: int | None = None
    skipped: Sequence[str] = ()
    lost: Sequence[LostExample] = ()
    groups: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The number of examples by value, for each metadata key by which results are broken down."""
    labels: Mapping[str, int] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BuiltDataset:
    """The output of `build`. `empty` are configs without rows. `problems` and `source` describe the release.

    `lost_videos` has the ids of videos that cannot be used, or whose examples were all lost.
    """

    folder: Path
    configs: tuple[BuiltConfig, ...]
    empty: tuple[str, ...]
    problems: tuple[Problem, ...]
    source: Mapping[str, Any]
    protocol: str = "release"
    benchmark: str = "barista"
    lost_videos: tuple[str, ...] = ()

    @property
    def unverified(self) -> int:
        """Return the number of items of the release that a model wrote and that people have not accepted yet."""
        return sum(problem.what == UNVERIFIED for problem in self.problems)


def write_manifest(folder: Path, built: BuiltDataset, frames: FramesMode, root: Path) -> None:
    """Write the manifest as the last file, which shows that the folder is complete."""
    counts = Counter(problem.severity for problem in built.problems)
    manifest = {
        "version": __version__,
        "benchmark": built.benchmark,
        "protocol": built.protocol,
        "frames": frames,
        "source": dict(built.source),
        "data_root": os.path.relpath(root.resolve(), built.folder.resolve()) if frames == "linked" else None,
        "problems": {"errors": counts["error"], "warnings": counts["warning"], "lost_videos": len(built.lost_videos)},
        "unverified": built.unverified,
        "configs": [dataclasses.asdict(config) for config in built.configs],
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """Read the manifest of a built folder. Raises DataError if `build` did not make or complete the folder."""
    path = Path(folder) / MANIFEST
    remedy = "run `barista-bench build`"
    manifest = read_bounded_json(path, MAX_MANIFEST, what="no built dataset here", remedy=remedy)
    if not isinstance(manifest, dict):
        raise DataError(f"{path}: is {type(manifest).__name__}, not an object. Fix: {remedy}")
    return manifest


class _ConfigRows(msgspec.Struct):
    name: str
    rows: dict[str, int]


def rows_of_configs(folder: str | Path) -> dict[str, dict[str, int]]:
    """Return the number of rows by config and split, from the manifest. Raises DataError as `read_manifest` does."""
    try:
        configs = msgspec.convert(read_manifest(folder).get("configs"), list[_ConfigRows])
    except msgspec.ValidationError as error:
        raise DataError(f"{Path(folder) / MANIFEST}: configs: {error}. Fix: run `barista-bench build`") from error
    return {config.name: config.rows for config in configs}


def write_card(folder: Path, built: BuiltDataset, infos: DatasetInfosDict, frames: FramesMode) -> None:
    """Write README.md of a built folder, with counts and hashes of the folder's content."""
    source = built.source
    origin = f"`{source['id']}` at `{source['sha']}`" if source["kind"] == "hub" else "a local release folder"
    rows = [
        f"| `{c.name}` | {sum(c.rows.values())} | {c.candidates} | {len(c.skipped) + len(c.lost)} "
        f"| {sampling_text(c.sampling)} | `{c.content_hash}` |"
        for c in built.configs
        if c.content_hash
    ]
    table = [
        "| config | examples | of candidates | skipped | sampling | SHA-256 of the frozen lines |",
        "|---" * 6 + "|",
    ]
    terms = msgspec.convert(source["terms"], Terms) if "terms" in source else None
    credit = f" The annotations come from [{terms.title}]({terms.homepage}). {terms.licence_note}" if terms else ""
    card = _card(
        get_benchmark(built.benchmark),
        {config.name: tuple(config.rows) for config in built.configs},
        infos,
        frames,
        examples=sum(sum(config.rows.values()) for config in built.configs if config.content_hash),
        made=f"By `barista_bench` {__version__} from {origin}, protocol `{built.protocol}`.{credit}",
        terms=terms,
        provenance_table="\n".join([*table, *rows]),
    )
    card.save(folder / "README.md")


def published_card(name: str) -> DatasetCard:
    """Return the card of a benchmark's published sets, made only from the tasks and `dataset_cards/<name>.md`."""
    from datasets.info import DatasetInfo, DatasetInfosDict

    benchmark = get_benchmark(name)
    tables = tuple(GRAPH_TABLES) if benchmark.open_release is None else ()
    infos = DatasetInfosDict()
    for config in (*benchmark.task_names, *tables):
        is_task = config in benchmark.task_names
        features = row_features(get_task(name, config), "frozen") if is_task else table_features(config)
        infos[config] = DatasetInfo(features=features, config_name=config)
    rows = [
        f"| `{task.name}` | {task.sampling.limit or 'all'} | {sampling_text(dataclasses.asdict(task.sampling))} |"
        for task in benchmark.tasks
    ]
    source = "ramblr/BARISTA" if benchmark.open_release is None else "ANNOTATIONS"
    command = "barista-bench build" + ("" if name == DEFAULT_BENCHMARK else f" --benchmark {name}")
    return _card(
        benchmark,
        dict.fromkeys(infos, benchmark.splits),
        infos,
        "frozen",
        made=f"By `{command} --source {source}`, with the published parameters and protocol `release`. "
        "The card of a built folder counts its examples and names the commit and the hash of each set.",
        provenance_table="\n".join(["| config | maximum number of examples | sampling |", "|---|---|---|", *rows]),
    )


def sampling_text(sampling: Mapping[str, Any]) -> str:
    """Return the values of a set's sampling, without values that impose no limit."""
    return ", ".join(f"{key}={value}" for key, value in sampling.items() if value is not None)


def protocol_table(benchmark: Benchmark) -> str:
    """Return, as a Markdown table, the rules on which release and paper differ, for all tasks; empty if there
    are none.
    """
    rows = [
        f"| `{task.name}` | {rule.rule} | {rule.release} | {rule.paper} | {rule.changes} |"
        for task in benchmark.tasks
        for rule in rules_of(task.options)
    ]
    if not rows:
        return "There is none here."
    return "\n".join(["| config | rule | release | paper | changes |", "|---" * 5 + "|", *rows])


def _card(
    benchmark: Benchmark,
    splits: Mapping[str, Sequence[str]],
    infos: DatasetInfosDict,
    frames: FramesMode,
    examples: int | None = None,
    terms: Terms | None = None,
    **values: str,
) -> DatasetCard:
    """Return the metadata and the body of a card.

    Args:
        splits: splits of each config.
        examples: number of examples; None gives the size of the published benchmark.
        terms: terms of the data, if the data are not the benchmark's.
        values: known facts about how the set was made.
    """
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCard, DatasetCardData

    header, intro, sections = _describe_benchmark(benchmark)
    if examples is not None:
        header["size_categories"] = [next((name for limit, name in _SIZES.items() if examples < limit), "n>10M")]
        if frames == "frozen" and examples:
            intro += f"\n\n![An example: the images that a model sees, and the true boxes]({PICTURE})"
    data = DatasetCardData(
        license=terms.licence if terms else benchmark.licence,
        **header,
        pretty_name=benchmark.title,
        task_categories=["image-text-to-text", "visual-question-answering"],
        language=["en"],
        tags=["egocentric", "video", *(["scene-graph"] if benchmark.open_release is None else []), "benchmark"],
    )
    infos.to_dataset_card_data(data)
    MetadataConfigs(
        {
            name: {
                "data_files": [{"split": split, "path": f"{name}/{split}-*"} for split in names],
                **({"default": True} if name == benchmark.task_names[0] else {}),
            }
            for name, names in splits.items()
        }
    ).to_dataset_card_data(data)
    notes = {task.name: task.row_note for task in benchmark.tasks} | _TABLE_NOTES
    values |= {
        "config_table": "\n".join(f"| `{name}` | {notes[name]} |" for name in splits),
        "frames_note": _FRAMES_NOTE[frames],
        "protocol_table": protocol_table(benchmark),
        "citation": f"{benchmark.citation}\n\n{terms.citation}" if terms else benchmark.citation,
        "title": benchmark.title,
        "name": benchmark.name,
        "first_task": benchmark.task_names[0],
        "intro": intro,
        "sections": sections,
    }
    body = resources.files(_CARDS).joinpath("body.md").read_text(encoding="utf-8")
    return DatasetCard(f"---\n{data.to_yaml()}\n---\n\n{fill(body, values)}")


def _describe_benchmark(benchmark: Benchmark) -> tuple[dict[str, Any], str, str]:
    """Return a card's part on one benchmark: metadata, introduction and sections. A plug-in's part is its
    description.
    """
    about = resources.files(_CARDS).joinpath(f"about/{benchmark.name}.md")
    if not about.is_file():
        return {}, benchmark.description, ""
    _, header, text = about.read_text(encoding="utf-8").split("---\n", 2)
    intro, _, sections = text.partition("\n## ")
    return yaml.safe_load(header), intro.strip(), f"## {sections.strip()}"
