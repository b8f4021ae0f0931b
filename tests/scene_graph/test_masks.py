"""The run check agrees with pycocotools on every mask, and finds every damage, without decoding."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as numpy_strategies
from pycocotools import mask as coco_mask

from barista_bench.scene_graph import Rle, decode_mask, encode_mask, masks as masks_module
from barista_bench.scene_graph.masks import mask_ious, run_problems
from barista_bench.scene_graph.shapes import masks_of_labels
from tests.metrics.conftest import least_cpu

masks = numpy_strategies.arrays(np.bool_, st.tuples(st.integers(1, 40), st.integers(1, 40)))


@given(masks, st.sampled_from("CF"))
def test_codes_that_pycocotools_writes_pass_and_decode_to_the_same_pixels(mask: np.ndarray, order: str) -> None:
    theirs = coco_mask.encode(np.asfortranarray(mask, dtype=np.uint8))
    rle = encode_mask(np.asarray(mask, order=order))  # type: ignore[call-overload]
    assert (rle.counts.encode(), list(rle.size)) == (theirs["counts"], theirs["size"])
    assert run_problems([rle.counts], mask.size) == [None]
    pixels = decode_mask(rle)
    assert pixels.dtype == np.bool_
    assert pixels.flags.f_contiguous
    assert np.array_equal(pixels, mask)
    assert np.array_equal(pixels, coco_mask.decode(theirs))


@given(
    numpy_strategies.arrays(np.uint8, st.tuples(st.integers(1, 12), st.integers(1, 12)), elements=st.integers(0, 3)),
    st.sampled_from([1, 40]),
)
def test_an_object_map_gives_each_object_the_mask_that_pycocotools_gives_it(small: np.ndarray, scale: int) -> None:
    owners = np.asfortranarray(small.repeat(scale, 0).repeat(scale, 1))
    expected = {}
    for owner in np.unique(owners[owners > 0]).tolist():
        theirs = coco_mask.encode(np.asfortranarray(owners == owner, dtype=np.uint8))
        expected[owner] = Rle(theirs["counts"].decode(), owners.shape)
    assert masks_of_labels(owners) == expected


def test_numbers_written_longer_than_they_need_be_are_decoded() -> None:
    mask = np.arange(256 * 256).reshape(256, 256).T >= 1000
    counts = encode_mask(mask).counts
    padded = counts[:2] + "PPPPPP" + counts[2:]  # 1,000 in nine characters instead of three
    pixels = decode_mask(Rle(counts=padded, size=(256, 256)))
    assert np.array_equal(pixels, mask)
    assert np.array_equal(pixels, coco_mask.decode({"size": [256, 256], "counts": padded.encode()}))


@pytest.mark.parametrize("fraction", [0, 0.001, 0.01, 0.5, 1])
def test_masks_of_any_number_of_runs_pass_and_are_decoded_as_pycocotools_does(fraction: float) -> None:
    mask = np.random.default_rng(0).random((240, 320)) < fraction
    rle = encode_mask(mask)
    assert run_problems([rle.counts], mask.size) == [None]
    pixels = decode_mask(rle)
    assert pixels.flags.f_contiguous
    assert np.array_equal(pixels, mask)
    assert np.array_equal(pixels, coco_mask.decode({"size": [240, 320], "counts": rle.counts.encode()}))


def test_full_hd_masks_are_encoded_and_decoded_in_half_the_time_of_pycocotools() -> None:
    """No pixel is visited one by one: an outline has few runs."""
    some = blobs(12, 1080, 1920)
    rles = [encode_mask(mask) for mask in some]
    codes = [{"size": list(rle.size), "counts": rle.counts.encode()} for rle in rles]
    ours = least_cpu(lambda: [encode_mask(mask) for mask in some])
    assert ours < 0.5 * least_cpu(lambda: [coco_mask.encode(np.asfortranarray(mask, dtype=np.uint8)) for mask in some])
    ours = least_cpu(lambda: [decode_mask(rle) for rle in rles])
    assert ours < 0.5 * least_cpu(lambda: [coco_mask.decode(code).astype(bool) for code in codes])


@given(masks, st.integers(1, 5000))
def test_a_mask_of_another_size_is_found(mask: np.ndarray, more: int) -> None:
    assert "runs cover" in str(run_problems([encode_mask(mask).counts], mask.size + more)[0])


@settings(max_examples=100)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=6), st.integers(1, 10_000))
def test_each_string_is_judged_on_its_own_and_never_raises(texts: list[str], pixels: int) -> None:
    together = run_problems(texts, pixels)
    assert together == [run_problems([text], pixels)[0] for text in texts]


@given(masks, st.data())
def test_overlaps_are_intersections_over_unions(mask: np.ndarray, data: st.DataObject) -> None:
    same_size = numpy_strategies.arrays(np.bool_, mask.shape)
    first = [mask, *data.draw(st.lists(same_size, max_size=2))]
    others = data.draw(st.lists(same_size, max_size=3))
    ious = mask_ious([encode_mask(mask) for mask in first], [encode_mask(mask) for mask in others])
    expected = [[(a & b).sum() / max((a | b).sum(), 1) for b in others] for a in first]
    assert ious.shape == (len(first), len(others))
    assert np.allclose(ious, np.reshape(expected, ious.shape))


def blobs(count: int, height: int, width: int) -> list[np.ndarray]:
    """Discs of all sizes, empty and full masks among them, of one frame size."""
    rng = np.random.default_rng(1)
    rows, columns = np.mgrid[:height, :width]
    centres, radii = rng.integers(0, (height, width), (count, 2)), rng.integers(0, height, count)
    return [(rows - y) ** 2 + (columns - x) ** 2 < r**2 for (y, x), r in zip(centres, radii, strict=True)]


def test_many_masks_pass_at_once_and_one_changed_character_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """More strings than one stretch of arrays holds, of one run and of many."""
    monkeypatch.setattr(masks_module, "_PART_BYTES", 2**14)
    counts = [encode_mask(mask).counts for mask in blobs(400, 120, 160)]
    assert len("".join(counts)) > 3 * masks_module._PART_BYTES
    assert run_problems(counts, 120 * 160) == [None] * 400
    rng = np.random.default_rng(2)
    for _ in range(40):
        index = int(rng.integers(len(counts)))
        position = int(rng.integers(len(counts[index])))
        other = chr(ord(counts[index][position]) ^ 1)
        changed = counts[index][:position] + other + counts[index][position + 1 :]
        damaged = [*counts[:index], changed, *counts[index + 1 :]]
        problems = run_problems(damaged, 120 * 160)
        assert [k for k, problem in enumerate(problems) if problem] == [index]


code_texts = st.text(st.characters(min_codepoint=48, max_codepoint=111), min_size=1, max_size=30)


@settings(max_examples=150)
@given(st.lists(code_texts, min_size=1, max_size=5), st.integers(1, 2**28))
def test_the_quick_check_accepts_no_mask_that_the_slow_check_refuses(texts: list[str], pixels: int) -> None:
    data, lengths = "".join(texts).encode(), np.array([len(text) for text in texts])
    are_sound = masks_module._are_surely_sound(data, lengths, pixels)
    assert not [
        text for text, ok in zip(texts, are_sound, strict=True) if ok and masks_module._run_problem(text, pixels)
    ]


@settings(max_examples=100)
@given(st.lists(st.lists(st.integers(0, 2**20), min_size=1, max_size=12), min_size=1, max_size=8))
def test_the_quick_check_accepts_all_sound_masks(runs: list[list[int]]) -> None:
    """Any runs of one sum, also those that pycocotools would not write: zeros anywhere."""
    pixels = max(map(sum, runs)) + 1
    texts = [as_counts([*item, pixels - sum(item)]) for item in runs]
    lengths = np.array([len(text) for text in texts])
    assert masks_module._are_surely_sound("".join(texts).encode(), lengths, pixels).all()


def as_counts(runs: list[int]) -> str:
    """The code, written the plain way."""
    text = ""
    for index, run in enumerate(runs):
        number = run - runs[index - 2] if index > 2 else run
        more = True
        while more:
            low, number = number & 31, number >> 5
            more = number != -1 if low & 16 else number != 0
            text += chr(48 + (low | 32 if more else low))
    return text


def test_a_sum_that_wraps_around_32_bits_is_found() -> None:
    """Each step adds 2^29 - 1: after eight of them the sum is small again."""
    step = 2**29 - 1
    runs = [0, 0, 0]
    for value in (*[step, 0] * 8, 2**32 - 8 * step):
        runs.append(runs[-2] + value)
    text = as_counts(runs)
    pixels = sum(run if run < 2**31 else run - 2**32 for run in runs) % 2**32
    assert run_problems([text], max(1, min(pixels, 2**28))) != [None]
