"""A stand-in for a clone of the released repository: its layout and kinds of expression, with our own words."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "released_prompts.py"
_BBOX = '''
from enum import Enum


class Order(Enum):
    A = "yxyx"

    def format_description(self) -> str:
        """Made-up words."""
        if self is Order.A:
            return "(y0 x0 y1 x1)"
        return "(x0 y0 x1 y1)"
'''
_BOXES = """
def default_system_prompt(order):
    if order == "yxyx":
        coord_order = "Y then X"
    else:
        coord_order = "X then Y"
    return {name}.format(coord_desc=order.format_description(), scale=1000, coord_order=coord_order)
"""
_GROUNDING = '''
GROUNDING_SYSTEM_PROMPT_TEMPLATE = (
    "Mark it as {coord_desc} of {scale}. "
    'Say {{"bboxes": []}} ' + "in {coord_order} order."
)


class GroundingTask:
    def render_prompt(self, example):
        """Not this text."""
        phrase = example.task_data["phrase"]
        picture = Part(kind="image/jpeg", data=self.image(example))
        return [picture, Part(kind="text", text=f'Where is "{phrase}" here?\\n')]

''' + _BOXES.format(name="GROUNDING_SYSTEM_PROMPT_TEMPLATE")
_HAND_OBJECT = '''
HAND_OBJECT_SYSTEM_PROMPT_TEMPLATE = """Hands as {coord_desc} of {scale}, {coord_order}: \\
[{{"hand_type": "left"}}]"""


class HandObjectTask:
    def render_prompt(self, example):
        return [{"type": "image"}, {"type": "text", "text": "Hands, if you please."}]

''' + _BOXES.format(name="HAND_OBJECT_SYSTEM_PROMPT_TEMPLATE")
_REFERRING = '''
REFERRING_SYSTEM_PROMPT_TEMPLATE = "A box is {coord_desc}, up to {scale}."
_QUESTION_TEMPLATE = "What is in {box}, do you think?"
_QUESTION_TEMPLATE_WITH_FORMAT = "Tell of {box} "
_VOCABULARY_CATEGORIES = {"cup": "to drink from", "tray": "to " "carry with"}


def _build_vocabulary_for_evaluator() -> str:
    """Not this text."""
    lines = ["\\n\\nWords that count:"]
    for name, text in _VOCABULARY_CATEGORIES.items():
        lines.append(f"  - {name}: {text}")
    return "\\n".join(lines)


_CRITERIA: dict = {
    "correctness": {
        "name": "Correctness",
        "criteria": "Is it right? " + "Is it all?" + _build_vocabulary_for_evaluator(),
        "rubric": [
            {"score_range": (0, 3), "expected_outcome": "No."},
            {"score_range": (4, 7), "expected_outcome": "Partly."},
            {"score_range": (8, 10), "expected_outcome": "Yes."},
        ],
    },
}
'''
_RELATIONS = """
RELATION_OUTPUT_JSON_INSTRUCTIONS = "Write a list."
RELATION_EXTRACTION_SYSTEM_PROMPT_BASE = "Look at both pictures.\\n" + RELATION_OUTPUT_JSON_INSTRUCTIONS


class RelationExtractionTask:
    def default_system_prompt(self):
        lines = self.lines()
        vocabulary = "\\n".join(lines)
        return RELATION_EXTRACTION_SYSTEM_PROMPT_BASE + "\\n\\nWords to use:\\n" + vocabulary

    def render_prompt(self, example):
        lines = example.task_data["object_id_category_lines"]
        user_text = "Numbers and names:\\n" + "\\n".join(lines) + "\\n\\nNow the list."
        return [Text("Plain picture -"), image(example), Text("Numbered one -"), marked(example), Text(user_text)]
"""
_ACTIVITY = """
MCQ_SYSTEM_PROMPT = "Choose one."


def _render_mcq_user_prompt(question: str, choices) -> str:
    sections = ["Question:", question, "", "Choices:"]
    sections.extend(f"{choice.choice_id}. {choice.text}" for choice in choices)
    return "\\n".join(sections)


class ActivityMcqTask:
    def iter_examples(self):
        frames_per_example = int(self.params.get("frames_per_example", 4))
        question = f"Here are {frames_per_example} pictures. Which label fits all {frames_per_example}?"
        yield question
"""
_VISUAL_QA = """
VISUAL_QA_SYSTEM_PROMPT = "Watch and answer."
_CRITERIA = {
    "accuracy": {"name": "Accuracy", "criteria": "True?", "rubric": [
        {"score_range": [0, 10], "expected_outcome": "x"}]},
    "completeness": {"name": "Completeness", "criteria": "All?", "rubric": [
        {"score_range": [0, 7], "expected_outcome": "y"}, {"score_range": [8, 10], "expected_outcome": "z"}]},
}


class _VisualQABaseTask:
    def render_prompt(self, example):
        question = str(example.task_data["question"])
        user_prompt = "\\n".join([
            "Look closely.",
            f"There are {len(example.frames)} pictures.",
            "",
            "Question:",
            question,
            "",
            "Answer now.",
        ])
        return [*self.frames(example), user_prompt]
"""
_WRITER = '''
_SYSTEM_PROMPT = """\\
Write a question \\
and {{"answer": 1}}.
"""


def generate_qa_for_selected_clips(clips):
    for clip in clips:
        for category in clip:
            llm_system = _SYSTEM_PROMPT + f"\\n\\nOnly about {category}."
            yield llm_system
'''
FILES = {
    "bbox.py": _BBOX,
    "vlm_benchmarks/tasks/grounding.py": _GROUNDING,
    "vlm_benchmarks/tasks/hand_object.py": _HAND_OBJECT,
    "vlm_benchmarks/tasks/referring.py": _REFERRING,
    "vlm_benchmarks/tasks/relation_extraction.py": _RELATIONS,
    "vlm_benchmarks/tasks/activity_mcq.py": _ACTIVITY,
    "vlm_benchmarks/tasks/visual_qa.py": _VISUAL_QA,
    "vlm_benchmarks/tasks/qa_generation.py": _WRITER,
}


def write_clone(folder: Path) -> Path:
    for name, text in FILES.items():
        path = folder / "src" / "barista" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def write_prompts(folder: Path, clone: Path | None = None) -> Path:
    """The prompt file that the script makes of a clone, of the stand-in without one."""
    out = folder / "released_prompts.yaml"
    command = [sys.executable, SCRIPT, clone or write_clone(folder / "clone"), out]
    subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True)
    return out
