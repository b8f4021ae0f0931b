"""Write the texts of the released BARISTA code as one prompt file of barista_bench.

    python released_prompts.py PATH_TO_CLONE released_prompts.yaml

Run it in the environment of your clone: it imports the release's own modules, and needs nothing else. Constants and
criteria are taken by their names. Texts in functions that need a dataset are read from the source, and a value that the
function puts into its text becomes a placeholder such as `{phrase}`. The file is JSON, which every YAML reader reads.
"""

import ast
import importlib
import inspect
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

GAP = "\0"
"""Stands in a text for a value that only a run of the release knows."""
FRAME = {"image": "Frame {number}:"}
Texts = dict[str, Any]


def find(module: ModuleType, *path: str) -> ast.AST:
    """Find a function of a module, or a method by its class and name."""
    node: ast.AST = ast.parse(inspect.getsource(module))
    for name in path:
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        found = [inner for inner in ast.walk(node) if isinstance(inner, kinds) and inner.name == name]
        if not found:
            raise SystemExit(f"{module.__file__}: has no {'.'.join(path)}. Fix: clone the release as published")
        node = found[0]
    return node


def text(node: ast.AST, module: ModuleType) -> str:
    """Return the text of an expression, with a gap for each value that is not a text."""
    match node:
        case ast.Constant(value=str(constant)):
            return constant
        case ast.Name(id=name) if isinstance(getattr(module, name, None), str):
            return str(getattr(module, name))
        case ast.JoinedStr(values=parts):
            return "".join(text(part, module) for part in parts)
        case ast.FormattedValue(value=value):
            return text(value, module)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text(left, module) + text(right, module)
        case ast.Call(
            func=ast.Attribute(value=ast.Constant(value=str(joint)), attr="join"), args=[ast.List() as lines]
        ):
            return joint.join(text(line, module) for line in lines.elts)
    return GAP


def find_assigned(module: ModuleType, name: str, *path: str) -> list[ast.expr]:
    """Return the values that a function assigns to a name, in order. `a if b else c` gives both values."""
    values: list[ast.expr] = []
    for node in ast.walk(find(module, *path)):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                values.append(value)
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
                values.append(value)
    ends = [[value.body, value.orelse] if isinstance(value, ast.IfExp) else [value] for value in values]
    return sorted((end for pair in ends for end in pair), key=lambda end: (end.lineno, end.col_offset))


def find_returned(module: ModuleType, *path: str) -> list[str]:
    """Return the texts with a space in the values that a function returns, in order."""
    nodes: list[ast.AST] = [node for node in ast.walk(find(module, *path)) if isinstance(node, ast.Return)]
    texts: list[str] = []
    while nodes:
        node = nodes.pop(0)
        found = text(node, module)
        texts += [found] if " " in found else []
        nodes = nodes if found != GAP else [*ast.iter_child_nodes(node), *nodes]
    return texts


def put_places(template: str, *places: str) -> str:
    """Return the text with a placeholder in each gap."""
    first, *rest = template.split(GAP)
    if len(rest) != len(places):
        raise SystemExit(f"{template!r:.60}: is no text with {len(places)} values. Fix: clone the release as published")
    return first + "".join(f"{{{place}}}{piece}" for place, piece in zip(places, rest, strict=True))


def fields(system: str, user: str, extra: Texts | None = None) -> Texts:
    return {"version": 0, "system": system, "user": user, "extra": extra or {}}


def convert_template(template: str) -> str:
    """Convert a template of `str.format` to our placeholders."""
    return template.format(**{place: f"{{{place}}}" for place in ("coord_desc", "scale", "coord_order", "box")})


def rubric(module: ModuleType, question: str = "") -> Texts:
    criteria = []
    for name, criterion in module._CRITERIA.items():
        ranges = [(*band["score_range"], band["expected_outcome"]) for band in criterion["rubric"]]
        bands = [{"low": low, "high": high, "text": outcome} for low, high, outcome in ranges]
        criteria.append({"name": name, "text": criterion["criteria"], "bands": bands})
    return {"version": 0, "introduction": "", "question": question, "criteria": criteria}


def box_task(module: ModuleType, owner: str, template: str, descriptions: Texts, *places: str) -> Texts:
    yxyx, xyxy = (text(value, module) for value in find_assigned(module, "coord_order", "default_system_prompt"))
    (user,) = find_returned(module, owner, "render_prompt")
    extra = {**descriptions, "coord_order.yxyx": yxyx, "coord_order.xyxy": xyxy}
    return fields(convert_template(template), "{image}\n" + put_places(user, *places), extra)


def relations(module: ModuleType) -> Texts:
    (system,) = find_returned(module, "default_system_prompt")
    frame, marks = find_returned(module, "RelationExtractionTask", "render_prompt")
    (user,) = find_assigned(module, "user_text", "RelationExtractionTask", "render_prompt")
    images = f"{frame}\n{{image}}\n{marks}\n{{image}}\n"
    return fields(put_places(system, "vocabulary"), images + put_places(text(user, module), "legend"))


def activity(module: ModuleType) -> Texts:
    asked = text(find_assigned(module, "question", "ActivityMcqTask", "iter_examples")[0], module)
    asked = put_places(asked, "frame_count", "frame_count")
    (sections,) = find_assigned(module, "sections", "_render_mcq_user_prompt")
    lines = [text(line, module) for line in ast.iter_child_nodes(sections) if isinstance(line, ast.expr)]
    lines += [GAP] if sum(GAP in line for line in lines) == 1 else []  # the choices may be added to the list later
    user = put_places("\n".join(lines), "question", "choices").replace("{question}", asked)
    return fields(module.MCQ_SYSTEM_PROMPT, "{images}\n" + user, {**FRAME, "frozen_question": asked})


def main(clone: str, out: str) -> None:
    sys.path[0] = str(Path(clone) / "src")
    names = (
        "grounding",
        "hand_object",
        "referring",
        "relation_extraction",
        "activity_mcq",
        "visual_qa",
        "qa_generation",
    )
    modules = [importlib.import_module(f"barista.vlm_benchmarks.tasks.{name}") for name in names]
    boxes, hands, referring, related, actions, asked, writer = modules
    bbox = importlib.import_module("barista.bbox")
    descriptions = [found for found in find_returned(bbox, "format_description") if GAP not in found]
    described = {f"coord_desc.{'xyxy' if d.find('x') < d.find('y') else 'yxyx'}": d for d in descriptions}
    question, box_question = referring._QUESTION_TEMPLATE, convert_template(referring._QUESTION_TEMPLATE_WITH_FORMAT)
    (user,) = find_assigned(asked, "user_prompt", "_VisualQABaseTask", "render_prompt")
    (writing,) = find_assigned(writer, "llm_system", "generate_qa_for_selected_clips")
    grounded, held = boxes.GROUNDING_SYSTEM_PROMPT_TEMPLATE, hands.HAND_OBJECT_SYSTEM_PROMPT_TEMPLATE
    tasks = {
        "grounding": box_task(boxes, "GroundingTask", grounded, described, "phrase"),
        "hand_object": box_task(hands, "HandObjectTask", held, described),
        "referring": fields(
            convert_template(referring.REFERRING_SYSTEM_PROMPT_TEMPLATE),
            "{image}\n" + box_question,
            {**described, "frozen_question": question},
        ),
        "relations": relations(related),
        "activity": activity(actions),
        "temporal_vqa": fields(
            asked.VISUAL_QA_SYSTEM_PROMPT, "{images}\n" + put_places(text(user, asked), "count", "question"), FRAME
        ),
    }
    rubrics = {"referring": rubric(referring, question), "temporal_vqa": rubric(asked)}
    texts_of_writer = fields(put_places(text(writing, writer), "category"), "{changes}")
    content = {"release": "barista", "tasks": tasks, "rubrics": rubrics, "writer": texts_of_writer}
    Path(out).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(f"usage: python {sys.argv[0]} PATH_TO_CLONE OUT.yaml")
    main(*sys.argv[1:])
