"""The region_boundary metric inside `evaluate`: masks in every form, and many of them."""

import numpy as np
from pycocotools import mask as coco_mask
from region_boundary import region_boundary

METRIC = "region_boundary"


def square(y, x, side=4, size=(20, 30)):
    mask = np.zeros(size, bool)
    mask[y : y + side, x : x + side] = True
    return mask


A, B, EMPTY = square(4, 4), square(5, 6), square(0, 0, 0)
RLE = coco_mask.encode(np.asfortranarray(B, np.uint8))

PREDICTIONS = [None, [A, None], [EMPTY, B.astype(int).tolist(), RLE], [A, RLE | {"counts": RLE["counts"].decode()}]]
REFERENCES = [[A], [A, B], [EMPTY, A, B], [B, B]]


def test_the_module_computes_what_the_function_does(metric_class):
    result = metric_class(keep_in_memory=True).compute(predictions=PREDICTIONS, references=REFERENCES)
    assert result == region_boundary(PREDICTIONS, REFERENCES)
