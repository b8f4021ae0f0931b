"""What is asked, of which frames, and what becomes of an answer: rule by rule (docs/vista.md)."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from barista_bench.benchmarks.vista import BENCHMARK, TASKS, open_release
from barista_bench.benchmarks.vista.matching import All, Minecraft, VirtualHome
from barista_bench.benchmarks.vista.release import VistaRelease
from barista_bench.core.example import SkippedExample, write_scores
from barista_bench.core.options import EvenSampling
from barista_bench.core.prompt import ImagePart, TextPart
from barista_bench.core.task import Example, ParseError, Prediction
from barista_bench.errors import ConfigError, DataError
from barista_bench.models.base import GenerationConfig, Request
from tests.vista.made import BOXES, answered, example, plain_frames, scored, write_frames, write_set

TASK = All()
ABC = {label: f"somebody does {label}" for label in "abc"}


def made(root: Path, frames: int = 5) -> VistaRelease:
    """Two sets over three videos, one of which both ask about; another one is absent and one is no video."""
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


# --- examples --------------------------------------------------------------------------------------------------------


def test_the_published_number_of_frames_is_the_default() -> None:
    assert all(task().sampling == EvenSampling(frames=16) for task in TASKS)
    assert [task.name for task in TASKS] == ["virtual_home", "real_world", "minecraft", "all"]


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


def test_an_example_says_what_it_asks_and_nothing_of_the_truth(tmp_path: Path) -> None:
    example = split(list(VirtualHome().examples(made(tmp_path), EvenSampling(frames=3))))[0][1]
    assert example.inputs == {
        "problem_set": "alfred/level_3/permutation/p",
        "labels": ["a", "b", "c"],
        "descriptions": ["somebody does a", "somebody does b", "somebody does c"],
        "prompt_gpt": "Look at the hands.",
        "example_gpt": "1. A hand.",
        "frame_count": 3,
    }
    assert example.target == {"labels": ["b"]}
    assert example.label == "somebody does b"
    wanted = {"environment": "virtual_home", "level": 3, "type": "permutation", "frames": 3, "set_videos": 3}
    assert wanted.items() <= example.metadata.items()
    assert example.metadata["split"] == "test"
    assert example.evidence == {"file": "tasks/alfred/level_3/permutation/p.yaml", "entry": 1}
    assert TASK.resampling_unit(example) == "alfred/level_3/permutation/p"


@pytest.mark.parametrize(
    ("frames", "asked", "shown"),
    [(5, 3, [0, 2, 4]), (5, 5, [0, 1, 2, 3, 4]), (5, 16, [0, 1, 2, 3, 4]), (20, 4, [0, 6, 12, 19]), (1, 16, [0])],
)
def test_frames_are_evenly_spaced_with_first_and_last(
    tmp_path: Path, frames: int, asked: int, shown: list[int]
) -> None:
    examples, _ = split(list(TASK.examples(made(tmp_path, frames), EvenSampling(frames=asked))))
    for item in examples:
        assert [frame.frame_index for frame in item.frames] == shown
        assert item.inputs["frame_count"] == len(shown)
        assert item.metadata["frames"] == asked


def test_only_the_videos_that_are_named_are_asked_about(tmp_path: Path) -> None:
    release = made(tmp_path)
    sampling = EvenSampling(frames=3, videos=("alfred/p/two.mp4",))
    assert [item.video_id for item in split(list(TASK.examples(release, sampling)))[0]] == ["alfred/p/two.mp4"]
    assert not list(TASK.examples(release, replace(sampling, videos=("nowhere.mp4",))))


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
    oracle = answered(TASK, examples["all"], [TASK.reference_answer(example, BOXES) for example in examples["all"]])
    figures = TASK.aggregate(oracle)
    assert (figures["macro_f1"], figures["macro_f1_strict"], figures["top1"]) == (1.0, 1.0, 1.0)
    assert (figures["problem_sets"], figures["ties"], figures["incomplete_problem_sets"]) == (492, 0, 0)


def test_absent_videos_of_the_real_release_are_all_skipped(real_vista: VistaRelease) -> None:
    examples, skipped = split(list(TASK.examples(real_vista, TASK.sampling)))
    assert examples == []
    assert len(skipped) == 4494
    assert {item.reason for item in skipped} == {"the video is absent"}


def test_a_release_of_another_benchmark_is_refused(tmp_path: Path) -> None:
    class Other:
        root = videos = tmp_path
        problems = ()

    with pytest.raises(DataError, match=r"no release of ViSTa.*Remedy"):
        list(TASK.examples(Other(), TASK.sampling))  # type: ignore[arg-type]


# --- prompts ---------------------------------------------------------------------------------------------------------


def test_the_first_conversation_shows_the_frames_and_no_description() -> None:
    prompt = TASK.prompt(example(frames=4), BOXES)
    assert [part.index for part in prompt.parts if isinstance(part, ImagePart)] == [0, 1, 2, 3]
    text = prompt.as_text()
    assert "4 frames" in text
    assert "Look at the hands." in text
    assert "1. A hand." in text
    assert "somebody does" not in text
    assert "Final Scores" not in text


def test_the_second_conversation_has_the_description_and_no_frames() -> None:
    asked = example()
    prompt = TASK.follow_up(asked, ("1. A hand lifts {summaries}.",), BOXES)
    assert prompt is not None
    assert all(isinstance(part, TextPart) for part in prompt.parts)
    text = prompt.as_text()
    assert "1. A hand lifts {summaries}." in text  # what a model says is no template
    assert "- (a) somebody does a\n- (b) somebody does b\n- (c) somebody does c" in text
    assert "Final Scores\n- (label) score" in text
    assert "Look at the hands." not in text
    assert TASK.follow_up(asked, ("described", "scored"), BOXES) is None


def test_a_model_that_has_scored_the_descriptions_is_asked_nothing_more() -> None:
    scores = write_scores({"a": 0.3, "b": 0.2, "c": 0.1})
    assert TASK.follow_up(example(), (scores,), BOXES) is None
    assert TASK.follow_up(example(), (write_scores({"a": 0.3}),), BOXES) is not None


def test_a_single_conversation_asks_for_everything_at_once() -> None:
    task, asked = All(options={"conversation": "single"}), example(frames=2)
    prompt = task.prompt(asked, BOXES)
    text = prompt.as_text()
    assert prompt.image_count == 2
    for wanted in ("Look at the hands.", "1. A hand.", "- (b) somebody does b", "Final Scores\n- (label) score"):
        assert wanted in text
    assert task.follow_up(asked, ("all of it",), BOXES) is None


def test_minecraft_can_be_asked_as_the_paper_did() -> None:
    task = Minecraft(options={"conversation": "minecraft"})
    single, several = example(frames=2), example("minecraft/foundation/multilabel", frames=2)
    prompt, text = task.prompt(single, BOXES), task.prompt(single, BOXES).as_text()
    assert prompt.image_count == 2
    for wanted in ("Look at the hands.", "- (b) somebody does b", "from 0 ", "Exactly one summary"):
        assert wanted in text
    assert "1. A hand." not in text, "no example of ours: the release's words about a set of Minecraft hold one"
    assert "More than one summary" in task.prompt(several, BOXES).as_text()
    assert task.follow_up(single, ("all of it",), BOXES) is None
    answer = task.parse(task.reference_answer(single, BOXES), single.inputs, BOXES)
    assert answer.value["strict"] == {"a": 1.0, "b": 0.0, "c": 0.0}
    assert task.parse("Final Scores\n- (a) 4\n- (b) 0\n- (c) 0", single.inputs, BOXES).value["strict"] is None


def test_the_example_is_shown_where_there_is_one_and_it_is_wanted() -> None:
    with_example, without = example(), example()
    without.inputs["example_gpt"] = None
    plain = All(options={"one_shot": False}).prompt(with_example, BOXES).as_text()
    assert "1. A hand." not in plain
    assert (
        plain
        == TASK.prompt(without, BOXES).as_text()
        == All(options={"one_shot": False}).prompt(without, BOXES).as_text()
    )


def test_no_place_of_a_prompt_stays_unfilled() -> None:
    asked = example()
    for task in (TASK, *(All(options={"conversation": way}) for way in ("single", "minecraft"))):
        shown = [task.prompt(asked, BOXES), task.follow_up(asked, ("described",), BOXES)]
        for prompt in shown:
            assert prompt is None or "{" not in prompt.as_text()


def test_options_that_there_are_not_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"conversation is 'three'.*Remedy"):
        All(options={"conversation": "three"})


def test_descriptions_are_the_choices_of_models_that_score_texts() -> None:
    assert TASK.choices(example()) == {label: f"somebody does {label}" for label in "abc"}


def test_images_are_the_frames_as_they_are() -> None:
    frames = plain_frames(3)
    assert all(np.array_equal(np.asarray(i), f) for i, f in zip(TASK.images(example(), frames), frames, strict=True))


# --- answers ---------------------------------------------------------------------------------------------------------


def test_scores_of_an_encoder_are_a_prediction_and_chatter_is_not() -> None:
    asked = example()
    parsed = TASK.parse(write_scores({"a": 0.3, "b": 0.2, "c": 0.1}), asked.inputs, BOXES)
    assert isinstance(parsed, Prediction)
    assert TASK.score(asked, parsed) == {"top1": 1.0, "strict_format": 1.0}
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


def test_no_readable_answer_scores_nothing() -> None:
    assert TASK.score(example(), None) == {"top1": 0.0, "strict_format": 0.0}


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
def test_failures_say_what_the_set_asks_about(kind: str, scores: dict[str, float] | None, failures: list[str]) -> None:
    sample = scored(example(reference=["a"], kind=kind), scores)
    assert [failure.kind for failure in TASK.failures(sample.example, sample.prediction)] == failures


def test_an_explanation_shows_the_scores_of_the_best_and_of_the_true() -> None:
    sample = scored(example(reference=["a"]), {"b": 4.0, "c": 0.0})
    rows = TASK.explain(sample.example, sample.prediction).rows
    assert [(row.verdict, row.text) for row in rows] == [
        ("miss", "a [no score]: somebody does a"),
        ("wrong", "b [4]: somebody does b"),
    ]
    (unread,) = TASK.explain(sample.example, None).rows
    assert unread.verdict == "miss"


def test_prior_answers_with_the_commonest_label_of_the_other_videos_of_the_set() -> None:
    others = [example(video=f"o{at}", reference=[label]) for at, label in enumerate("bcc")]
    elsewhere = [example("another/set", f"x{at}", reference=["a"]) for at in range(5)]
    assert "- (c) 5" in TASK.prior_answer(example(), [*others, *elsewhere], BOXES)
    assert "- (a) 5" in TASK.prior_answer(example(), [], BOXES)


# --- a bag of frames -------------------------------------------------------------------------------------------------


def test_a_bag_of_frames_cannot_tell_permutations_of_the_same_frames_apart(tmp_path: Path) -> None:
    """A CLIP whose frame embeddings are averaged scores every order of the same frames alike: it is at the baseline."""
    from barista_bench.models.dual_encoders.model import DualEncoder
    from barista_bench.models.tiny import make_tiny_clip

    frames = plain_frames(6, size=32)
    orders = {"a": frames, "b": frames[2:] + frames[:2], "c": frames[4:] + frames[:4]}
    entries = [(f"{label}.mp4", label) for label in orders]
    write_set(tmp_path, "alfred/level_3/permutation/p", entries, ABC, level=3)
    for label, pictures in orders.items():
        write_frames(tmp_path / "alfred" / f"{label}.mp4", pictures)
    examples, _ = split(list(TASK.examples(open_release(tmp_path), TASK.sampling)))
    model = DualEncoder.load(str(make_tiny_clip(tmp_path / "clip")), device="cpu")
    requests = [
        Request(
            example.example_id,
            TASK.prompt(example, BOXES),
            TASK.images(example, orders[example.target["labels"][0]]),
            choices=TASK.choices(example),
        )
        for example in examples
    ]
    texts = [answer.text for (answer,) in model.generate(requests, GenerationConfig())]
    assert len(set(texts)) == 1
    figures = TASK.aggregate(answered(TASK, examples, texts))
    assert figures["ties"] == 3
    assert figures["macro_f1"] == pytest.approx(figures["majority_f1"]) == pytest.approx(1 / 6)
    # The texts differ to the model, and so do other frames: it is the order alone that is lost.
    assert len(set(TASK.parse(texts[0], examples[0].inputs, BOXES).value["scores"].values())) > 1
    other = replace(requests[0], images=TASK.images(examples[0], frames[:5] + frames[:1]))
    assert model.generate([other], GenerationConfig())[0][0].text not in texts


def test_the_benchmark_says_what_it_is() -> None:
    assert BENCHMARK.name == "vista"
    assert BENCHMARK.video_file("alfred/x/y.mp4") == "alfred/x/y.mp4"
    assert {task.breakdown_keys for task in BENCHMARK.tasks} == {("environment", "level", "type")}
