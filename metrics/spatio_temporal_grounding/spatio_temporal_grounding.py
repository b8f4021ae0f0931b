"""The `evaluate` metric SpatioTemporalGrounding: see scoring.py for the rules. Needs numpy beside `evaluate`.

`evaluate` finds out what to copy by reading this file line by line: keep each import statement on one line.
"""

from collections.abc import Sequence
from typing import Any

import datasets
import evaluate

from .parsing import RawAnswer, RawTask, answer_from_json, as_prediction, as_reference, task_from_json, to_json
from .scoring import check_columns, score_tasks

_Predictions = Sequence[RawAnswer | None]
_References = Sequence[RawTask]

_DESCRIPTION = """\
Recognition, temporal and spatial grounding of the objects that a task takes, in video: accuracy, tIoU and R1@, vIoU
and AP@, per object, per task and strictly per task, as ToG-Bench reports them.
"""

_CITATION = """\
@misc{togbench2025,
  title = {ToG-Bench: Task-Oriented Spatio-Temporal Grounding in Egocentric Videos},
  year = {2025},
  eprint = {2512.03666},
  archivePrefix = {arXiv}
}
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: one entry per task: a list of predicted objects, or None for a task without a usable answer. An
        object is a dict with match (the index of the reference object that it was recognised as, or None), intervals
        and boxes. Broken or missing intervals and boxes count as no grounding.
    references: one dict per task, with kind ("explicit" or "implicit") and objects: dicts with category, intervals
        ([[start, end], ...] in seconds), boxes ({time stamp in seconds: [x0, y0, x1, y1] in pixels}, or a list of
        {timestamp, box}) and, if it is not the task's, kind.
    viou: "reference" (default) scores the annotated time stamps, "union" those annotated or predicted.
Returns:
    O-Acc, EAcc, IAcc: recognised objects, of all, of the explicit, of the implicit ones.
    O-m_tIoU, O-R1@t, O-m_vIoU, O-AP@t, O-vIoU@t (t = 0.3, 0.5, 0.7): means over objects.
    T-Acc, T-m_tIoU, ...: means over tasks; ST-m_tIoU, ...: 0 for tasks with an unrecognised object.
    by_kind, by_number_of_objects, per_category: figures of groups.
    n, n_tasks, n_objects, n_failed, coverage, n_extra, n_malformed: counts, and the share of answered tasks.
Examples:
    >>> cup = {"category": "cup", "intervals": [[2, 6]], "boxes": {"2": [0, 0, 10, 10], "4": [0, 0, 10, 10]}}
    >>> task = {"kind": "explicit", "objects": [cup]}
    >>> answer = [{"match": 0, "intervals": [[2, 4]], "boxes": {"2": [0, 0, 10, 8]}}]
    >>> metric = SpatioTemporalGrounding()
    >>> result = metric.compute(predictions=[answer, None], references=[task, task])
    >>> result["T-Acc"], result["T-m_tIoU"], result["T-AP@0.5"], result["coverage"]
    (0.5, 0.25, 0.25, 0.5)
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class SpatioTemporalGrounding(evaluate.Metric):
    """Recognition and grounding of task-relevant objects."""

    def _info(self) -> evaluate.MetricInfo:
        # Tasks are kept as JSON: evaluate refuses a bare null, and encodes nested features box by box, slowly.
        row = datasets.Value("large_string")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": row, "references": row}),
            reference_urls=["https://arxiv.org/abs/2512.03666"],
        )

    def add(self, *, prediction: RawAnswer | None = None, reference: RawTask | None = None, **kwargs: object) -> None:
        """Add one task. A prediction of None says that there is no usable answer."""
        # evaluate.combine calls add() with the plural names.
        row: dict[str, Any] = {"predictions": prediction, "references": reference} | kwargs
        self.add_batch(**{name: [value] for name, value in row.items()})

    def add_batch(
        self,
        *,
        predictions: _Predictions | None = None,
        references: _References | None = None,
        **kwargs: object,
    ) -> None:
        """Add tasks. Raises TypeError or ValueError naming the task, the object and the field that is wrong."""
        answers, truths = check_columns(predictions, references)
        tasks = [as_reference(raw, f"references[{index}]") for index, raw in enumerate(truths)]
        objects = [
            None if raw is None else as_prediction(raw, len(task.objects), f"predictions[{index}]")
            for index, (raw, task) in enumerate(zip(answers, tasks, strict=True))
        ]
        super().add_batch(predictions=list(map(to_json, objects)), references=list(map(to_json, tasks)), **kwargs)

    def _compute(
        self, predictions: Sequence[str], references: Sequence[str], viou: str = "reference"
    ) -> dict[str, Any]:
        return score_tasks(
            [answer_from_json(row) for row in predictions], [task_from_json(row) for row in references], viou
        )
