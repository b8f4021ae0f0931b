"""Frozen sets beside those of the released code: every line of the pack, built, written, and read back."""

import json
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_benchmark, get_task
from barista_bench.benchmarks.barista.released_sets import released_parameters, released_sampling
from barista_bench.core.deriving import GraphTask
from barista_bench.core.options import Sampling
from barista_bench.core.task import Example
from barista_bench.data.frozen import content_hash, read_frozen, released_line
from barista_bench.data.plan import NoExamples, plan_task
from barista_bench.scene_graph import SceneGraph
from tests.conftest import SHARED, Compared

PACK = SHARED / "golden" / "barista"
CONFIGS = sorted(path.name for path in (PACK / "frozen").glob("*")) or ["absent"]
TASKS = [task.name for task in get_benchmark("barista").tasks if task.name != "temporal_vqa"]


def root_of(config: str) -> Path:
    return PACK / "tricky" / config.removeprefix("tricky_") if config.startswith("tricky_") else SHARED / "real"


def built(config: str, name: str) -> tuple[tuple[Example, ...], Sampling]:
    task = get_task("barista", name)
    assert isinstance(task, GraphTask)
    stated = json.loads((PACK / "frozen" / config / "config.json").read_text())["config"][task.upstream_name]
    sampling = released_sampling(
        name, stated["task_params"], shuffle_seed=stated["shuffle_seed"], limit=stated["limit"]
    )
    graph = SceneGraph(root_of(config))
    try:
        return plan_task(graph, task, sampling, dict.fromkeys(graph.video_ids, "test")).examples, sampling
    except NoExamples:
        return (), sampling


def golden_file(config: str, name: str) -> Path:
    return PACK / "frozen" / config / f"{get_task('barista', name).upstream_name}.jsonl"


@pytest.mark.parametrize(
    ("config", "name"), [(c, name) for c in CONFIGS for name in TASKS if c == "absent" or golden_file(c, name).exists()]
)
def test_built_lines_are_the_released_ones(golden: Path, config: str, name: str, compared: Compared) -> None:
    theirs = golden_file(config, name).read_text().splitlines()
    by_id: dict[str, str] = {}
    for line in theirs:
        by_id.setdefault(json.loads(line)["example_id"], line)  # the released build refuses repeated ids
    # The pack has a hash where the release freezes a sentence of its own.
    sentences = {example_id: json.loads(line)["task_data"].get("question") for example_id, line in by_id.items()}
    examples, _ = built(config, name)
    assert [released_line(example, sentences[example.example_id]) for example in examples] == list(by_id.values())
    compared(name, "frozen lines made of annotations, every byte", len(by_id))


@pytest.mark.parametrize("name", [*TASKS, "temporal_vqa"])
@pytest.mark.parametrize("config", CONFIGS)
def test_released_lines_come_back_to_the_letter(
    golden: Path, config: str, name: str, tmp_path: Path, compared: Compared
) -> None:
    file = golden_file(config, name)
    if not file.exists():
        return  # the released code cannot read this release
    by_id = {json.loads(line)["example_id"]: line for line in file.read_text(encoding="utf-8").splitlines()}
    expected = list(by_id.values())  # a repeated id is refused
    copy = tmp_path / "frozen.jsonl"
    copy.write_text("".join(f"{line}\n" for line in expected), encoding="utf-8")
    read = list(read_frozen(copy, root=root_of(config)))
    assert [released_line(example) for example in read] == expected
    compared(name, "frozen lines read and written back, every byte", len(expected))


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("config", ["caps_a", "caps_b", "tricky_mix_2"])
def test_a_set_written_in_the_released_layout_is_the_same_set_when_read(
    golden: Path, config: str, name: str, tmp_path: Path, compared: Compared
) -> None:
    examples, sampling = built(config, name)
    file = tmp_path / "frozen.jsonl"
    file.write_text("".join(released_line(example, "?") + "\n" for example in examples), encoding="utf-8")
    assert content_hash(read_frozen(file, root=root_of(config))) == content_hash(examples)
    params = released_parameters(name, sampling)
    assert released_sampling(name, params, shuffle_seed=sampling.seed, limit=sampling.limit) == sampling
    compared(name, "sets of ours written in the released layout and read back", 1)
