"""EgoCoT-Bench's questions from a graph: the question of each subtask, refusals, and decisions by evidence."""

import json
import re
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from barista_bench.benchmarks.egocot.evidence import EvidenceBase
from barista_bench.benchmarks.egocot.evidence_check import check_rationale
from barista_bench.benchmarks.egocot.items import clock_text
from barista_bench.benchmarks.egocot.question_evidence import question_evidence
from barista_bench.benchmarks.egocot.records import RecordReader
from barista_bench.benchmarks.egocot.release import open_release
from barista_bench.benchmarks.release_records import PlacedRecord
from barista_bench.errors import ConfigError
from barista_bench.generate.candidates import Choice, Item, QuestionCandidate, Tally, reasons_of
from barista_bench.generate.egocot.family import EgocotFamily, EvidenceMaker, record_of
from barista_bench.generate.egocot.statements import InPart
from barista_bench.generate.generator import generate
from barista_bench.generate.scene import Scene
from barista_bench.scene_graph import SceneGraph
from barista_bench.scene_graph.domain import load_domain
from barista_bench.scene_graph.reading import ProblemLog
from tests.generate.graphs import Box, annotation_file, on_top
from tests.generate.lemonade import lemonade
from tests.releases import relation, write_release

FAMILY = EgocotFamily(load_domain())
FRAMES, FPS = 61, 10
"""Of the hand-made graph: the task shows every fourth frame."""
BOXES = {
    "left hand": (2, 44, 10, 10),
    "right hand": (84, 44, 10, 10),
    "coffee cup": (10, 6, 12, 12),
    "jar": (30, 6, 8, 12),
    "drawer": (76, 6, 12, 12),
    "milk carton": (66, 46, 12, 12),
}
"""[x, y, width, height] in pixels of 96 x 64; ids are the categories."""
CONTACTS = [
    ("left hand", "coffee cup", "holds", (5, 14)),
    ("right hand", "drawer", "pulls", (18, 30)),
    ("left hand", "jar", "touches", (34, 42)),
    ("right hand", "milk carton", "holds", (46, 51)),
    ("left hand", "jar", "turns", (54, 59)),
]
STATES = {
    "drawer": [("close", (0, 22)), ("open", (22, 61))],
    "coffee cup": [("empty", (0, 38)), ("full", (38, 61))],
    "milk carton": [("close", (0, 49)), ("open", (49, 61))],
    "jar": [("close", (0, 57)), ("open", (57, 61))],
}
ACTIVITIES = [
    ("Grasp cup", (4, 16)),
    ("Open drawer", (17, 30)),
    ("Fill cup", (33, 44)),
    ("Open milk carton", (45, 52)),
    ("Open jar", (53, 60)),
]
STEPS = [("Prepare cup", (0, 16)), ("Fetch spoon", (16, 31)), ("Brew coffee", (31, 45)), ("Add milk", (45, 61))]


def document(**changes: Any) -> dict[str, Any]:
    """A graph of six seconds: `boxes`, `contacts`, `states`, `activities`, `steps` and `hidden` (id -> frames [a, b)
    without a box) as above unless changed."""
    boxes, hidden, contacts = (changes.get(*row) for row in (("boxes", BOXES), ("hidden", {}), ("contacts", CONTACTS)))

    def box_of(name: str, frame: int) -> Box | None:
        start, end = hidden.get(name, (0, 0))
        if start <= frame < end:
            return None
        touched = [thing for hand, thing, _, (first, stop) in contacts if hand == name and first <= frame < stop]
        return on_top(boxes[touched[0]], boxes[name]) if touched and touched[0] in boxes else boxes[name]

    return annotation_file(
        {name: name for name in boxes},
        box_of,
        (96, 64),
        FRAMES,
        FPS,
        [(name, "state", *row) for name, rows in changes.get("states", STATES).items() for row in rows],
        [relation(hand, thing, "human_actions", *row) for hand, thing, *row in contacts],
        changes.get("activities", ACTIVITIES),
        changes.get("steps", STEPS),
    )


def decided_by_subtask(root: Path, **changes: Any) -> tuple[dict[str, list[QuestionCandidate]], Tally]:
    """The candidates of the hand-made graph that can be asked, by subtask, and the counts of the others."""
    write_release(root, "v", document(**changes), video=False)
    tally, rows = Tally(), defaultdict(list)
    for candidate in FAMILY.decide_all(Scene(SceneGraph(root)["v"], FAMILY.domain), tally):
        rows[candidate.subtask].append(candidate)
    return rows, tally


def texts(candidate: QuestionCandidate) -> tuple[str, set[str]]:
    return candidate.right[0].text, {choice.text for choice in candidate.distractors}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[QuestionCandidate]]:
    return decided_by_subtask(tmp_path_factory.mktemp("graph"))[0]


@pytest.mark.parametrize(
    ("subtask", "question", "right", "distractors"),
    [
        (
            *("AOG", "At 00:01.20, which object is the left hand touching?", "The coffee cup."),
            {"The jar.", "The drawer.", "The milk carton."},
        ),
        (
            *("HOA", "At 00:02.40, which hand is touching which object?", "The right hand is touching the drawer."),
            {
                "The left hand is touching the drawer.",
                "The left hand is touching the coffee cup.",
                "The right hand is touching the coffee cup.",
            },
        ),
        (
            *("MSP", "At 00:02.40, what state is the drawer in, and is the right hand touching it?"),
            "The drawer is open, and the right hand is touching it.",
            {
                "The drawer is open, and the right hand is not touching it.",
                "The drawer is closed, and the right hand is touching it.",
                "The drawer is closed, and the right hand is not touching it.",
            },
        ),
        (
            *("SR", "When did the drawer go from closed to open?", "Between 00:02.00 and 00:02.40."),
            {"Between 00:00.80 and 00:01.20.", "Between 00:01.20 and 00:01.60.", "Between 00:01.60 and 00:02.00."},
        ),
        (
            *("LVR", "At 00:04.00, in which part of the frame was the jar?", "In the upper left."),
            {"In the upper right.", "In the lower left.", "In the lower right."},
        ),
        (
            *("LVR", "At 00:04.00, where in the picture is the drawer, compared with the jar?", "Further right."),
            {"Further left.", "Higher up.", "Lower down."},
        ),
        (
            *("HOTR", "In which order did the hands first touch the coffee cup, the drawer and the jar?"),
            "The coffee cup, then the drawer, then the jar.",
            {
                "The coffee cup, then the jar, then the drawer.",
                "The drawer, then the coffee cup, then the jar.",
                "The drawer, then the jar, then the coffee cup.",
                "The jar, then the coffee cup, then the drawer.",
                "The jar, then the drawer, then the coffee cup.",
            },
        ),
        (
            *("HOTR", "When does the right hand begin to touch the drawer?", "Between 00:01.60 and 00:02.00."),
            {"Between 00:02.00 and 00:02.40.", "Between 00:02.40 and 00:02.80.", "Between 00:02.80 and 00:03.20."},
        ),
        (
            *("NSA", "After 00:01.20, which of these becomes true next?", "The drawer is open."),
            {
                "The coffee cup is full.",
                "The milk carton is open.",
                "The jar is open.",
                "The coffee cup is being filled.",
            },
        ),
        (
            *("NAA", "After 00:03.20, which of these does the person do next?", "Fill the cup."),
            {"Open the drawer.", "Open the milk carton.", "Open the jar."},
        ),
        (
            *("LCOI", "Between 00:02.00 and 00:02.40, what does the person do, and what changes?"),
            "The person opens the drawer, which was closed until then.",
            {
                "The person fills the cup, and the coffee cup goes from empty to full.",
                "The person opens the milk carton, which was closed until then.",
                "The person opens the jar, which was closed until then.",
            },
        ),
        (
            *("PR", "Which step is the person on at 00:03.60?", "Brew the coffee."),
            {"Get the cup ready.", "Fetch the spoon.", "Add the milk."},
        ),
        (
            *("PR", 'When did the person move on from the step "fetch the spoon" to the step "brew the coffee"?'),
            "Between 00:02.80 and 00:03.20.",
            {"Between 00:01.60 and 00:02.00.", "Between 00:02.00 and 00:02.40.", "Between 00:02.40 and 00:02.80."},
        ),
        (
            *("HGC", "What is the left hand touching at 00:01.20, and what is the right hand touching at 00:02.40?"),
            "First the coffee cup, then the drawer.",
            {"First the drawer, then the coffee cup.", "The coffee cup both times.", "The drawer both times."},
        ),
        (
            *("HOA", "At 00:01.20, which hand or hands, if any, are touching the coffee cup?", "Only the left hand."),
            {"Only the right hand.", "Both hands.", "Neither hand."},
        ),
        (
            *("SR", "At 00:01.20, what state was the coffee cup in?", "Empty."),
            {"Being filled.", "Full.", "Being emptied."},
        ),
        (
            *("GOT", "The left hand is touching something at 00:01.20. What state is that object in at 00:05.60?"),
            *("Full.", {"Being filled.", "Empty.", "Being emptied."}),
        ),
        (
            *("GOT", "The right hand is touching something at 00:02.40. In which part of the frame is that object "),
            "In the upper right.",
            {"In the upper left.", "In the lower left.", "In the lower right."},
        ),
    ],
)
def test_each_subtask_asks_only_questions_that_the_graph_decides(
    asked: dict[str, list[QuestionCandidate]], subtask: str, question: str, right: str, distractors: set[str]
) -> None:
    assert (right, distractors) in [texts(c) for c in asked[subtask] if c.question.startswith(question)]


@pytest.mark.parametrize(
    ("subtask", "question", "is_so"),
    [
        ("HGC", "At which of these moments is the left hand touching the coffee cup?", range(5, 14)),
        ("SR", "At which of these moments was the drawer closed?", range(22)),
        ("PR", 'At which of these moments is the person on the step "fetch the spoon"?', range(16, 31)),
        ("PR", "At which of these moments is the person opening the drawer?", range(17, 30)),
        ("NAA", 'After which of these moments is "fill the cup" the next thing that the person does?', range(17, 33)),
    ],
)
def test_the_answer_holds_at_exactly_one_of_the_offered_moments(
    asked: dict[str, list[QuestionCandidate]], subtask: str, question: str, is_so: range
) -> None:
    candidates = [candidate for candidate in asked[subtask] if candidate.question == question]
    assert candidates
    for candidate in candidates:
        (right,), wrong = candidate.right, candidate.distractors
        moments = {f"At {clock_text(frame / FPS)}.": frame for frame in range(0, FRAMES, 4)}
        assert moments[right.text] in is_so
        assert len(wrong) == 3
        assert not any(moments[choice.text] in is_so for choice in wrong)


def test_a_question_asks_for_the_colour_of_the_held_object(tmp_path: Path) -> None:
    content = document()
    for item, colour in (("coffee cup", "red"), ("drawer", "black")):
        value = {"object_id": item, "attribute_type": "color", "value": colour}
        content["attributes"].append({**value, "image_ranges": [{"image_id_start": 0, "image_id_end": FRAMES}]})
    write_release(tmp_path, "v", content, video=False)
    candidates = list(FAMILY.decide_all(Scene(SceneGraph(tmp_path)["v"], FAMILY.domain), Tally()))
    colours = {c.question: c.right_text for c in candidates if "color" in c.question}
    assert colours["At 00:01.20, what color is the object that the left hand is touching?"] == "Red."
    assert colours["At 00:02.40, what color is the object that the right hand is touching?"] == "Black."


def test_places_are_asked_of_moments_and_moves_in_the_picture(tmp_path: Path) -> None:
    scene = Scene(SceneGraph(lemonade(tmp_path))["lemonade"], FAMILY.domain)
    questions = {(c.question, c.right_text) for c in FAMILY.decide_all(scene, Tally())}
    on_board = "At which of these moments is the lemon that the person touches first on the cutting board?"
    rights = {right for question, right in questions if question == on_board}
    assert rights
    assert all("At 00:01.60." < right < "At 00:06.84." for right in rights)
    moved = "Where in the picture is the knife at 00:03.17, compared with its place at 00:00.00?"
    assert (moved, "Lower down and further left.") in questions


def test_activities_without_an_object_are_asked_about(tmp_path: Path) -> None:
    rows = [("Reaching", (4, 16)), ("Stirring", (17, 30)), ("Wiping", (33, 44)), ("Putting down", (45, 60))]
    asked = decided_by_subtask(tmp_path, activities=rows)[0]
    assert ("Wipe.", {"Reach for something.", "Stir.", "Put down something."}) in map(texts, asked["NAA"])
    assert any("is the person stirring?" in candidate.question for candidate in asked["PR"])


def test_the_order_of_two_things_is_asked_once_also_of_their_parts(asked: dict[str, list[QuestionCandidate]]) -> None:
    pairs = Counter(pair for c in asked["HOTR"] for pair in combinations(c.objects, 2))
    assert asked["HOTR"]
    assert set(pairs.values()) == {1}


def test_a_sliver_at_the_edge_of_the_picture_has_no_quarter(tmp_path: Path) -> None:
    def places(box: Box) -> set[str]:
        rows, _ = decided_by_subtask(tmp_path / str(box[0]), boxes={**BOXES, "drawer": box})
        return {c.right_text for c in rows["LVR"] if "drawer" in c.question}

    assert "In the upper right." in places((88, 6, 7, 7))
    assert not places((89, 6, 7, 7))


@pytest.mark.parametrize(
    ("subtask", "changes", "reason"),
    [
        ("AOG", {"boxes": {name: BOXES[name] for name in list(BOXES)[:5]}}, "too few answers that the graph excludes"),
        ("AOG", {"hidden": {"left hand": (0, 61)}}, "the graph does not prove the answer"),
        ("NSA", {"states": {"drawer": STATES["drawer"]}}, "too few answers that the graph excludes"),
        ("NAA", {"activities": ACTIVITIES[:3]}, "too few answers that the graph excludes"),
        ("PR", {"steps": STEPS[:3]}, "too few answers that the graph excludes"),
        ("GOT", {"hidden": {"left hand": (0, 61)}}, "the hand is not clearly visible on it"),
        ("SR", {"hidden": {"drawer": (19, 22)}}, "its object is not clearly visible"),
    ],
)
def test_undecided_questions_are_refused(tmp_path: Path, subtask: str, changes: dict[str, Any], reason: str) -> None:
    _, tally = decided_by_subtask(tmp_path, **changes)
    assert reason in reasons_of(subtask, tally)


def test_a_name_that_fits_two_things_in_the_picture_is_never_asked_about_without_what_tells_them_apart(
    tmp_path: Path,
) -> None:
    content = document()
    content["object_id_to_category_id"]["jar"] = "c-coffee cup"
    write_release(tmp_path, "v", content, video=False)
    for candidate in FAMILY.decide_all(Scene(SceneGraph(tmp_path)["v"], FAMILY.domain), Tally()):
        for text in (candidate.question, candidate.right_text):
            assert not re.search(r"coffee cup(?! (on|in|inside|that|being|under))", text), text


def test_contacts_that_are_not_apart_have_no_order_and_changes_no_cause_but_an_action_that_can_bring_them_about(
    tmp_path: Path,
) -> None:
    at_once = [(hand, thing, value, (5, 14)) for hand, thing, value, _ in CONTACTS]
    rows = decided_by_subtask(tmp_path / "order", contacts=at_once)[0]["HOTR"]
    assert not any(candidate.wording == "egocot/HOTR" for candidate in rows)
    wiping = [*ACTIVITIES[:1], ("Wipe drawer", (17, 30)), *ACTIVITIES[2:]]
    causes = decided_by_subtask(tmp_path / "cause", activities=wiping)[0]["LCOI"]
    assert not any("drawer" in candidate.right[0].text for candidate in causes)


def test_questions_are_about_frames_that_the_task_shows(asked: dict[str, list[QuestionCandidate]]) -> None:
    assert set(asked) == set(FAMILY.subtasks)
    assert all(frame % 4 == 0 for rows in asked.values() for candidate in rows for frame in candidate.frames)
    domain = msgspec.structs.replace(load_domain(), families={"egocot": {"colours": {}}})
    with pytest.raises(ConfigError, match=r"families\.egocot.*Fix"):
        EgocotFamily(domain)


# Items generated from a kitchen and from real clips


class Generated:
    """Items of a release, with the data for their records."""

    def __init__(self, root: Path, per_subtask: int) -> None:
        scenes = {video.video_id: Scene(video, FAMILY.domain) for video in SceneGraph(root)}
        self.makers = {name: EvidenceMaker(scene, FAMILY.words) for name, scene in scenes.items()}
        candidates = [candidate for scene in scenes.values() for candidate in FAMILY.decide_all(scene, Tally())]
        self.items: list[Item] = []
        for subtask in FAMILY.subtasks:
            asked = [candidate for candidate in candidates if candidate.subtask == subtask]
            self.items += FAMILY.sample_subtask(subtask, asked, per_subtask, 0)

    def record(self, item: Item) -> tuple[dict[str, Any], EvidenceBase]:
        """An item's record, and what its rationales are held against."""
        maker = self.makers[item.candidate.video_id]
        record = record_of(item, maker)
        read = RecordReader(ProblemLog("test")).read(PlacedRecord("record", record))
        assert read.answer is not None
        video = maker.scene.video.video
        duration = maker.scene.frame_count / maker.scene.fps
        size = video.width, video.height
        evidence = question_evidence(
            read.evidence, read.question, read.choices, read.answer, size=size, duration=duration
        )
        return dict(record), evidence

    def argued(self, item: Item, choice: Choice) -> list[str]:
        """Sentences that argue for a choice, each about the moment that the choice is about."""
        maker = self.makers[item.candidate.video_id]

        def time(frame: int) -> str:
            return clock_text(frame / maker.scene.fps)

        if isinstance(choice.statement, InPart):
            statement = choice.statement
            name = maker.scene.things[statement.object].name
            where = f"in the {statement.part} of the frame"
            return [f"At {time(statement.frame)}, the {name} is {where}."]
        said = []
        for fact in maker.facts(choice.statement):
            if fact.predicate == "precedes":
                said.append(f"{fact.text[0].upper()}{fact.text[1:]}.")
            elif fact.predicate == "causes":
                said.append(f"From {time(fact.start)} to {time(fact.end)}, {fact.text}.")
            else:
                said.append(f"At {time(fact.frame)}, {fact.text}.")
        return list(dict.fromkeys(said))


@pytest.fixture(scope="module", params=[("small_kitchen", 5), ("real_release", 12)], ids=["kitchen", "real"])
def generated(request: pytest.FixtureRequest) -> Generated:
    release, per_subtask = request.param
    return Generated(request.getfixturevalue(release), per_subtask)


def test_every_rationale_states_what_decides_and_is_found_supported(generated: Generated) -> None:
    for item in generated.items:
        record, evidence = generated.record(item)
        rationale = "\n".join(record["reasoning"].values())
        checked = check_rationale(rationale, evidence, answer=record["answer"])
        assert (checked.precision, checked.recall) == (1.0, 1.0), (item.candidate.question, rationale)
        for choice in item.candidate.right:
            verdicts = check_rationale("\n".join(generated.argued(item, choice)), evidence)
            assert verdicts.findings, item.candidate.question
            assert verdicts.precision == 1.0, (item.candidate.question, verdicts.findings)


def test_a_rationale_that_argues_for_a_wrong_choice_is_contradicted(generated: Generated) -> None:
    counts: Counter[str] = Counter()
    for item in generated.items:
        _, evidence = generated.record(item)
        for number, choice in enumerate(item.choices):
            if number not in item.correct:
                said = "\n".join(generated.argued(item, choice))
                assert check_rationale(said, evidence).is_contradicted, (item.candidate.question, said)
                counts[item.candidate.subtask] += 1
    assert set(counts) == {item.candidate.subtask for item in generated.items}


def test_a_release_has_all_subtasks_and_hides_the_answers_of_its_test_split(
    small_kitchen: Path, tmp_path: Path
) -> None:
    (report,) = generate(small_kitchen, tmp_path / "out", ["egocot"], per_subtask=2)
    assert {row.subtask for row in report.subtasks if row.sampled} == set(FAMILY.subtasks)
    release = open_release(tmp_path / "out" / "egocot")
    assert not release.problems
    assert {item.split for item in release.items.values()} == {"dev", "test"}
    assert all(release.video_path(item.media_id).is_file() for item in release.items.values())
    hidden = json.loads((tmp_path / "out" / "egocot" / "test.json").read_text())
    assert all(not {"answer", "reasoning", "evidence"} & set(row) for row in hidden)
