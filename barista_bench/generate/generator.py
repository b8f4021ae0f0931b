"""The generator decides each candidate of each video, samples a balanced set, and writes each family's release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tqdm import tqdm

from barista_bench.benchmarks.graph_evidence import graph_evidence_bytes
from barista_bench.benchmarks.release_records import GRAPH_EVIDENCE_FILE
from barista_bench.cluster import RayCluster, cluster_of, map_in_processes
from barista_bench.core.example import content_seed
from barista_bench.core.settings import check_settings
from barista_bench.errors import ConfigError, DataError
from barista_bench.files.owned_folders import check_target, refuse_inside, replacing_folder
from barista_bench.files.text_out import most_frequent_reasons
from barista_bench.files.writing import write_whole
from barista_bench.generate.candidates import DECIDED, Item, QuestionCandidate, Tally, reasons_of
from barista_bench.generate.difficulty import parse_difficulties
from barista_bench.generate.family import Family, SampledItems, check_placeable, family_class
from barista_bench.generate.graph_evidence import graph_rows
from barista_bench.generate.missing import MissingAnnotation, UndecidedCandidates
from barista_bench.generate.review import (
    Retention,
    ReviewedItem,
    apply_review,
    retention_by_subtask,
    review_bytes,
    review_rows,
)
from barista_bench.generate.review_statistics import decided_review
from barista_bench.generate.scene import Scene
from barista_bench.generate.settings import GenerateSettings
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import Domain, load_domain
from barista_bench.scene_graph.domain_draft import lacking_lines
from barista_bench.scene_graph.graph_words import GraphWords, words_of
from barista_bench.scene_graph.release import read_terms, write_terms

SPLITS = ("train", "val", "test")

REVIEW_FILE = "review.jsonl"
MISSING_FILE = "missing.json"
SPARE = 4
"""Number of candidates to keep per requested item: over all videos, and for each video's share of the set."""
MOST_FRAMES = 6
"""Maximum number of frames listed for a missing annotation."""
UNBALANCED = "left out, so that the set stays in balance"
"""The reason for leaving out a decided candidate although the set has room."""


class SubtaskReport(msgspec.Struct, frozen=True):
    """One subtask: numbers of items requested and sampled, of candidates examined, and of refusals by reason."""

    subtask: str
    wanted: int
    sampled: int
    candidates: int
    refused: dict[str, int]


class FamilyReport(msgspec.Struct, frozen=True):
    """One family: its subtasks, the reasons for lost videos by id, and the retention after review."""

    family: str
    seed: int
    subtasks: tuple[SubtaskReport, ...]
    lost_videos: dict[str, str]
    review: tuple[Retention, ...] = ()

    @property
    def sampled(self) -> int:
        return sum(subtask.sampled for subtask in self.subtasks)

    @property
    def shortage(self) -> str:
        """Return the most frequent reasons of all subtasks, as an explanation for a family without questions."""
        reasons = Counter(f"{video_id} is lost: {problem}" for video_id, problem in self.lost_videos.items())
        for row in self.subtasks:
            reasons.update(row.refused)
        return f"{self.family} finds nothing to ask: {most_frequent_reasons(reasons) or 'no candidate'}"


class CandidatePool(NamedTuple):
    """Accepted and refused candidates by family, from one video or from all videos.

    It also has the reasons for lost videos by id, the words of the graphs, and the annotations that undecided
    candidates need.
    """

    candidates: dict[str, list[QuestionCandidate]]
    tallies: dict[str, Tally]
    lost_videos: dict[str, str]
    words: GraphWords
    undecided: UndecidedCandidates


class MissingInputs(msgspec.Struct, frozen=True):
    """Missing lines of the domain file, and missing annotations, that would allow more questions.

    The most useful annotations come first.
    """

    domain_lines: list[str]
    annotations: list[MissingAnnotation]


def generate(
    source: str | Path,
    out: str | Path,
    families: Sequence[str],
    **settings: Any,  # noqa: ANN401  (`check_settings` checks them)
) -> list[FamilyReport]:
    """Write question sets about the videos of a release of scene graphs.

    A family without questions does not affect other families. Its report has no items, and gives the reason.

    Each family's release is in `out/<family>`, which also has `graph_evidence.jsonl`. The proof of each item is in
    `out/<family>.items.jsonl`. The counts of accepted and refused candidates are in `out/<family>.report.json`.
    `out/missing.json` lists additions that would allow more questions. `out/review.jsonl` lists all items for people to
    accept, revise or reject. The same source, domain, review and seed give the same bytes with any number of processes.

    Args:
        source: a folder in the BARISTA release layout.
        out: a new or empty folder.
        families: names of benchmarks in `FAMILIES`.
        settings: other fields of `GenerateSettings`, e.g. `per_subtask=20`, `seed=1`, `difficulty="easy:medium"`.

    Raises:
        ClusterError: the cluster cannot be used.
        ConfigError: `out` is not empty, a family is unknown, the domain file is invalid, or a number is out of range.
        DataError: no family has questions, or, with `strict`, some family has no questions. The error gives the reason.
    """
    chosen = check_settings(GenerateSettings, {**settings, "source": source, "out": out, "families": tuple(families)})
    per_subtask, seed = chosen.per_subtask, chosen.seed
    graph, out = SceneGraph(source), Path(out)
    terms = read_terms(graph.root)
    loaded_domain, families_by_name = families_of(chosen.families, chosen.domain, chosen.difficulty)
    if chosen.splits is not None:
        splits = split_videos(graph.video_ids, parse_fractions(chosen.splits), seed)
        for family in families_by_name.values():
            family.splits = splits
    refuse_inside(out, graph.root)
    check_target(out)
    reviews = decided_review(chosen.review, chosen.lead)
    nodes = cluster_of(chosen.cluster, chosen.num_proc, [graph.root])
    pool = pool_candidates(graph, families_by_name, per_subtask, seed, chosen.num_proc, nodes, chosen.progress)
    reports, rows = [], list[ReviewedItem]()
    with replacing_folder(out) as folder:
        for name, family in families_by_name.items():
            sampled = family.items(pool.candidates[name], per_subtask, seed, chosen.ceiling)
            to_review = review_rows(name, sampled.items, [item_line(item) for item in sampled.items])
            revised = [row.item for row in to_review if reviews.get(row.item, row).verdict == "revise"]
            if revised and not family.has_own_texts:
                raise DataError(
                    f"{revised[0]}: is revised, but its whole set shares its texts. Fix: reject it, or change the "
                    f"words of families.{name} in the domain file"
                )
            items = apply_review(name, sampled.items, to_review, reviews)
            retentions = retention_by_subtask(to_review, reviews) if reviews else []
            reports.append(_report(family, sampled._replace(items=items), pool, per_subtask, seed, retentions))
            write_whole(folder / f"{name}.report.json", msgspec.json.encode(reports[-1]) + b"\n")
            if items:
                (folder / name).mkdir()
                family.write(items, graph, folder / name)
                evidence = graph_evidence_bytes(graph_rows(family.public_items(items), graph, loaded_domain))
                write_whole(folder / name / GRAPH_EVIDENCE_FILE, evidence)
                if terms:
                    write_terms(folder / name, terms)
                write_whole(folder / f"{name}.items.jsonl", b"".join(map(item_line, items)))
            rows += [reviews.get(row.item, row) for row in to_review]
        missing = MissingInputs(lacking_lines(pool.words, loaded_domain), pool.undecided.most_useful())
        write_whole(folder / MISSING_FILE, msgspec.json.format(msgspec.json.encode(missing), indent=1) + b"\n")
        shortages = [report.shortage for report in reports if not report.sampled]
        if len(shortages) == len(reports) or (chosen.strict and shortages):
            remedy = "annotate what is missing" + (", or leave the family out" if len(shortages) < len(reports) else "")
            lines = "\n".join(missing_lines(missing))
            raise DataError(f"{graph.root}: {'; '.join(shortages)}. Fix: {remedy}" + (f"\n{lines}" if lines else ""))
        write_whole(folder / REVIEW_FILE, review_bytes(rows))
    return reports


def families_of(names: Sequence[str], domain: str | Path | None, difficulty: str) -> tuple[Domain, dict[str, Family]]:
    """Return the domain of a file (None: coffee making), and its families by name, limited to the given difficulties.

    Raises ConfigError if a name or level is invalid, or if `names` is empty.
    """
    loaded_domain = load_domain(Path(domain) if domain else None)
    families_by_name = {name: family_class(name)(loaded_domain) for name in names}
    for family in families_by_name.values():
        family.difficulties = parse_difficulties(difficulty)
    if not families_by_name:
        raise ConfigError("families: the list is empty. Fix: name at least one with --families")
    return loaded_domain, families_by_name


def read_missing(folder: Path) -> MissingInputs:
    """Read the `missing.json` that `generate` wrote in a folder."""
    return msgspec.json.decode((folder / MISSING_FILE).read_bytes(), type=MissingInputs)


def missing_lines(missing: MissingInputs) -> list[str]:
    """Return the missing lines and annotations as text, line by line."""
    lines = ["the domain file lacks these lines:"] if missing.domain_lines else []
    lines += [f"  {line}" for line in missing.domain_lines]
    lines += ["annotations that would let more be asked:"] if missing.annotations else []
    for row in missing.annotations:
        subtasks = ", ".join(f"{count} x {name}" for name, count in row.subtasks.items())
        frames = ", ".join(map(str, row.frames[:MOST_FRAMES]))
        more = f" and {len(row.frames) - MOST_FRAMES} more" if len(row.frames) > MOST_FRAMES else ""
        where = f"{row.video_id}: {row.work} (frame{'s' * (len(row.frames) > 1)} {frames}{more})"
        lines.append(f"  {where}: up to {row.items} items ({subtasks})")
    return lines


def pool_candidates(
    graph: SceneGraph,
    families: Mapping[str, Family],
    per_subtask: int,
    seed: int,
    num_proc: int = 1,
    cluster: RayCluster | None = None,
    progress: bool = False,
) -> CandidatePool:
    """Return the candidates of all videos, at most about `2 * SPARE` times the requested number per subtask.

    The memory needed does not depend on the number of videos. All families must have the same domain.
    """
    video_ids = graph.video_ids
    most = max(SPARE, -(-SPARE * per_subtask // max(1, len(video_ids))))
    pool_of_video = partial(_pool_of_video, graph=graph, families=families, most=most, seed=seed)
    pool = CandidatePool(
        {name: [] for name in families}, {name: Tally() for name in families}, {}, GraphWords(), UndecidedCandidates()
    )
    results = cluster.map(pool_of_video, video_ids) if cluster else map_in_processes(pool_of_video, video_ids, num_proc)
    for result in tqdm(results, total=len(video_ids), desc="reading graphs", unit="video", disable=not progress):
        pool.lost_videos.update(result.lost_videos)
        pool.words.merge(result.words)
        pool.undecided.merge(result.undecided)
        for name, candidates in result.candidates.items():
            pool.tallies[name].update(result.tallies[name])
            kept = pool.candidates[name] + candidates
            if max(Counter(candidate.subtask for candidate in kept).values(), default=0) > 2 * SPARE * per_subtask:
                kept = families[name].limit_candidates(kept, SPARE * per_subtask, seed)
            pool.candidates[name] = kept
    return pool


def _pool_of_video(
    video_id: str, graph: SceneGraph, families: Mapping[str, Family], most: int, seed: int
) -> CandidatePool:
    pool = CandidatePool({}, {name: Tally() for name in families}, {}, GraphWords(), UndecidedCandidates())
    try:
        check_placeable(graph, graph[video_id])
        scene = Scene(graph[video_id], next(iter(families.values())).domain)
        for name, family in families.items():
            pool.candidates[name] = family.collect_candidates(scene, pool.tallies[name], most, seed, pool.undecided)
        return pool._replace(words=words_of(graph[video_id]))
    except DataError as error:
        return CandidatePool({}, {}, {video_id: str(error)}, GraphWords(), UndecidedCandidates())


def _report(
    family: Family, sampled: SampledItems, pool: CandidatePool, per_subtask: int, seed: int, retentions: list[Retention]
) -> FamilyReport:
    tally = pool.tallies[family.name]
    rejected = {row.subtask: row.rejected for row in retentions}
    counts = Counter(item.candidate.subtask for item in sampled.items)
    rows = []
    for subtask in family.subtasks:
        reasons = reasons_of(subtask, tally)
        left_out = {
            "its texts give the answer away": sampled.guessable.get(subtask, 0),
            "rejected by review": rejected.get(subtask, 0),
        }
        accounted_for = counts[subtask] + sum(left_out.values())
        unbalanced = reasons.get(DECIDED, 0) - accounted_for
        problem = family.size_problem(subtask, pool.candidates[family.name], per_subtask)
        left_out[problem or UNBALANCED] = unbalanced if accounted_for < per_subtask else 0
        refused = Counter({reason: number for reason, number in reasons.items() if reason != DECIDED})
        refused.update({reason: number for reason, number in left_out.items() if number > 0})
        by_count = dict(refused.most_common())
        rows.append(SubtaskReport(subtask, per_subtask, counts[subtask], sum(reasons.values()), by_count))
    return FamilyReport(family.name, seed, tuple(rows), pool.lost_videos, tuple(retentions))


def item_line(item: Item) -> bytes:
    """Return one item with its proof: the conditions, and the statement about the graph that each choice makes."""
    candidate = item.candidate
    fields: dict[str, Any] = {
        "id": item.id,
        "subtask": candidate.subtask,
        "video_id": candidate.video_id,
        "span": candidate.span,
        "frames": candidate.frames,
        "objects": candidate.objects,
        "question": candidate.question,
        "form": candidate.form,
        "difficulty": candidate.difficulty,
        "choices": [
            {"text": choice.text, "statement": choice.statement, "origin": candidate.origins.get(choice.text, "")}
            for choice in item.choices or candidate.right
        ],
        "correct": item.correct if item.choices else tuple(range(len(candidate.right))),
        "given": candidate.given,
        "extra": candidate.extra,
    }
    return msgspec.json.encode(fields) + b"\n"


def parse_fractions(text: str) -> tuple[float, ...]:
    """Return the fractions of the splits. Raises ConfigError unless `text` has three that add up to 1.

    >>> parse_fractions("0.6,0.2,0.2")
    (0.6, 0.2, 0.2)
    """
    try:
        fractions = tuple(float(part) for part in text.split(","))
    except ValueError:
        fractions = ()
    if len(fractions) != len(SPLITS) or not all(0 <= part <= 1 for part in fractions) or not isclose(sum(fractions), 1):
        raise ConfigError(
            f"splits: {text!r:.80} is not three fractions that add up to 1. Fix: give the fractions of train, val and "
            "test, such as 0.6,0.2,0.2"
        )
    return fractions


def split_videos(video_ids: Sequence[str], fractions: Sequence[float], seed: int) -> dict[str, str]:
    """Return the split of each video. The split depends on the ids and the seed, but not on the order of the ids.

    Each split with a fraction has a video. Raises ConfigError if there are too few videos.
    """
    counts = {name: 0 for name, fraction in zip(SPLITS, fractions, strict=True) if fraction}
    if len(video_ids) < len(counts):
        raise ConfigError(f"splits: {len(video_ids)} videos do not fill {', '.join(counts)}. Fix: leave splits out")
    by_name = dict(zip(SPLITS, fractions, strict=True))
    splits = {}
    for video_id in sorted(video_ids, key=lambda name: (content_seed("split", seed, name), name)):
        # The next video goes where it keeps the fractions nearest, but first to a split without a video.
        name = max(counts, key=lambda split: (not counts[split], by_name[split] / (2 * counts[split] + 1)))
        splits[video_id] = name
        counts[name] += 1
    return splits
