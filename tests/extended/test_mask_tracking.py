"""Mask tracking: the objects of a clip's question, the reading and scoring of answers, and the baselines' scores."""

import json
import math
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from barista_bench import evaluate
from barista_bench.benchmarks.extended.mask_tracking import MaskTracking, TrackMasks
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, FrameRef, ParseError, Prediction, Scored, SkippedExample
from barista_bench.data.dataset import ExampleSet, open_examples
from barista_bench.data.folder import build
from barista_bench.errors import ConfigError
from barista_bench.runs.ask.catalog import check_fit
from barista_bench.scene_graph import Rle, decode_mask, encode_mask
from barista_bench.stats.baselines import baseline_gaps
from tests import answering
from tests.metrics.test_region_boundary import davis_f, davis_j
from tests.releases import BUTTON, CUP, LEFT, MACHINE, document, write_release

TASK, BOXES = MaskTracking(), BoxFormat()
EVERY_TEN = replace(TASK.sampling, frames=4, spacing=10)
"""Clips of the frames 0, 10, 20 and 30."""
HEIGHT, WIDTH = 12, 16

Mask = NDArray[np.bool_]
Masks = dict[tuple[int, int], Mask]
"""By object and frame."""


def derived(root: Path, content: dict[str, Any], **sampling: Any) -> tuple[list[Example], list[SkippedExample]]:
    return answering.derived_and_skipped(TASK, write_release(root, "v0", content), replace(EVERY_TEN, **sampling))


def rle(mask: Mask) -> dict[str, Any]:
    encoded = encode_mask(mask)
    return {"size": list(encoded.size), "counts": encoded.counts}


def entries(masks: Masks) -> dict[str, Any]:
    return {"masks": [{"frame": frame, "rle": rle(mask), "object": item} for (item, frame), mask in masks.items()]}


def example_of(first: dict[int, Mask], true: Masks, frames: int, name: str = "e") -> Example:
    """Objects by number with their first masks, and the true masks on later frames, all of them with pixels."""
    height, width = next(iter(first.values())).shape
    given = [{"number": number, "category": "cup", "rle": rle(mask)} for number, mask in first.items()]
    return Example(
        example_id=name,
        benchmark="extended",
        task="mask_tracking",
        label="objects",
        frames=tuple(FrameRef(name, frame) for frame in range(frames)),
        inputs={"objects": given, "n_frames": frames, "width": width, "height": height},
        target=entries({key: mask for key, mask in true.items() if mask.any()}),
    )


def read(text: str, example: Example) -> Prediction:
    return answering.read(TASK, text, example)


def pixels(prediction: Prediction) -> Masks:
    masks = cast("list[dict[str, Any]]", prediction.value["masks"])
    return {
        (m["object"], m["frame"]): decode_mask(Rle(counts=m["rle"]["counts"], size=tuple(m["rle"]["size"])))
        for m in masks
    }


def block(y: int, x: int, side: int = 4) -> Mask:
    mask = np.zeros((HEIGHT, WIDTH), dtype=bool)
    mask[y : y + side, x : x + side] = True
    return mask


def test_a_clip_asks_for_the_objects_of_its_first_frame_and_absent_objects_have_no_mask(tmp_path: Path) -> None:
    (example,), _ = derived(tmp_path, document())
    assert example.evidence["object_ids"] == [MACHINE, CUP, LEFT, BUTTON]  # the right hand comes later
    frames: dict[int, list[int]] = {}
    for entry in cast("list[dict[str, Any]]", example.target["masks"]):
        frames.setdefault(entry["object"], []).append(entry["frame"])
    assert frames == {1: [1, 2, 3], 2: [1, 2, 3], 3: [1], 4: [1, 2, 3]}  # the left hand leaves after 20 frames
    assert TASK.prompt(example, BOXES).image_count == 4


def test_objects_are_drawn_by_a_seed_of_the_clip(tmp_path: Path) -> None:
    drawn = [derived(tmp_path, document(), per_frame=2, seed=seed)[0][0] for seed in (1, 1, 2, 3, 4)]
    asked = [tuple(cast("list[str]", example.evidence["object_ids"])) for example in drawn]
    assert asked[0] == asked[1]
    assert {len(ids) for ids in asked} == {2}
    assert len(set(asked)) > 1


def with_mask(mask: dict[str, Any], frame: int, name: str | None) -> dict[str, Any]:
    content = document()
    for row in content["annotations"]:
        if row["image_id"] == frame and name in (None, row["object_id"]):
            row["segmentation"] = mask
    return content


def test_a_clip_with_a_bad_first_or_last_mask_is_counted_and_skipped(tmp_path: Path) -> None:
    for frame in (0, 20):
        _, (skipped,) = derived(tmp_path / str(frame), with_mask({"size": [64, 96], "counts": "1"}, frame, CUP))
        assert "segmentation: mask counts are not a run-length encoding" in skipped.reason


def test_an_object_with_an_empty_mask_is_not_there(tmp_path: Path) -> None:
    empty = rle(np.zeros((64, 96), dtype=bool))
    _, (skipped,) = derived(tmp_path / "all", with_mask(empty, 0, None))
    assert "no object has a mask" in skipped.reason
    (example,), _ = derived(tmp_path / "one", with_mask(empty, 0, CUP))
    assert example.evidence["object_ids"] == [MACHINE, LEFT, BUTTON]


@pytest.mark.parametrize("model", ["tiny", "served:gpt", "dual:tiny", "sam3:facebook/sam3", "text_only:tiny"])
def test_models_that_do_not_read_masks_are_refused_before_anything_is_asked(model: str) -> None:
    examples = cast("ExampleSet", SimpleNamespace(examples=()))
    with pytest.raises(ConfigError, match=r"mask_tracking follows given masks.*predictions:FILE"):
        check_fit(model, TASK, examples)


def test_masks_of_one_object_are_united_and_what_cannot_be_used_is_dropped() -> None:
    example = example_of({1: block(0, 0), 2: block(6, 6)}, {}, 3)
    answer = entries({(1, 0): block(0, 0), (1, 1): block(0, 1), (2, 2): block(5, 5)})
    answer["masks"] += entries({(1, 1): block(4, 8)})["masks"]
    wrong = [{"object": 3}, {"object": None}, {"frame": 3}, {"frame": -1}, {"rle": {"size": [2, 2], "counts": "4"}}]
    answer["masks"] += [{**answer["masks"][1], **change} for change in [*wrong, {"rle": {"counts": "~"}}]]
    prediction = read(f"So:\n```json\n{json.dumps(answer)}\n```", example)
    assert prediction.dropped == 6
    masks = pixels(prediction)
    assert masks.keys() == {(1, 1), (2, 2)}  # the mask of the first frame is given
    assert (masks[1, 1] == (block(0, 1) | block(4, 8))).all()
    assert read('{"masks": []}', example).value == {"masks": []}
    assert isinstance(TASK.parse("I see a cup.", example.inputs, BOXES), ParseError)


def test_a_frame_left_out_is_an_empty_mask_and_an_unreadable_answer_scores_0() -> None:
    example = example_of({1: block(0, 0)}, {(1, 1): block(0, 0)}, 3)  # gone on the last frame
    half_right = TASK.score(example, read('{"masks": []}', example))
    assert (half_right["J"], half_right["F"], half_right["HOTA"]) == (0.5, 0.5, 0)
    unread = TASK.score(example, None)
    assert (unread["J"], unread["F"], unread["HOTA"], unread["coverage"]) == (0, 0, 0, 0)


def test_explanations_and_overlays_show_each_object() -> None:
    moved = {(1, 1): block(0, 1), (2, 1): block(6, 6), (3, 1): block(0, 10)}
    example = example_of({1: block(0, 0), 2: block(6, 6), 3: block(0, 10)}, moved, 2)
    prediction = read(json.dumps(entries({(1, 1): block(0, 3), (2, 1): block(6, 6)})), example)
    rows = [(row.kind, row.text) for row in TASK.explain(example, prediction).rows]
    assert [(verdict, text[:5]) for verdict, text in rows] == [("hit", "2 cup"), ("miss", "3 cup"), ("wrong", "1 cup")]
    kinds = [(overlay.kind, overlay.image, overlay.label) for overlay in TASK.overlays(example, prediction)]
    assert kinds.count(("given", 0, "1 cup")) == kinds.count(("reference", 1, "1 cup")) == 1
    assert ("predicted", 1, "3 cup") not in kinds
    assert [failure.kind for failure in TASK.failures(example, prediction)] == ["missed", "loose_mask"]


def overlap(first: Mask, second: Mask) -> float:
    return float((first & second).sum() / (first | second).sum())


def best_pairs(scores: NDArray[np.float64]) -> list[tuple[int, int]]:
    """The pairs of the assignment with the highest sum, by trying all of them."""
    rows, columns = scores.shape
    if rows > columns:
        return [(row, column) for column, row in best_pairs(scores.T)]
    best = max(permutations(range(columns), rows), key=lambda chosen: sum(scores[r, c] for r, c in enumerate(chosen)))
    return list(enumerate(best))


def plain_hota(sequences: list[tuple[Masks, Masks, int]]) -> float:
    """HOTA (Luiten et al. 2021, equations 4 to 10) of (reference, answer, frames), all sequences together."""
    values = []
    for alpha in np.arange(1, 20) / 20:
        tp = lost = 0
        association = 0.0
        for true, answer, frames in sequences:
            objects, tracks = ({item for item, _ in masks} for masks in (true, answer))
            seen = {item: sum((item, f) in true for f in range(frames)) for item in objects}
            said = {item: sum((item, f) in answer for f in range(frames)) for item in tracks}
            alike = dict.fromkeys([(o, t) for o in objects for t in tracks], 0.0)
            tables = []
            for f in range(1, frames):
                here, there = (
                    [o for o in sorted(objects) if (o, f) in true],
                    [t for t in sorted(tracks) if (t, f) in answer],
                )
                iou = np.array([[overlap(true[o, f], answer[t, f]) for t in there] for o in here]).reshape(
                    len(here), len(there)
                )
                for i, o in enumerate(here):
                    for j, t in enumerate(there):
                        rest = iou[i].sum() + iou[:, j].sum() - iou[i, j]
                        alike[o, t] += iou[i, j] / rest if rest else 0
                tables.append((here, there, iou))
            pairs: dict[tuple[int, int], int] = {}
            for here, there, iou in tables:
                if here and there:
                    fit = np.array([[alike[o, t] / (seen[o] + said[t] - alike[o, t]) for t in there] for o in here])
                    for i, j in best_pairs(fit * iou):
                        if iou[i, j] >= alpha - 1e-12:
                            pairs[here[i], there[j]] = pairs.get((here[i], there[j]), 0) + 1
            tp += (matched := sum(pairs.values()))
            lost += sum(seen.values()) + sum(said.values()) - 2 * matched
            association += sum(n * n / (seen[o] + said[t] - n) for (o, t), n in pairs.items())
        values.append(math.sqrt(tp / max(1, tp + lost) * association / max(1, tp)))
    return float(np.mean(values))


def random_case(rng: np.random.Generator) -> tuple[Example, Masks, Masks, int]:
    """An example, its reference, an answer near to it, and the number of frames."""

    def blob() -> Mask:
        return block(*rng.integers(0, 8, 2).tolist(), int(rng.integers(2, 8)))

    objects, frames = range(1, int(rng.integers(1, 4)) + 1), int(rng.integers(2, 5))
    keys = [(item, frame) for item in objects for frame in range(1, frames)]
    true = {key: blob() for key in keys if rng.random() < 0.85}
    answer = {}
    for item, frame in keys:
        near = true.get((int(rng.choice(objects)) if rng.random() < 0.2 else item, frame))
        if near is not None and rng.random() < 0.8:
            answer[item, frame] = np.roll(near, tuple(rng.integers(-1, 2, 2)), axis=(0, 1))
        elif rng.random() < 0.3:
            answer[item, frame] = blob()
    return example_of({item: blob() for item in objects}, true, frames), true, answer, frames


@pytest.mark.full
def test_metrics_equal_those_made_from_pixels_on_random_cases() -> None:
    rng, nothing = np.random.default_rng(23), np.zeros((HEIGHT, WIDTH), dtype=bool)
    for _ in range(150):
        cases = [random_case(rng) for _ in range(int(rng.integers(1, 3)))]
        result = TASK.aggregate([Scored(e, read(json.dumps(entries(answer)), e)) for e, _, answer, _ in cases])
        means = []
        for example, true, answer, frames in cases:
            for item in range(1, len(cast("list[Any]", example.inputs["objects"])) + 1):
                pairs = [(answer.get((item, f), nothing), true.get((item, f), nothing)) for f in range(1, frames)]
                means.append([np.mean([measure(*pair) for pair in pairs]) for measure in (davis_j, davis_f)])
        j, f = np.mean(means, axis=0)
        assert [result["J"], result["F"], result["J_and_F"]] == pytest.approx([j, f, (j + f) / 2], abs=1e-12)
        assert result["HOTA"] == pytest.approx(plain_hota([(true, said, n) for _, true, said, n in cases]), abs=1e-9)


def test_the_prior_is_the_median_box_of_other_videos() -> None:
    others = [example_of({1: block(0, 0)}, {(1, 1): block(y, x, 4)}, 2) for y, x in ((0, 0), (2, 8), (8, 12))]
    example = example_of({1: block(0, 0), 2: block(6, 6)}, {}, 2)
    masks = pixels(read(TASK.prior_answer(example, others, BOXES), example))
    assert masks.keys() == {(1, 1), (2, 1)}
    assert (masks[1, 1] == block(2, 8, 4)).all()
    middle = np.zeros((HEIGHT, WIDTH), dtype=bool)
    middle[3:9, 4:12] = True
    assert (pixels(read(TASK.prior_answer(example, (), BOXES), example))[2, 1] == middle).all()


@pytest.fixture
def examples(small_kitchen: Path, tmp_path: Path) -> ExampleSet:
    folder = tmp_path / "extended"
    sampling = {"mask_tracking": {"limit": 4, "spacing": 20}}
    build(small_kitchen, folder, benchmark="extended", configs=["mask_tracking"], sampling=sampling, cache=False)
    return open_examples(folder, "extended", "mask_tracking")


@pytest.mark.full
def test_a_trackers_file_is_scored_beside_copied_first_masks(examples: ExampleSet, tmp_path: Path) -> None:
    lines = [json.dumps({"format": "barista_bench.predictions/1", "box_format": "xyxy/pixels", "model": "tracker"})]
    for example in examples.examples:
        followed = [mask.write() for mask in TrackMasks.of(example).masks if mask.frame < 5]
        lines.append(json.dumps({"example_id": example.example_id, "value": {"masks": followed}}))
    file = tmp_path / "tracker.jsonl"
    file.write_text("\n".join(lines))
    models = f"predictions:{file}", "copy_first_mask", "oracle"
    folder = tmp_path / "extended"
    runs = [
        run
        for number, model in enumerate(models)
        for run in evaluate(folder, model, task="mask_tracking", repetitions=1, out=tmp_path / str(number)).runs
    ]
    tracker, copied, oracle = (run.results.metrics["J_and_F"].mean for run in runs)
    assert copied < tracker < oracle == 1
    gaps = [gap for gap in baseline_gaps(runs) if "tracker" in gap.model]
    assert [gap.kind for gap in gaps] == ["copy_first_mask"], baseline_gaps(runs)
    assert gaps[0].comparison.difference == pytest.approx(tracker - copied)


def test_only_questions_with_masks_have_masks_to_copy(small_kitchen: Path, tmp_path: Path) -> None:
    folder = tmp_path / "barista"
    build(small_kitchen, folder, configs=["relations"], sampling={"relations": {"limit": 2}}, cache=False)
    with pytest.raises(ConfigError, match="barista/relations gives no masks to copy"):
        evaluate(folder, "copy_first_mask", task="relations", out=tmp_path / "run")
