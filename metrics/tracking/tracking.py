"""The `evaluate` metric Tracking. scoring.py defines its rules. Needs numpy, scipy, pycocotools and `evaluate`.

`evaluate` reads this file line by line to find the files to copy, so keep each import statement on one line.
"""

import json
from collections.abc import Sequence
from typing import Any

import datasets
import evaluate

from .scoring import Frame, check_columns, tracking

_DESCRIPTION = """\
HOTA of object masks over time (Higher Order Tracking Accuracy: how many masks are found, how exactly, and how well
identities are kept), and the number of identity switches (CLEAR MOT). Masks are COCO run lengths.
"""

_CITATION = """\
@article{luiten2021hota,
  title = {{HOTA}: A Higher Order Metric for Evaluating Multi-Object Tracking},
  author = {Luiten, Jonathon and Osep, Aljosa and Dendorfer, Patrick and Torr, Philip and Geiger, Andreas and
            Leal-Taixe, Laura and Leibe, Bastian},
  journal = {International Journal of Computer Vision},
  volume = {129},
  year = {2021}
}
@article{bernardin2008clear,
  title = {Evaluating Multiple Object Tracking Performance: The {CLEAR MOT} Metrics},
  author = {Bernardin, Keni and Stiefelhagen, Rainer},
  journal = {EURASIP Journal on Image and Video Processing},
  year = {2008}
}
"""


class Tracking(evaluate.Metric):
    """HOTA and identity switches. Sequences are stored as run lengths until the metric is computed."""

    def _info(self) -> evaluate.MetricInfo:
        # Store sequences as JSON. Ids are the keys of a frame, and evaluate's features do not support arbitrary keys.
        sequence = datasets.Value("large_string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=tracking.__doc__,
            features=datasets.Features({"predictions": sequence, "references": sequence}),
            reference_urls=["https://arxiv.org/abs/2009.07736", "https://github.com/JonathonLuiten/TrackEval"],
        )

    def add(self, *, prediction: object = None, reference: object = None, **kwargs: object) -> None:
        """Add one sequence. A prediction of None means that there is no usable answer."""
        # evaluate.combine calls add() with the plural names.
        row: dict[str, Any] = {"predictions": prediction, "references": reference} | kwargs
        self.add_batch(**{name: [value] for name, value in row.items()})

    def add_batch(self, *, predictions: object = None, references: object = None, **kwargs: object) -> None:
        """Add sequences. Raises a TypeError or ValueError that names the invalid sequence, frame and track."""
        answers, expected = check_columns(predictions, references)
        super().add_batch(predictions=list(map(_as_json, answers)), references=list(map(_as_json, expected)), **kwargs)

    def _compute(self, predictions: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
        answers, truths = ([json.loads(row) for row in column] for column in (predictions, references))
        return tracking(answers, truths)


def _as_json(sequence: Sequence[Frame] | None) -> str:
    def with_text(frame: Frame) -> Frame:
        return {track: mask | {"counts": mask["counts"].decode("ascii")} for track, mask in frame.items()}

    return json.dumps(None if sequence is None else list(map(with_text, sequence)))
