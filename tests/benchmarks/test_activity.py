"""Activity recognition, rule by rule (docs/upstream/barista.md)."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from barista_bench.benchmarks.barista.activity import Activity
from barista_bench.benchmarks.barista.activity_choices import ActivitySampling
from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat
from barista_bench.core.example import Example, FrameRef, ParseError, Prediction, SkippedExample, write_scores
from barista_bench.core.options import Sampling
from barista_bench.errors import DataError
from tests.answering import answer_all, derived_and_skipped
from tests.releases import document, span, write_release

TASK = Activity()
BOXES = BoxFormat()
ALL = ActivitySampling(seed=42, frames=4, choices=25, per_class=None, same_verb=4)
VERBS = ("Open", "Close", "Place", "Remove", "Press")
NOUNS = ("bottle", "lid", "door", "drawer", "coffee cup", "tap")
CLASSES = {f"{verb} {noun}".lower().replace(" ", "-"): f"{verb} {noun}" for verb in VERBS for noun in NOUNS}
"""Class id to display name: 30 classes, 6 of each verb."""


def activity(start: int, end: int, class_id: str | None = "open-lid", name: str | None = None) -> dict:
    name = CLASSES[class_id or "open-lid"] if name is None else name
    return {"image_range": span(start, end), "activity_class_id": class_id, "display_name": name}


def release(root: Path, *activities: dict, video_id: str = "v1", preparation: str = "capsule") -> Path:
    content = document(preparation)
    content["activities"] = list(activities)
    return write_release(root, video_id, content, video=False)


def vocabulary_video(root: Path) -> Path:
    """A video that names all 30 classes, in segments too short to be asked about."""
    return release(root, *(activity(k, k + 1, class_id) for k, class_id in enumerate(CLASSES)), video_id="names")


def derive(root: Path, sampling: Sampling = ALL) -> tuple[list[Example], list[SkippedExample]]:
    return derived_and_skipped(TASK, root, sampling)


def ranges(root: Path, sampling: Sampling = ALL) -> list[tuple[str, int, int]]:
    """(video, start, end) of the examples."""
    segments, _ = derive(root, sampling)
    return [(e.video_id, e.metadata["segment_start"], e.metadata["segment_end"]) for e in segments]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three segments in `v1`, two in `v2`, of classes with all distractors there are."""
    root = vocabulary_video(tmp_path_factory.mktemp("activity"))
    release(root, activity(0, 10, "place-coffee-cup"), activity(10, 20, "press-tap"), activity(25, 40, "open-lid"))
    return release(root, activity(2, 9, "open-lid"), activity(20, 31, "close-door"), video_id="v2", preparation="pods")


@pytest.fixture(scope="module")
def examples(root: Path) -> list[Example]:
    return derive(root)[0]


def test_segments_come_by_video_and_by_place_in_the_file(tmp_path: Path) -> None:
    vocabulary_video(tmp_path)
    release(tmp_path, activity(20, 30), activity(0, 10), video_id="v2")
    release(tmp_path, activity(0, 5))
    assert ranges(tmp_path) == [("v1", 0, 5), ("v2", 20, 30), ("v2", 0, 10)]


@pytest.mark.parametrize(
    ("segment", "count", "shown"),
    [
        ((0, 10), 4, [0, 3, 6, 10]),
        ((25, 40), 4, [25, 29, 34, 39]),  # frame 40 is missing
        ((2, 9), 4, [2, 4, 6, 9]),
        ((5, 8), 4, [5, 6, 7, 8]),
        ((-5, 8), 4, [0, 2, 5, 8]),
        ((30, 99), 4, [30, 33, 36, 39]),
        ((20, 29), 1, [25]),  # of an even number the later one in the middle
        ((20, 30), 1, [25]),
        ((0, 10), 11, [*range(11)]),
        ((0, 2), 4, []),
        ((37, 40), 4, []),
        ((50, 60), 1, []),
    ],
)
def test_frames_are_spread_evenly_over_a_segment_and_its_end_frame(
    tmp_path: Path, segment: tuple[int, int], count: int, shown: list[int]
) -> None:
    vocabulary_video(tmp_path)
    release(tmp_path, activity(*segment))
    examples, _ = derive(tmp_path, replace(ALL, frames=count))
    listed = [[f.frame_index for f in e.frames] for e in examples if e.video_id == "v1"]
    assert listed == ([shown] if shown else [])


@pytest.mark.parametrize(
    ("segments", "kept"),
    [
        ([(0, 10), (10, 20), (19, 25), (26, 38), (28, 33)], [(0, 10)]),
        ([(20, 30), (0, 20)], [(20, 30), (0, 20)]),
        ([(0, 10), (0, 10)], []),
        ([(5, 10), (20, 30), (0, 40)], []),
        # Of equal starts the first in the file looks whether the next one begins before its own end.
        ([(10, 10), (10, 20)], [(10, 20)]),
        ([(10, 20), (10, 10)], []),
    ],
)
def test_segments_that_share_time_are_dropped_and_neighbours_are_not(
    tmp_path: Path, segments: list[tuple[int, int]], kept: list[tuple[int, int]]
) -> None:
    vocabulary_video(tmp_path)
    release(tmp_path, *(activity(*segment) for segment in segments))
    assert [segment[1:] for segment in ranges(tmp_path)] == kept


def test_a_segments_number_counts_those_with_a_class_dropped_ones_too(tmp_path: Path) -> None:
    vocabulary_video(tmp_path)
    release(tmp_path, activity(0, 3, None), activity(0, 10), activity(5, 15), activity(20, 30))
    (example,), _ = derive(tmp_path)
    assert example.example_id == "activity_mcq:v1:segment_20_30:class_open-lid:idx_2"
    assert example.evidence["activity_row"] == 3


def test_a_segment_without_a_class_is_skipped_and_blocks_no_other(tmp_path: Path) -> None:
    vocabulary_video(tmp_path)
    release(tmp_path, activity(0, 10), activity(5, 15, None))
    (_,), (skipped,) = derive(tmp_path)
    assert (skipped.frame, skipped.text) == (FrameRef("v1", 5), "activities[1]: has no class")


def test_a_label_of_one_word_is_skipped_and_changes_no_other_example(tmp_path: Path) -> None:
    """It ends the released build."""
    vocabulary_video(tmp_path)
    release(tmp_path, activity(0, 10), activity(5, 15, "wait", "Wait"), activity(20, 30))
    examples, (skipped,) = derive(tmp_path, replace(ALL, choices=None))
    assert "'Wait'" in skipped.reason
    assert [e.metadata["segment_start"] for e in examples] == [0, 20]
    for example in examples:
        assert {c["class_id"] for c in example.inputs["choices"]} == set(CLASSES)


def drawn(class_id: str, seed: str, choices: int | None, same_verb: int) -> list[str]:
    """The classes of a question in their order, as the release draws them."""
    rng, verb = random.Random(seed), CLASSES[class_id].split()[0]
    same = [c for c in sorted(CLASSES) if CLASSES[c].split()[0] == verb and c != class_id]
    other = [c for c in sorted(CLASSES) if CLASSES[c].split()[0] != verb]
    rng.shuffle(same)
    rng.shuffle(other)
    picked = same + other
    if choices is not None:
        first = same[: min(same_verb, choices - 1)]
        pool = same[len(first) :] + other
        rng.shuffle(pool)
        picked = (first + pool)[: choices - 1]
    picked.append(class_id)
    rng.shuffle(picked)
    return picked


@pytest.mark.parametrize(
    ("seed", "choices", "same_verb"), [(42, 25, 4), (1, 4, 0), (None, 25, 4), (42, None, 4), (42, 4, 9), (42, 26, 9)]
)
def test_choices_are_drawn_by_seed_video_and_segment(
    root: Path, seed: int | None, choices: int | None, same_verb: int
) -> None:
    """Without a number all choices count; the fraction for the right verb ends where no more choices have it."""
    examples, _ = derive(root, replace(ALL, seed=seed, choices=choices, same_verb=same_verb))
    assert len(examples) == 5
    for example in examples:
        start, end = example.metadata["segment_start"], example.metadata["segment_end"]
        text = ("" if seed is None else f"{seed}:") + f"{example.video_id}:{start}:{end}"
        expected = drawn(str(example.target["class_id"]), text, choices, same_verb)
        assert [c["class_id"] for c in example.inputs["choices"]] == expected
    if choices is None:
        assert [c["choice_id"] for c in example.inputs["choices"]][-6:] == ["Y", "Z", "AA", "AB", "AC", "AD"]


def test_fewer_than_four_choices_make_no_question(tmp_path: Path) -> None:
    root = release(tmp_path, activity(0, 10, "open-lid"), activity(11, 20, "press-tap"), activity(21, 30, "close-lid"))
    examples, skipped = derive(root)
    assert (examples, len(skipped)) == ([], 3)
    assert "3 choices" in skipped[0].reason
    release(root, activity(0, 1, "open-tap"), video_id="v2")
    assert [len(e.inputs["choices"]) for e in derive(root)[0]] == [4, 4, 4]
    assert [len(items) for items in derive(root, replace(ALL, choices=3))] == [0, 3]


def test_a_class_has_its_first_name_or_its_id_if_the_name_is_taken(tmp_path: Path) -> None:
    root = release(tmp_path, activity(0, 10, "a", "Open lid"), activity(11, 20, "b", "Open lid"))
    release(root, activity(0, 10, "a", "Open the lid"), activity(11, 20, "c", "Shut lid"), video_id="v2")
    release(root, activity(0, 10, "d", "Lift cup"), video_id="v3")
    texts = {c["class_id"]: c["text"] for c in derive(root)[0][0].inputs["choices"]}
    assert texts == {"a": "Open lid (a)", "b": "Open lid (b)", "c": "Shut lid", "d": "Lift cup"}


def test_a_choice_has_the_id_of_its_class_only_if_two_choices_have_one_name(tmp_path: Path) -> None:
    names = {"a": "Open lid", "b": "Open lid"} | {c: CLASSES[c] for c in list(CLASSES)[10:14]}
    root = release(tmp_path, *(activity(5 * k, 5 * k + 4, c, name) for k, (c, name) in enumerate(names.items())))
    both = set()
    for example in derive(root, replace(ALL, choices=4, same_verb=0))[0]:
        texts = {c["class_id"]: c["text"] for c in example.inputs["choices"]}
        both.add({"a", "b"} <= texts.keys())
        shown = {c: f"{names[c]} ({c})" if c in "ab" and {"a", "b"} <= texts.keys() else names[c] for c in texts}
        assert texts == shown
    assert both == {True, False}


@pytest.mark.parametrize("seed", [42, 1])
@pytest.mark.parametrize("cap", [1, 2, 4, 5, 9])
def test_a_class_is_capped_round_robin_over_its_videos_in_an_order_drawn_once_for_all(
    tmp_path: Path, seed: int, cap: int
) -> None:
    vocabulary_video(tmp_path)
    classes = {"a": ["open-lid"] * 3, "b": ["open-lid", "press-tap"], "c": ["open-lid", "press-tap", "open-lid"]}
    for video_id, wanted in classes.items():
        release(tmp_path, *(activity(6 * k, 6 * k + 5, c) for k, c in enumerate(wanted)), video_id=video_id)
    rng, kept = random.Random(seed), []
    for class_id in ("open-lid", "press-tap"):
        queues = [
            [(video_id, 6 * k, 6 * k + 5) for k, c in enumerate(wanted) if c == class_id]
            for video_id, wanted in classes.items()
            if class_id in wanted
        ]
        rng.shuffle(queues)
        kept += [queue[turn] for turn in range(3) for queue in queues if turn < len(queue)][:cap]
    assert ranges(tmp_path, replace(ALL, seed=seed, per_class=cap)) == sorted(kept)


def test_sampling_selects_videos_with_their_classes_and_frames_without(root: Path) -> None:
    for one_video in (replace(ALL, videos=("v2",)), replace(ALL, preparations=("pods",))):
        _, skipped = derive(root, one_video)
        assert [e.reason for e in skipped] == ["2 choices are fewer than 4"] * 2
    assert ranges(root, replace(ALL, videos=("v2", "names"))) == [("v2", 2, 9), ("v2", 20, 31)]
    assert ranges(root, replace(ALL, frame_range=(10, 32))) == [("v1", 10, 20), ("v2", 20, 31)]
    assert ranges(root, replace(ALL, frame_range=(10, 31))) == [("v1", 10, 20)]
    with pytest.raises(DataError, match="no video 'v9'"):
        derive(root, replace(ALL, videos=("v9",)))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    """150 examples over all classes."""
    root = vocabulary_video(tmp_path_factory.mktemp("many"))
    ids = list(CLASSES)
    for index in range(50):
        parts = [activity(12 * k, 12 * k + 10, ids[(3 * index + k) % len(ids)]) for k in range(3)]
        release(root, *parts, video_id=f"v{index}")
    return derive(root)[0]


def test_the_answer_does_not_show_in_the_shape_of_the_question(many: list[Example]) -> None:
    """The verb with the most choices is not a shortcut: it would be, if only the reference's verb were drawn for."""

    def richest_verb(example: Example) -> str:
        verbs = Counter(c["verb"] for c in example.inputs["choices"])
        verb = verbs.most_common(1)[0][0]
        return f"ANSWER: {next(c['choice_id'] for c in example.inputs['choices'] if c['verb'] == verb)}"

    assert answer_all(TASK, many, richest_verb)["accuracy"] <= 0.15


def test_an_explanation_gives_the_chosen_and_the_true_label(examples: list[Example]) -> None:
    example = examples[0]
    reference = example.target["choice_id"]
    assert [r.kind for r in TASK.explain(example, Prediction({"choice_id": reference})).rows] == ["hit"]
    assert [r.kind for r in TASK.explain(example, None).rows] == ["miss"]
    alike = next(c for c in example.inputs["choices"] if c["verb"] == "Place" and c["choice_id"] != reference)
    rows = TASK.explain(example, Prediction({"choice_id": alike["choice_id"]})).rows
    assert [r.kind for r in rows] == ["miss", "wrong"]
    assert rows[0].text == f"{reference}: Place coffee cup"
    assert rows[1].text.endswith("(same verb, another object)")


def test_scores_of_the_choices_are_an_answer_too(examples: list[Example]) -> None:
    example = examples[0]
    choices = Activity().choices(example)
    assert list(choices) == [choice["choice_id"] for choice in example.inputs["choices"]]  # type: ignore[index, union-attr]
    scores = dict.fromkeys(choices, 0.1) | {"B": 0.2}
    assert Activity().parse(write_scores(scores), example.inputs, BoxFormat()) == Prediction({"choice_id": "B"})
    assert isinstance(Activity().parse(write_scores({"A": 1.0}), example.inputs, BoxFormat()), ParseError)


FOUR = {"choices": [{"choice_id": c, "class_id": c, "text": f"Do {c}", "verb": "do"} for c in "ABCD"]}


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        *((f"{said} B", "B") for said in ("ANSWER:", "ANSWER :", "ANSWER: <CHOICE_ID>")),
        *((f"ANSWER:{said}", "B") for said in (" <B>", "\n\nB", " CHOICE_B", " <CHOICE_ID_B>", " B. Do B")),
        *((said, "B") for said in ("answer: b", "**ANSWER: B**", "Final \n answer:B", "<CHOICE_ID  b >")),
        *((said, "B") for said in ("ANSWER: ANSWER: <B", "ANSWER: <CHOICE_ID: B>", "ANSWER: choice_idB")),
        ("ANSWER: A\nno, wait\nANSWER: B", "B"),
        ("Final answer: C.", "C"),
        ("The hand turns it.\nANSWER: D\n", "D"),
        ("ANSWER: A\nANSWER: Z", "A"),
        ("ANSWER: C\nANSWER:", "C"),
        ("I choose <CHOICE_ID_A>, or rather <CHOICE_ID_C>", "C"),
        ("<choice_id_d> and <CHOICE_ID_Z>", "D"),
        ("ANSWER: none\n<CHOICE_ID_A>", "A"),
        *((f"ANSWER: {said}", None) for said in ("(B)", "**B**", '"B"', "[B]", "<<B>>", "B-x", "B_1", "-B")),
        *((f"ANSWER: {said}", None) for said in ("the B", "BB", "CHOICE_CHOICE_B", "<CHOICE_ID>", "Do B")),
        *((said, None) for said in ("**ANSWER:** B", "answers: B", "_answer: B", "MYANSWER: B", "ANSWER B")),
        *((said, None) for said in ("<CHOICE_ID:B", "<CHOICE_IDB>", "B", "(B)", "")),
    ],
)
def test_answers_are_read_as_released(answer: str, choice: str | None) -> None:
    parsed = TASK.parse(answer, FOUR, DEFAULT_BOX_FORMAT)
    assert (parsed.value["choice_id"] if isinstance(parsed, Prediction) else None) == choice


@pytest.mark.parametrize(
    "answer",
    [
        *("**ANSWER:** B", "ANSWER: (B)", "ANSWER: **B**", 'ANSWER: "B"', "ANSWER: <<B>>", "B", "The answer is B."),
        *(
            "<CHOICE_ID_B>",
            "ANSWER: <CHOICE_ID>B",
            "ANSWER: CHOICE_B",
            "ANSWER: CHOICE_ID: B",
            "Answer: I think it is B",
        ),
    ],
)
def test_by_the_papers_protocol_a_choice_may_be_named_in_any_form(answer: str) -> None:
    task = Activity(options={"protocol": "paper"})
    assert task.parse(answer, FOUR, DEFAULT_BOX_FORMAT) == Prediction({"choice_id": "B"})


def test_the_papers_protocol_reads_no_pronoun_as_a_choice() -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXY"
    choices = [{**FOUR["choices"][0], "choice_id": letter, "text": f"Lift {letter}"} for letter in letters]  # type: ignore[index]
    for answer, letter in (("Answer: I think it is B", "B"), ("Answer: I", "I"), ("Answer: I cannot tell", None)):
        parsed = Activity(options={"protocol": "paper"}).parse(answer, {"choices": choices}, DEFAULT_BOX_FORMAT)
        assert (parsed.value["choice_id"] if isinstance(parsed, Prediction) else None) == letter
