"""Write a run as a dataset for FiftyOne, without FiftyOne itself. docs/integrations.md shows a tested import.

metadata.json lists the fields of samples. samples.json has the samples as MongoDB's extended JSON. data/ has the images
that the model saw. A sample is one image of one logged answer, identified by `example_id`, `run` and `image`. Its boxes
are detections by kind (`reference`, `predicted`, `given`), in fractions of the image. They have masks if the task has
masks. The texts of answer and reference may be megabytes of masks, so only the first image of an answer has them.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import logging
import math
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from PIL import Image

from barista_bench.core.display import Overlay, OverlayKind
from barista_bench.core.guarding import raise_faults
from barista_bench.errors import BaristaError, DataError
from barista_bench.files.owned_folders import check_target, replacing_folder
from barista_bench.files.text_out import shared_name
from barista_bench.runs.score.samples import ScoredSample
from barista_bench.runs.score.scoring import ScoredRun, read_scored
from barista_bench.scene_graph.masks import decode_mask

log = logging.getLogger(__name__)
VERSION = "1.0.0"
"""Version of the format. FiftyOne converts datasets of older versions to its own version at import."""
_QUALITY = 90
Document = dict[str, Any]


class FiftyOneCounts(NamedTuple):
    """The number of samples written, and of examples left out because their images cannot be decoded."""

    samples: int
    left_out: int


def write_fiftyone(
    run: str | Path, out: str | Path, *, data: str | Path | None = None, root: str | Path | None = None
) -> FiftyOneCounts:
    """Write the images, boxes, masks, answers and scores of a run folder.

    Import the dataset with `fiftyone.Dataset.from_dir(out, fiftyone.types.FiftyOneDataset)`. Equal runs give equal
    bytes. An example whose images cannot be decoded is left out with a warning.

    Raises:
        ConfigError: `out` is in use.
        DataError: the folder is not a run that can be scored, or none of its images can be decoded.
        TaskError: the task's code raised an error on a sample. All other data is written.
    """
    out = Path(out).absolute()
    check_target(out)
    scored = read_scored(run, data=data, root=root)
    with replacing_folder(out) as folder:
        (folder / "data").mkdir()
        left_out: list[str] = []
        samples = list(_samples(scored, folder, left_out))
        if not samples:
            raise DataError(f"{run}: no image of its examples can be decoded. Fix: name the videos with --root")
        (folder / "samples.json").write_text(json.dumps({"samples": samples}))
        (folder / "metadata.json").write_text(json.dumps(_metadata(scored)))
    raise_faults(scored.task.faults)
    return FiftyOneCounts(len(samples), len(left_out))


def _samples(scored: ScoredRun, folder: Path, left_out: list[str]) -> Iterator[Document]:
    by_example: dict[str, list[ScoredSample]] = defaultdict(list)
    for sample in scored.samples:
        by_example[sample.example.example_id].append(sample)
    for number, loaded in enumerate(scored.examples):
        answers = by_example[loaded.example.example_id]
        try:
            images = loaded.images(scored.task) if answers else ()
        except BaristaError as error:
            log.warning("left out: %s: %s", loaded.example.example_id, error)
            left_out.append(loaded.example.example_id)
            continue
        for position, image in enumerate(images):
            path = f"data/{number:06}-{position:02}.jpg"
            image.save(folder / path, quality=_QUALITY)
            yield from (_sample(scored, sample, position, image, path) for sample in answers)


def _sample(scored: ScoredRun, sample: ScoredSample, position: int, image: Image.Image, path: str) -> Document:
    task, example, record, results = scored.task, sample.example, sample.record, scored.results
    box_format = results.model.box_format.format
    name = f"{results.model.label} {results.dataset.content_hash} {example.example_id} {record.repetition} {position}"
    overlays = [overlay for overlay in task.overlays(example, sample.prediction) if overlay.image == position]
    reference = task.reference_answer(example, box_format) if position == 0 and task.has_answer(example) else None
    return {
        "_id": _object_id(name),
        "_media_type": "image",
        "_rand": int(_hash(name)[:8], 16) / 2**32,
        "filepath": path,
        "tags": [str(record.status)],
        "example_id": example.example_id,
        "video_id": example.video_id,
        "caption": task.image_captions(example)[position],
        "image": position,
        "repetition": record.repetition,
        "question": task.prompt(example, box_format).as_text(),
        "answer": record.text if position == 0 else None,
        "reference_answer": reference,
        "scores": _without_dots(sample.scores),
        **{
            kind: _detections(kind, name, (overlay for overlay in overlays if overlay.kind == kind), image)
            for kind in get_args(OverlayKind)
        },
    }


def _detections(kind: str, name: str, overlays: Iterable[Overlay], image: Image.Image) -> Document:
    detections = []
    for number, overlay in enumerate(overlays):
        x0, y0, x1, y1 = overlay.box
        width, height = image.size
        detections.append(
            {
                "_id": _object_id(f"{name} {kind} {number}"),
                "_cls": "Detection",
                "attributes": {},
                "tags": [],
                "label": overlay.label,
                "bounding_box": [x0 / width, y0 / height, (x1 - x0) / width, (y1 - y0) / height],
                **({} if (mask := _mask(overlay, image)) is None else {"mask": mask}),
            }
        )
    return {"_cls": "Detections", "detections": detections}


def _mask(overlay: Overlay, image: Image.Image) -> Document | None:
    """Return the part of a mask inside the box in FiftyOne's array format (a NumPy file compressed with zlib)."""
    if overlay.mask is None:
        return None
    mask = decode_mask(overlay.mask)
    across, down = mask.shape[1] / image.width, mask.shape[0] / image.height
    x0, y0, x1, y1 = overlay.box
    rows = slice(max(0, math.floor(y0 * down)), max(0, math.ceil(y1 * down)))
    inside = mask[rows, max(0, math.floor(x0 * across)) : max(0, math.ceil(x1 * across))]
    if not inside.size:
        return None
    packed = io.BytesIO()
    np.save(packed, inside)
    return {"$binary": {"base64": base64.b64encode(zlib.compress(packed.getvalue())).decode(), "subType": "00"}}


def _metadata(scored: ScoredRun) -> Document:
    texts = ("filepath", "example_id", "video_id", "caption", "question", "answer", "reference_answer", "_media_type")
    identity, tags = _field("id", "ObjectIdField", db_field="_id"), _field("tags", "ListField", subfield="StringField")
    box = _field("bounding_box", "ListField", subfield="FloatField")
    detection = [identity, tags, _field("label", "StringField"), box, _field("mask", "ArrayField")]
    box_type, boxes_type = (f"fiftyone.core.labels.{name}" for name in ("Detection", "Detections"))
    box_list: Document = {"subfield": "EmbeddedDocumentField", "embedded_doc_type": box_type, "fields": detection}
    boxes: Document = {"embedded_doc_type": boxes_type, "fields": [_field("detections", "ListField", **box_list)]}
    results = scored.results
    return {
        "version": VERSION,
        "media_type": "image",
        "info": {
            "model": shared_name(results.model.label),
            "task": f"{results.dataset.benchmark}/{results.dataset.task}",
            "metrics": _without_dots({name: metric.mean for name, metric in results.metrics.items()}),
            "samples": results.coverage.model_dump(include={"expected", "scored", "answered"}),
            "trained_on": results.trained_on,
        },
        "sample_fields": [
            identity,
            tags,
            *(_field(name, "StringField") for name in texts),
            *(_field(name, "IntField") for name in ("image", "repetition")),
            _field("_rand", "FloatField"),
            _field("scores", "DictField"),
            *(_field(kind, "EmbeddedDocumentField", **boxes) for kind in get_args(OverlayKind)),
        ],
    }


def _field(name: str, kind: str, *, subfield: str | None = None, **extra: object) -> Document:
    fields = "fiftyone.core.fields."
    return {"name": name, "db_field": name, "ftype": fields + kind, "subfield": subfield and fields + subfield, **extra}


def _without_dots(metrics: Mapping[str, float]) -> dict[str, float]:
    """Replace dots in names, since dots separate levels in MongoDB."""
    return {name.replace(".", "_"): value for name, value in metrics.items()}


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _object_id(name: str) -> Document:
    return {"$oid": _hash(name)[:24]}
