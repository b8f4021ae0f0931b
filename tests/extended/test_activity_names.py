"""Activities in own words: which names count as the true one, with and without weights."""

import copy
import functools
import json
import random
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from barista_bench.benchmarks import get_task
from barista_bench.benchmarks.extended.activity_names import (
    ActivityMatcher,
    NamedActivity,
    NamedActivityTask,
    made_up_names,
)
from barista_bench.benchmarks.extended.anticipation import Anticipation
from barista_bench.benchmarks.extended.mask_tracking import MaskTracking
from barista_bench.benchmarks.extended.open_activity import OpenActivity
from barista_bench.benchmarks.extended.step_segmentation import StepSegmentation
from barista_bench.benchmarks.extended.temporal_scene_graph import TemporalSceneGraph
from barista_bench.benchmarks.name_matching import Matcher
from barista_bench.benchmarks.sentence_similarity import sentence_encoder
from barista_bench.core.deriving import GraphTask
from barista_bench.core.example import Example, FrameRef, Scored
from barista_bench.errors import ConfigError, DataError
from barista_bench.scene_graph import SceneGraph
from tests.answering import answered, derived_and_skipped as derived
from tests.extended.kit import BOXES, video
from tests.graph_examples import graph_examples
from tests.releases import document, write_release

DOMAIN = yaml.safe_load(resources.files("barista_bench.scene_graph").joinpath("domain.yaml").read_text())
CLASSES = ["Close drawer", "Grasp cup", "Lift cup", "Open drawer", "Place cup", "Pour milk", "Press espresso button"]
NAMED = {"open_activity": "Activity: {}", "anticipation": '["{}"]'}


def example(task: NamedActivityTask, reference: str) -> Example:
    asked = {"n_frames": 2} if isinstance(task, OpenActivity) else {"ahead": 2, "span": 4.0, "n_frames": 2}
    target = NamedActivity(reference, reference.lower(), CLASSES).write()
    return Example(f"{task.name}:v:1", "extended", task.name, reference, (FrameRef("v", 0),), asked, target)


def by_hand(answer: str, reference: str, *, synonyms: bool) -> bool:
    """The rule for answers of the form `verb noun` in the singular, read from the domain file."""

    def alike(name: str) -> bool:
        (verb, noun), (other_verb, other_noun) = answer.lower().split(" ", 1), name.lower().split(" ", 1)
        verbs = verb == other_verb or any({verb, other_verb} <= set(group) for group in DOMAIN["verbs"])
        verbs = verbs and {verb, other_verb} not in [set(pair) for pair in DOMAIN["opposites"]]
        nouns = noun == other_noun or f" {noun}".endswith(f" {other_noun}") or f" {other_noun}".endswith(f" {noun}")
        for group in DOMAIN["nouns"]:
            ends = [any(f" {item}".endswith(f" {word}") for word in group) for item in (noun, other_noun)]
            nouns = nouns or all(ends)
        return verbs and nouns

    if answer.lower() in map(str.lower, CLASSES):
        return answer.lower() == reference.lower()
    return synonyms and alike(reference)


@functools.cache
def nearest_names() -> dict[str, list[str]]:
    """By class some made-up names that mean it, or near enough."""
    names = made_up_names()
    return {
        reference: [name for name in names if by_hand(name, reference, synonyms=True)][:12] for reference in CLASSES
    }


@pytest.mark.parametrize("matcher", ["exact", "synonyms"])
@pytest.mark.parametrize("kind", [OpenActivity, Anticipation])
def test_scores_equal_those_worked_out_by_hand_on_random_answers(
    kind: type[NamedActivityTask], matcher: Matcher
) -> None:
    task, rng, names = kind(options={"matcher": matcher}), random.Random(0), made_up_names()
    near = nearest_names()
    samples, wanted = [], []
    for _ in range(60):
        reference = rng.choice(CLASSES)
        drawn = [reference, reference.upper(), *near[reference], *rng.sample(CLASSES, 2), *rng.sample(names, 2)]
        ranked = rng.sample(drawn, rng.randint(1, 5))
        ranked = list({name.lower(): name for name in ranked}.values())
        if kind is OpenActivity:
            ranked = ranked[:1]
        text = json.dumps(ranked) if kind is Anticipation else f"I see it.\nActivity: {ranked[0]}"
        right = [by_hand(name, reference, synonyms=matcher == "synonyms") for name in ranked]
        is_lost = rng.random() < 0.05
        samples.append(answered(task, example(task, reference), "" if is_lost else text))
        wanted.append([not is_lost and right[0], not is_lost and any(right)])
    first, ever = np.mean(wanted, axis=0)
    metrics = task.statistics(samples).published_metrics()
    got = [metrics[name] for name in (("accuracy", "accuracy") if kind is OpenActivity else ("top_1", "top_5"))]
    assert got == pytest.approx([first, first if kind is OpenActivity else ever])
    assert 0.1 < first < 0.9
    right = [sample for sample, (_, is_right) in zip(samples, wanted, strict=True) if is_right]
    assert not [sample for sample in right if sample.prediction and [*task.mistakes(sample.example, sample.prediction)]]
    assert metrics["coverage"] == sum(sample.prediction is not None for sample in samples) / 60 < 1


@pytest.mark.parametrize(
    ("answer", "is_right"),
    [
        ("Grasp cup", True),
        ("grasps the cups.", True),
        ("take mug", True),  # a name of no class
        ("Lift cup", False),  # another class, word for word
        ("put down the cup", False),
        ("cup", False),
        ("", False),
    ],
)
def test_synonyms_count_unless_they_name_another_class(answer: str, is_right: bool) -> None:
    reference = NamedActivity("Grasp cup", "c", CLASSES)
    assert ActivityMatcher("synonyms", 0.6, "").means([answer], reference) == [is_right]


@pytest.mark.parametrize(
    ("first", "second", "both_ways"),
    [
        ("grasp the cup", "Grasp cup", [1, 1]),
        ("take mug", "Grasp cup", [1, 1]),  # a name of no class
        ("take mug", "grab mug", [1, 1]),
        ("Lift cup", "Grasp cup", [0, 0]),
        ("Pour milk", "take mug", [0, 0]),
    ],
)
def test_two_answers_agree_with_either_as_the_truth(first: str, second: str, both_ways: list[int]) -> None:
    task = OpenActivity()
    asked = example(task, "Open drawer")
    answers = [answered(task, asked, text).prediction for text in (first, second)]
    scores = []
    for reference, answer in (answers, answers[::-1]):
        assert reference is not None
        scores.append(task.score(replace(asked, target=task.as_target(asked, reference).write()), answer)["accuracy"])
    assert scores == both_ways


@pytest.mark.parametrize("kind", [OpenActivity, Anticipation])
def test_the_prior_gives_the_usual_answer_of_other_videos(kind: type[NamedActivityTask]) -> None:
    task = kind()
    others = tuple(example(task, reference) for reference in ("Pour milk", "Grasp cup", "Pour milk"))
    text = task.prior_answer(example(task, "Open drawer"), others, BOXES)
    assert text == ("Activity: Pour milk" if kind is OpenActivity else '["Pour milk", "Grasp cup"]')
    assert "Grasp cup" in task.prior_answer(example(task, "Open drawer"), (), BOXES)


@pytest.mark.parametrize("threshold", [0.01, 0.9, 1.0])
def test_with_embeddings_the_nearest_class_counts_from_the_threshold_on(encoder: str, threshold: float) -> None:
    options: dict[str, Any] = {"matcher": "embeddings", "encoder": encoder, "threshold": threshold}
    task, answers = OpenActivity(options=options), ["take mug", "pull drawer open", "milk", "Place cup", "pour it out"]
    pairs = [(answer, reference) for answer in answers for reference in CLASSES]
    samples = [answered(task, example(task, reference), answer) for answer, reference in pairs]
    cosines = sentence_encoder(encoder).similarity([answer.lower() for answer in answers], [n.lower() for n in CLASSES])
    nearest = (cosines >= threshold) & (cosines == cosines.max(axis=1, keepdims=True))
    assert task.statistics(samples).scores()["accuracy"].tolist() == nearest.astype(float).ravel().tolist()
    assert task.aggregate(samples)["recognition"] == {**options, "revision": sentence_encoder(encoder).revision}


def test_a_missing_encoder_is_named_with_the_matcher_that_needs_none(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    task = OpenActivity(options={"matcher": "embeddings", "encoder": str(tmp_path / "none")})
    with pytest.raises(ConfigError, match=r"option encoder: .*matcher=exact"):
        task.statistics([Scored(example(task, "Grasp cup"), None)])


NAMES = ["anticipation", "mask_tracking", "step_segmentation", "temporal_scene_graph"]


@pytest.mark.parametrize("name", NAMES)
def test_the_last_fitting_list_is_the_answer_and_an_empty_list_only_without_another(
    name: str, small_kitchen: Path
) -> None:
    task = get_task("extended", name)
    assert isinstance(task, GraphTask)
    items = graph_examples(task, SceneGraph(small_kitchen), task.sampling)
    example = next(item for item in items if isinstance(item, Example))
    reference = task.reference_answer(example, BOXES)
    for text in (
        f"Nothing moves at first: []. Then:\n{reference}",
        f"```\n[]\n```\n{reference}",
        f"{reference}\nNo more: []",
    ):
        assert task.score(example, answered(task, example, text).prediction)[task.sample_score] == 1, text[:30]


Fields = dict[str, Any]
CLIPS = {"frames": 4, "spacing": 10}


DAMAGES: list[tuple[GraphTask, str, Callable[[Fields], object]]] = [
    (MaskTracking(), "target", lambda target: target["masks"][0]["rle"].update(counts="~~~")),
    (MaskTracking(), "target", lambda target: target["masks"][0]["rle"].update(size=[12])),
    (MaskTracking(), "target", lambda target: target["masks"][0]["rle"].update(size=[10**5, 10**5])),
    (MaskTracking(), "target", lambda target: target["masks"][0].update(frame=99)),
    (MaskTracking(), "inputs", lambda inputs: inputs.update(width=10**6)),
    (MaskTracking(), "inputs", lambda inputs: inputs.update(n_frames=10**8)),
    (StepSegmentation(), "target", lambda target: target["segments"][0].update(end=10**6)),
    (StepSegmentation(), "target", lambda target: target["segments"][0].update(start=-9)),
    (StepSegmentation(), "inputs", lambda inputs: inputs.update(frame_count=10**12)),
    (StepSegmentation(), "inputs", lambda inputs: inputs.update(fps=0.0)),
    (TemporalSceneGraph(), "target", lambda target: target["relations"][0].update(start=0)),
    (TemporalSceneGraph(), "target", lambda target: target["relations"][0].update(end=99)),
    (TemporalSceneGraph(), "inputs", lambda inputs: inputs.update(n_frames=10**8)),
]


@pytest.mark.parametrize(("task", "part", "change"), DAMAGES)
def test_a_damaged_row_is_an_error_that_says_so(
    task: GraphTask, part: str, change: Callable[[Fields], object], tmp_path: Path
) -> None:
    if isinstance(task, StepSegmentation):
        root, sampling = video(tmp_path, steps=[(30, 150, "Prepare cup")]), {"frames": 4}
    else:
        write_release(tmp_path, "v0", document())
        root, sampling = tmp_path, CLIPS
    example = derived(task, root, task.sampling.with_overrides(sampling))[0][0]
    task.statistics([Scored(example, None)]).published_metrics()
    damaged = copy.deepcopy(example)
    change(getattr(damaged, part))
    with pytest.raises(DataError, match="Fix: build the dataset again"):
        task.statistics([Scored(damaged, None)])
