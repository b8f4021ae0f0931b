"""Submission files as recorded answers: what somebody submitted, scored over questions whose answers are at hand.

The file lies beside the annotations that it answers, and says `submission` in its name. No media are needed: frames are
named only, and boxes of the evidence, whose frame sizes only the media tell, are not placed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from barista_bench.benchmarks.egocot.cot import Cot, example_of
from barista_bench.benchmarks.egocot.release import EgocotRelease
from barista_bench.benchmarks.egocot.submission import PREFIX, check_known, read_submission
from barista_bench.core.benchmark import RecordedAnswer, RecordedAnswers
from barista_bench.errors import DataError


def recorded_submissions(path: Path) -> Sequence[RecordedAnswers]:
    """The answers of a submission file, or of every one in a folder; each is a model of its own, called as its file.

    Args:
        path: a file called `...submission....json` or `.jsonl`, beside the annotations, or their folder.

    Raises:
        DataError: there is no such file, it breaks the format, or it answers questions that the annotations lack.
    """
    folder = path if path.is_dir() else path.parent
    files = [path] if path.is_file() else sorted(folder.glob("*submission*.json*"))
    if not files:
        raise DataError(f"{path}: no submission file. Remedy: name one, or the folder of one and of the annotations")
    release = EgocotRelease(folder)
    return [_recorded(file, release) for file in files]


def _recorded(file: Path, release: EgocotRelease) -> RecordedAnswers:
    lines = read_submission(file)
    check_known(lines, release.items)
    return RecordedAnswers(
        model=file.stem,
        task=Cot,
        examples=tuple(example_of(release.items[line.qid], release) for line in lines),
        answers=tuple(
            RecordedAnswer(
                f"{PREFIX}{line.qid}", 0, json.dumps({"answer": line.predicted_answer, "reasoning": line.reasoning})
            )
            for line in lines
        ),
    )
