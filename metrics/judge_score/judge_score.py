"""The `evaluate` metric JudgeScore. scoring.py, agreement.py and egocot.py define its rules.

There are three configurations: "verdicts" (the default), "agreement" (needs scipy) and "egocot". `evaluate` reads this
file line by line to find the files to copy, so keep each import statement on one line.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import datasets
import evaluate

from .agreement import judge_agreement
from .egocot import as_flag, as_whole, egocot_reasoning
from .scoring import as_column, as_names, as_verdict, judge_score

_DESCRIPTION = """\
Judge Score turns the verdicts of an LLM judge into metrics: means per criterion and category, their spread over
repetitions, and the fraction of examples that got a verdict. A missing verdict is never a zero. Two further
configurations: "agreement" compares judges who scored the same answers, "egocot" gives EgoCoT-Bench's reasoning
score and spurious correct rate.
"""

_CITATION = """\
@misc{barista2026,
  title = {BARISTA: A Multi-Task Egocentric Benchmark for Compositional Visual Understanding},
  year = {2026},
  eprint = {2605.12074},
  archivePrefix = {arXiv},
  note = {Sections A.3.3 and A.6}
}
@misc{egocot2026,
  title = {EgoCoT-Bench: Benchmarking Grounded and Verifiable Operation-Centric Chain-of-Thought Reasoning for MLLMs},
  year = {2026},
  eprint = {2605.19559},
  archivePrefix = {arXiv},
  note = {Section 3.2.4}
}
"""

_Row = dict[str, Any]


class JudgeScore(evaluate.Metric):
    """Verdicts of LLM judges: means and spreads, agreement of judges, EgoCoT-Bench's R and SCR."""

    def _info(self) -> evaluate.MetricInfo:
        _, _, documented = _functions(self.config_name)
        # Store one JSON text per example, since evaluate refuses a bare null as the first entry of a batch.
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=documented.__doc__,
            features=datasets.Features({name: datasets.Value("string") for name in ("predictions", "references")}),
            reference_urls=["https://arxiv.org/abs/2605.12074", "https://arxiv.org/abs/2605.19559"],
        )

    def add(self, *, prediction: object = None, reference: object = None, **kwargs: object) -> None:
        """Add one example. A prediction of None means that there is no usable verdict."""
        # evaluate.combine calls add() with the plural names.
        row: dict[str, Any] = {"predictions": prediction, "references": reference} | kwargs
        self.add_batch(**{name: [value] for name, value in row.items()})

    def add_batch(self, *, predictions: object = None, references: object = None, **kwargs: object) -> None:
        """Add examples. Raises a TypeError or ValueError that names the example and the invalid field."""
        column = as_column(predictions, "predictions")
        names = as_names(references, "references", len(column))
        as_row, _, _ = _functions(self.config_name)
        rows = [as_row(raw, f"predictions[{index}]") for index, raw in enumerate(column)]
        super().add_batch(predictions=list(map(json.dumps, rows)), references=list(map(json.dumps, names)), **kwargs)

    def _compute(self, predictions: Sequence[str], references: Sequence[str], **kwargs: object) -> dict[str, Any]:
        _, function, _ = _functions(self.config_name)
        return function(list(map(json.loads, predictions)), list(map(json.loads, references)), **kwargs)


def _verdict_row(raw: Any, where: str) -> _Row | None:  # noqa: ANN401
    # The scale is known only when the scores are computed, so judge_score checks the range then.
    return None if raw is None else as_verdict(raw, where, float("inf"))


def _sample_row(raw: Any, where: str) -> _Row | None:  # noqa: ANN401
    if raw is None:
        return None
    fields = ("score", "correct", "empty_reasoning")
    if not isinstance(raw, Mapping):
        kind = type(raw).__name__
        raise TypeError(f"{where}: is {raw!r} ({kind}); give a dict with score and correct, None for no answer")
    if not {"score", "correct"} <= raw.keys() <= set(fields):
        raise ValueError(f"{where}: has the keys {list(raw)}; give score, correct and, optionally, empty_reasoning")
    score = as_whole(raw["score"], f"{where}['score']")
    return {"score": score, **{name: as_flag(raw.get(name), f"{where}[{name!r}]") for name in fields[1:]}}


def _agreement(rows: Sequence[_Row | None], names: Sequence[str | None], **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401
    judges = sorted({judge for row in rows for judge in row or {}})
    return judge_agreement({judge: [(row or {}).get(judge) for row in rows] for judge in judges}, names, **kwargs)


def _egocot(rows: Sequence[_Row | None], names: Sequence[str | None], **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401
    unanswered: _Row = {"score": None, "correct": False, "empty_reasoning": True}
    scores, correct, empty = ([(row or unanswered)[name] for row in rows] for name in unanswered)
    return egocot_reasoning(scores, correct, names, empty_reasoning=empty, **kwargs)


_Metrics = Callable[..., dict[str, Any]]
_CONFIGS: dict[str, tuple[Callable[..., Any], _Metrics, _Metrics]] = {
    "verdicts": (_verdict_row, judge_score, judge_score),
    "agreement": (_verdict_row, _agreement, judge_agreement),
    "egocot": (_sample_row, _egocot, egocot_reasoning),
}


def _functions(config_name: str) -> tuple[Callable[..., Any], _Metrics, _Metrics]:
    """Return the functions that store a row, compute the scores and document the scores.

    Raises ValueError for an unknown name.
    """
    name = "verdicts" if config_name == "default" else config_name
    if name not in _CONFIGS:
        raise ValueError(f"config_name: is {config_name!r}; give one of {', '.join(_CONFIGS)}")
    return _CONFIGS[name]
