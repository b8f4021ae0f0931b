"""A dataset may come from anywhere: rows that no build writes are refused before anything is made of them."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barista_bench.benchmarks.extended.mask_tracking import MaskTracking
from barista_bench.benchmarks.extended.step_segmentation import StepSegmentation
from barista_bench.benchmarks.extended.temporal_scene_graph import TemporalSceneGraph
from barista_bench.core.deriving import GraphTask
from barista_bench.core.task import Scored
from barista_bench.errors import DataError
from tests.answering import derived_and_skipped as derived
from tests.extended.kit import video
from tests.releases import document, write_release

Fields = dict[str, Any]
CLIPS = {"frames": 4, "spacing": 10}


DAMAGES: list[tuple[GraphTask, str, Callable[[Fields], object]]] = [
    (MaskTracking(), "target", lambda target: target["masks"][0]["rle"].update(counts="~~~")),
    (MaskTracking(), "target", lambda target: target["masks"][0]["rle"].update(size=[12])),
    (MaskTracking(), "target", lambda target: target["masks"][0]["rle"].update(size=[10**5, 10**5])),
    (MaskTracking(), "target", lambda target: target["masks"][0].update(frame=99)),
    (MaskTracking(), "inputs", lambda inputs: inputs.update(width=10**6)),
    (MaskTracking(), "inputs", lambda inputs: inputs.update(n_frames=10**8)),
    (StepSegmentation(), "target", lambda target: target["segments"][0].update(end=10**6)),
    (StepSegmentation(), "target", lambda target: target["segments"][0].update(start=-9)),
    (StepSegmentation(), "inputs", lambda inputs: inputs.update(frame_count=10**12)),
    (StepSegmentation(), "inputs", lambda inputs: inputs.update(fps=0.0)),
    (TemporalSceneGraph(), "target", lambda target: target["relations"][0].update(start=0)),
    (TemporalSceneGraph(), "target", lambda target: target["relations"][0].update(end=99)),
    (TemporalSceneGraph(), "inputs", lambda inputs: inputs.update(n_frames=10**8)),
]


@pytest.mark.parametrize(("task", "part", "change"), DAMAGES)
def test_a_damaged_row_is_an_error_that_says_so(
    task: GraphTask, part: str, change: Callable[[Fields], object], tmp_path: Path
) -> None:
    if isinstance(task, StepSegmentation):
        root, sampling = video(tmp_path, steps=[(30, 150, "Prepare cup")]), {"frames": 4}
    else:
        write_release(tmp_path, "v0", document())
        root, sampling = tmp_path, CLIPS
    example = derived(task, root, task.sampling.with_overrides(sampling))[0][0]
    task.statistics([Scored(example, None)]).published_metrics()
    damaged = copy.deepcopy(example)
    change(getattr(damaged, part))
    with pytest.raises(DataError, match="Fix: build the dataset again"):
        task.statistics([Scored(damaged, None)])
