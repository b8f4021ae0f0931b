"""The claim grammar: the claims of a sentence, in anybody's words."""

import sys
import time

import pytest
from hypothesis import given, strategies as st

from barista_bench.benchmarks.egocot.claims import KINDS, MAX_CLAIMS, Claim, claims_of
from barista_bench.benchmarks.egocot.evidence import vocabulary_of
from barista_bench.benchmarks.egocot.lexicon import Region

VOCABULARY = vocabulary_of(["kettle", "coffee cup", "tray", "milk carton", "handle", "drawer"])


def said(text: str, answer: str | None = None) -> list[Claim]:
    return claims_of(text, VOCABULARY, answer)


def relations(text: str) -> list[tuple[str, str, str]]:
    claims = [claim for claim in said(text) if claim.kind in ("hand", "relation")]
    return [(min(claim.subject), claim.predicate, min(claim.object)) for claim in claims]


@pytest.mark.parametrize(
    "text",
    [
        *("The left hand holds the kettle.", "the operator's left hand is firmly gripping the white kettle"),
        *("The kettle is held by the left hand.", "The kettle is being held in their left hand."),
        *("He uses the kettle in his left hand.", "LEFT-HAND grasping of the kettle"),
        *("Their left hand picks up the kettle", "Left hand: holding kettle"),
        "His left hand holds the kettle.",
        # The rest of a sentence with a denial counts.
        "The left hand holds the kettle, not the tray.",
        "It is the left hand that holds the kettle, while no hand is on the tray.",
    ],
)
def test_one_thing_in_many_words_is_one_claim(text: str) -> None:
    assert relations(text) == [("left hand", "holds", "kettle")]


def test_both_hands_and_two_objects_joined_by_and_are_two_claims() -> None:
    assert relations("Both hands hold the tray.") == [("left hand", "holds", "tray"), ("right hand", "holds", "tray")]
    assert relations("The right hand touches the tray and the kettle.") == [
        ("right hand", "touches", "tray"),
        ("right hand", "touches", "kettle"),
    ]
    assert relations("The right hand holds the tray and the kettle is on the tray.") == [
        ("right hand", "holds", "tray"),
        ("kettle", "on", "tray"),
    ]
    both = [*said("Both hands hold the tray."), *said("The tray is near both hands.")]
    assert all(claim.of_both_hands for claim in both if claim.kind != "object")
    (hand_claim,) = [claim for claim in said("The left hand touches the handle of the kettle.") if claim.kind == "hand"]
    assert (hand_claim.part_of, hand_claim.of_both_hands) == (frozenset({"kettle"}), False)


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("The kettle is on top of the tray.", ("kettle", "on", "tray")),
        ("The tray lies beneath the kettle.", ("tray", "under", "kettle")),
        ("The kettle is above the tray.", ("tray", "under", "kettle")),
        ("The milk carton contains the cup", ("coffee cup", "inside", "milk carton")),
        ("a mug next to the carton", ("coffee cup", "near", "milk carton")),
        ("The right hand handles the kettle.", ("right hand", "manipulates", "kettle")),
        ("The right hand pulls the handle.", ("right hand", "pulls", "handle")),
    ],
)
def test_relations_have_their_direction(text: str, claim: tuple[str, str, str]) -> None:
    assert relations(text) == [claim]


@pytest.mark.parametrize(
    "text",
    [
        *("The left hand does not hold the kettle.", "No hand holds the kettle."),
        *("The left hand might hold the kettle.", "If the left hand holds the kettle, it pours."),
        *("Option A says that the left hand holds the kettle.", "C is wrong: the left hand holds the kettle"),
        "Neither the left hand nor the right hand touches the tray.",
    ],
)
def test_denied_supposed_and_quoted_facts_are_no_claims(text: str) -> None:
    assert relations(text) == []


def test_a_statement_about_the_answered_choice_is_a_claim() -> None:
    text = "Option B fits since the left hand holds the kettle."
    assert [claim.kind for claim in said(text, "B")] == ["hand", "object"]
    assert said(text, "A") == []


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("At 00:01.50 it opens.", [(1.5, 1.5)]),
        ("From 00:01.00 to 00:02.50, it opens.", [(1, 2.5)]),
        ("(00:30.00–00:30.25)", [(30, 30.25)]),
        ("between 3 s and 5 s", [(3, 5)]),
        ("at 3 s and 5 s", [(3, 3), (5, 5)]),
        ("At 00:01.00, 00:02.00 and 00:03.00", [(1, 1), (2, 2), (3, 3)]),
        ("at 2.5 seconds", [(2.5, 2.5)]),
        ("t=4.25", [(4.25, 4.25)]),
        ("at 1:00:02", [(3602, 3602)]),
        ("'00:28.00': contact", [(28, 28)]),
        ("from 3 to 5 s", [(3, 5)]),
        ("At 2 s left hand and right hand meet.", [(2, 2)]),
        *((text, []) for text in ("in frame 12 of 16, 3 cups, 1280x720", "for 5 seconds", "a 5 second hold")),
        *((text, []) for text in ("for about 20 s in total, for 3 to 5 seconds", "with 30 s left on the timer")),
        *((text, []) for text in ("a microwave clock reads 10:45", "it takes 3 seconds, or within 2 s")),
        *((text, []) for text in ("5 seconds later, after 00:02.00, before 3 s", "in the first 5 seconds")),
    ],
)
def test_times_and_ranges_in_their_many_spellings(text: str, times: list[tuple[float, float]]) -> None:
    assert [claim.times[0] for claim in said(text) if claim.kind == "time"] == times


def test_claims_take_the_times_of_their_clause_or_the_last_ones_before() -> None:
    claims = said("At 00:01.00 the left hand holds the tray; the right hand is on the kettle. It is near the drawer.")
    assert [(claim.kind, claim.times) for claim in claims if claim.kind in ("hand", "relation")] == [
        ("hand", ((1, 1),)),
        ("relation", ((1, 1),)),
        ("relation", ()),
    ]


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("Then, at 2 s, the left hand holds the tray.", ((2, 2),)),
        ("At 2 s it opens, and later the left hand holds the tray.", ()),
        ("After 2 s the left hand holds the tray.", ()),
        ("It opens at 2 s. Afterwards the left hand holds the tray.", ()),
        ("It opens at 2 s. At this moment the left hand holds the tray.", ((2, 2),)),
        ("At this moment the left hand holds the tray.", ((7, 7),)),
    ],
)
def test_words_of_order_take_a_claim_to_another_time(text: str, times: object) -> None:
    (hand_claim,) = [claim for claim in claims_of(text, VOCABULARY, moment=((7, 7),)) if claim.kind == "hand"]
    assert hand_claim.times == times


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("The kettle is in the lower left of the frame.", Region("left", "lower")),
        ("The kettle appears in the lower-left region.", Region("left", "lower")),
        ("the kettle on the right side of the view", Region("right", "")),
        ("the kettle at the top of the image", Region("", "upper")),
        ("the kettle in the center of the frame", Region("centre", "")),
        ("The kettle is at the middle right of view", Region("right", "middle")),
        ("Top of the image: kettle.", Region("", "upper")),
    ],
)
def test_parts_of_the_frame(text: str, region: Region) -> None:
    (region_claim,) = [claim for claim in said(text) if claim.kind == "region"]
    assert (region_claim.region, region_claim.subject) == (region, frozenset({"kettle"}))
    assert region_claim.start <= text.index("kettle") < region_claim.end


@pytest.mark.parametrize(
    "text",
    [
        "The kettle is right there.",
        "The left side of the cup touches it",
        "the upper part of the kettle",
        "The right answer is the kettle.",
        "It is in the lower left of the frame",
    ],
)
def test_ambiguous_words_are_not_part_of_the_frame(text: str) -> None:
    assert not [claim for claim in said(text) if claim.kind == "region"]


def test_a_hand_on_something_unheard_of_is_a_claim_all_the_same() -> None:
    (hand_claim,) = [claim for claim in said("The left hand is holding the purple zither.") if claim.kind == "hand"]
    assert (hand_claim.object, hand_claim.is_invented) == (frozenset({"zither"}), True)


def test_a_statement_about_the_target_is_a_claim_about_it() -> None:
    ends = [(claim.subject, claim.object) for claim in said("The target object is the kettle.")]
    assert ends == [(frozenset({"target"}), frozenset({"kettle"}))]


SOME = "left right hand hands kettle tray holds on in at 00:01.00 not the and to lower upper frame . , ; — of ("
WORDS = st.sampled_from(SOME.split())


@given(st.lists(WORDS, max_size=60).map(" ".join) | st.text(max_size=200))
def test_extraction_never_raises_and_stays_inside_of_the_text(text: str) -> None:
    for claim in said(text):
        assert claim.kind in KINDS
        assert 0 <= claim.start < claim.end <= len(text)


@given(st.lists(WORDS, max_size=40).map(" ".join))
def test_a_repeated_text_makes_the_same_claims(text: str) -> None:
    def contents(of: str) -> set[object]:
        return {claim.content for claim in said(of)}

    assert contents(f"{text}\n{text}") == contents(text)


@pytest.mark.parametrize(
    "piece",
    ["left hand holds ", "00:01.00–", "left ", "the ", ". ", "the left hand holds the kettle at 1 s. ", "(" * 10],
)
def test_work_grows_with_the_length_of_the_text_and_claims_are_bounded(piece: str) -> None:
    def calls(length: int) -> int:
        text = (piece * (length // len(piece) + 1))[:length]
        count = 0

        def counted(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(counted)
        try:
            claims = said(text)
        finally:
            sys.setprofile(None)
        assert len(claims) <= MAX_CLAIMS
        return count

    # Quadratic work would be 100 times as much.
    assert calls(20_000) < 20 * calls(2_000)


@pytest.mark.parametrize("text", [" " * 50_000, ("a" + " " * 3000) * 16, ", " + "\t" * 40_000, " and" + " " * 40_000])
def test_runs_of_blanks_take_no_quadratic_time(text: str) -> None:
    """Patterns are not calls, so counting calls misses them."""
    started = time.process_time()
    assert not said(f"so{text}so")
    assert time.process_time() - started < 3
