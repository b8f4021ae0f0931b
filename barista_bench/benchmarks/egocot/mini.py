"""A small release in the benchmark's own format, made from a mini kitchen: questions, evidence and media.

One question a subtask and video, where the video's graph has something to ask about. Answers and reasons of the split
test are left out, as in the public release.
"""

from __future__ import annotations

import json
from pathlib import Path

from barista_bench.benchmarks.egocot.evidence_sentences import rationale_of
from barista_bench.benchmarks.egocot.items import BY_CODE, GROUPS, Split
from barista_bench.benchmarks.egocot.mini_questions import CHOICES, QUESTIONS, Draft
from barista_bench.benchmarks.egocot.mini_scene import GraphScene
from barista_bench.benchmarks.egocot.question_evidence import question_evidence
from barista_bench.benchmarks.egocot.records import RecordReader, media_file
from barista_bench.core.task import Json
from barista_bench.errors import DataError
from barista_bench.files.paths import confined
from barista_bench.files.writing import place_file
from barista_bench.scene_graph import ProblemLog, SceneGraph
from barista_bench.scene_graph.release import VIDEO_FILE

TEST_EVERY = 3
"""Every third video is in the split test."""
_LETTERS = "ABCD"


def write_mini(kitchen: Path, out: Path) -> None:
    """Write `dev.json`, `test.json`, `media_manifest.json` and `media/` to a new or empty folder.

    Args:
        kitchen: a mini kitchen, or any release with scene graphs.
        out: the folder.

    Raises:
        DataError: `out` holds something, or the kitchen has no video.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out}: is not empty. Remedy: name a new folder")
    records: dict[Split, list[dict[str, Json]]] = {"dev": [], "test": []}
    manifest: list[dict[str, Json]] = []
    (out / "media").mkdir(parents=True, exist_ok=True)
    for number, video in enumerate(SceneGraph(kitchen)):
        split: Split = "test" if number % TEST_EVERY == TEST_EVERY - 1 else "dev"
        scene = GraphScene(video)
        for code, ask in QUESTIONS.items():
            draft = ask(scene)
            if draft is not None:
                qid = f"mini_{sum(map(len, records.values())):06d}"
                records[split].append(_record(scene, code, draft, qid, hidden=split == "test"))
        manifest.append({"media_id": video.video_id, "dataset": "mini kitchen", "uid": video.video_id})
        place_file(confined(kitchen, video.video_id, VIDEO_FILE), out / media_file(video.video_id))
    for name, content in (
        *((f"{split}.json", rows) for split, rows in records.items()),
        ("media_manifest.json", manifest),
    ):
        text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
        (out / name).write_text(text, encoding="utf-8")


def _record(scene: GraphScene, code: str, draft: Draft, qid: str, *, hidden: bool) -> dict[str, Json]:
    """One sample as the benchmark's files have it."""
    subtask, media_id = BY_CODE[code], scene.video.video_id
    texts = [draft.right, *draft.wrong]
    assert len(set(texts)) == CHOICES, "a question has four different choices"
    scene.rng("letters", code).shuffle(texts)
    record: dict[str, Json] = {
        "qid": qid,
        "media_id": media_id,
        "source": media_file(media_id),
        "big_category_en": GROUPS[subtask.group],
        "sub_category_en": subtask.name,
        "question": draft.question,
        "choices": dict(zip(_LETTERS, texts, strict=True)),
    }
    if hidden:
        return record
    record["answer"] = _LETTERS[texts.index(draft.right)]
    record["evidence"] = scene.evidence(draft.targets, draft.frames)
    steps = _reasons(record, scene)
    record["reasoning"] = {f"step{number}": step for number, step in enumerate(steps, start=1)}
    return record


def _reasons(record: dict[str, Json], scene: GraphScene) -> list[str]:
    """What the evidence says, and then the answer."""
    item = RecordReader(ProblemLog("mini")).read({**record, "reasoning": ["-"]}, "record")
    assert item is not None, "what is written here can be read"
    assert item.answer is not None, "only answered questions get reasons"
    size = scene.video.video
    evidence = question_evidence(
        item.evidence, item.question, item.choices, item.answer, size=(size.width, size.height)
    )
    return [*rationale_of(evidence), f"So the answer is {item.answer}."]
