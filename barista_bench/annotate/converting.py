"""Converts graphs of a release to decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import msgspec
import numpy as np

from barista_bench.annotate.decisions import DecidedKeyframe, Decisions, raw_mask
from barista_bench.annotate.records import KeyframeAttribute, LayerAttribute, LayerRelation, Layers, LayerSegment, Range
from barista_bench.files.text_out import without_numbers
from barista_bench.scene_graph.coverage import frame_ranges
from barista_bench.scene_graph.masks import Rle
from barista_bench.scene_graph.release import ReleaseRange, ReleaseSegment
from barista_bench.scene_graph.video_graph import HAND_RELATION, VideoGraph


def decisions_of_graph(
    graph: VideoGraph, frames: Collection[int] | None = None, left_out: Counter[str] | None = None
) -> Decisions:
    """Return an annotated video of a release as decisions; the contacts are the contacts of its hands.

    Args:
        frames: the frames whose masks and attributes are used; None for all frames. The other layers are used for the
            complete video.
        left_out: a counter that receives the number of unusable records by reason. Frames with unusable records count
            as incomplete.

    Raises:
        DataError: a mask is missing or broken, and `left_out` is None.
    """
    keyframes, lost = [], Counter[str]() if left_out is None else left_out
    lost.update(without_numbers(f"{error.key}: {error.what}") for error in graph.problems if error.severity == "error")
    outside = sum(row.image_id >= graph.frame_count for row in graph.records.release.annotations)
    lost.update({"annotations: their frame is past the end of the video": outside} if outside else {})
    for frame in sorted(range(graph.frame_count) if frames is None else frames):
        instances, masks = graph.instances(frame), dict[str, msgspec.Raw]()
        twice = len(instances) - len({item.object.id for item in instances})
        lost.update({"annotations: their object is on the frame twice": twice} if twice else {})
        for item, rle in zip(instances, graph.rles(instances), strict=True):
            if isinstance(rle, Rle):
                masks[item.object.id] = raw_mask(rle)
            elif left_out is None:
                raise rle
            else:
                lost[f"masks: {without_numbers(str(rle).partition('.segmentation: ')[2].partition('. Fix')[0])}"] += 1
        stated = [
            KeyframeAttribute(object=item.object.id, type=item.type, value=item.value)
            for item in graph.attributes(frame)
        ]
        is_complete = len(masks) == len(instances) - twice
        keyframes.append(DecidedKeyframe(frame=frame, complete=is_complete, masks=masks, attributes=stated))
    touching = np.zeros(graph.frame_count, dtype=np.bool_)
    for relation in graph.relations():
        if relation.type == HAND_RELATION:
            touching[max(relation.start, 0) : max(relation.end, 0)] = True
    return Decisions(
        video=graph.video_id,
        contacts=frame_ranges(np.flatnonzero(touching)),
        objects={item.id: item.category for item in graph.objects},
        keyframes=keyframes,
        layers=layers_of(graph),
    )


def layers_of(graph: VideoGraph) -> Layers:
    """Return the layers of a release, except masks, with ranges cut to the video."""
    release, count = graph.records.release, graph.frame_count

    def within(ranges: Iterable[ReleaseRange]) -> list[Range]:
        spans = [(max(0, span.image_id_start), min(count, span.image_id_end)) for span in ranges]
        return [span for span in spans if span[0] < span[1]]

    def segments(rows: Iterable[ReleaseSegment]) -> list[LayerSegment]:
        return [LayerSegment(name=row.display_name, range=span) for row in rows for span in within([row.image_range])]

    return Layers(
        attributes=[
            LayerAttribute(object=row.object_id, type=row.attribute_type, value=row.value, ranges=spans)
            for row in release.attributes
            if (spans := within(row.image_ranges))
        ],
        relations=[
            LayerRelation(
                source=row.source_object_id,
                target=row.target_object_id,
                type=row.relation_type,
                value=row.value,
                ranges=spans,
            )
            for row in release.relations
            if (spans := within(row.image_ranges))
        ],
        activities=segments(release.activities),
        process_steps=segments(release.process_steps),
    )
