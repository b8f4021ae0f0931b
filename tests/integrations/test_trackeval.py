"""HOTA and identity switches against TrackEval, in a separate environment."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from pycocotools import mask as coco_mask

from barista_bench.metrics.tracking.scoring import tracking
from tests.integrations.test_fresh_environments import environment, run

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

# TrackEval 1.3 takes identities that are dense from 0, and similarities of true (rows) and predicted masks.
PROGRAM = """
import json, sys
import numpy as np
from trackeval.metrics import CLEAR, HOTA

def array(values, rows=None):
    return np.array(values, dtype=float).reshape(rows, -1) if rows is not None else np.array(values, dtype=int)

hota, clear = HOTA(), CLEAR({"PRINT_CONFIG": False})
parts, switches = {}, 0
for number, data in enumerate(json.load(open(sys.argv[1]))):
    for name in ("gt_ids", "tracker_ids"):
        data[name] = [array(ids) for ids in data[name]]
    data["similarity_scores"] = [
        array(rows, len(ids)) if len(rows) and len(rows[0]) else np.zeros((len(ids), 0))
        for rows, ids in zip(data["similarity_scores"], data["gt_ids"])
    ]
    parts[number] = hota.eval_sequence(data)
    switches += int(clear.eval_sequence(data)["IDSW"])
both = hota.combine_sequences(parts)
print(json.dumps({name: float(np.mean(both[name])) for name in ("HOTA", "DetA", "AssA", "LocA")} | {"IDSW": switches}))
"""


def random_sequences(seed: int) -> tuple[list[list[dict[str, dict]]], list[list[dict[str, dict]]]]:
    """Predictions and references: drifting rectangles, found inexactly, at times missed, swapped or made up."""
    rng = np.random.default_rng(seed)
    predictions, references = [], []
    for _ in range(3):
        corners = rng.integers(0, 40, (5, 2))
        names = rng.permutation(5)
        answer, reference = [], []
        for _ in range(12):
            corners = np.clip(corners + rng.integers(-3, 4, corners.shape), 0, 44)
            if rng.random() < 0.3:
                names = rng.permutation(5)
            reference.append({str(k): rectangle(*corners[k]) for k in range(5) if rng.random() < 0.9})
            shown = [k for k in range(5) if rng.random() < 0.8]
            answer.append({f"p{names[k]}": rectangle(*(corners[k] + rng.integers(0, 4, 2))) for k in shown})
        predictions.append(answer)
        references.append(reference)
    return predictions, references


def rectangle(y: int, x: int) -> dict:
    mask = np.zeros((60, 60), np.uint8)
    mask[y : y + 9, x : x + 7] = 1
    return coco_mask.encode(np.asfortranarray(mask))


def as_trackeval(prediction: list[dict[str, dict]], reference: list[dict[str, dict]]) -> dict[str, object]:
    dense = [
        {name: k for k, name in enumerate(sorted({n for f in part for n in f}))} for part in (reference, prediction)
    ]
    return {
        "num_timesteps": len(reference),
        "num_gt_ids": len(dense[0]),
        "num_tracker_ids": len(dense[1]),
        "num_gt_dets": sum(map(len, reference)),
        "num_tracker_dets": sum(map(len, prediction)),
        "gt_ids": [[dense[0][name] for name in frame] for frame in reference],
        "tracker_ids": [[dense[1][name] for name in frame] for frame in prediction],
        "similarity_scores": [
            np.asarray(coco_mask.iou(list(true.values()), list(answer.values()), [0] * len(answer))).tolist()
            for true, answer in zip(reference, prediction, strict=True)
        ],
    }


def test_the_metrics_equal_trackeval(tmp_path: Path) -> None:
    scripts = environment(tmp_path / "env", "numpy", "scipy")
    command = [scripts / "pip", "install", "--quiet", "--no-deps", "trackeval==1.3.0"]
    installed = subprocess.run(command, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"trackeval cannot be installed here: {installed.stderr[-200:]}")
    for seed in range(5):
        predictions, references = random_sequences(seed)
        data = [as_trackeval(*pair) for pair in zip(predictions, references, strict=True)]
        path = tmp_path / "sequences.json"
        path.write_text(json.dumps(data))
        theirs = json.loads(run([scripts / "python", "-c", PROGRAM, path], tmp_path).splitlines()[-1])
        ours = tracking(predictions, references)
        assert theirs["IDSW"] > 5
        assert {name: ours[name] for name in theirs} == pytest.approx(theirs, abs=1e-12)
