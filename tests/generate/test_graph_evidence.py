"""Every generated question of every benchmark is traced to the graph: one video id, frames and objects."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.benchmarks.graph_evidence import GRAPH_EVIDENCE_FILE, read_graph_evidence
from barista_bench.core.deriving import ReleaseTask
from barista_bench.core.example import Example, evidence_objects
from barista_bench.generate.family import FAMILIES
from barista_bench.scene_graph import Problem, SceneGraph

Generated = Callable[[str], Path]
every_family = pytest.mark.parametrize("family", FAMILIES)


def examples_of(release: Path, family: str) -> list[Example]:
    open_release = BENCHMARKS[family].open_release
    assert open_release is not None
    made = []
    for kind in BENCHMARKS[family].tasks:
        assert issubclass(kind, ReleaseTask)
        task = kind(options={"matcher": "exact"} if "matcher" in kind.options else {})
        items = task.examples(open_release(release, None), task.sampling)
        made += [item for item in items if isinstance(item, Example)]
    return made


@every_family
def test_every_answered_example_names_objects_and_frames_of_the_graph(
    family: str, generated: Generated, small_kitchen: Path
) -> None:
    graph = SceneGraph(small_kitchen)
    examples = [
        e for e in examples_of(generated(family), family) if e.metadata["split"] != "test" or family != "egocot"
    ]
    assert examples
    for example in examples:
        evidence = example.evidence["graph"]
        assert isinstance(evidence, dict)
        assert list(evidence) == ["video_id", "frames", "object_ids"]
        video = graph[str(evidence["video_id"])]
        assert set(evidence_objects(example)) <= {item.id for item in video.objects}
        assert evidence["frames"] == sorted(set(evidence["frames"]))
        assert 0 <= evidence["frames"][0] <= evidence["frames"][-1] < video.frame_count
        assert set(example.evidence["visibility"]) == {"area", "seconds", "hidden"}  # type: ignore[arg-type]
    assert any(map(evidence_objects, examples))


@every_family
def test_the_release_is_the_same_without_the_side_file_and_its_examples_have_no_graph(
    family: str, generated: Generated, tmp_path: Path
) -> None:
    release = tmp_path / family
    shutil.copytree(generated(family), release, ignore=shutil.ignore_patterns(GRAPH_EVIDENCE_FILE))
    plain, traced = examples_of(release, family), examples_of(generated(family), family)
    assert [e.inputs for e in plain] == [e.inputs for e in traced]
    assert all(e.evidence["graph"] is None for e in plain)


def test_the_hidden_split_of_egocot_is_not_traced(generated: Generated) -> None:
    release = generated("egocot")
    hidden = {row["qid"] for row in json.loads((release / "test.json").read_bytes())}
    assert hidden
    assert not hidden & read_graph_evidence(release, []).keys()


def test_a_bad_line_loses_one_question_its_graph_and_is_reported(generated: Generated, tmp_path: Path) -> None:
    lines = (generated("egocot") / GRAPH_EVIDENCE_FILE).read_bytes().splitlines(keepends=True)
    (tmp_path / GRAPH_EVIDENCE_FILE).write_bytes(b'{"item": "x", "graph": 1}\n' + b"".join(lines))
    problems: list[Problem] = []
    assert len(read_graph_evidence(tmp_path, problems)) == len(lines)
    assert [(each.severity, each.file) for each in problems] == [("warning", GRAPH_EVIDENCE_FILE)]
