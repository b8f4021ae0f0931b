"""The `evaluate` metric RegionBoundary. scoring.py defines its rules. Needs numpy, pycocotools and `evaluate`.

`evaluate` reads this file line by line to find the files to copy, so keep each import statement on one line.
"""

import json
from collections.abc import Sequence
from typing import Any

import datasets
import evaluate

from .masks import Mask
from .scoring import TOLERANCE, as_prediction, as_reference, check_columns, region_boundary

_DESCRIPTION = """\
Region similarity J and contour accuracy F of object tracks, as the DAVIS benchmark defines them. J is the
intersection over union of two masks; F is the F-measure of their contours, where contour pixels match within 0.8 %
of the image diagonal. Masks are arrays or COCO run lengths.
"""

_CITATION = """\
@inproceedings{perazzi2016davis,
  title = {A Benchmark Dataset and Evaluation Methodology for Video Object Segmentation},
  author = {Perazzi, Federico and Pont-Tuset, Jordi and McWilliams, Brian and Van Gool, Luc and Gross, Markus and
            Sorkine-Hornung, Alexander},
  booktitle = {CVPR},
  year = {2016}
}
@misc{ponttuset2017davis,
  title = {The 2017 DAVIS Challenge on Video Object Segmentation},
  author = {Pont-Tuset, Jordi and others},
  year = {2017},
  eprint = {1704.00675},
  archivePrefix = {arXiv}
}
"""


class RegionBoundary(evaluate.Metric):
    """J and F of object tracks. Masks are stored as run lengths until the metric is computed."""

    def _info(self) -> evaluate.MetricInfo:
        # Store tracks as JSON. evaluate refuses a bare null, and its mask-by-mask encoding of nested features is slow.
        track = datasets.Value("large_string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=region_boundary.__doc__,
            features=datasets.Features({"predictions": track, "references": track}),
            reference_urls=["https://davischallenge.org", "https://arxiv.org/abs/1704.00675"],
        )

    def add(self, *, prediction: object = None, reference: object = None, **kwargs: object) -> None:
        """Add one track. A prediction of None means that there is no usable answer."""
        # evaluate.combine calls add() with the plural names.
        row: dict[str, Any] = {"predictions": prediction, "references": reference} | kwargs
        self.add_batch(**{name: [value] for name, value in row.items()})

    def add_batch(self, *, predictions: object = None, references: object = None, **kwargs: object) -> None:
        """Add tracks. Raises a TypeError or ValueError that names the invalid track and frame."""
        answers, truths = check_columns(predictions, references)
        true = [as_reference(raw, f"references[{index}]") for index, raw in enumerate(truths)]
        masks = [
            None if raw is None else as_prediction(raw, track, f"predictions[{index}]")
            for index, (raw, track) in enumerate(zip(answers, true, strict=True))
        ]
        super().add_batch(predictions=list(map(_as_json, masks)), references=list(map(_as_json, true)), **kwargs)

    def _compute(
        self, predictions: Sequence[str], references: Sequence[str], tolerance: float = TOLERANCE
    ) -> dict[str, Any]:
        answers, truths = ([json.loads(row) for row in column] for column in (predictions, references))
        return region_boundary(answers, truths, tolerance=tolerance)


def _as_json(track: Sequence[Mask | None] | None) -> str:
    def as_rle(mask: Mask) -> dict[str, Any]:
        return {"size": list(mask.size), "counts": mask.rle["counts"].decode("ascii")}

    return json.dumps(None if track is None else [mask and as_rle(mask) for mask in track])
