"""The release's wording out of a clone: what stands where, whose it is, and what is refused; nothing of it is run."""

import json
import logging
import re
from hashlib import sha256
from pathlib import Path

import pytest

from barista_bench.benchmarks import get_task
from barista_bench.benchmarks.barista import released_wording
from barista_bench.benchmarks.barista.released_wording import (
    RELEASED_WORDING,
    SENT_SHA256,
    SHA256,
    released_prompts,
    released_rubric,
    released_writer,
)
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.core.task import Example, Fields, FrameRef
from barista_bench.errors import ConfigError
from barista_bench.judging.rubric import load_rubric
from tests.conftest import SHARED
from tests.released_clone import write_clone

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


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return write_clone(tmp_path / "clone")


def asked(clone: Path, name: str, box_format: BoxFormat = YXYX, *, protocol: str = "release") -> Prompt:
    frames = 2 if name in ("activity", "temporal_vqa") else 1
    inputs: Fields = {"frame_width": 64, "frame_height": 36, **INPUTS[name]}
    example = Example("e", "barista", name, "", (FrameRef("v", 0),) * frames, inputs, {})
    return get_task("barista", name, released_prompts(clone, name), options={"protocol": protocol}).prompt(
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
def test_parts_stand_in_the_released_order(clone: Path, name: str, system: str, parts: list[str | int]) -> None:
    prompt = asked(clone, name)
    assert (prompt.system, flat(prompt)) == (system, parts)


def test_boxes_are_described_and_written_as_the_model_writes_them(clone: Path) -> None:
    assert "(x0 y0 x1 y1) of 500" in asked(clone, "grounding", XYXY).system
    assert "X then Y" in asked(clone, "hand_object", XYXY).system
    assert flat(asked(clone, "referring", XYXY)) == [0, "Tell of [0, 250, 500, 500] "]
    with pytest.raises(ConfigError, match=r"clone:\w{8} asks for boxes on a scale.*Remedy: give another --box-format"):
        asked(clone, "grounding", BoxFormat("xyxy", None))


def test_the_paper_shows_hands_without_a_text(clone: Path) -> None:
    assert asked(clone, "hand_object", protocol="paper").parts == (ImagePart(0),)


def test_the_writer_keeps_doubled_braces_and_is_told_the_category(clone: Path) -> None:
    system, user = released_writer(clone).fill(category="state_change", changes="- a")
    assert system == 'Write a question and {{"answer": 1}}.\n\n\nOnly about state_change.'
    assert user == "- a"


def test_criteria_keep_their_names_bands_and_words(clone: Path) -> None:
    rubric = load_rubric(get_task("barista", "referring"), Path(f"release:{clone}"))
    (criterion,) = rubric.criteria
    assert (rubric.question, rubric.introduction) == ("What is in {box}, do you think?", "")
    assert (criterion.name, criterion.steps) == ("correctness", [])
    assert criterion.text == (
        "Is it right? Is it all?\n\nWords that count:\n  - cup: to drink from\n  - tray: to carry with"
    )
    assert criterion.scale == "0 to 3: No.\n4 to 7: Partly.\n8 to 10: Yes."
    assert rubric.wording.startswith("clone:")
    assert load_rubric(get_task("barista", "temporal_vqa"), f"release:{clone}").names == ("accuracy", "completeness")
    with pytest.raises(ConfigError, match=r"no judge for grounding.*Remedy: judge referring or temporal_vqa"):
        released_rubric(clone, "grounding")
    with pytest.raises(ConfigError, match="no rubric can be read from a release of vista"):
        load_rubric(get_task("vista", "all"), f"release:{clone}")


def test_another_clone_has_a_wording_of_its_own(clone: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        before = released_prompts(clone, "activity")
    assert re.fullmatch("clone:[0-9a-f]{8}", before.wording)
    assert "20 texts are not as released" in caplog.text
    path = clone / "src/barista/vlm_benchmarks/tasks/activity_mcq.py"
    path.write_text(path.read_text().replace("Choose one.", "Choose two."))
    assert released_prompts(clone, "activity").wording not in (before.wording, RELEASED_WORDING)
    assert released_prompts(clone, "activity").sha256 != before.sha256


def test_a_clone_with_every_known_hash_is_the_release(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = released_wording._Clone(clone)
    texts = {key: known.file(key[0]).constant(key[1]) for key in SHA256}
    monkeypatch.setattr(
        released_wording, "SHA256", {key: sha256(text.encode()).hexdigest() for key, text in texts.items()}
    )
    shown = {name: sha256(read().encode()).hexdigest() for name, read in known._sent_texts.items()}
    assert set(shown) == set(SENT_SHA256)
    monkeypatch.setattr(released_wording, "SENT_SHA256", shown)
    assert {released_prompts(clone, name).wording for name in TASKS} == {RELEASED_WORDING}
    assert released_rubric(clone, "referring").wording == released_writer(clone).wording == RELEASED_WORDING
    monkeypatch.setitem(shown, "activity question", "0" * 64)
    assert released_prompts(clone, "grounding").wording != RELEASED_WORDING
    monkeypatch.undo()
    monkeypatch.setattr(released_wording, "SENT_SHA256", {})
    monkeypatch.setattr(released_wording, "SHA256", {("gone.py", "X"): "0" * 64})
    assert released_prompts(clone, "grounding").wording != RELEASED_WORDING


def test_the_known_hashes_are_those_of_the_rules() -> None:
    rules = SHARED / "upstream_barista.md"
    if not rules.is_file():
        pytest.skip(f"{rules} is absent: the released rules are not part of this repository")
    rows = re.findall(
        r"^\| (\w+\.py) \| (\w+)[^|]*\|[^|]*\|[^|]*\| ([0-9a-f]{64}) \|$", rules.read_text(), re.MULTILINE
    )
    assert {(file, name): digest for file, name, digest in rows} == SHA256


def test_the_known_hashes_of_sent_texts_are_those_of_the_release(golden: Path) -> None:
    def sent(task: str) -> list[dict[str, object]]:
        return json.loads((golden / "prompts" / f"{task}.json").read_text())

    digests = {}
    for task in ("grounding", "hand_object", "referring"):
        for prompt in sent(task):
            digests[f"{task} system text, {prompt['bbox_format']}"] = prompt["parts"][0]["sha256"]  # type: ignore[index]
    digests["hand_object request"] = sent("hand_object")[0]["parts"][2]["sha256"]  # type: ignore[index]
    for name, index in (("frame", 1), ("marks", 3)):
        texts = sent("relation_extraction")[0]["parts"]
        digests[f"relations heading of the {name}"] = texts[index]["sha256"]  # type: ignore[index]
    line = json.loads((golden / "frozen/default/activity_mcq.jsonl").read_text().splitlines()[0])
    digests["activity question"] = line["task_data"]["question"].removeprefix("sha256:")
    assert digests == SENT_SHA256


@pytest.mark.parametrize(
    ("file", "old", "new", "what"),
    [
        ("grounding.py", '"{phrase}" here', "{phrase} {phrase} here", "just these places: phrase"),
        ("grounding.py", "Mark it as {coord_desc}", "Mark it as {colour}", "with the places coord_desc, scale"),
        ("grounding.py", "Mark it as {coord_desc}", "Mark it as {", "with the places coord_desc, scale"),
        (
            "grounding.py",
            "return [picture",
            "return [Text('One text'), picture",
            "render_prompt returns no list with 1 texts",
        ),
        ("grounding.py", "class GroundingTask", "class Other", "has no GroundingTask.render_prompt"),
        ("grounding.py", '"Mark it', 'open("/etc/passwd").read() + "Mark it', "is more than text"),
        ("grounding.py", '"Mark it', '"{{phrase}} Mark it', "just these places"),
        ("grounding.py", "GROUNDING_SYSTEM", "def (", "is not readable Python"),
        ("grounding.py", "GROUNDING_SYSTEM", "x = " + "(" * 5000 + "\nGROUNDING_SYSTEM", "is not readable Python"),
        ("grounding.py", "GROUNDING_SYSTEM", "\0", "is not readable Python"),
        ("grounding.py", '"Mark it', '"a" + ' * 2000 + '"Mark it', None),
        ("activity_mcq.py", "sections = [", "sections = sections = other = [", "has no sections that is set once"),
        ("activity_mcq.py", '"Choose one."', "A + A\n" + "A = B + B\nB = A + A", "is more than text"),
        ("visual_qa.py", '"Question:",', "", None),
    ],
)
def test_what_is_not_as_described_is_refused(clone: Path, file: str, old: str, new: str, what: str | None) -> None:
    path = clone / "src/barista/vlm_benchmarks/tasks" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    task = {"grounding.py": "grounding", "activity_mcq.py": "activity", "visual_qa.py": "temporal_vqa"}[file]
    if what is None:
        assert released_prompts(clone, task).wording.startswith("clone:")
        return
    with pytest.raises(ConfigError, match=rf"{file}: .*({what}).*Remedy: name a clone"):
        released_prompts(clone, task)


def test_names_that_double_each_other_are_bounded(clone: Path) -> None:
    names = "\n".join(f"T{n + 1} = T{n} + T{n}" for n in range(60))
    path = clone / "src/barista/vlm_benchmarks/tasks/visual_qa.py"
    path.write_text(f"T0 = 'x'\n{names}\n" + path.read_text().replace('"Watch and answer."', "T60"))
    with pytest.raises(ConfigError, match="is too long"):
        released_prompts(clone, "temporal_vqa")


def test_a_folder_that_is_no_clone_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"referring\.py: no file of the release .*Remedy: name a clone"):
        released_prompts(tmp_path, "referring")
