"""How far two annotators of one video agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import cohen_kappa_score

from barista_bench.annotate.project import VideoFiles
from barista_bench.annotate.propagation import is_empty
from barista_bench.annotate.records import (
    AcceptedFile,
    LayerAttribute,
    LayerRelation,
    ProjectRecord,
    Range,
    SegmentsFile,
)
from barista_bench.errors import DataError
from barista_bench.metrics.region_boundary.scoring import boundary_f
from barista_bench.scene_graph.masks import Rle, mask_ious

_SAME = 0.5
_NONE = "none"
CategorizedObject: TypeAlias = tuple[str, str]
"""Category and id."""


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
    names = {name: other for (_, name), (_, other) in pairs.items()}
    ious: list[float] = []
    boundaries: list[float] = []
    for frame in shared:
        both = [(rle, theirs[frame][pairs[key]]) for key, rle in mine[frame].items() if pairs.get(key) in theirs[frame]]
        alone = [0.0] * (len(mine[frame]) + len(theirs[frame]) - 2 * len(both))
        ious += [*(float(mask_ious([rle], [other])[0, 0]) for rle, other in both), *alone]
        boundaries += [*(float(boundary_f(*map(msgspec.to_builtins, pair))) for pair in both), *alone]
    layers = first.accepted_layers(), second.accepted_layers()
    return AnnotatorAgreement(
        keyframes=len(shared),
        mask_iou=_mean(ious),
        boundary_f=_mean(boundaries),
        attribute_kappa=_kappa(layers[0].attributes, layers[1].attributes, names, first.source.frames),
        relation_kappa=_kappa(layers[0].relations, layers[1].relations, names, first.source.frames),
        segment_iou=_segment_iou(first, second),
    )


def _masks(accepted: AcceptedFile) -> dict[int, dict[CategorizedObject, Rle]]:
    """Masks that are not empty by keyframe and object."""
    return {
        keyframe.frame: {
            (accepted.objects[name], name): mask.rle for name, mask in keyframe.masks.items() if not is_empty(mask.rle)
        }
        for keyframe in accepted.keyframes
    }


def _paired(
    frames: Sequence[tuple[Mapping[CategorizedObject, Rle], Mapping[CategorizedObject, Rle]]],
) -> dict[CategorizedObject, CategorizedObject]:
    """Objects of the first annotator and of the second that are one, by the sum of their masks' overlaps."""
    names, others = (sorted({name for frame in frames for name in frame[side]}) for side in (0, 1))
    shared = np.zeros((len(names), len(others)))
    for mine, theirs in frames:
        rows, columns = [name in mine for name in names], [name in theirs for name in others]
        ious = mask_ious([mine[name] for name in sorted(mine)], [theirs[name] for name in sorted(theirs)])
        shared[np.ix_(rows, columns)] += np.where(ious >= _SAME, ious, 0)
    for row, name in enumerate(names):
        for column, other in enumerate(others):
            if name[0] != other[0]:
                shared[row, column] = 0
    pairs = zip(*linear_sum_assignment(shared, maximize=True), strict=True)
    return {names[row]: others[column] for row, column in pairs if shared[row, column] > 0}


def _stated(
    layer: Iterable[LayerAttribute | LayerRelation], names: Mapping[str, str] | None = None
) -> dict[tuple[str, ...], list[tuple[str, Range]]]:
    """Values and their ranges by objects and type. Objects take the `names` that are given; those without one go."""
    rows: dict[tuple[str, ...], list[tuple[str, Range]]] = {}
    for entry in layer:
        if names is None or names.keys() >= set(entry.objects):
            objects = [name if names is None else names[name] for name in entry.objects]
            rows.setdefault((*objects, entry.type), []).extend((entry.value, span) for span in entry.ranges)
    return rows


def _kappa(
    mine: Iterable[LayerAttribute | LayerRelation],
    theirs: Iterable[LayerAttribute | LayerRelation],
    names: Mapping[str, str],
    frames: int,
) -> float | None:
    """Over all frames and all keys that either side has; several values at once are one label."""
    sides = [_stated(mine, names), _stated(theirs)]
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
