"""Frozen sets beside the sets of the released code: every line of the pack, built, written, and read back."""

import json
import random
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_benchmark, get_task
from barista_bench.benchmarks.barista.relations import Relations, RelationsSampling
from barista_bench.benchmarks.barista.released_sets import released_parameters, released_sampling
from barista_bench.core.deriving import GraphTask
from barista_bench.core.example import Example
from barista_bench.core.options import Sampling
from barista_bench.data import frozen
from barista_bench.data.frozen import content_hash, read_frozen, released_line, write_frozen
from barista_bench.data.plan import NoExamples, plan_task
from barista_bench.errors import DataError
from barista_bench.interchange.exporting import export_run
from barista_bench.interchange.importing import import_run
from barista_bench.judging.scoring import all_judged
from barista_bench.runs.score.scoring import score
from barista_bench.scene_graph import SceneGraph
from tests.conftest import SHARED, Compared
from tests.graph_examples import graph_examples

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
    # The pack has a hash where the release freezes its own sentence.
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


@pytest.fixture
def examples(small_release: Path) -> list[Example]:
    items = graph_examples(Relations(), SceneGraph(small_release), RelationsSampling(frame_step=10))
    return [e for e in items if isinstance(e, Example)]


def test_lines_have_the_keys_of_the_release_and_a_version(examples: list[Example], tmp_path: Path) -> None:
    write_frozen(examples, tmp_path / "f.jsonl")
    record = json.loads((tmp_path / "f.jsonl").read_text().splitlines()[0])
    assert list(record) == ["example_id", "frames", "label", "metadata", "task_data", "task_name", "task_version"]
    assert record["task_name"] == "relation_extraction"
    assert record["frames"] == [{"frame_index": 0, "mp4_path": "v0/video.mp4", "video_id": "v0"}]
    with pytest.raises(DataError, match=r"g\.jsonl: no frozen example \(No such file.*Fix"):
        list(read_frozen(tmp_path / "g.jsonl"))


def test_the_hash_covers_the_set_and_not_its_order(examples: list[Example]) -> None:
    shuffled = list(examples)
    random.Random(1).shuffle(shuffled)
    assert content_hash(shuffled) == content_hash(examples) != content_hash(examples[1:])


@pytest.mark.parametrize(
    ("break_it", "what"),
    [
        (lambda lines: [*lines, lines[0]], "line 25: .* repeats"),
        (lambda lines: [lines[0][:-5]], "line 1: no frozen example"),
        (lambda lines: ["[]"], "line 1: no frozen example"),
        (lambda lines: [lines[0].replace('relation_extraction"', 'other"')], "no task 'other' of barista"),
    ],
)
def test_a_damaged_file_names_the_line(examples: list[Example], tmp_path: Path, break_it: object, what: str) -> None:
    write_frozen(examples, tmp_path / "f.jsonl")
    lines = (tmp_path / "f.jsonl").read_text().splitlines()
    (tmp_path / "f.jsonl").write_text("\n".join(break_it(lines)) + "\n")
    with pytest.raises(DataError, match=what):
        list(read_frozen(tmp_path / "f.jsonl"))


def test_an_overlong_line_is_refused(examples: list[Example], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_frozen(examples, tmp_path / "f.jsonl")
    with (tmp_path / "f.jsonl").open("a") as file:
        file.write(" " * 10_000 + "{}\n")
    monkeypatch.setattr(frozen, "MAX_LINE", 9_000)
    with pytest.raises(DataError, match=rf"line {len(examples) + 1} is longer than 9000 bytes"):
        list(read_frozen(tmp_path / "f.jsonl"))


NAMES = (
    *("activity_mcq", "activity_mcq_resumed", "grounding", "hand_object", "referring", "referring_judged"),
    *("relation_extraction", "visual_qa", "visual_qa_judged"),
)
SAME_METRICS = {
    "activity_mcq": {"accuracy": "accuracy"},
    "activity_mcq_resumed": {"accuracy": "accuracy"},
    "grounding": {name: name for name in ("map", "map_50", "map_small", "mar_1", "mar_100")},
    "hand_object": {"recall": "interaction_recall", "precision": "interaction_precision", "hand_iou": "hand_iou"},
    "relation_extraction": {name: name for name in ("micro_precision", "micro_recall", "micro_f1", "mean_example_f1")},
}
"""Our figure to the key of metrics.json."""


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_of_the_release_has_its_metrics_and_comes_back_to_the_letter(
    name: str, golden: Path, real_release: Path, tmp_path: Path, compared: Compared
) -> None:
    theirs = golden / "runs" / name
    made = import_run(theirs, tmp_path / "run", root=real_release)
    assert (made.kept_failures, made.new_failures, made.other_results, made.other_metrics) == ((), (), (), ())
    export_run(tmp_path / "run", tmp_path / "back")
    files = sorted(path.name for path in theirs.iterdir())
    assert sorted(path.name for path in (tmp_path / "back").iterdir()) == files
    for file in files:
        assert (tmp_path / "back" / file).read_bytes() == (theirs / file).read_bytes(), file
    metrics, values = json.loads((theirs / "metrics.json").read_text()), score(tmp_path / "run").results.metrics
    for our_name, key in SAME_METRICS.get(name, {}).items():
        assert values[our_name].mean == pytest.approx(metrics[key], abs=1e-12), key
    compared(made.task, "files of run folders imported and exported, every byte", len(files))


@pytest.mark.parametrize("name", ["referring_judged", "visual_qa_judged"])
def test_released_judges_have_results(
    name: str, golden: Path, real_release: Path, tmp_path: Path, compared: Compared
) -> None:
    made = import_run(golden / "runs" / name, tmp_path / "run", root=real_release)
    metrics = json.loads((golden / "runs" / name / "metrics.json").read_text())
    (judged,) = all_judged(score(tmp_path / "run"))
    assert judged.results.judge.name == "stub-model"
    assert judged.results.metrics["mean"].mean == metrics["mean_geval_score"]
    for criterion in judged.results.rubric.criteria:
        assert judged.results.metrics[criterion].mean == metrics[f"mean_geval_{criterion}"]
        scored = [
            verdict for verdicts in judged.verdicts.values() for verdict in verdicts if verdict.criterion == criterion
        ]
        assert sum(verdict.score is not None for verdict in scored) == metrics[f"geval_{criterion}_count"]
        compared(made.task, "judged criteria of imported runs", 1)
