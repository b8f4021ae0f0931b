"""Reads and checks a ViSTa release (arXiv 2411.13211): problem sets, their videos, and `metadata.csv`.

    metadata.csv                                     a row for each video, set and fitting description
    tasks/<environment>/<level>/<type>/<id>.yaml     descriptions, and texts for a generative model
    tasks/<environment>/<level>/<type>/<id>_data.json   which video fits which description

The two files of a set define the questions. The table is only compared with these files. Names that start with `_` are
drafts of the release's authors and are skipped. A bad entry is left out, and a bad file loses its set. `problems` lists
both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from barista_bench.benchmarks.graph_evidence import read_graph_evidence
from barista_bench.benchmarks.release_records import (
    AnnotationRelease,
    PlacedRecord,
    convert_record,
    elements,
    field_path,
    media_folder,
    no_records_error,
    read_each,
    read_values,
)
from barista_bench.benchmarks.vista.release_files import (
    ENVIRONMENTS,
    FIRST_LEVEL,
    TYPES,
    LabelledVideo,
    MetadataRow,
    ProblemSet,
    SetMetadata,
    VideoEntry,
    read_description,
    read_rows,
)
from barista_bench.errors import DataError, RecordError
from barista_bench.files.paths import confine, name_problem
from barista_bench.scene_graph import Problem, ProblemLog

TASKS_FOLDER, TABLE, ENTRIES_END = "tasks", "metadata.csv", "_data.json"
MULTILABEL = frozenset({"minecraft/foundation/multilabel"})
"""The sets whose videos may fit several descriptions. In other sets, a label with a comma is a mistake."""

MAX_SETS = 100_000
MAX_VIDEOS = 100_000
"""Maximum number of videos per set."""
_LABEL = re.compile(r"\w[\w.\-]{0,99}")
_LEVEL = re.compile(r"level_([1-9])")
_MAX_TEXT = 20_000
_REFETCH = "compare with the release, or fetch it again"


@dataclass(slots=True)
class VistaRelease(AnnotationRelease):
    """A release after reading and checking.

    `root` is the folder with `tasks`. Videos are at `<environment>/<path>` below `videos`.

    Args:
        sets: problem sets by id, sorted by id.
        rows: rows of `metadata.csv` by the set's id; empty without such a table.
        unused_files: files below `tasks` that belong to no set, e.g. drafts (`_template.yaml`).
    """

    sets: Mapping[str, ProblemSet]
    rows: Mapping[str, Sequence[MetadataRow]]
    unused_files: Sequence[str]


def open_release(root: Path, videos: Path | None = None) -> VistaRelease:
    """Read a release. `root` is its folder `data`, or the parent of that folder.

    Raises DataError if the folder has no release, or if the release has no usable problem set.
    """
    folder = next((path for path in (root, root / "data") if (path / TASKS_FOLDER).is_dir()), None)
    if folder is None:
        raise DataError(f"{root}: no folder {TASKS_FOLDER}/ in it. Fix: name the release's folder `data`")
    names, unused_files = _description_files(folder / TASKS_FOLDER)
    sets: dict[str, ProblemSet] = {}
    problems: list[Problem] = []
    for name in names:
        set_id = name.removesuffix(".yaml")
        log, entries_log = (ProblemLog(f"{TASKS_FOLDER}/{file}") for file in (name, set_id + ENTRIES_END))
        try:
            sets[set_id] = _read_set(folder, set_id, log, entries_log)
        except RecordError as broken:
            log.error(broken.key, f"{broken.what}; the set is left out", broken.remedy)
        except DataError as error:
            log.error("", f"{_fault(error, folder)}; the set is left out", _REFETCH)
        problems += (*log, *entries_log)
    if not sets:
        raise no_records_error(folder, f"problem set (of {len(names)})", problems)
    rows, table_problems = _read_table(folder)
    if rows:
        for problem_set in sets.values():
            table_problems += _differences(problem_set, rows.get(problem_set.set_id, ()))
        for set_id in sorted(rows.keys() - {name.removesuffix(".yaml") for name in names}):
            what = f"its {len(rows[set_id])} rows name a set without files; they are not asked"
            table_problems.append(Problem("error", TABLE, set_id[:200], what, _REFETCH))
    graph_rows = read_graph_evidence(folder, table_problems)
    all_problems, media = (*problems, *table_problems), media_folder(folder, videos)
    return VistaRelease(folder, media, all_problems, sets, rows, unused_files, graph_rows=graph_rows)


def _description_files(tasks: Path) -> tuple[list[str], tuple[str, ...]]:
    """Return the sorted description files of sets below `tasks`, and the files that belong to no set."""
    names, others = [], []
    for path in sorted(path for path in tasks.rglob("*") if not path.is_dir()):
        relative = path.relative_to(tasks)
        is_draft = any(part.startswith("_") for part in relative.parts)
        if not is_draft and path.suffix == ".yaml":
            names.append(relative.as_posix())
        elif is_draft or not path.name.endswith(ENTRIES_END):
            others.append(relative.as_posix())
        if len(names) > MAX_SETS:
            raise DataError(f"{tasks}: more than {MAX_SETS} problem sets. Fix: it is not a release of ViSTa")
    return names, tuple(others)


def _read_set(root: Path, set_id: str, log: ProblemLog, entries_log: ProblemLog) -> ProblemSet:
    """Return the problem set of an id, and log faults that do not matter. Raises RecordError if the set is unusable."""
    parts = set_id.split("/")
    level = _level_of(parts[1]) if len(parts) > 2 else None
    if level is None or parts[0] not in ENVIRONMENTS:
        raise RecordError("", "lies in no environment and level that are known", "move or rename it")
    description_file = read_description(confine(root, log.file))
    descriptions, release_type = _descriptions(description_file.label_prompts, log), parts[-2]
    videos = _set_videos(confine(root, entries_log.file), descriptions, set_id, entries_log)
    if not descriptions or not videos:
        raise RecordError("", "is left with no description or no video", _REFETCH)
    if release_type not in TYPES:
        log.warning("", f"is of the unknown type {release_type[:100]!r}, counted as `other`", "rename its folder")
    if description_file.example_gpt is None:
        log.warning("example_gpt", "is absent: generative models are asked without an example", "none is needed")
    metadata = _metadata(description_file.metadata, log)
    prefix_lengths = {each.description: each.shared_prefix for each in metadata.prefix_lens}
    problem_set = ProblemSet(
        set_id=set_id,
        environment=ENVIRONMENTS[parts[0]],
        level=level,
        type=TYPES.get(release_type, "other"),
        release_level=parts[1],
        release_type=release_type,
        descriptions=descriptions,
        prompt=description_file.prompt_gpt,
        example=description_file.example_gpt,
        videos=tuple(videos.values()),
        concepts={kind: tuple(names) for kind, names in metadata.concepts.items()},
        shared_prefix={label: prefix_lengths[text] for label, text in descriptions.items() if text in prefix_lengths},
        slicing_consistent=metadata.is_consistent_wrt_slicing,
    )
    _warn_of_oddities(problem_set, log)
    return problem_set


def _level_of(folder: str) -> int | None:
    """Return the level that a folder of the release stands for; None for other folders.

    >>> _level_of("extrapyramidal"), _level_of("level_8"), _level_of("level_x")
    (1, 8, None)
    """
    match = _LEVEL.fullmatch(folder)
    return 1 if folder in FIRST_LEVEL else int(match[1]) if match else None


def _descriptions(prompts: Mapping[str, str], log: ProblemLog) -> dict[str, str]:
    descriptions = {}
    for label, text in prompts.items():
        if not _LABEL.fullmatch(label) or len(text) > _MAX_TEXT or not text.strip():
            log.error(f"label_prompts.{label[:100]}", "is not a label with a description; it is left out", "correct it")
        else:
            descriptions[label] = text.strip()
    return descriptions


def _set_videos(path: Path, descriptions: Mapping[str, str], set_id: str, log: ProblemLog) -> dict[str, LabelledVideo]:
    """Return the usable entries of a set by video id."""
    videos: dict[str, LabelledVideo] = {}
    entries = [entry for placed in read_values(path, log) for entry in elements(placed.value, log)]
    if len(entries) > MAX_VIDEOS:
        log.error("", f"has {len(entries)} videos; videos after {MAX_VIDEOS} are left out", _REFETCH)
    read_entry = partial(_labelled_video, descriptions, set_id)
    for placed, video in read_each(entries[:MAX_VIDEOS], read_entry, log, "the video is left out"):
        first = videos.setdefault(video.video_id, video)
        if first is not video:
            is_same = set(first.labels) == set(video.labels)
            what = f"appears in this set twice, with {'the same label' if is_same else 'different labels'}"
            log.add(
                "warning" if is_same else "error", f"{placed.key}.path", f"{what}; the first entry counts", "remove one"
            )
    return videos


def _labelled_video(descriptions: Mapping[str, str], set_id: str, placed: PlacedRecord) -> LabelledVideo:
    """Return the video of an entry. Raises RecordError."""
    entry = convert_record(placed.value, VideoEntry)
    fault = next((what for part in entry.path.split("/") if (what := name_problem(part))), None)
    if fault:
        raise RecordError("path", f"is not a path below the videos ({fault})", "correct it")
    labels = tuple(dict.fromkeys(entry.label.split(","))) if set_id in MULTILABEL else (entry.label,)
    unknown = next((label for label in labels if label not in descriptions), None)
    if unknown is not None:
        raise RecordError("label", f"{unknown[:100]!r} has no description", "correct it")
    return LabelledVideo(f"{set_id.partition('/')[0]}/{entry.path}", labels, placed.row)


def _metadata(content: object, log: ProblemLog) -> SetMetadata:
    if content is None:
        log.warning("metadata", "is absent: analysis has no concepts of this set", "none is needed")
        return SetMetadata()
    try:
        return convert_record(content, SetMetadata, strict=False)
    except RecordError as broken:
        log.warning(field_path("metadata", broken.key), f"{broken.what}; it is passed over", broken.remedy)
        return SetMetadata()


def _warn_of_oddities(problem_set: ProblemSet, log: ProblemLog) -> None:
    """Warn of oddities that lose no data but change scores."""
    used_labels = {label for video in problem_set.videos for label in video.labels}
    unused = [label for label in problem_set.descriptions if label not in used_labels]
    if unused:
        log.warning("label_prompts", f"no video fits {', '.join(unused[:5])}", "add one, or remove the description")
    texts = Counter(problem_set.descriptions.values())
    if len(texts) < len(problem_set.descriptions):
        log.warning("label_prompts", "two labels have one description: no model can tell them apart", "correct one")
    if len(problem_set.videos) == 1:
        log.warning("", "holds one video, whose scores cannot be standardised: the set is not scored", "add videos")


def _read_table(root: Path) -> tuple[dict[str, list[MetadataRow]], list[Problem]]:
    """Return the table's rows by set id. If the table is missing or broken, only the comparison is lost."""
    rows: dict[str, list[MetadataRow]] = {}
    try:
        for row in read_rows(root / TABLE):
            set_id = row.problem_set.removeprefix(f"{TASKS_FOLDER}/").removesuffix(".yaml")
            rows.setdefault(set_id, []).append(row)
    except DataError as error:
        return {}, [Problem("warning", TABLE, "", f"{_fault(error, root)}; nothing was compared with it", "fetch it")]
    return rows, []


def _differences(problem_set: ProblemSet, rows: Sequence[MetadataRow]) -> Iterator[Problem]:
    """Yield a problem for each point on which the table's rows of a set differ from the set's files."""

    def warning(what: str, remedy: str = _REFETCH) -> Problem:
        return Problem("warning", TABLE, problem_set.set_id, what, remedy)

    videos, descriptions = problem_set.videos, problem_set.descriptions
    entries = Counter((video.video_id, descriptions[label]) for video in videos for label in video.labels)
    listed = Counter((row.video, row.description.strip()) for row in rows)
    for what, differing in (("has no row for", entries - listed), ("has a row that no entry has,", listed - entries)):
        if differing:
            (video_id, text), count = next(iter(differing)), differing.total()
            more = f", and {count - 1} more" if count > 1 else ""
            yield warning(f"{what} {video_id!r} with {text[:60]!r}{more}; the set's own files count")
    several_fitting = sum(len(video.labels) > 1 for video in videos)
    if several_fitting:
        what = f"has {len(rows)} rows for {len(videos)} videos, of which {several_fitting} fit several descriptions"
        yield warning(f"{what}; a right answer names any of them", "none is needed")
    for name, folder_value, row_values in (
        ("environment", problem_set.environment, {ENVIRONMENTS.get(row.environment, row.environment) for row in rows}),
        ("level", problem_set.level, {row.level for row in rows}),
        ("problem_set_type", problem_set.release_type, {row.problem_set_type for row in rows}),
    ):
        if row_values - {folder_value}:
            values = ", ".join(sorted(str(value)[:50] for value in row_values)[:5])
            yield warning(f"says {name} {values}, the folder {folder_value}; the folder counts")


def _fault(error: DataError, root: Path) -> str:
    """Return the fault without its remedy and without the root, because a problem states both itself."""
    return str(error).partition(". Fix:")[0].replace(f"{root}/", "")
