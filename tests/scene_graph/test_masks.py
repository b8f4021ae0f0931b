"""The run check agrees with pycocotools on every mask, and finds every damage, without decoding."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies

from barista_bench.scene_graph import decode_mask, encode_mask
from barista_bench.scene_graph.masks import run_problems

masks = numpy_strategies.arrays(np.bool_, st.tuples(st.integers(1, 40), st.integers(1, 40)))


@given(masks)
def test_what_pycocotools_encodes_passes_and_decodes_to_itself(mask: np.ndarray) -> None:
    rle = encode_mask(mask)
    assert run_problems([rle.counts], mask.size) == [None]
    assert np.array_equal(decode_mask(rle), mask)


@given(masks, st.integers(1, 5000))
def test_a_mask_of_another_size_is_found(mask: np.ndarray, more: int) -> None:
    assert "runs cover" in str(run_problems([encode_mask(mask).counts], mask.size + more)[0])


@settings(max_examples=300)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=6), st.integers(1, 10_000))
def test_each_string_is_judged_alone_and_never_raises(texts: list[str], pixels: int) -> None:
    together = run_problems(texts, pixels)
    assert together == [run_problems([text], pixels)[0] for text in texts]


def test_full_hd_masks_pass() -> None:
    rng = np.random.default_rng(0)
    for mask in (np.zeros((1080, 1920), bool), np.ones((1080, 1920), bool), rng.random((1080, 1920)) < 0.1):
        assert run_problems([encode_mask(mask).counts], mask.size) == [None]
