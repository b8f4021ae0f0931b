"""Claims against evidence: supported, contradicted, and open claims."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks.egocot.evidence import EvidenceBase, EvidenceBox, EvidenceFact, annotated_evidence
from barista_bench.benchmarks.egocot.evidence_check import check_rationale
from barista_bench.benchmarks.egocot.items import DatedRelation, GraphFact, ItemEvidence
from barista_bench.benchmarks.egocot.question_evidence import question_evidence
from barista_bench.generate.egocot.rationales import rationale_of, region_words
from tests.egocot.made import CHOICES, kettle_evidence

KETTLE = annotated_evidence(kettle_evidence(), size=(100, 100), duration=10.0)
QUESTION = "At 2.0 seconds, which hand is holding the kettle?"
ASKED = question_evidence(kettle_evidence(), QUESTION, CHOICES, "B", size=(100, 100), duration=10.0)
THINGS = {"A": "kettle", "B": "spoon", "C": "blue bowl", "D": "tray"}
WHICH = question_evidence(
    kettle_evidence(), "Which object does the left hand hold at 2.0 s?", THINGS, "A", size=(100, 100), duration=10.0
)


def verdicts(text: str, evidence: EvidenceBase = KETTLE) -> dict[str, str]:
    """Kind -> verdict; for texts with one claim of a kind."""
    return {finding.claim.kind: finding.verdict for finding in check_rationale(text, evidence).findings}


@pytest.mark.parametrize(
    ("kind", "text", "verdict"),
    [
        ("hand", "The left hand holds the kettle.", "supported"),
        ("hand", "The left hand touches the kettle.", "supported"),  # the hand that holds it touches it
        ("hand", "At 2.0 s the right hand holds the kettle.", "contradicted"),
        ("hand", "At this moment the right hand holds the kettle.", "contradicted"),
        ("hand", "The right hand holds the kettle.", "unverifiable"),  # it may at another time
        ("hand", "At 2.0 s both hands hold the kettle.", "unverifiable"),
        ("hand", "At 2.0 s the left hand holds the tray.", "contradicted"),  # it holds another thing then
        ("hand", "Later the left hand holds the tray.", "unverifiable"),
        ("hand", "Before that the left hand holds the tray.", "unverifiable"),
        ("hand", "At 2.0 s the left hand holds the handle of the kettle.", "unverifiable"),
        ("hand", "At 2.0 s the left hand holds the metal rim.", "unverifiable"),
        ("hand", "The left hand releases the kettle.", "unverifiable"),
        ("hand", "The left hand presses the kettle.", "unverifiable"),
        ("hand", "The right hand holds the table.", "unverifiable"),  # it touches it: holding is more
        ("hand", "At 2.0 s the left hand holds the zither.", "contradicted"),
        ("hand", "The left hand touches the zither.", "unverifiable"),
        ("relation", "The kettle is on the tray.", "supported"),
        ("relation", "The tray is under the kettle.", "supported"),
        ("relation", "The kettle is near the tray.", "supported"),
        ("relation", "The tray is near the kettle.", "supported"),
        ("relation", "At 1.0 s the kettle is under the tray.", "contradicted"),
        ("relation", "At 1.0 s the tray is on the kettle.", "contradicted"),
        ("relation", "At 1.0 s the kettle is far from the tray.", "contradicted"),
        ("relation", "The kettle is far from the tray.", "unverifiable"),
        ("relation", "The kettle is inside the tray.", "unverifiable"),
        ("relation", "The tray is on the table.", "unverifiable"),
        ("time", "At 2.0 s the left hand holds the kettle.", "supported"),
        ("time", "At 3.4 s the left hand holds the kettle.", "supported"),  # within the tolerance
        ("time", "At 3.6 s the left hand holds the kettle.", "unverifiable"),  # not all of it may be dated
        ("time", "At 4.0 s the right hand touches the table, the left hand holds the kettle.", "supported"),
        ("time", "From 0.0 s to 2.0 s the kettle is on the tray.", "supported"),
        ("time", "At 5.0 s something happens.", "unverifiable"),
        ("time", "At 2.0 s something happens.", "supported"),
        ("time", "At 3.0 s something happens.", "supported"),  # annotated, though not in focus
        ("time", "At 12.0 s something happens.", "contradicted"),  # the video has 10 s
        ("time", "At 8.0 s the kettle is in the lower left of the frame.", "unverifiable"),
        ("time", "At 2.0 s the kettle is in the lower left of the frame.", "supported"),
        ("region", "The kettle is in the lower left of the frame.", "supported"),
        ("region", "The kettle is on the left side of the frame.", "supported"),
        ("region", "At 2.0 s the kettle is in the upper left of the frame.", "contradicted"),
        ("region", "At 2.0 s the kettle is in the lower right of the frame.", "contradicted"),
        ("region", "At 2.3 s the kettle is in the lower right of the frame.", "unverifiable"),
        ("region", "Later the kettle is in the lower right of the frame.", "unverifiable"),
        ("region", "The target is in the bottom half of the view.", "supported"),
        ("region", "The tray is in the lower left of the frame.", "unverifiable"),
    ],
)
def test_a_claim_is_supported_contradicted_or_left_open(kind: str, text: str, verdict: str) -> None:
    assert verdicts(text)[kind] == verdict


LONG = EvidenceBase(
    facts=(EvidenceFact("left hand", "holds", "pot", ((1.0, 5.0),)),),
    objects=frozenset({"left hand", "right hand", "pot", "lid"}),
    duration=10.0,
)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("At 3.0 s the right hand holds the pot.", "contradicted"),
        ("At 4.6 s the right hand holds the pot.", "unverifiable"),  # near its end
        ("At 5.4 s the right hand holds the pot.", "unverifiable"),
        ("At 5.4 s the left hand holds the pot.", "supported"),
        ("From 2.0 s to 4.0 s the right hand holds the pot.", "contradicted"),
        ("From 4.0 s to 7.0 s the right hand holds the pot.", "unverifiable"),
        ("At 3.0 s the left hand releases the pot.", "contradicted"),
        ("At 5.0 s the left hand releases the pot.", "unverifiable"),
        ("The left hand holds the lid for 3 seconds.", "unverifiable"),
    ],
)
def test_half_a_second_is_let_pass_in_favour_of_the_claim(text: str, verdict: str) -> None:
    assert verdicts(text, LONG)["hand"] == verdict


def test_a_fact_of_the_whole_clip_contradicts_claims_about_any_time() -> None:
    throughout = replace(LONG, facts=(EvidenceFact("left hand", "holds", "pot", ((0.0, 10.0),)),))
    for text, verdict in (
        ("The right hand holds the pot.", "contradicted"),
        ("Later the left hand holds the lid.", "contradicted"),
        ("Then the left hand drops the pot.", "unverifiable"),
    ):
        assert verdicts(text, LONG)["hand"] == "unverifiable"
        assert verdicts(text, throughout)["hand"] == verdict


@pytest.mark.parametrize(("x", "left"), [(0.3, "supported"), (0.55, "unverifiable"), (0.7, "contradicted")])
def test_near_the_middle_both_sides_are_accepted(x: float, left: str) -> None:
    evidence = EvidenceBase(places=(EvidenceBox("pot", 1.0, (x, 0.5, x, 0.5)),), objects=frozenset({"pot"}))
    assert verdicts("At 1.0 s the pot is on the left side of the frame.", evidence)["region"] == left


def test_an_object_that_incomplete_evidence_does_not_name_is_left_open() -> None:
    assert verdicts("There is a fridge.") == {"object": "unverifiable"}
    assert verdicts("There is a kettle.") == {"object": "supported"}


def test_complete_evidence_contradicts_claims_outside_it() -> None:
    evidence = EvidenceBase(
        facts=(EvidenceFact("left hand", "holds", "pot", ((1.0, 2.0),)),),
        objects=frozenset({"left hand", "right hand", "pot", "lid"}),
        is_complete=True,
        scheme=frozenset({"on", "holds"}),
    )
    assert verdicts("There is a fridge.", evidence)["object"] == "contradicted"
    assert verdicts("The lid is on the pot.", evidence)["relation"] == "contradicted"
    assert verdicts("The lid is behind the pot.", evidence)["relation"] == "unverifiable"  # not annotated
    assert verdicts("The right hand holds the lid.", evidence)["hand"] == "contradicted"


def test_the_right_choice_says_which_hand_it_is() -> None:
    bare = ItemEvidence(timestamps=(2.0,))
    assert question_evidence(bare, "Which hand is on it at 2.0 s, holding it?", CHOICES, "B").facts == ()
    named = question_evidence(bare, "Which hand is holding the ladle?", CHOICES, "B")
    assert [fact[:3] for fact in named.facts] == [("left hand", "holds", "ladle")]
    assert verdicts("The left hand holds the ladle.", named)["hand"] == "supported"
    assert verdicts("At 2.0 s the right hand holds the ladle.", named)["hand"] == "contradicted"


def test_facts_of_wrong_choices_are_not_the_subject_of_the_question() -> None:
    assert verdicts("The target object is the spoon.", WHICH) == {"object": "contradicted"}
    assert verdicts("The target object is the kettle.", WHICH) == {"object": "supported"}
    assert verdicts("The left hand touches the spoon.", WHICH)["hand"] == "unverifiable"
    assert verdicts("At 2.0 s the left hand holds the blue bowl.", WHICH)["hand"] == "contradicted"
    assert verdicts("Before that the left hand held the blue bowl.", WHICH)["hand"] == "unverifiable"
    assert verdicts("There is a spoon.", WHICH) == {"object": "unverifiable"}  # it may be there all the same


GRAPH = annotated_evidence(
    ItemEvidence(
        timestamps=[2.0, 4.0],
        relations=[
            DatedRelation("left hand", "holds", "drawer", 2.5, 3.5),
            DatedRelation("right hand", "touches", "white cup", 5.0, 6.0),
        ],
        graph_facts=[
            GraphFact("drawer", "is", "closed", 0.0, 2.9, True, "the drawer is closed"),
            GraphFact("drawer", "is", "open", 3.0, 9.0, True, "the drawer is open"),
            GraphFact("drawer", "is", "open", 2.0, 2.0, False, "the drawer is open"),
            GraphFact("white cup", "is", "full", 4.0, 4.0, False, "the white cup is full"),
            GraphFact("operator", "does", "open the drawer", 2.4, 3.6, True, "the person opens the drawer"),
            GraphFact("operator", "does", "start the mill", 2.0, 2.0, False, "the person starts the mill"),
            GraphFact("open the drawer", "causes", "drawer is open", 2.0, 4.0, True, "so"),
            GraphFact("start the mill", "causes", "drawer is open", 2.0, 4.0, False, "so"),
            GraphFact("left hand on drawer", "precedes", "right hand on white cup", 2.5, 5.0, True, "so"),
            GraphFact("right hand", "touches", "drawer", 2.0, 2.0, False, "the right hand touches the drawer"),
        ],
    ),
    duration=10.0,
)


@pytest.mark.parametrize(
    ("text", "kind", "verdict"),
    [
        ("At 4.0 s the drawer is open.", "state", "supported"),
        ("At 2.0 s the drawer is open.", "state", "contradicted"),  # within half a second, but excluded at that moment
        ("At 1.9 s the drawer is open.", "time", "unverifiable"),  # no annotation at this time
        ("At 4.0 s the white cup is full.", "state", "contradicted"),
        ("At 4.0 s the cup is full.", "state", "unverifiable"),  # it may be another one
        ("At 3.0 s the person opens the drawer.", "action", "supported"),
        ("At 3.0 s, opening the drawer goes on.", "action", "supported"),
        ("At 2.0 s the person starts the mill.", "action", "contradicted"),
        ("The person opens the drawer, so that the drawer is open.", "cause", "supported"),
        ("From 2.0 s to 4.0 s the person starts the mill, so that the drawer is open.", "cause", "contradicted"),
        ("The left hand holds the drawer before the right hand touches the white cup.", "order", "supported"),
        ("The right hand touches the white cup before the left hand holds the drawer.", "order", "contradicted"),
        ("At 2.0 s the right hand touches the drawer.", "hand", "contradicted"),
    ],
)
def test_claims_about_what_only_a_graph_says(text: str, kind: str, verdict: str) -> None:
    findings = check_rationale(text, GRAPH).findings
    assert [finding.verdict for finding in findings if finding.claim.kind == kind] == [verdict]


@pytest.mark.parametrize("text", ["The open drawer is there.", "It is open.", "The drawer is not open."])
def test_a_sentence_claims_a_state_only_for_a_named_thing(text: str) -> None:
    assert "state" not in {finding.claim.kind for finding in check_rationale(text, GRAPH).findings}


def test_without_a_graph_no_claims_about_states_actions_causes_or_order_are_made() -> None:
    text = "The left hand holds the kettle before the right hand touches the table, so that the kettle is open."
    kinds = {finding.claim.kind for finding in check_rationale(text, KETTLE).findings}
    assert kinds == {"hand", "object"}


def test_true_rationales_have_precision_and_recall_1() -> None:
    checked = check_rationale("\n".join(rationale_of(KETTLE)), KETTLE)
    assert (checked.precision, checked.recall) == (1.0, 1.0)
    assert checked.expected_count == 3 + 2 + 1 + 1  # relations, targets, moments, boxes in focus
    assert check_rationale("", ASKED).expected_count == checked.expected_count, "facts of the question are not counted"


def test_recall_counts_correct_claims_and_no_wrong_ones() -> None:
    checked = check_rationale("The right hand holds the kettle.", KETTLE)
    assert (checked.said_count, checked.recall) == (1, 1 / 7)  # the kettle, which is a target
    assert check_rationale("Because.", KETTLE).precision is None
    assert check_rationale("Because.", EvidenceBase()).recall is None


def test_the_words_for_a_region_are_supported_by_its_box() -> None:
    for x in range(0, 100, 7):
        for y in range(0, 100, 7):
            box = (x / 100, y / 100, x / 100 + 0.01, y / 100 + 0.01)
            evidence = EvidenceBase(places=(EvidenceBox("pot", 1.0, box),), objects=frozenset({"pot"}))
            findings = check_rationale(f"The pot is in the {region_words(box)} of the frame.", evidence).findings
            assert [f.verdict for f in findings if f.claim.kind == "region"] == ["supported"], region_words(box)


SENTENCES = st.sampled_from(
    [
        "The left hand holds the kettle.",
        "The right hand holds the kettle.",
        "At 2.0 s the kettle is in the lower left of the frame.",
        "At 9.0 s the kettle is on the tray.",
        "There is a fridge.",
        "Nothing else is seen.",
    ]
)


@given(st.text(max_size=300) | st.lists(SENTENCES, max_size=8).map(" ".join))
def test_checking_never_raises_and_its_shares_are_shares(text: str) -> None:
    for evidence in (KETTLE, ASKED, WHICH, EvidenceBase(is_complete=True)):
        checked = check_rationale(text, evidence, answer="A")
        assert 0 <= checked.said_count <= checked.expected_count
        assert sum(map(checked.count, ("supported", "contradicted", "unverifiable"))) == len(checked.findings)
        assert checked.precision is None or 0 <= checked.precision <= 1


@given(st.lists(SENTENCES, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_verdicts_do_not_depend_on_the_order_of_sentences(sentences: list[str], rng: random.Random) -> None:
    def counts(texts: list[str]) -> tuple[int, ...]:
        checked = check_rationale(" ".join(dict.fromkeys(texts)), KETTLE)
        return (*map(checked.count, ("supported", "contradicted", "unverifiable")), checked.said_count)

    assert counts(sentences) == counts(rng.sample(sentences, len(sentences)))
