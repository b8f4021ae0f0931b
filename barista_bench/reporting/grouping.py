"""Which runs of a report can be compared, and what their models are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from barista_bench.running.scoring import ScoredRun


def comparable(runs: Sequence[ScoredRun]) -> dict[tuple[str, ...], list[ScoredRun]]:
    """Runs of the same task over the same examples, together."""
    groups: dict[tuple[str, ...], list[ScoredRun]] = {}
    for run in runs:
        dataset = run.results.dataset
        key = (dataset.benchmark, dataset.task, str(dataset.task_version), dataset.split, dataset.content_hash)
        groups.setdefault(key, []).append(run)
    return groups


def model_labels(runs: Sequence[ScoredRun]) -> tuple[str, ...]:
    """Model names, told apart where needed by their run folder, then by number."""
    names = [run.results.model.name for run in runs]
    for suffixes in ([run.folder.name for run in runs], [str(place) for place in range(1, len(runs) + 1)]):
        counts = Counter(names)
        names = [
            f"{name} ({suffix})" if counts[name] > 1 else name for name, suffix in zip(names, suffixes, strict=True)
        ]
    return tuple(names)
