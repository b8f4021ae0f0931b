"""A domain file proposed from a graph's own words: it loads, covers them all, and excludes nothing that is so."""

from collections import Counter
from itertools import combinations
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.generate.family import FAMILIES, family_class
from barista_bench.generate.scene import Scene
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import Domain, load_domain
from barista_bench.scene_graph.domain_draft import draft_domain, lacking_lines
from barista_bench.scene_graph.graph_words import MOST_PLACES, GraphWords, WordPlace, survey_words
from tests.generate.graphs import graph_document
from tests.releases import write_release


@pytest.fixture(scope="module")
def words(small_kitchen: Path) -> GraphWords:
    return survey_words(SceneGraph(small_kitchen))


@pytest.fixture(scope="module")
def drafted(words: GraphWords, tmp_path_factory: pytest.TempPathFactory) -> Domain:
    path = tmp_path_factory.mktemp("draft") / "domain.yaml"
    path.write_text(draft_domain(words, "kitchen"))
    return load_domain(path)


def test_it_covers_the_words_of_the_graph_and_serves_every_family(words: GraphWords, drafted: Domain) -> None:
    assert [line for line in lacking_lines(words, drafted) if not line.startswith("nouns")] == []
    assert (drafted.contact_type, drafted.place_type) == ("human_actions", "position")
    for family in FAMILIES:
        family_class(family)(drafted)


def test_a_relation_type_of_two_lines_stays_in_its_comment(words: GraphWords, tmp_path: Path) -> None:
    more = GraphWords()
    more.merge(words)
    more.add(("relation", "thing", "near\nhands: {left: [spoon]}", "by"), WordPlace("somewhere", 0, "somewhere"))
    path = tmp_path / "domain.yaml"
    path.write_text(draft_domain(more, "kitchen"))
    assert load_domain(path).hands == load_domain().hands


def test_contacts_and_participles_equal_the_finished_file(drafted: Domain) -> None:
    finished = load_domain()
    for name, forms in drafted.contacts.items():
        known = finished.contacts[name]
        assert (forms.does, forms.do, forms.doing) == (known.does, known.do, known.doing)
    doing, known_doing = (domain.families["handyvqa"]["doing"] for domain in (drafted, finished))
    participles = {  # of the verb itself: the finished file says "grabbing" for "grasp"
        verb: said
        for verb, said in known_doing.items()
        if verb in doing and " " not in said and said.startswith(verb[:-1])
    }
    assert len(participles) > 10
    assert {verb: doing[verb] for verb in participles} == participles


def test_an_object_never_has_two_exclusive_values_at_the_same_time(small_kitchen: Path, drafted: Domain) -> None:
    assert drafted.relation_of("state", "open", "close") == "exclusive"
    assert drafted.relation_of("state", "empty", "full") == "exclusive"
    for video in SceneGraph(small_kitchen):
        for first, second in combinations(video.attributes(), 2):
            is_one = (first.object.id, first.type) == (second.object.id, second.type) and first.value != second.value
            if is_one and max(first.start, second.start) < min(first.end, second.end):
                assert drafted.relation_of(first.type, first.value, second.value) != "exclusive"


@pytest.mark.parametrize("lemon", [("unknown", "lemon"), ("unknown", None), ("lemon", None)], ids=str)
def test_the_content_of_a_vessel_is_not_the_vessel(tmp_path: Path, lemon: tuple[str, str | None]) -> None:
    """A noun without its own category may mean an object without a noun, but no other object touched at that time."""
    category, kind = lemon
    objects = {"right": "right hand", "left": "left hand", "fruit": category, "bowl": "vessel", "tin": "container"}
    activities = [("Pick lemon", (0, 20)), ("Reach lemon", (20, 40)), ("Empty tray", (40, 60)), ("Fill tray", (60, 80))]
    content = graph_document(
        objects,
        attributes=[("fruit", "type", kind, (0, 100))] if kind else [],
        relations=[
            ("right", "human_actions", "holds", "fruit", (0, 40)),
            ("left", "human_actions", "holds", "bowl", (0, 40)),
            ("left", "human_actions", "holds", "tin", (40, 80)),
        ],
        activities=activities,
    )
    write_release(tmp_path, "v1", content, video=False)
    (tmp_path / "draft.yaml").write_text(draft_domain(survey_words(SceneGraph(tmp_path)), "fruit"))
    drafted = load_domain(tmp_path / "draft.yaml")
    assert not drafted.same_noun("lemon", "vessel")
    assert drafted.same_noun("tray", "container")


def test_verbs_are_said_as_people_say_them_before_a_noun(tmp_path: Path) -> None:
    objects = {"right": "right hand", "fruit": "lemon"}
    contacts = [("right", "human_actions", "holds", "fruit", (0, 40))]
    states = [("fruit", "state", "whole", (0, 100))]
    activities = [("Pick lemon", (0, 20)), ("Reach lemon", (20, 40)), ("Cut lemon", (40, 60))]
    content = graph_document(objects, relations=contacts, attributes=states, activities=activities)
    write_release(tmp_path, "v1", content, video=False)
    words = survey_words(SceneGraph(tmp_path))
    (tmp_path / "draft.yaml").write_text(draft_domain(words, "fruit"))
    families = load_domain(tmp_path / "draft.yaml").families
    assert families["handyvqa"]["doing"] == {"pick": "picking up", "reach": "reaching for", "cut": "cutting"}
    assert families["egocot"]["verbs"] == families["vista"]["phrases"] == {"pick": "pick up", "reach": "reach for"}
    assert any(
        "reach: reaching for" in line
        for line in lacking_lines(words, msgspec.structs.replace(load_domain(), families={}))
    )


def test_the_packages_groups_of_verbs_and_its_stuff_are_kept_as_far_as_the_graph_has_them(tmp_path: Path) -> None:
    objects = {"right": "right hand", "kettle": "kettle", "milk": "oat milk"}
    contacts = [("right", "hand contact", "grips", "kettle", (0, 80))]
    names = ("Raising kettle", "Lifting up kettle", "Lowering kettle", "Grabbing kettle", "Sprinkling cinnamon")
    activities = [(name, (20 * number, 20 * number + 20)) for number, name in enumerate(names)]
    write_release(tmp_path, "v1", graph_document(objects, relations=contacts, activities=activities), video=False)
    text = draft_domain(survey_words(SceneGraph(tmp_path)), "kettles")
    (tmp_path / "draft.yaml").write_text(text)
    drafted = load_domain(tmp_path / "draft.yaml")
    pairs = (("lift", "raise"), ("lift up", "raise"), ("grab", "grip"), ("raise", "lower"), ("lower", "sprinkle"))
    assert [drafted.same_verb(*pair) for pair in pairs] == [True, True, True, False, False]
    assert drafted.divisible == ("milk",)
    assert {verb for group in drafted.verbs for verb in group} <= {"raise", "lift", "lower", "grab", "grip"}
    section = text.partition("\nverbs:\n")[2].partition("\nnouns:")[0]
    assert all(" x, v1" in line for line in section.splitlines() if line.startswith("  - "))


def test_the_draft_of_a_graph_with_touches_only_serves_every_family(tmp_path: Path) -> None:
    contacts = [("right", "human_actions", "holds", "fruit", (0, 40))]
    write_release(
        tmp_path, "v1", graph_document({"right": "right hand", "fruit": "lemon"}, relations=contacts), video=False
    )
    (tmp_path / "draft.yaml").write_text(draft_domain(survey_words(SceneGraph(tmp_path)), "fruit"))
    domain = load_domain(tmp_path / "draft.yaml")
    families = {name: family_class(name)(domain) for name in FAMILIES}
    questions = [c.question for c in families["tog_bench"].candidates(Scene(SceneGraph(tmp_path)["v1"], domain))]
    assert "Bring me the lemon." in questions


def test_counts_and_places_come_from_the_graph(small_kitchen: Path, words: GraphWords) -> None:
    activities = [row for video in SceneGraph(small_kitchen) for row in video.activities()]
    counts = Counter(row.name.lower().partition(" ")[0] for row in activities)
    assert {verb: words.counts["verb", verb] for (verb,) in words.rank_words("verb")} == counts
    first, *others = words.places["verb", "grasp"]
    assert len(others) == MOST_PLACES - 1
    video = SceneGraph(small_kitchen)[first.video_id]
    start = min(row.start for row in video.activities() if row.name.startswith("Grasp"))
    assert first[:3] == (video.video_id, start, f"{video.video_id} at {start / (video.video.fps or 1):.1f} s")


def test_the_command_writes_a_new_file_and_no_statistics(small_release: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine.yaml"
    flags = ["show", "stats", str(small_release), "--domain-draft", str(out), "--out", str(tmp_path / "statistics")]
    done = CliRunner().invoke(cli.app, flags)
    assert done.exit_code == 0, done.output
    assert load_domain(out).version == 1
    assert not (tmp_path / "statistics").exists()
    again = CliRunner().invoke(cli.app, flags)
    assert again.exit_code != 0
    assert "exists already" in again.output


def test_places_of_a_word_are_the_first_on_frames_apart() -> None:
    words, more = GraphWords(), GraphWords()
    words.add(("verb", "pour"), WordPlace("a", 1, "a 1"), WordPlace("a", 1, "a 1", ("cup",)), WordPlace("a", 2, "a 2"))
    more.add(("verb", "pour"), WordPlace("a", 2, "again"), WordPlace("b", 1, "b 1"), WordPlace("c", 1, "c 1"))
    words.merge(more)
    assert [place.text for place in words.places["verb", "pour"]] == ["a 1", "a 2", "b 1"]
    assert words.note("verb", "pour") == "2 x, a 1"
