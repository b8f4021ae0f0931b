"""Determines the identities of objects from people's decisions, links between segments, and edits that can be undone.

An id given by a person means the same object everywhere. If adjacent segments use different ids, masks are propagated
over the frames between the segments from both sides. Objects whose masks agree there are linked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
from scipy.optimize import linear_sum_assignment

from barista_bench.annotate import records
from barista_bench.annotate.propagation import FrameMasks, Propagator, drawn_masks
from barista_bench.errors import DataError
from barista_bench.media.video import FrameReader
from barista_bench.scene_graph.masks import Rle, encode_mask, mask_ious

_REMEDY = "see edits.jsonl of the video; `undo` names a line of it"


class KeyframeGroup(NamedTuple):
    """Keyframes, in order, that are propagated together."""

    number: int
    keyframes: list[records.AcceptedKeyframe]


def segments_of(accepted: records.AcceptedFile, segment_of_frame: Mapping[int, int]) -> list[KeyframeGroup]:
    """Return the accepted keyframes by segment; a keyframe that was not requested belongs to the segment before it."""
    segments: list[KeyframeGroup] = []
    number = min(segment_of_frame.values(), default=0)
    for keyframe in sorted(accepted.keyframes, key=lambda keyframe: keyframe.frame):
        number = max(number, segment_of_frame.get(keyframe.frame, number))
        if not segments or segments[-1].number != number:
            segments.append(KeyframeGroup(number, []))
        segments[-1].keyframes.append(keyframe)
    return segments


class Identities:
    """Maps the ids in accepted.json to the ids in the tracks.

    Raises DataError if an edit names an unknown object, or merges two objects of one keyframe.
    """

    def __init__(
        self, accepted: records.AcceptedFile, links: Sequence[records.Boundary], edits: Sequence[records.SignedEdit]
    ) -> None:
        self.categories = dict(accepted.objects)
        self._links: dict[str, str] = {}
        for boundary in links:
            self._links.update(boundary.links)
        self._edits: list[records.Merge | records.Split] = []
        for edit in _edits_in_force(edits):
            self._apply(edit)
        self._check(accepted)

    def of(self, name: str, frame: int) -> str:
        """Return the id of the object that `name` means on a frame."""
        while name in self._links:
            name = self._links[name]
        for edit in self._edits:
            if isinstance(edit, records.Merge):
                name = edit.into if name in edit.objects else name
            elif name == edit.object and frame >= edit.frame:
                name = edit.new
        return name

    def masks(self, keyframe: records.AcceptedKeyframe) -> dict[str, Rle]:
        """Return the masks of a keyframe by object."""
        return {self.of(name, keyframe.frame): mask.rle for name, mask in keyframe.masks.items()}

    def rename(self, keyframe: records.AcceptedKeyframe) -> records.AcceptedKeyframe:
        """Return a keyframe with the ids of the tracks."""
        frame = keyframe.frame
        return msgspec.structs.replace(
            keyframe,
            masks={self.of(name, frame): mask for name, mask in keyframe.masks.items()},
            attributes=[
                msgspec.structs.replace(attribute, object=self.of(attribute.object, frame))
                for attribute in keyframe.attributes
            ],
        )

    def _apply(self, edit: records.Merge | records.Split | records.Rename) -> None:
        names = [edit.into, *edit.objects] if isinstance(edit, records.Merge) else [edit.object]
        unknown = [name for name in names if name not in self.categories]
        if unknown:
            raise DataError(f"an edit names {unknown[0]!r}, which is not an object. Fix: {_REMEDY}")
        if isinstance(edit, records.Rename):
            self.categories[edit.object] = edit.category
            return
        if isinstance(edit, records.Split):
            if edit.new in self.categories:
                raise DataError(f"a split makes {edit.new!r}, which is an object already. Fix: {_REMEDY}")
            self.categories[edit.new] = self.categories[edit.object]
        self._edits.append(edit)

    def _check(self, accepted: records.AcceptedFile) -> None:
        for keyframe in accepted.keyframes:
            names_by_object: dict[str, str] = {}
            for name in keyframe.masks:
                earlier_name = names_by_object.setdefault(self.of(name, keyframe.frame), name)
                if earlier_name != name:
                    what = f"{earlier_name!r} and {name!r} are merged, and both stand on keyframe {keyframe.frame}"
                    raise DataError(f"{what}. Fix: {_REMEDY}")


def _edits_in_force(edits: Sequence[records.SignedEdit]) -> list[records.Merge | records.Split | records.Rename]:
    """Return the edits that are not undone. A person can also undo an undo."""
    in_force: dict[int, records.Edit] = dict(enumerate((signed.edit for signed in edits), start=1))
    for line in range(len(edits), 0, -1):
        edit = in_force.get(line)
        if isinstance(edit, records.Undo):
            if edit.line >= line:
                raise DataError(f"edit {line} undoes line {edit.line}, which is no earlier edit. Fix: {_REMEDY}")
            in_force.pop(edit.line, None)
    return [edit for edit in in_force.values() if not isinstance(edit, records.Undo)]


def propagator_input(
    keyframes: Sequence[records.AcceptedKeyframe], identities: Identities, height: int, width: int
) -> dict[int, dict[str, Rle]]:
    """Return the input of a propagator. On complete keyframes, objects without a mask are marked as absent."""
    nothing = encode_mask(np.zeros((height, width), dtype=np.bool_))
    masks = {keyframe.frame: identities.masks(keyframe) for keyframe in keyframes}
    names = sorted({name for frame_masks in masks.values() for name in frame_masks})
    for keyframe in keyframes:
        if keyframe.complete:
            masks[keyframe.frame] = {name: masks[keyframe.frame].get(name, nothing) for name in names}
    return masks


def link_segments(
    segments: Sequence[KeyframeGroup],
    accepted: records.AcceptedFile,
    frames: FrameReader,
    propagator: Propagator,
    *,
    threshold: float,
    video: str,
    earlier: Sequence[records.Boundary] = (),
) -> list[records.Boundary]:
    """Return the links of each pair of adjacent segments.

    Args:
        video: SHA-256 of the video file.
        threshold: see `link_identities`.
        earlier: the boundaries from an earlier call; unchanged boundaries are reused.
    """
    boundary_of_inputs = {boundary.inputs: boundary for boundary in earlier}
    boundaries: list[records.Boundary] = []
    for before, after in pairwise(segments):
        identities = Identities(accepted, boundaries, [])
        last, first = before.keyframes[-1], after.keyframes[0]
        masks = [drawn_masks(identities.masks(keyframe)) for keyframe in (last, first)]
        names = [
            {name for keyframe in part.keyframes for name in identities.masks(keyframe)} for part in (before, after)
        ]
        # A person has decided that an id that is in both segments is one object.
        fresh = [sorted(masks[0].keys() - names[1]), sorted(masks[1].keys() - names[0])]
        linkable_masks = [{name: side[name] for name in chosen} for side, chosen in zip(masks, fresh, strict=True)]
        apart = [pair for pair in _pairs_on_one_keyframe(accepted, identities) if pair <= {*fresh[0], *fresh[1]}]
        categories = {name: identities.categories[name] for name in sorted({*fresh[0], *fresh[1]})}
        compared = (last.frame, first.frame, linkable_masks, threshold, categories, sorted(map(sorted, apart)))
        key = records.digest(propagator.identity, video, *compared)
        if key not in boundary_of_inputs:
            links: dict[str, str] = {}
            if all(linkable_masks):
                span = range(last.frame, first.frame + 1)
                ends = zip((last, first), linkable_masks, strict=True)
                carried = [list(propagator.propagate(frames, {end.frame: masks}, span)) for end, masks in ends]
                links = link_identities(carried[0], carried[1], categories, threshold)
            kept_links = {name: other for name, other in sorted(links.items()) if {name, other} not in apart}
            boundary_of_inputs[key] = records.Boundary(inputs=key, links=kept_links)
        boundaries.append(boundary_of_inputs[key])
    return boundaries


def link_identities(
    before: Sequence[FrameMasks], after: Sequence[FrameMasks], categories: Mapping[str, str], threshold: float
) -> dict[str, str]:
    """Match objects of two segments, and return the earlier segment's id for each linked id of the later segment.

    The agreement of two objects is the sum of their masks' intersections over union, divided by the number of frames
    that show at least one of the objects. Each object is linked at most once. The chosen links have the highest total
    agreement.

    Args:
        before: masks of the earlier segment on the frames between the segments, in order.
        after: masks of the later segment on the same frames.
        categories: the category of each object. Objects of different categories are not linked.
        threshold: objects with less agreement (0..1) are not linked.
    """
    names, other_names = (sorted({name for _, masks in frames for name in masks}) for frames in (before, after))
    shared, frames_seen = np.zeros((2, len(names), len(other_names)))
    for (_, masks), (_, other_masks) in zip(before, after, strict=True):
        rows, columns = [name in masks for name in names], [name in other_masks for name in other_names]
        rles, other_rles = ([part[name].rle for name in sorted(part)] for part in (masks, other_masks))
        shared[np.ix_(rows, columns)] += mask_ious(rles, other_rles)
        frames_seen += np.logical_or.outer(rows, columns)
    agreement = shared / np.maximum(frames_seen, 1)
    for row, name in enumerate(names):
        agreement[row, [categories[name] != categories[other_name] for other_name in other_names]] = 0
    # A pair below the threshold must not take an object from a pair above it.
    agreement[agreement < threshold] = 0
    pairs = zip(*linear_sum_assignment(agreement, maximize=True), strict=True)
    return {other_names[column]: names[row] for row, column in pairs if agreement[row, column]}


def _pairs_on_one_keyframe(accepted: records.AcceptedFile, identities: Identities) -> set[frozenset[str]]:
    """Return pairs of objects that appear on the same keyframe, and are therefore different objects."""
    pairs: set[frozenset[str]] = set()
    for keyframe in accepted.keyframes:
        names = sorted(identities.masks(keyframe))
        pairs |= {frozenset((name, other)) for name in names for other in names if name < other}
    return pairs
