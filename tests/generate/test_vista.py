import json
import re
from importlib import resources
from pathlib import Path

import msgspec
import pytest

from barista_bench.benchmarks.vista.release import open_release
from barista_bench.errors import ConfigError
from barista_bench.generate.candidates import Item, Tally, reasons_of
from barista_bench.generate.generator import generate
from barista_bench.generate.scene import Scene
from barista_bench.generate.vista.clips import Sequences
from barista_bench.generate.vista.family import VistaFamily
from barista_bench.generate.vista.statements import AsLeft, Continues, Depicts, HandsAtWork
from barista_bench.generate.wordings import Phrases
from barista_bench.media.video import open_reader
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import load_domain
from tests.conftest import MadeOnce
from tests.generate.graphs import table

THINGS = {"right": "right hand", "cup": "coffee cup", "lid": "lid", "jar": "jar"}
CONTACTS = [
    ("right", "holds", "cup", 2, 18),
    ("right", "holds", "lid", 22, 38),
    ("right", "holds", "lid", 42, 58),
    ("right", "holds", "jar", 62, 78),
]
ACTIVITIES = [("Move cup", 0, 20), ("Open lid", 20, 40), ("Close lid", 40, 60), ("Shake jar", 60, 80)]
LID = [("lid", "state", "close", 0, 30), ("lid", "state", "open", 30, 50), ("lid", "state", "close", 50, 120)]


def scene_of(root: Path, **said: object) -> Scene:
    return table(root, THINGS, **{"contacts": CONTACTS, "activities": ACTIVITIES, "attributes": LID} | said)


@pytest.mark.parametrize(
    ("actions", "spans", "truth"),
    [
        (("Move cup", "Open lid"), ((0, 20), (20, 40)), True),
        (("Open lid", "Move cup"), ((0, 20), (20, 40)), False),
        (("Move cup", "Close lid"), ((0, 20), (20, 40)), False),  # one undoes the other
        (("Move cup", "Remove lid"), ((0, 20), (20, 40)), None),  # `remove` and `open` can be one action
        (("Move cup", "Open lid"), ((0, 20), (90, 110)), None),  # nothing is recorded there
        (("Pour milk",), ((0, 20),), False),
    ],
)
def test_a_description_is_of_the_actions_in_their_order(
    tmp_path: Path, actions: tuple[str, ...], spans: tuple[tuple[int, int], ...], truth: bool | None
) -> None:
    assert Depicts(actions, spans).truth(scene_of(tmp_path / "plain")) is truth
    pouring = [("jar", "state", "pouring", 0, 120)]  # a value that says that pouring continues
    assert Depicts(("Pour milk",), ((0, 20),)).truth(scene_of(tmp_path / "pouring", attributes=pouring)) is None


def test_a_clip_shows_a_hand_and_the_object_under_it(tmp_path: Path) -> None:
    assert HandsAtWork(0, 20).truth(scene_of(tmp_path / "seen")) is True
    assert HandsAtWork(80, 110).truth(scene_of(tmp_path / "idle")) is False
    assert HandsAtWork(0, 20).truth(scene_of(tmp_path / "hidden", seen={"right": [(30, 120)]})) is False


@pytest.mark.parametrize(
    ("last", "first", "end", "truth"),
    [
        (19, 20, 40, True),  # as in the video
        (59, 20, 40, True),  # the lid is closed at 59 as at 20
        (39, 20, 40, False),  # it is open at 39
        (70, 20, 40, False),  # the jar is in the hand at 70, and not at 20
        (79, 0, 20, False),  # the cup has moved since, without a record
        (59, 60, 80, True),
        (19, 60, 80, True),
    ],
)
def test_a_joint_is_possible_where_state_place_and_holder_are_the_same(
    tmp_path: Path, last: int, first: int, end: int, truth: bool
) -> None:
    assert Continues(last, first, end).truth(scene_of(tmp_path)) is truth
    places = [("jar", "on", "cup", 45, 120)]
    assert Continues(19, 60, 80).truth(scene_of(tmp_path / "moved", places=places)) is False


def test_a_clip_takes_things_as_the_clip_before_it_left_them(tmp_path: Path) -> None:
    scene = scene_of(tmp_path)
    assert AsLeft(("lid",), 39, 40).truth(scene) is True
    assert AsLeft(("lid",), 39, 20).truth(scene) is False
    assert AsLeft(("lid",), 59, 20).truth(scene) is True


def test_permutations_are_orders_that_could_have_happened(tmp_path: Path) -> None:
    sequences = Sequences(scene_of(tmp_path), fps=30)
    assert [clip.name for clip in sequences.clips] == [name for name, _, _ in ACTIVITIES]
    assert [(1, 2), (2, 1)] in list(sequences.permutation_sets(2))
    (orders,) = (orders for orders in sequences.permutation_sets(3) if set(orders[0]) == {0, 1, 2})
    assert (0, 1, 2) in orders
    assert all(order.index(0) == 0 for order in orders)  # the cup is where it was only at first
    for orders in sequences.permutation_sets(3):
        assert {frozenset(order) for order in orders} == {frozenset(orders[0])}
        for order in orders:
            assert all(statement.truth(sequences.scene) for statement in sequences.joints(order))


def test_general_sets_share_beginnings_of_every_length(tmp_path: Path) -> None:
    sequences = Sequences(scene_of(tmp_path), fps=30)
    base = (0, 1)
    orders = sequences.general_set(base)
    assert orders[0] == base
    assert any(order[0] == 0 for order in orders[1:])
    assert any(order[0] != 0 for order in orders[1:])


@pytest.mark.parametrize(
    ("activities", "reason"),
    [
        ([("Move cup", 0, 2)], "less than 3 frames"),
        ([("Move cup", 0, 60)], "more than 4 s"),
        ([("Move cup", 80, 100)], "no hand at work"),
    ],
)
def test_actions_that_no_clip_can_show_are_counted_with_the_reason(
    tmp_path: Path, activities: list[tuple[str, int, int]], reason: str
) -> None:
    tally = Tally()
    candidates = list(VistaFamily(load_domain()).decide_all(scene_of(tmp_path, activities=activities), tally))
    assert {candidate.subtask for candidate in candidates} == {"on_v_off"}  # which asks for no action
    assert any(reason in why for why in reasons_of("objects", tally))


@pytest.mark.parametrize(
    ("activities", "texts"),
    [
        (("Rotating", "Scraping"), ("rotate", "scrape")),
        (("Hold lid", "Handing over lid"), ("hold the lid", "hand it over")),
    ],
)
def test_it_means_a_thing_that_is_named_before(
    tmp_path: Path, activities: tuple[str, ...], texts: tuple[str, ...]
) -> None:
    rows = [(name, 22 + 20 * number, 38 + 20 * number) for number, name in enumerate(activities)]
    scene = scene_of(tmp_path, activities=rows)
    assert VistaFamily(load_domain())._phrases(scene, activities) == Phrases(texts)


@pytest.mark.parametrize(("end", "fps", "is_shown"), [(3, 30, True), (3, 5, False), (6, 5, True), (2, 30, False)])
def test_a_short_action_is_shown_where_three_pictures_of_it_are(
    tmp_path: Path, end: int, fps: float, is_shown: bool
) -> None:
    """The graph has ten frames a second."""
    clips = Sequences(scene_of(tmp_path, activities=[("Move cup", 40, 40 + end)]), fps=fps).clips
    assert bool(clips) is is_shown


def test_a_cup_that_something_is_in_is_not_called_empty(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"families\.vista.*Fix"):  # a domain without its words
        VistaFamily(msgspec.structs.replace(load_domain(), families={}))
    things = {"cup": "coffee cup", "coffee": "coffee"}
    said = {"attributes": [("cup", "state", "empty", 0, 120)], "places": [("coffee", "inside", "cup", 0, 120)]}
    tally = Tally()
    assert not list(VistaFamily(load_domain()).decide_all(table(tmp_path, things, **said), tally))
    assert reasons_of("on_v_off", tally)["something is inside it"] > 0


def items_of(scene: Scene) -> list[Item]:
    family = VistaFamily(load_domain())
    return family.sample_items(list(family.decide_all(scene, Tally())), 100, 0)


def test_every_description_of_a_set_except_one_is_excluded_for_each_of_its_videos(tmp_path: Path) -> None:
    scene = scene_of(tmp_path)
    items = items_of(scene)
    assert {"opening_v_closing", "level_2_permutation", "level_3_remix"} <= {item.candidate.subtask for item in items}
    for item in items:
        truths = [choice.statement.truth(scene) for choice in item.choices]
        assert truths == [at in item.correct for at in range(len(truths))]
        assert len(item.correct) == 1


def test_the_object_of_the_previous_action_is_it_where_hands_touch_one_of_its_kind_each_time(tmp_path: Path) -> None:
    def said(scene: Scene) -> set[str]:
        candidates = [item.candidate for item in items_of(scene)]
        return {candidate.right_text for candidate in candidates if candidate.subtask.startswith("level_2")}

    opened = "First, the person opens the lid and then closes "
    assert f"{opened}it." in said(scene_of(tmp_path / "one"))
    things, said_of = {**THINGS, "cap": "lid"}, {"activities": ACTIVITIES, "attributes": LID}
    assert f"{opened}it." in said(table(tmp_path / "another", things, contacts=CONTACTS, **said_of))
    both = [*CONTACTS, ("right", "touches", "cap", 42, 58)]
    assert f"{opened}the lid." in said(table(tmp_path / "two", things, contacts=both, **said_of))
    neither = [*CONTACTS[:2], ("right", "holds", "jar", 42, 58), *CONTACTS[3:]]
    assert f"{opened}the lid." in said(table(tmp_path / "neither", things, contacts=neither, **said_of))


def test_labels_of_a_single_action_have_equally_many_videos(tmp_path: Path) -> None:
    activities = [*ACTIVITIES, ("Open lid", 80, 100)]
    contacts = [*CONTACTS, ("right", "holds", "lid", 82, 98)]
    items = items_of(scene_of(tmp_path, activities=activities, contacts=contacts))
    doors = [item.correct for item in items if item.candidate.subtask == "opening_v_closing"]
    assert sorted(doors) == [(0,), (1,)]


@pytest.fixture(scope="module")
def generated(small_kitchen: Path, made_once: MadeOnce) -> Path:
    return made_once("generated/vista", lambda out: generate_quick(small_kitchen, out))


def generate_quick(kitchen: Path, out: Path, num_proc: int = 1) -> None:
    """Generate a small release of a kitchen with actions of a fraction of a second."""
    domain = out.parent / f"{out.name}.yaml"
    words = resources.files("barista_bench.scene_graph").joinpath("domain.yaml").read_text(encoding="utf-8")
    domain.write_text(f"{words}\nlengths: {{action_min: 0.1}}\n", encoding="utf-8")
    generate(kitchen, out, ["vista"], per_subtask=9, domain=domain, num_proc=num_proc)


def test_the_release_is_read_without_a_problem_and_has_every_level(generated: Path) -> None:
    release = open_release(generated / "vista")
    assert list(release.problems) == []
    assert {problem_set.level for problem_set in release.sets.values()} == set(range(1, 9))
    assert {problem_set.type for problem_set in release.sets.values()} >= {"general", "actions"}
    for problem_set in release.sets.values():
        assert {label for video in problem_set.videos for label in video.labels} == set(problem_set.descriptions)
        assert set(problem_set.shared_prefix.values()) <= set(range(problem_set.level + 1))


def test_videos_have_one_rate_and_are_as_long_as_their_clips(generated: Path, small_kitchen: Path) -> None:
    graph = SceneGraph(small_kitchen)
    lines = [json.loads(line) for line in (generated / "vista.items.jsonl").read_text().splitlines()]
    release = open_release(generated / "vista")
    videos = {
        video.video_id: release.video_path(video.video_id)
        for problem_set in release.sets.values()
        for video in problem_set.videos
    }
    assert len(videos) == len(lines)
    for line in lines[::10]:
        _, name, number = line["id"].split("/")
        folder = re.sub(r"_(remix|permutation)$", r"/\1", line["subtask"])
        (path,) = [path for video, path in videos.items() if video.endswith(f"/{folder}/{name}/take_{number}.mp4")]
        seconds = sum(end - start for start, end in line["extra"]["spans"]) / (graph[line["video_id"]].video.fps or 0)
        with open_reader(path) as reader:
            assert reader.fps == pytest.approx(30)
            assert len(reader) / reader.fps == pytest.approx(seconds, abs=0.02 * len(line["extra"]["spans"]))


def test_real_clips_give_sequences(real_release: Path) -> None:
    graph, family = SceneGraph(real_release), VistaFamily(load_domain())
    items = [item for video in graph for item in items_of(Scene(video, family.domain))]
    assert {"on_v_off", "pick_v_put", "level_5_remix"} <= {item.candidate.subtask for item in items}


def test_a_subtask_too_small_for_any_whole_set_says_how_many_items_a_set_needs(
    small_kitchen: Path, tmp_path: Path
) -> None:
    (report,) = generate(small_kitchen, tmp_path / "out", ["vista"], per_subtask=3)
    reasons = {reason for row in report.subtasks if row.subtask.endswith("remix") for reason in row.refused}
    assert any(re.fullmatch(r"a set needs \d items; you asked for 3", reason) for reason in reasons)
