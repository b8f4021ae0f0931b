"""Questions, their frames and the reading of answers, rule by rule (docs/vista.md)."""

from pathlib import Path

import pytest
from PIL import Image

from barista_bench.benchmarks.vista import TASKS
from barista_bench.benchmarks.vista.matching import All, Minecraft
from barista_bench.benchmarks.vista.release import VistaRelease, open_release
from barista_bench.core.example import Example, ParseError, Prediction, SkippedExample, write_scores
from tests.answering import answer_all
from tests.vista.made import BOXES, example, plain_frames, scored, write_frames, write_set

TASK = All()
ABC = {label: f"somebody does {label}" for label in "abc"}


def made(root: Path, frames: int = 5) -> VistaRelease:
    """Two sets over three videos, which share one video; one video is absent and one is no video."""
    entries = [("p/one.mp4", "a"), ("p/two.mp4", "b"), ("p/gone.mp4", "c")]
    write_set(root, "alfred/level_3/permutation/p", entries, ABC, level=3, example_gpt="1. A hand.")
    write_set(root, "alfred/level_3/remix/r", [("p/one.mp4", "a"), ("p/text.mp4", "b")], ABC, level=3)
    write_set(root, "real_life/foundation/heat/cup", [("cup/one.mp4", "c")], ABC, metadata={})
    for path in ("alfred/p/one.mp4", "alfred/p/two.mp4", "real_life/cup/one.mp4"):
        write_frames(root / path, plain_frames(frames))
    (root / "alfred/p/text.mp4").write_text("no video")
    return open_release(root)


def split(items: list[Example | SkippedExample]) -> tuple[list[Example], list[SkippedExample]]:
    return [i for i in items if isinstance(i, Example)], [i for i in items if isinstance(i, SkippedExample)]


def test_absent_and_damaged_videos_are_skipped_with_a_reason(tmp_path: Path) -> None:
    examples, skipped = split(list(TASK.examples(made(tmp_path), TASK.sampling)))
    assert [example.example_id for example in examples] == [
        "all:alfred/level_3/permutation/p:alfred/p/one.mp4",
        "all:alfred/level_3/permutation/p:alfred/p/two.mp4",
        "all:alfred/level_3/remix/r:alfred/p/one.mp4",
        "all:real_life/foundation/heat/cup:real_life/cup/one.mp4",
    ]
    assert [item.frame.video_id for item in skipped] == ["alfred/p/gone.mp4", "alfred/p/text.mp4"]
    assert skipped[0].reason == "the video is absent"
    assert skipped[1].reason.startswith("the video cannot be used: ")


def test_an_environment_asks_for_its_own_sets(tmp_path: Path) -> None:
    release = made(tmp_path)
    counts = {task.name: len(split(list(task().examples(release, task.sampling)))[0]) for task in TASKS}
    assert counts == {"virtual_home": 3, "real_world": 1, "minecraft": 0, "all": 4}


@pytest.mark.full
def test_every_entry_of_the_real_release_is_asked_once(
    real_vista: VistaRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With videos of 100 frames in place of the absent ones."""
    from barista_bench.benchmarks.vista import matching

    monkeypatch.setattr(matching, "_facts", lambda release, video_id: matching._Facts(100, 30.0, 3.3))
    examples = {task.name: split(list(task().examples(real_vista, task.sampling)))[0] for task in TASKS}
    assert {name: len(of_task) for name, of_task in examples.items()} == {
        "virtual_home": 3155,
        "real_world": 1276,
        "minecraft": 63,
        "all": 4494,
    }
    assert len({example.example_id for example in examples["all"]}) == 4494
    for item in examples["all"]:
        shown = TASK.prompt(item, BOXES).as_text()
        assert not any(text in shown for text in item.inputs["descriptions"] if len(text) > 30)
    metrics = answer_all(TASK, examples["all"], lambda example: TASK.reference_answer(example, BOXES))
    assert (metrics["macro_f1"], metrics["macro_f1_strict"], metrics["top1"]) == (1.0, 1.0, 1.0)
    assert (metrics["problem_sets"], metrics["ties"], metrics["incomplete_problem_sets"]) == (492, 0, 0)


def test_a_model_that_has_scored_the_descriptions_is_asked_nothing_more() -> None:
    prompt = TASK.follow_up(example(), ("1. A hand lifts {summaries}.",), BOXES)
    assert prompt is not None
    assert "1. A hand lifts {summaries}." in prompt.as_text(), "what a model says is not a template"
    assert TASK.follow_up(example(), ("described", "compared", "scored"), BOXES) is None
    scores = write_scores({"a": 0.3, "b": 0.2, "c": 0.1})
    assert TASK.follow_up(example(), (scores,), BOXES) is None
    assert TASK.follow_up(example(), (write_scores({"a": 0.3}),), BOXES) is not None


def test_a_model_that_writes_is_shown_16_of_32_frames_and_told_so() -> None:
    asked = example(frames=32)
    prompt = TASK.prompt(asked, BOXES)
    assert prompt.image_count == 16
    assert "16 frames" in prompt.as_text()
    pictures = [Image.new("RGB", (2, 2), (at, 0, 0)) for at in range(32)]
    shown = [picture.getpixel((0, 0))[0] for picture in TASK.displayed_images(asked, pictures)]  # type: ignore[index]
    assert (shown[0], shown[-1], len(shown)) == (0, 31, 16)
    assert list(TASK.image_frames(asked)) == shown


def test_minecraft_asked_as_the_paper_did_is_answered_in_one_conversation_on_its_own_scale() -> None:
    task, single = Minecraft(options={"conversation": "minecraft"}), example(frames=2)
    assert "1. A hand." not in task.prompt(single, BOXES).as_text(), "the release's words about Minecraft hold one"
    for options in ("minecraft", "single"):
        assert All(options={"conversation": options}).follow_up(single, ("all of it",), BOXES) is None
    answer = task.parse(task.reference_answer(single, BOXES), single.inputs, BOXES)
    assert answer.value["strict"] == {"a": 1.0, "b": 0.0, "c": 0.0}
    assert task.parse("Final Scores\n- (a) 4\n- (b) 0\n- (c) 0", single.inputs, BOXES).value["strict"] is None


def test_scores_of_an_encoder_are_a_prediction_and_chatter_is_not() -> None:
    asked = example()
    parsed = TASK.parse(write_scores({"a": 0.3, "b": 0.2, "c": 0.1}), asked.inputs, BOXES)
    assert isinstance(parsed, Prediction)
    assert TASK.score(asked, parsed) == {"top1": 1.0, "strict_format": 1.0}
    assert TASK.score(asked, None) == {"top1": 0.0, "strict_format": 0.0}
    assert isinstance(TASK.parse("I am sorry.", asked.inputs, BOXES), ParseError)


@pytest.mark.parametrize(
    ("scores", "top1"),
    [
        ({"a": 5, "b": 0, "c": 0}, 1.0),
        ({"a": 5, "b": 5, "c": 0}, 0.5),
        ({"a": 1, "b": 5, "c": 0}, 0.0),
        ({"b": 1}, 0.0),
    ],
)
def test_a_sample_is_scored_by_its_own_scores_and_ties_share(scores: dict[str, float], top1: float) -> None:
    sample = scored(example(reference=["a"]), scores)
    assert TASK.score(sample.example, sample.prediction)["top1"] == top1


@pytest.mark.parametrize(
    ("kind", "scores", "failures"),
    [
        ("permutation", {"a": 5.0, "b": 1.0}, []),
        ("permutation", {"a": 1.0, "b": 5.0}, ["wrong_order"]),
        ("permutation", {"a": 5.0, "b": 5.0}, ["duplicate"]),
        ("objects", {"b": 5.0}, ["wrong_object"]),
        ("object_properties", {"b": 5.0}, ["wrong_attribute"]),
        ("actions", {"b": 5.0}, ["wrong_verb"]),
        ("general", {"b": 5.0}, ["wrong_option"]),
        ("general", None, ["format"]),
    ],
)
def test_failures_name_the_subject_of_the_set(kind: str, scores: dict[str, float] | None, failures: list[str]) -> None:
    sample = scored(example(reference=["a"], kind=kind), scores)
    assert [failure.kind for failure in TASK.failures(sample.example, sample.prediction)] == failures


def test_an_explanation_shows_the_scores_of_the_best_and_of_the_true() -> None:
    sample = scored(example(reference=["a"]), {"b": 4.0, "c": 0.0})
    rows = TASK.explain(sample.example, sample.prediction).rows
    assert [(row.kind, row.text) for row in rows] == [
        ("miss", "a [no score]: somebody does a"),
        ("wrong", "b [4]: somebody does b"),
    ]
    (unread,) = TASK.explain(sample.example, None).rows
    assert unread.kind == "miss"


def test_prior_answers_with_the_commonest_label_of_the_other_videos_of_the_set() -> None:
    others = [example(video=f"o{at}", reference=[label]) for at, label in enumerate("bcc")]
    elsewhere = [example("another/set", f"x{at}", reference=["a"]) for at in range(5)]
    assert "- (c) 5" in TASK.prior_answer(example(), [*others, *elsewhere], BOXES)
    assert "- (a) 5" in TASK.prior_answer(example(), [], BOXES)
