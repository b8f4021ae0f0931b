"""Pixels behind dataset rows: a linked column of frames beside the bare reader and the stock `datasets.Video` column.

    python perf/linked_dataset.py [--quick]

All go through the same rows (a video and 6 frame indices each) in turn, round robin; the best of k rounds counts, and
pixels are checked. The goal is 1.1 times the bare reader's time or less.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from datasets import Dataset, Features, List, Value, Video
from needed import needed
from sample_video import DATA, sample_video

from barista_bench.media.frames import link_frames, plain_feature
from barista_bench.media.video import open_reader, read_frames

needed("torchcodec.decoders")  # of the stock `Video` feature
Pass = Callable[[], list[float]]  # the mean grey level of each row's frames


def rows_of(count: int, frames: int) -> list[list[int]]:
    """Frame indices of `count` rows: clips of 6 frames, 12 apart, in a video of `frames` frames."""
    starts = np.random.default_rng(2).integers(0, frames - 60, count)
    return [[int(start) + 12 * k for k in range(6)] for start in starts]


def passes(name: str, rows: list[list[int]]) -> dict[str, Pass]:
    """Ways to go through all rows and look at their pixels."""
    path = str(DATA / name)
    plain = Dataset.from_list(
        [{"frames": {"video": name, "indices": row}} for row in rows], features=Features({"frames": plain_feature()})
    )
    linked = link_frames(plain, root=DATA)
    stream = link_frames(plain.to_iterable_dataset(), root=DATA)
    stock = Dataset.from_dict(
        {"video": [path] * len(rows), "indices": rows},
        features=Features({"video": Video(), "indices": List(Value("int32"))}),
    )
    return {
        "bare reader": lambda: [level(read_frames(path, row)) for row in rows],
        "linked rows": lambda: [level(row["frames"].array()) for row in linked],
        "linked stream": lambda: [level(row["frames"].array()) for row in stream],
        "datasets.Video": lambda: [
            level(row["video"].get_frames_at(row["indices"]).data.permute(0, 2, 3, 1).numpy()) for row in stock
        ],
    }


def level(images: np.ndarray) -> float:
    """Mean of a thin sample of the pixels: enough to look at each frame, and little work."""
    return float(images[:, ::16, ::16].mean())


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a 10 s video, 4 rows, one round")
    quick = parser.parse_args().quick
    path = sample_video(10 if quick else 60, 30)
    with open_reader(path) as reader:
        rows = rows_of(4 if quick else 16, len(reader))
    calls = passes(path.name, rows)
    times: dict[str, list[float]] = {name: [] for name in calls}
    levels: dict[str, list[float]] = {}
    for _ in range(1 if quick else 4):
        for name, call in calls.items():
            begin = time.perf_counter()
            levels[name] = call()
            times[name].append((time.perf_counter() - begin) / len(rows))
    bare = min(times["bare reader"])
    print("| rows to pixels | ms a row | x bare reader | pixels |\n|:--|--:|--:|:--|")
    for name, spent in times.items():
        equal = levels[name] == levels["bare reader"]
        near = np.allclose(levels[name], levels["bare reader"], atol=2.0)
        verdict = "equal" if equal else "near (other colour conversion)" if near else "WRONG"
        print(f"| {name} | {min(spent) * 1e3:.1f} | {min(spent) / bare:.2f} | {verdict} |")


if __name__ == "__main__":
    main()
