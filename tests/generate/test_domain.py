"""The domain file: coffee's file relates all values of the kitchen, and a wrong file is refused with its fix."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_task
from barista_bench.benchmarks.barista.change_detection import changes_domain, detect_changes, state_changes
from barista_bench.benchmarks.barista.clips import ClipArrays, clips
from barista_bench.errors import ConfigError
from barista_bench.generate.candidates import DIVISIBLE, QuestionCandidate, decide_candidate
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import load_domain
from tests.generate.graphs import graph_document, scene_of

COFFEE = load_domain()


def test_every_pair_of_values_in_the_kitchen_is_a_synonym_exclusive_or_compatible(small_kitchen: Path) -> None:
    values: dict[str, set[str]] = {}
    for video in SceneGraph(small_kitchen):
        for attribute in video.attributes():
            values.setdefault(attribute.type, set()).add(attribute.value)
    assert values
    unknown = [
        (kind, *pair)
        for kind, names in values.items()
        for pair in combinations(sorted(names), 2)
        if COFFEE.relation_of(kind, *pair) is None
    ]
    assert unknown == []


def test_every_category_and_predicate_of_the_kitchen_is_known(small_kitchen: Path) -> None:
    for video in SceneGraph(small_kitchen):
        assert {item.category for item in video.objects} <= {*COFFEE.categories, "unknown"}
        for relation in video.relations():
            known = {COFFEE.contact_type: COFFEE.contacts, COFFEE.place_type: COFFEE.places}[relation.type]
            assert relation.value in known


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("full", "filled", "synonym"),
        ("empty", "full", "exclusive"),
        ("tilted", "pouring", "compatible"),
        ("empty", "open", "compatible"),
        ("empty", "made of gold", None),
    ],
)
def test_values_relate_as_the_file_says(first: str, second: str, relation: str | None) -> None:
    assert COFFEE.relation_of("state", first, second) == COFFEE.relation_of("state", second, first) == relation


def test_verbs_and_nouns_that_fit_the_same_thing_count_as_the_same() -> None:
    assert [COFFEE.same_verb(*pair) for pair in (("Grasp", "pick"), ("open", "close"))] == [True, False]
    assert [COFFEE.same_noun(*pair) for pair in (("red coffee cup", "cup"), ("spoon", "pitcher"))] == [True, False]


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        *(("put back", "place", True), ("take off", "remove", True), ("hand over", "hand", True)),
        *(("turn off", "turn", False), ("put back", "put in", False), ("lift up", "lower", False)),
    ],
)
def test_a_particle_of_one_verb_makes_no_other_action_unless_the_file_says_so(
    first: str, second: str, is_same: bool
) -> None:
    assert COFFEE.same_verb(first, second) is COFFEE.same_verb(second, first) is is_same


@pytest.mark.parametrize(
    "change",
    [
        lambda text: f"{text}\nwhatever: 1\n",
        lambda text: text.replace("version: 1", "version: 2"),
        lambda text: text.replace("vague: [unknown, container, vessel, box]", "vague: 7"),
    ],
)
def test_a_wrong_or_missing_file_is_refused(tmp_path: Path, change: Callable[[str], str]) -> None:
    shipped = (Path(__file__).parents[2] / "barista_bench/scene_graph/domain.yaml").read_text(encoding="utf-8")
    assert change(shipped) != shipped
    (tmp_path / "domain.yaml").write_text(change(shipped), encoding="utf-8")
    for name in ("domain.yaml", "none.yaml"):
        with pytest.raises(ConfigError, match="Fix"):
            load_domain(tmp_path / name)


def test_every_change_between_values_that_exclude_each_other_can_be_asked_about(tmp_path: Path) -> None:
    attributes = [
        ("cup", "state", "empty", (0, 10)),
        ("cup", "state", "being filled", (10, 40)),
        ("pot", "state", "full", (0, 10)),
        ("pot", "state", "filled", (10, 40)),
    ]
    video = scene_of(tmp_path, graph_document({"cup": "coffee cup", "pot": "pitcher"}, attributes=attributes)).video
    view = ClipArrays(video, (0, 4, 8, 12, 16, 20))
    assert state_changes(view) == []
    (change,) = state_changes(view, COFFEE)
    assert (change.subject, change.kind) == ("coffee cup", "went from empty to being filled")


def test_a_clip_lasts_as_long_at_any_frame_rate(tmp_path: Path) -> None:
    sampling = get_task("barista", "temporal_vqa").sampling.with_overrides({"seconds": 4})
    for fps, spacing in ((30.0, 24), (50.0, 40), (12.5, 10)):
        content = graph_document({"cup": "coffee cup"}, frames=700, fps=fps, seen={"cup": [(0, 1)]})
        video = scene_of(tmp_path / str(fps), content).video
        first = next(clips(video, sampling))
        assert first == tuple(range(0, 6 * spacing, spacing))


def test_real_clips_give_questions_about_changes_that_the_release_has_no_name_for(real_release: Path) -> None:
    task = get_task("barista", "temporal_vqa")
    overrides = {"seconds": 4, "domain": "default"}
    asked = task.sampling.with_overrides(overrides)
    kinds: dict[str, list[str]] = {"released": [], "domain": []}
    for video in SceneGraph(real_release):
        for name, sampling in (("released", task.sampling), ("domain", asked)):
            for keyframes in clips(video, sampling):
                changes = detect_changes(ClipArrays(video, keyframes), changes_domain(sampling.domain))
                kinds[name] += [change.kind for change in changes.get("state_change", ())]
    assert kinds["released"] == []
    assert len(kinds["domain"]) >= 3


@pytest.mark.parametrize(("category", "reason"), [("milk", DIVISIBLE), ("milk carton", ""), ("coffee cup", "")])
def test_no_question_is_about_stuff_that_may_be_in_several_places(tmp_path: Path, category: str, reason: str) -> None:
    candidate = QuestionCandidate(
        subtask="state", video_id="v", question="?", right=(), span=(0, 9), frames=(3,), objects=("a",)
    )
    decided = decide_candidate(candidate, scene_of(tmp_path, graph_document({"a": category})), distractors_needed=0)
    assert decided == (reason or candidate)
