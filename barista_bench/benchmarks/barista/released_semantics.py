"""Released examples of the tasks about what happens: activity, relations, temporal_vqa. See `released_tasks.py`."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import cast

from pycocotools import mask as coco_mask

from barista_bench.benchmarks.barista.activity import Activity
from barista_bench.benchmarks.barista.relations import Relations
from barista_bench.benchmarks.barista.released_common import empty, frame_size, make_example, optional_text
from barista_bench.benchmarks.barista.temporal_vqa import TemporalVQA
from barista_bench.benchmarks.released import Record, ReleasedExample, ReleaseRoot, index_number, shown
from barista_bench.errors import DataError
from barista_bench.scene_graph.masks import run_problems
from barista_bench.task import Example, Fields, Json

_SEGMENT = re.compile(r":segment_(\d{1,9})_(\d{1,9}):class_([^:]+)")


def activity(line: ReleasedExample, root: ReleaseRoot) -> Example:
    del root
    data = line.data
    choices = _choices(data)
    right = _right_choice(data, choices)
    segment = _SEGMENT.search(line.example_id)
    class_id = right["class_id"] or (segment[3] if segment else "")
    alike = sum(choice["verb"] == right["verb"] for choice in choices) - 1
    return make_example(
        Activity,
        line,
        label=line.label or right["text"],
        inputs={"choices": cast("Json", choices)},
        target={"choice_id": right["choice_id"], "class_id": class_id},
        metadata={
            "verb": right["verb"],
            "segment_start": int(segment[1]) if segment else -1,
            "segment_end": int(segment[2]) if segment else -1,
            "segment_seconds": 0.0,
            "same_verb_distractors": alike,
        },
        evidence={**empty("object_ids", "relation_rows"), "activity_row": -1},
    )


def _choices(data: Record) -> list[dict[str, str]]:
    """Choices as objects, as a mapping of ids to texts, or as texts alone, which are lettered in their order."""
    names = ("choices", "options", "candidates")
    listed = data.get(*names)
    if isinstance(listed, dict):
        listed = [{"choice_id": key, "text": text} for key, text in listed.items()]
    if not isinstance(listed, list) or len(listed) < 2:
        raise data.wrong(names, "a list of choices")
    choices = []
    for place, item in enumerate(listed):
        letter = string.ascii_uppercase[place : place + 1]
        values = {"choice_id": letter, "text": item} if isinstance(item, str) else item
        record = Record(values, f"{data.place}.choices[{place}]")
        text = record.text(*record.among(("text", "display_name"), ("label", "name")))
        choices.append(
            {
                "choice_id": record.text(*record.among(("choice_id",), ("id",), ("letter", "key"))),
                "class_id": optional_text(record, "class_id", "activity_class_id", "class_uuid"),
                "text": text,
                "verb": text.split(" ")[0].casefold(),
            }
        )
    if len({choice["choice_id"].casefold() for choice in choices}) < len(choices):
        raise data.wrong(names, "a list of choices with ids of their own")
    return choices


def _right_choice(data: Record, choices: Sequence[dict[str, str]]) -> dict[str, str]:
    names = data.among(
        ("correct_choice_id", "ground_truth_choice_id", "answer_id", "correct_id"),
        ("correct_choice", "answer", "ground_truth"),
        ("correct_class_id", "activity_class_id"),
    )
    said = data.text(*names)
    matching = [
        choice
        for choice in choices
        if said.casefold() == choice["choice_id"].casefold() or said in (choice["class_id"], choice["text"])
    ]
    if len(matching) != 1:
        raise data.wrong(names, f"the id, class or text of one of the choices ({len(matching)} fit)")
    return matching[0]


def relations(line: ReleasedExample, root: ReleaseRoot) -> Example:
    data, size = line.data, frame_size(line, root)
    objects = _marked(line, root, size)
    marks = {cast("int", item["mark"]) for item in objects}
    names = ("relations", "ground_truth_relations", "ground_truth", "gt_relations")
    truth = [_relation(item, f"{data.place}.{names[0]}[{i}]", marks) for i, item in enumerate(data.items(*names))]
    return make_example(
        Relations,
        line,
        label=line.label or f"{len(truth)} relations",
        inputs={**size, "objects": cast("Json", objects), "vocabulary": cast("Json", _vocabulary(data, root))},
        target={"relations": cast("Json", truth)},
        metadata={},
        evidence={
            **empty("relation_rows", "instance_rows"),
            "object_ids": [item["object_id"] for item in objects],
        },
    )


def _relation(item: object, place: str, marks: set[int]) -> Fields:
    keys = ("source_id", "target_id", "relation_type", "value")
    record = Record(dict(zip(keys, item, strict=True)) if isinstance(item, list) and len(item) == 4 else item, place)
    for end in ("source_id", "target_id"):
        if record.integer(end) not in marks:
            raise record.wrong((end,), "the number of one of the objects")
    return {
        "source_id": record.integer("source_id"),
        "target_id": record.integer("target_id"),
        "relation_type": record.text("relation_type"),
        "value": record.text("value"),
    }


def _vocabulary(data: Record, root: ReleaseRoot) -> list[Fields]:
    """From the file, as a mapping of types to values or a list of entries; else from all annotations."""
    names = ("vocabulary", "relation_vocabulary", "allowed_vocabulary", "allowed_relations")
    found = data.find(*names)
    if found is None:
        return [{"relation_type": kind, "values": list(values)} for kind, values in root.vocabulary().items()]
    name, listed = found
    pairs: dict[str, set[str]] = {}
    if isinstance(listed, dict):
        listed = [{"relation_type": kind, "values": values} for kind, values in listed.items()]
    for entry in Record({name: listed}, data.place).records(name):
        values = entry.items("values") if entry.find("values") else [entry.get("value")]
        if not values or not all(isinstance(value, str) and value for value in values):
            raise entry.wrong(("values", "value"), "relation values")
        pairs.setdefault(entry.text("relation_type", "type"), set()).update(cast("list[str]", values))
    return [{"relation_type": kind, "values": sorted(pairs[kind])} for kind in sorted(pairs)]


def _marked(line: ReleasedExample, root: ReleaseRoot, size: Fields) -> list[Fields]:
    """The numbered objects with their masks; masks that the file leaves out are the annotated ones of the frame."""
    data = line.data
    names = ("objects", "marked_objects", "legend")
    listed = data.get(*names)
    if isinstance(listed, dict):
        entries = [
            {"display_id": int(key) if str(key).isdecimal() else key, "category": name} for key, name in listed.items()
        ]
        listed = cast("object", entries)
    records = Record({"objects": listed}, data.place).records("objects")
    marked: list[Fields] = [
        {
            "mark": item.integer(*item.among(("display_id", "mark"), ("object_index", "id"))),
            "object_id": optional_text(item, "object_id", "object_uuid", "uuid"),
            "category": item.text(*item.among(("category", "category_name"), ("label", "name"))),
        }
        for item in records
    ]
    if len({item["mark"] for item in marked}) < len(marked):
        raise data.wrong(names, "objects with numbers of their own")
    masks = [item.find("segmentation", "mask", "rle", "mask_rle") for item in records]
    if all(masks):
        shapes = [_own_mask(found[1], item.place, size) for found, item in zip(masks, records, strict=True) if found]
    else:
        shapes = _annotated_masks(line, root, marked)
    whole = [{**item, **shape} for item, shape in zip(marked, shapes, strict=True)]
    return sorted(whole, key=lambda item: cast("int", item["mark"]))


def _own_mask(value: object, place: str, size: Fields) -> Fields:
    record = Record(value, f"{place}.segmentation")
    counts, height_width = record.text("counts"), record.items("size")
    if height_width != [size["frame_height"], size["frame_width"]]:
        raise record.wrong(("size",), f"[{size['frame_height']}, {size['frame_width']}], the size of the frame")
    pixels = cast("int", size["frame_height"]) * cast("int", size["frame_width"])
    problem = run_problems([counts], pixels)[0] if counts.isascii() else "characters outside the code"
    if problem:
        raise DataError(f"{record.place}.counts: {problem}. Remedy: export the mask again")
    box = coco_mask.toBbox({"size": height_width, "counts": counts.encode("ascii")})
    return {"bbox": box.tolist(), "segmentation": {"size": cast("Json", height_width), "counts": counts}}


def _annotated_masks(line: ReleasedExample, root: ReleaseRoot, marked: list[Fields]) -> list[Fields]:
    """By object id, or by the released numbering: objects sorted by category in lower case, then id, from 1."""
    video = root.video(line.video_id, "masks")
    frame = line.frames[0].frame_index
    instances = sorted(video.instances(frame), key=lambda i: (i.object.category.lower(), i.object.id))
    by_id = {instance.object.id: instance for instance in instances}
    by_mark = dict(enumerate(instances, start=1))
    shapes: list[Fields] = []
    for item in marked:
        mark = cast("int", item["mark"])
        instance = by_id.get(str(item["object_id"])) if item["object_id"] else by_mark.get(mark)
        if instance is None or instance.object.category.casefold() != str(item["category"]).casefold():
            raise DataError(
                f"task_data.objects: number {mark} is {shown(item['category'])}, the annotations of {line.video_id!r} "
                f"have {shown(instance.object.category if instance else None)} there on frame {frame}. "
                "Remedy: give the release that the file was frozen from with --root"
            )
        rle = video.rle(instance)
        shapes.append(
            {
                "object_id": instance.object.id,
                "bbox": list(instance.bbox),
                "segmentation": {"size": list(rle.size), "counts": rle.counts},
            }
        )
    return shapes


def temporal_vqa(line: ReleasedExample, root: ReleaseRoot) -> Example:
    del root
    data = line.data
    category = data.text("category", "question_category")
    clip = data.find("clip_index") or line.metadata.find("clip_index")
    return make_example(
        TemporalVQA,
        line,
        label=category,
        inputs={"question": data.text("question"), "n_frames": len(line.frames)},
        target={
            "answer": data.text("answer", "reference_answer", "ground_truth_answer", "expected_output"),
            "category": category,
        },
        metadata={"clip_index": index_number(clip[1]) if clip else -1, "writer": "released"},
        evidence=empty("object_ids", "attribute_rows", "relation_rows", "activity_rows", "changes"),
    )
