"""The `evaluate` metric ChoiceAccuracy. scoring.py and multiple.py define its rules. Needs numpy and `evaluate`.

`evaluate` reads this file line by line to find the files to copy, so keep each import statement on one line.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import datasets
import evaluate

from .inputs import ChoiceQuestion, as_questions
from .multiple import MultiQuestion, as_multi_questions, multi_answer, multi_metrics_of
from .scoring import choice_accuracy, metrics_of

_DESCRIPTION = """\
Choice accuracy scores answers to multiple-choice questions: how many are right, an answer that names no choice being
wrong. Beside it: the accuracy over the answers that name one, per class and per verb, what picking at random would
give, and whether the wrong answers at least have the right verb. The configuration "multi_answer" is for questions
with several right choices: average precision over all options of all questions together.
"""

_CITATION = """\
@misc{barista2026,
  title = {BARISTA: A Multi-Task Egocentric Benchmark for Compositional Visual Understanding},
  year = {2026},
  eprint = {2605.12074},
  archivePrefix = {arXiv},
  note = {Section A.3.1, activity recognition}
}
@misc{handyvqa2025,
  title = {HanDyVQA: A Video QA Benchmark for Fine-Grained Hand-Object Interaction Dynamics},
  year = {2025},
  eprint = {2512.00885},
  archivePrefix = {arXiv}
}
"""

# The function that checks the columns, the class of a checked question, and the function that computes the scores.
_CONFIGS: dict[str, tuple[Callable[..., Sequence[Any]], type[Any], Callable[..., dict[str, Any]]]] = {
    "default": (as_questions, ChoiceQuestion, metrics_of),
    "multi_answer": (as_multi_questions, MultiQuestion, multi_metrics_of),
}


class ChoiceAccuracy(evaluate.Metric):
    """Accuracy of multiple-choice answers, or average precision with the configuration "multi_answer"."""

    def _info(self) -> evaluate.MetricInfo:
        if self.config_name not in _CONFIGS:
            raise ValueError(f'the configuration is {self.config_name!r}; give "default" or "multi_answer"')
        function = multi_answer if self.config_name == "multi_answer" else choice_accuracy
        # Store one JSON text per question. evaluate walks through nested values in Python, which takes several times as
        # long. It also refuses a bare null as the first prediction of a batch.
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=function.__doc__,
            features=datasets.Features({name: datasets.Value("string") for name in ("predictions", "references")}),
            reference_urls=["https://arxiv.org/abs/2605.12074", "https://arxiv.org/abs/2512.00885"],
        )

    def add(self, *, prediction: object = None, reference: object = None, **kwargs: object) -> None:
        """Add one question. `classes`, `verbs` and `choices` hold its class, its verb and its choices."""
        # evaluate.combine calls add() with the plural names.
        row: dict[str, Any] = {"predictions": prediction, "references": reference} | kwargs
        self.add_batch(**{name: [value] for name, value in row.items()})

    def add_batch(self, *, predictions: object = None, references: object = None, **kwargs: object) -> None:
        """Add questions. Raises a TypeError or ValueError that names the question and the invalid column."""
        as_checked, _, _ = _CONFIGS[self.config_name]
        # Both kinds of questions begin with the prediction.
        questions = as_checked(predictions, references, **kwargs)
        super().add_batch(
            predictions=[json.dumps(question[0]) for question in questions],
            references=[json.dumps(question[1:]) for question in questions],
        )

    def compute(self, *, predictions: object = None, references: object = None, **kwargs: object) -> Any:  # noqa: ANN401
        """Score the given questions and all questions added before."""
        # evaluate would require the optional columns in every call, and would not split these columns by process.
        if predictions is not None or references is not None or kwargs:
            self.add_batch(predictions=predictions, references=references, **kwargs)
        return super().compute()

    def _compute(self, predictions: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
        _, question, metrics = _CONFIGS[self.config_name]
        rows = zip(map(json.loads, predictions), map(json.loads, references), strict=True)
        return metrics([question(answer, *truth) for answer, truth in rows])
