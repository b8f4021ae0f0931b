"""The segmenter without weights, and outlines along edges, on drawn pictures with known masks."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from barista_bench.annotate import grab_cut
from barista_bench.annotate.grab_cut import GrabCutSegmenter
from barista_bench.annotate.project import start_project
from barista_bench.annotate.proposals import ShapePrompt
from barista_bench.annotate.records import PromptPoint
from barista_bench.annotate.stages import segmenter_of
from barista_bench.errors import ConfigError
from barista_bench.studio.segmenting import edge_between

HEIGHT, WIDTH = 240, 320
INSIDE = PromptPoint(x=160, y=120)
BOX = (95.0, 55.0, 225.0, 185.0)


@pytest.fixture
def truth() -> NDArray[np.bool_]:
    return cv2.circle(np.zeros((HEIGHT, WIDTH), np.uint8), (160, 120), 60, 1, cv2.FILLED) > 0


@pytest.fixture
def picture(truth: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """A dark disc on a bright ground, both noisy, with a bright patch within the disc."""
    noise = np.random.default_rng(0).integers(0, 30, (HEIGHT, WIDTH, 3))
    ground = np.where(truth[..., None], 60, 180)
    ground[110:130, 150:190] = 185
    return (ground + noise).astype(np.uint8)


def iou(mask: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    return float((mask & truth).sum() / (mask | truth).sum())


def asked(picture: NDArray[np.uint8], *prompts: ShapePrompt) -> list[NDArray[np.bool_]]:
    return [mask for mask, _ in GrabCutSegmenter().segment(picture, prompts)]


def test_a_box_finds_the_outline_and_clicks_correct_it(picture: NDArray[np.uint8], truth: NDArray[np.bool_]) -> None:
    right, wrong = PromptPoint(x=170, y=120), PromptPoint(x=160, y=170, inside=False)
    by_box, clicked, beside = asked(picture, (BOX, []), (BOX, [right]), (BOX, [wrong]))
    assert iou(by_box, truth) > 0.9
    assert not by_box[120, 170]
    assert clicked[120, 170]
    assert iou(clicked, truth) > iou(by_box, truth)
    assert not beside[170, 160]


def test_clicks_find_the_object_around_them_without_a_box(picture: NDArray[np.uint8], truth: NDArray[np.bool_]) -> None:
    stroke = [PromptPoint(x=x, y=80) for x in range(130, 190, 5)]
    (mask,) = asked(picture, (None, stroke))
    assert mask[80, 130:190].all()
    assert (mask & ~truth).sum() < 0.05 * mask.sum()


def test_the_same_prompt_gives_the_same_mask_beside_any_other_prompts(picture: NDArray[np.uint8]) -> None:
    prompts: list[ShapePrompt] = [(BOX, []), (None, [INSIDE]), (BOX, [INSIDE])]
    together = asked(picture, *prompts)
    for prompt, mask in zip(prompts, together, strict=True):
        np.testing.assert_array_equal(asked(picture, prompt)[0], mask)


@pytest.mark.parametrize(
    "prompt",
    [
        ((0.0, 0.0, WIDTH, HEIGHT), []),
        ((0.2, 0.2, 0.9, 0.9), []),
        ((319.0, 239.0, 320.0, 240.0), [PromptPoint(x=320, y=240)]),
        (None, [PromptPoint(x=0, y=0, inside=False)]),
    ],
)
def test_prompts_at_the_rim_have_an_answer_of_the_pictures_size(
    picture: NDArray[np.uint8], prompt: ShapePrompt
) -> None:
    ((mask, score),) = GrabCutSegmenter().segment(picture, [prompt])
    assert mask.shape == (HEIGHT, WIDTH)
    assert 0 <= score <= 1


def test_an_edge_between_two_corners_follows_the_outline(picture: NDArray[np.uint8]) -> None:
    way = edge_between(picture, (100, 120), (160, 60))
    assert (way[0], way[-1]) == ((100, 120), (160, 60))
    distances = [abs(np.hypot(x - 160, y - 120) - 60) for x, y in way]
    assert np.mean(distances) < 2
    assert edge_between(picture, (5, 5), (5, 5)) == [(5, 5), (5, 5)]


def test_it_is_the_segmenter_of_a_new_project(small_kitchen: Path, tmp_path: Path) -> None:
    project = start_project(tmp_path / "project", small_kitchen)
    assert project.settings.segmenter == "grabcut"
    assert isinstance(segmenter_of("grabcut"), GrabCutSegmenter)
    with pytest.raises(ConfigError, match=r"grabcut:fast is unknown. Fix: write grabcut"):
        segmenter_of("grabcut:fast")


@pytest.mark.parametrize("side", [12, 60, 200])
def test_a_click_changes_only_its_connected_area(side: int) -> None:
    noise = np.random.default_rng(side).normal(0, 12, (240, 320, 3))
    truth = np.zeros((240, 320), np.bool_)
    truth[20 : 20 + side, 40 : 40 + side] = True
    picture = np.clip(np.where(truth[..., None], 150, 110) + noise, 0, 255).astype(np.uint8)
    box, points = (38.0, 18.0, 42.0 + side, 22.0 + side), list[PromptPoint]()
    ((before, _),) = GrabCutSegmenter().segment(picture, [(box, points)])
    for _ in range(4):
        wrong = np.pad((before ^ truth).astype(np.uint8), 1)
        y, x = np.unravel_index(cv2.distanceTransform(wrong, cv2.DIST_L2, 3).argmax(), wrong.shape)
        points.append(PromptPoint(x=float(x - 1), y=float(y - 1), inside=bool(truth[y - 1, x - 1])))
        ((after, _),) = GrabCutSegmenter().segment(picture, [(box, points)])
        assert after.any()
        assert not (before & ~after if points[-1].inside else after & ~before).any()
        assert (before & ~after).sum() <= 0.75 * before.sum()
        assert iou(after, truth) >= iou(before, truth) - 0.03
        before = after


def test_a_stroke_of_points_runs_grab_cut_once(
    picture: NDArray[np.uint8], truth: NDArray[np.bool_], monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts, real = [], cv2.grabCut
    monkeypatch.setattr(cv2, "grabCut", lambda *given: cuts.append(real(*given)))
    ys, xs = np.nonzero(truth)
    middle = int(ys.mean())
    stroke = [PromptPoint(x=float(x), y=float(middle), inside=True) for x in range(xs.min(), xs.max(), 5)]
    box = (float(xs.min()), float(ys.min()), float(xs.max()), float(ys.max()))
    GrabCutSegmenter().segment(picture, [(box, stroke)])
    assert len(stroke) > 5
    assert len(cuts) == 2


def test_a_later_click_inside_adds_no_more_than_an_earlier_one_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(crop: np.ndarray, marks: np.ndarray) -> np.ndarray:
        """The middle; with a click inside, half as much again beside it."""
        mask = np.zeros(marks.shape, np.bool_)
        mask[100:200, 100:200] = True
        mask[100:200, 200:250] = (marks == cv2.GC_FGD).any()
        return mask & (marks != cv2.GC_BGD)

    monkeypatch.setattr(grab_cut, "_cut", cut)
    picture, box = np.zeros((320, 320, 3), np.uint8), (40.0, 40.0, 280.0, 280.0)
    outside, inside = PromptPoint(x=110, y=110, inside=False), PromptPoint(x=225, y=150)

    def area(*points: PromptPoint) -> int:
        ((mask, _),) = GrabCutSegmenter().segment(picture, [(box, list(points))])
        return int(mask.sum())

    alone, after_a_small_one = area(inside) - area(), area(outside, inside) - area(outside)
    assert alone > 4000
    assert after_a_small_one < 1000
