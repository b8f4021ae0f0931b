"""How far two annotators of one video agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import cohen_kappa_score

from barista_bench.annotate.project import VideoFiles
from barista_bench.annotate.propagation import is_empty
from barista_bench.annotate.records import (
    AcceptedFile,
    Layers,
    ProjectRecord,
    Range,
    SegmentsFile,
)
from barista_bench.errors import DataError
from barista_bench.metrics.region_boundary.scoring import boundary_f
from barista_bench.scene_graph.masks import Rle, mask_ious

_SAME = 0.5
_NONE = "none"


class AnnotatorAgreement(ProjectRecord, frozen=True, kw_only=True):
    """Null where there is nothing to compare.

    Args:
        keyframes: annotated by both.
        mask_iou, boundary_f: means over the masks on these; an object that one of them alone has drawn counts 0.
        attribute_kappa, relation_kappa: Cohen's, over what either says of objects that both have, frame by frame.
        segment_iou: of the frames of contact.
    """

    keyframes: int
    mask_iou: float | None
    boundary_f: float | None
    attribute_kappa: float | None
    relation_kappa: float | None
    segment_iou: float | None


def agreement(first: VideoFiles, second: VideoFiles) -> AnnotatorAgreement:
    """Two people's decisions about one video. Their objects are paired by masks and categories.

    Raises:
        DataError: the videos are not the same file, or a file of either cannot be read.
    """
    if first.source.sha256 != second.source.sha256:
        remedy = "start both projects from the same files"
        raise DataError(f"{first.video_id}: the second annotator's video is another file. Remedy: {remedy}")
    mine, theirs = _masks(first.accepted()), _masks(second.accepted())
    shared = sorted(mine.keys() & theirs.keys())
    pairs = _paired([(mine[frame], theirs[frame]) for frame in shared])
    ious: list[float] = []
    boundaries: list[float] = []
    for frame in shared:
        for name, other in _both(mine[frame], theirs[frame], pairs):
            rles = mine[frame].get(name), theirs[frame].get(other)
            ious.append(float(mask_ious([rles[0]], [rles[1]])[0, 0]) if rles[0] and rles[1] else 0.0)
            codes = [msgspec.to_builtins(rle) for rle in rles if rle]
            boundaries.append(float(boundary_f(*codes)) if len(codes) == 2 else 0.0)
    layers = first.accepted_layers(), second.accepted_layers()
    return AnnotatorAgreement(
        keyframes=len(shared),
        mask_iou=_mean(ious),
        boundary_f=_mean(boundaries),
        attribute_kappa=_kappa([_attributes(layers[0], pairs), _attributes(layers[1], None)], first.source.frames),
        relation_kappa=_kappa([_relations(layers[0], pairs), _relations(layers[1], None)], first.source.frames),
        segment_iou=_segment_iou(first, second),
    )


def _masks(accepted: AcceptedFile) -> dict[int, dict[str, Rle]]:
    """Masks that are not empty by keyframe and object, each object named with its category."""
    return {
        keyframe.frame: {
            f"{accepted.objects[name]}\0{name}": mask.rle
            for name, mask in keyframe.masks.items()
            if not is_empty(mask.rle)
        }
        for keyframe in accepted.keyframes
    }


def _paired(frames: Sequence[tuple[Mapping[str, Rle], Mapping[str, Rle]]]) -> dict[str, str]:
    """Objects of the first annotator and of the second that are one, by the sum of their masks' overlaps."""
    names, others = (sorted({name for frame in frames for name in frame[side]}) for side in (0, 1))
    shared = np.zeros((len(names), len(others)))
    for mine, theirs in frames:
        rows, columns = [name in mine for name in names], [name in theirs for name in others]
        ious = mask_ious([mine[name] for name in sorted(mine)], [theirs[name] for name in sorted(theirs)])
        shared[np.ix_(rows, columns)] += np.where(ious >= _SAME, ious, 0)
    for row, name in enumerate(names):
        for column, other in enumerate(others):
            if name.split("\0")[0] != other.split("\0")[0]:
                shared[row, column] = 0
    pairs = zip(*linear_sum_assignment(shared, maximize=True), strict=True)
    return {names[row]: others[column] for row, column in pairs if shared[row, column] > 0}


def _both(mine: Mapping[str, Rle], theirs: Mapping[str, Rle], pairs: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Each object of a frame once, under both names."""
    taken = {pairs[name] for name in mine if name in pairs}
    back = {other: name for name, other in pairs.items()}
    yield from ((name, pairs.get(name, "")) for name in sorted(mine))
    yield from ((back.get(other, ""), other) for other in sorted(theirs) if other not in taken)


def _plain(pairs: Mapping[str, str] | None) -> dict[str, str] | None:
    return None if pairs is None else {name.split("\0")[1]: other.split("\0")[1] for name, other in pairs.items()}


def _attributes(layers: Layers, pairs: Mapping[str, str] | None) -> dict[tuple[str, ...], list[tuple[str, Range]]]:
    """Values and their ranges by object and type, with the second annotator's ids; objects that are not paired go."""
    names = _plain(pairs)
    rows: dict[tuple[str, ...], list[tuple[str, Range]]] = {}
    for entry in layers.attributes:
        name = entry.object if names is None else names.get(entry.object)
        if name is not None:
            rows.setdefault((name, entry.type), []).extend((entry.value, span) for span in entry.ranges)
    return rows


def _relations(layers: Layers, pairs: Mapping[str, str] | None) -> dict[tuple[str, ...], list[tuple[str, Range]]]:
    names = _plain(pairs)
    rows: dict[tuple[str, ...], list[tuple[str, Range]]] = {}
    for entry in layers.relations:
        ends = [name if names is None else names.get(name) for name in (entry.source, entry.target)]
        if ends[0] is not None and ends[1] is not None:
            key = (ends[0], ends[1], entry.type)
            rows.setdefault(key, []).extend((entry.value, span) for span in entry.ranges)
    return rows


def _kappa(sides: Sequence[dict[tuple[str, ...], list[tuple[str, Range]]]], frames: int) -> float | None:
    """Over all frames and all keys that either side has; several values at once are one label."""
    keys = sorted(sides[0].keys() | sides[1].keys())
    labels = [[label for key in keys for label in _labels(side.get(key, []), frames)] for side in sides]
    if len(set(labels[0]) | set(labels[1])) < 2:
        return None
    return round(float(cohen_kappa_score(*labels)), 6)


def _labels(entries: Iterable[tuple[str, Range]], frames: int) -> list[str]:
    values: list[set[str]] = [set() for _ in range(frames)]
    for value, (start, end) in entries:
        for frame in range(start, min(end, frames)):
            values[frame].add(value)
    return ["|".join(sorted(held)) or _NONE for held in values]


def _segment_iou(first: VideoFiles, second: VideoFiles) -> float | None:
    if not (first.has(SegmentsFile) and second.has(SegmentsFile)):
        return None
    mine, theirs = ({frame for span in video.segments() for frame in range(*span)} for video in (first, second))
    return round(len(mine & theirs) / len(mine | theirs), 6) if mine | theirs else None


def _mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 6) if values else None
