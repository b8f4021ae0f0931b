"""The release's texts in a prompt file: the script's output, the questions from it, and the wording's name."""

import json
import logging
import re
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from barista_bench.benchmarks import get_task, read_wording
from barista_bench.benchmarks.barista import released_wording
from barista_bench.benchmarks.barista.common import RELEASED_WORDING
from barista_bench.benchmarks.barista.released_wording import SHA256, known_texts
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.example import Example, Fields, FrameRef
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.core.prompt_files import WRITER, read_prompt_set
from barista_bench.errors import ConfigError
from barista_bench.judging.rubric import load_rubric
from tests.conftest import SHARED
from tests.released_clone import write_clone, write_prompts

TASKS = ("grounding", "hand_object", "referring", "relations", "activity", "temporal_vqa")
YXYX, XYXY = BoxFormat("yxyx", 1000), BoxFormat("xyxy", 500)
NO_MASK = {"size": [0, 0], "counts": ""}
INPUTS: dict[str, Fields] = {
    "grounding": {"phrase": "red {image} cup", "category": "cup"},
    "hand_object": {},
    "referring": {"box": [0.0, 18.0, 64.0, 36.0], "bbox_xywh": [0.0, 18.0, 64.0, 18.0]},
    "relations": {
        "objects": [
            {"mark": mark, "category": category, "object_id": category, "bbox": [0, 0, 1, 1], "segmentation": NO_MASK}
            for mark, category in ((1, "cup"), (2, "tray"))
        ],
        "marks": {"mask_alpha": 0.4, "boundary_alpha": 1.0, "font_size": 12.0},
        "vocabulary": [
            {"relation_type": "human_actions", "values": ["holds", "turns"]},
            {"relation_type": "position", "values": ["on"]},
        ],
    },
    "activity": {
        "choices": [
            {"choice_id": name, "class_id": name, "text": text, "verb": "Pour"}
            for name, text in (("A", "Pour milk"), ("B", "Pour water"))
        ]
    },
    "temporal_vqa": {"question": "What {count}?", "n_frames": 2},
}


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_prompts(tmp_path_factory.mktemp("released"))


def asked(prompts: Path, name: str, box_format: BoxFormat = YXYX, *, protocol: str = "release") -> Prompt:
    frames = 2 if name in ("activity", "temporal_vqa") else 1
    inputs: Fields = {"frame_width": 64, "frame_height": 36, **INPUTS[name]}
    example = Example("e", "barista", name, "", (FrameRef("v", 0),) * frames, inputs, {})
    return get_task("barista", name, read_wording("barista", name, prompts), options={"protocol": protocol}).prompt(
        example, box_format
    )


def flat(prompt: Prompt) -> list[str | int]:
    return [part.text if isinstance(part, TextPart) else part.index for part in prompt.parts]


@pytest.mark.parametrize(
    ("name", "system", "parts"),
    [
        (
            "grounding",
            'Mark it as (y0 x0 y1 x1) of 1000. Say {"bboxes": []} in Y then X order.',
            [0, 'Where is "red {image} cup" here?\n'],
        ),
        (
            "hand_object",
            'Hands as (y0 x0 y1 x1) of 1000, Y then X: [{"hand_type": "left"}]',
            [0, "Hands, if you please."],
        ),
        ("referring", "A box is (y0 x0 y1 x1), up to 1000.", [0, "Tell of [500, 0, 1000, 1000] "]),
        (
            "relations",
            "Look at both pictures.\nWrite a list.\n\nWords to use:\n"
            "  human_actions:\n    - holds\n    - turns\n  position:\n    - on",
            [*("Plain picture -", 0, "Numbered one -", 1), "Numbers and names:\n  1: cup\n  2: tray\n\nNow the list."],
        ),
        (
            "activity",
            "Choose one.",
            [
                *("Frame 1:", 0, "Frame 2:", 1),
                "Question:\nHere are 2 pictures. Which label fits all 2?\n\nChoices:\nA. Pour milk\nB. Pour water",
            ],
        ),
        (
            "temporal_vqa",
            "Watch and answer.",
            [
                *("Frame 1:", 0, "Frame 2:", 1),
                "Look closely.\nThere are 2 pictures.\n\nQuestion:\nWhat {count}?\n\nAnswer now.",
            ],
        ),
    ],
)
def test_parts_are_in_the_released_order(prompts: Path, name: str, system: str, parts: list[str | int]) -> None:
    prompt = asked(prompts, name)
    assert (prompt.system, flat(prompt)) == (system, parts)


def test_boxes_are_described_and_written_as_the_model_writes_them(prompts: Path) -> None:
    assert "(x0 y0 x1 y1) of 500" in asked(prompts, "grounding", XYXY).system
    assert "X then Y" in asked(prompts, "hand_object", XYXY).system
    assert flat(asked(prompts, "referring", XYXY)) == [0, "Tell of [0, 250, 500, 500] "]
    with pytest.raises(ConfigError, match=r"file:\w{8} asks for boxes on a scale.*Fix: give another --box-format"):
        asked(prompts, "grounding", BoxFormat("xyxy", None))


def test_the_paper_shows_hands_without_a_text(prompts: Path) -> None:
    assert asked(prompts, "hand_object", protocol="paper").parts == (ImagePart(0),)


def test_the_writer_keeps_doubled_braces_and_its_prompt_names_the_category(prompts: Path) -> None:
    system, user = read_wording("barista", WRITER, prompts).fill(category="state_change", changes="- a")
    assert system == 'Write a question and {{"answer": 1}}.\n\n\nOnly about state_change.'
    assert user == "- a"


def test_criteria_keep_their_names_bands_and_words(prompts: Path) -> None:
    rubric = load_rubric(get_task("barista", "referring"), prompts)
    (criterion,) = rubric.criteria
    assert (rubric.question, rubric.introduction) == ("What is in {box}, do you think?", "")
    assert (criterion.name, criterion.steps) == ("correctness", [])
    assert criterion.text == (
        "Is it right? Is it all?\n\nWords that count:\n  - cup: to drink from\n  - tray: to carry with"
    )
    assert criterion.scale == "0 to 3: No.\n4 to 7: Partly.\n8 to 10: Yes."
    assert re.fullmatch("file:[0-9a-f]{8}", rubric.wording)
    assert load_rubric(get_task("barista", "temporal_vqa"), prompts).names == ("accuracy", "completeness")
    missing = r"rubrics\.grounding: not there \(it has referring, temporal_vqa\)\. Fix"
    with pytest.raises(ConfigError, match=missing):
        load_rubric(get_task("barista", "grounding"), prompts)


def changed(prompts: Path, folder: Path, old: str, new: str) -> Path:
    path = folder / "changed.yaml"
    assert old in prompts.read_text(encoding="utf-8")
    path.write_text(prompts.read_text(encoding="utf-8").replace(old, new))
    return path


def test_changed_texts_are_named_by_their_hash(prompts: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        before = read_wording("barista", "activity", prompts)
    assert re.fullmatch("file:[0-9a-f]{8}", before.wording)
    assert f"{prompts}: 16 texts are not as released" in caplog.text
    assert "tasks.grounding.system (boxes as yxyx), " in caplog.text
    other = changed(prompts, tmp_path, "Choose one.", "Choose two.")
    assert read_wording("barista", "activity", other).wording != before.wording
    assert read_wording("barista", "grounding", other) == read_wording("barista", "grounding", prompts)


def test_a_file_with_every_known_hash_is_the_release_if_it_says_so(
    prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prompt_set = read_prompt_set(prompts)
    assert prompt_set
    hashes = {name: sha256(text.encode()).hexdigest() for name, text in known_texts(prompt_set).items()}
    assert set(SHA256) <= set(hashes)
    monkeypatch.setattr(released_wording, "SHA256", {name: hashes[name] for name in SHA256})
    names = {read_wording("barista", name, prompts).wording for name in (*TASKS, WRITER)}
    assert names | {load_rubric(get_task("barista", "referring"), prompts).wording} == {RELEASED_WORDING}
    assert not caplog.text
    silent = changed(prompts, tmp_path, '"release": "barista",', "")
    assert read_wording("barista", "grounding", silent).wording.startswith("file:")
    assert not caplog.text, "a file that does not say so is not compared"
    content = yaml.safe_load(prompts.read_text(encoding="utf-8"))
    content["tasks"]["activity"]["extra"]["frozen_question"] += " "
    (tmp_path / "one.yaml").write_text(yaml.safe_dump(content))
    assert read_wording("barista", "grounding", tmp_path / "one.yaml").wording.startswith("file:")
    assert "1 texts are not as released" in caplog.text
    del content["writer"]
    (tmp_path / "one.yaml").write_text(yaml.safe_dump(content))
    assert read_wording("barista", "grounding", tmp_path / "one.yaml").wording.startswith("file:")
    assert caplog.text.endswith("tasks.activity.extra.frozen_question, writer.system\n")


def test_the_known_hashes_equal_the_hashes_of_the_rules() -> None:
    rules = SHARED / "upstream_barista.md"
    if not rules.is_file():
        pytest.skip(f"{rules} is absent: the released rules are not part of this repository")
    rows = re.findall(
        r"^\| \w+\.py \| (\w+)[^|]*\|[^|]*\| (\d+) \| ([0-9a-f]{64}) \|$", rules.read_text(), re.MULTILINE
    )
    digests = {name: digest for name, _, digest in rows}
    lengths = {name: int(count) for name, count, _ in rows}
    fields = {
        "tasks.referring.user (part 1)": "_QUESTION_TEMPLATE_WITH_FORMAT",
        "tasks.referring.extra.frozen_question": "_QUESTION_TEMPLATE",
        "tasks.relations.system": "RELATION_EXTRACTION_SYSTEM_PROMPT_BASE",
        "tasks.activity.system": "MCQ_SYSTEM_PROMPT",
        "tasks.temporal_vqa.system": "VISUAL_QA_SYSTEM_PROMPT",
        "writer.system": "_SYSTEM_PROMPT",
    }
    assert {field: digests[name] for field, name in fields.items()} == {field: SHA256[field] for field in fields}
    assert {
        "relations": lengths["RELATION_EXTRACTION_SYSTEM_PROMPT_BASE"],
        "writer": lengths["_SYSTEM_PROMPT"],
    } == released_wording.BASE_LENGTHS


def test_the_known_hashes_of_sent_texts_equal_the_release(golden: Path) -> None:
    def sent(task: str) -> list[dict[str, object]]:
        return json.loads((golden / "prompts" / f"{task}.json").read_text())

    digests = {}
    for task in ("grounding", "hand_object", "referring"):
        for prompt in sent(task):
            digests[f"tasks.{task}.system (boxes as {prompt['bbox_format']})"] = prompt["parts"][0]["sha256"]  # type: ignore[index]
    digests["tasks.hand_object.user (part 1)"] = sent("hand_object")[0]["parts"][2]["sha256"]  # type: ignore[index]
    for name, index in (("part 1", 1), ("part 2", 3)):
        texts = sent("relation_extraction")[0]["parts"]
        digests[f"tasks.relations.user ({name})"] = texts[index]["sha256"]  # type: ignore[index]
    line = json.loads((golden / "frozen/default/activity_mcq.jsonl").read_text().splitlines()[0])
    digests["tasks.activity.extra.frozen_question"] = line["task_data"]["question"].removeprefix("sha256:")
    assert digests.items() <= SHA256.items()
    assert len(digests) == 10


@pytest.mark.parametrize(
    ("file", "old", "new", "what"),
    [
        ("grounding.py", '"{phrase}" here', "{phrase} {phrase} here", "is no text with 1 values"),
        ("grounding.py", "class GroundingTask", "class Other", "grounding.py: has no GroundingTask.render_prompt"),
        ("visual_qa.py", '"Question:",', "", None),
    ],
)
def test_the_script_refuses_a_changed_clone(tmp_path: Path, file: str, old: str, new: str, what: str | None) -> None:
    clone = write_clone(tmp_path / "clone")
    path = clone / "src/barista/vlm_benchmarks/tasks" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    if what is None:
        assert "Question" not in read_wording("barista", "temporal_vqa", write_prompts(tmp_path, clone)).user
        return
    with pytest.raises(subprocess.CalledProcessError) as refused:
        write_prompts(tmp_path, clone)
    assert re.search(rf"{what}.*Fix: clone the release", refused.value.stderr)
