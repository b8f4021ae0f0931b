"""Measures the agreement of two annotators of one video."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import cohen_kappa_score

from barista_bench.annotate.project import VideoFiles
from barista_bench.annotate.propagation import drawn_masks
from barista_bench.annotate.records import LayerAttribute, LayerRelation, ProjectRecord, Range, SegmentsFile
from barista_bench.errors import DataError
from barista_bench.metrics.region_boundary.scoring import boundary_f
from barista_bench.scene_graph.masks import Rle, mask_ious

_SAME = 0.5
_NONE = "none"
CategorizedObject: TypeAlias = tuple[str, str]
"""The category and id of an object."""


class AnnotatorAgreement(ProjectRecord, frozen=True, kw_only=True):
    """Scores of agreement; a score is null if the two annotators have no data in common.

    Args:
        keyframes: the number of keyframes that both have annotated.
        mask_iou, boundary_f: means over the masks on these keyframes. An object that only one annotator has drawn
            counts as 0.
        attribute_kappa, relation_kappa: Cohen's kappa, frame by frame, over the statements of both annotators about
            objects that both have.
        segment_iou: IoU of the frames with contact.
    """

    keyframes: int
    mask_iou: float | None
    boundary_f: float | None
    attribute_kappa: float | None
    relation_kappa: float | None
    segment_iou: float | None


def agreement(first: VideoFiles, second: VideoFiles) -> AnnotatorAgreement:
    """Compare two people's decisions about one video. Their objects are paired by masks and categories.

    Raises DataError if the videos are not the same file, or if a file of either project cannot be read.
    """
    if first.source.sha256 != second.source.sha256:
        remedy = "start both projects from the same files"
        raise DataError(f"{first.video_id}: the second annotator's video is another file. Fix: {remedy}")
    shared = _SharedKeyframes(first, second)
    names = {name: other_name for (_, name), (_, other_name) in shared.pairs.items()}
    layers = first.accepted_layers(), second.accepted_layers()
    return AnnotatorAgreement(
        keyframes=len(shared.frames),
        mask_iou=_mean([value for frame in shared.frames for value in shared.ious(frame)]),
        boundary_f=_mean([value for frame in shared.frames for value in shared.boundaries(frame)]),
        attribute_kappa=_kappa(layers[0].attributes, layers[1].attributes, names, first.source.frames),
        relation_kappa=_kappa(layers[0].relations, layers[1].relations, names, first.source.frames),
        segment_iou=_segment_iou(first, second),
    )


def keyframe_ious(first: VideoFiles, second: VideoFiles) -> dict[int, float]:
    """Return the mean mask IoU, as in `AnnotatorAgreement`, of each keyframe drawn by at least one annotator."""
    shared = _SharedKeyframes(first, second)
    means = {frame: _mean(shared.ious(frame)) for frame in shared.frames}
    return {frame: mean for frame, mean in means.items() if mean is not None}


def pair_objects(first: VideoFiles, second: VideoFiles) -> dict[str, str]:
    """Return the first annotator's id for each object of the second annotator, by the second annotator's id."""
    return {other_name: name for (_, name), (_, other_name) in _SharedKeyframes(first, second).pairs.items()}


class _SharedKeyframes:
    """The drawings of two people on the keyframes that both have annotated, with matched objects."""

    def __init__(self, first: VideoFiles, second: VideoFiles) -> None:
        self._mine, self._theirs = _masks(first), _masks(second)
        self.frames = sorted(self._mine.keys() & self._theirs.keys())
        self.pairs = _pairs_by_overlap([(self._mine[frame], self._theirs[frame]) for frame in self.frames])

    def ious(self, frame: int) -> list[float]:
        """Return the mask IoU of each object of a keyframe; 0 for an object that only one annotator has drawn."""
        both, alone = self._mask_pairs(frame)
        return [*(float(mask_ious([rle], [other_rle])[0, 0]) for rle, other_rle in both), *alone]

    def boundaries(self, frame: int) -> list[float]:
        """Return the boundary F of each object of a keyframe, with the same rule as `ious`."""
        both, alone = self._mask_pairs(frame)
        return [*(float(boundary_f(*map(msgspec.to_builtins, pair))) for pair in both), *alone]

    def _mask_pairs(self, frame: int) -> tuple[list[tuple[Rle, Rle]], list[float]]:
        mine, theirs = self._mine[frame], self._theirs[frame]
        both = [(rle, theirs[self.pairs[key]]) for key, rle in mine.items() if self.pairs.get(key) in theirs]
        return both, [0.0] * (len(mine) + len(theirs) - 2 * len(both))


def _masks(video: VideoFiles) -> dict[int, dict[CategorizedObject, Rle]]:
    """Return the masks that are not empty by keyframe and object, with the objects' ids in the layers."""
    identities = video.identities()
    return {
        keyframe.frame: {
            (identities.categories[name], name): rle for name, rle in drawn_masks(identities.masks(keyframe)).items()
        }
        for keyframe in video.accepted().keyframes
    }


def _pairs_by_overlap(
    frames: Sequence[tuple[Mapping[CategorizedObject, Rle], Mapping[CategorizedObject, Rle]]],
) -> dict[CategorizedObject, CategorizedObject]:
    names, other_names = (sorted({name for frame in frames for name in frame[side]}) for side in (0, 1))
    shared = np.zeros((len(names), len(other_names)))
    for mine, theirs in frames:
        rows, columns = [name in mine for name in names], [name in theirs for name in other_names]
        ious = mask_ious([mine[name] for name in sorted(mine)], [theirs[name] for name in sorted(theirs)])
        shared[np.ix_(rows, columns)] += np.where(ious >= _SAME, ious, 0)
    for row, name in enumerate(names):
        for column, other_name in enumerate(other_names):
            if name[0] != other_name[0]:
                shared[row, column] = 0
    pairs = zip(*linear_sum_assignment(shared, maximize=True), strict=True)
    return {names[row]: other_names[column] for row, column in pairs if shared[row, column] > 0}


def _values_by_objects(
    layer: Iterable[LayerAttribute | LayerRelation], names: Mapping[str, str] | None = None
) -> dict[tuple[str, ...], list[tuple[str, Range]]]:
    """Return values and their ranges by objects and type, with the ids in `names`; other objects are left out."""
    rows: dict[tuple[str, ...], list[tuple[str, Range]]] = {}
    for entry in layer:
        if names is None or names.keys() >= set(entry.objects):
            objects = [name if names is None else names[name] for name in entry.objects]
            rows.setdefault((*objects, entry.type), []).extend((entry.value, span) for span in entry.ranges)
    return rows


def _kappa(
    first_layer: Iterable[LayerAttribute | LayerRelation],
    second_layer: Iterable[LayerAttribute | LayerRelation],
    names: Mapping[str, str],
    frames: int,
) -> float | None:
    """Return kappa over all frames and all keys of both sides; several values at once count as one label."""
    sides = [_values_by_objects(first_layer, names), _values_by_objects(second_layer)]
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
    return ["|".join(sorted(frame_values)) or _NONE for frame_values in values]


def _segment_iou(first: VideoFiles, second: VideoFiles) -> float | None:
    if not (first.has(SegmentsFile) and second.has(SegmentsFile)):
        return None
    frames, others = ({frame for span in video.segments() for frame in range(*span)} for video in (first, second))
    return round(len(frames & others) / len(frames | others), 6) if frames | others else None


def _mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 6) if values else None
