"""The release's own wording, read out of a user's clone of it: none of it is part of this package.

`_Clone` says where each text stands. A clone whose texts have the known hashes is the release
(`release@<commit>`); any other has a wording of its own, named by its hash.
"""

from __future__ import annotations

import ast
import hashlib
import logging
import string
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from barista_bench.benchmarks import ReleasedRubric, packaged_data
from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE, WORDING as WORDING
from barista_bench.benchmarks.barista.python_texts import Pieces, SourceFile
from barista_bench.benchmarks.kinds.box_answers import box_fields
from barista_bench.core.boxes import BoxFormat, BoxOrder
from barista_bench.core.prompt import FROZEN_QUESTION, IMAGE_PLACES, IMAGE_TEXT, PromptTexts, TextPart, by_hash, fill
from barista_bench.errors import ConfigError

log = logging.getLogger(__name__)

_SOURCE = "src/barista"
_TASKS = f"{_SOURCE}/vlm_benchmarks/tasks"
_HASHES = msgspec.convert(packaged_data(PROMPT_PACKAGE, "released_hashes.yaml"), dict[str, dict[str, Any]])
SHA256 = {(file, name): sha256 for file, names in _HASHES["constants"].items() for name, sha256 in names.items()}
"""SHA-256 of the release's constants as UTF-8, by file and name."""
SHOWN: dict[str, str] = _HASHES["shown"]
"""The same of texts in functions, as they are sent."""

NAMED = 3
"""Texts that are not as released which are named at the most."""
_FRAME = "Frame {number}:"
_ORDERS: tuple[BoxOrder, ...] = ("yxyx", "xyxy")
_PLACES = {"scale", "coord_desc", "coord_order", "phrase", "box", "vocabulary", "legend", "frame_count", "choices"}
_PLACES |= {"count", "question", "category", "changes", *IMAGE_PLACES}
Asked: TypeAlias = tuple[str, str, dict[str, str]]
"""System text, user text and further texts."""


def released_prompts(clone: Path, task: str) -> PromptTexts:
    """The release's wording of a task.

    Raises:
        ConfigError: the clone does not hold it; names file and constant or function.
    """
    clone_texts = _Clone(clone)
    return clone_texts.prompts(clone_texts.asked[task]())


def released_writer(clone: Path) -> PromptTexts:
    """The release's wording for the writer of questions: its places are `{category}` and, as user text, `{changes}`.

    Raises:
        ConfigError: as `released_prompts`.
    """
    clone_texts = _Clone(clone)
    return clone_texts.prompts(clone_texts.writer())


def released_rubric(clone: Path, task: str) -> ReleasedRubric:
    """How the release has a task judged, as the content of a rubric file: no steps, so that the judge makes its own.

    Raises:
        ConfigError: as `released_prompts`; also for a task that no judge scores there.
    """
    clone_texts = _Clone(clone)
    if task not in clone_texts.judged:
        raise ConfigError(f"the release has no judge for {task}. Remedy: judge {' or '.join(clone_texts.judged)}")
    content: dict[str, object] = {"version": 0, "introduction": "", **clone_texts.judged[task]()}
    return ReleasedRubric(content, clone_texts.wording(str(content)))


class _Clone:
    """A clone, and what stands where in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, SourceFile] = {}

    @cached_property
    def asked(self) -> dict[str, Callable[[], Asked]]:
        """By task of ours."""
        return {
            "grounding": self._grounding,
            "hand_object": self._hand_object,
            "referring": self._referring,
            "relations": self._relations,
            "activity": self._activity,
            "temporal_vqa": self._visual_qa,
        }

    @cached_property
    def judged(self) -> dict[str, Callable[[], dict[str, object]]]:
        return {"referring": self._referring_rubric, "temporal_vqa": lambda: self._rubric(self.file("visual_qa.py"))}

    def file(self, name: str, folder: str = _TASKS) -> SourceFile:
        path = f"{folder}/{name}"
        if path not in self._files:
            self._files[path] = SourceFile(self.folder, path)
        return self._files[path]

    def prompts(self, asked: Asked) -> PromptTexts:
        system, user, extra = asked
        content = repr((system, user, sorted(extra.items())))
        return PromptTexts(0, system, user, _sha256(content), extra, self.wording(content))

    def wording(self, content: str) -> str:
        """The origin of the wording: the release's if every known hash is right, else the content's own."""
        if not self.changed:
            return WORDING
        named = ", ".join(self.changed[:NAMED]) + (", ..." if len(self.changed) > NAMED else "")
        log.warning(
            "%s: %d texts are not as released, so that the wording is its own: %s",
            self.folder,
            len(self.changed),
            named,
        )
        return by_hash("clone", _sha256(content))

    @cached_property
    def changed(self) -> list[str]:
        """Texts that the clone lacks, or has otherwise than the release."""
        constants = [
            f"{file}: {name}"
            for (file, name), sha256 in SHA256.items()
            if self._hash(lambda file=file, name=name: self.file(file).text(name)) != sha256  # type: ignore[misc]
        ]
        return constants + [f"the {name}" for name, sha256 in SHOWN.items() if self._hash(self._shown[name]) != sha256]

    @cached_property
    def _shown(self) -> dict[str, Callable[[], str]]:
        """Texts as a model sees them that do not depend on an example, by their name in `SHOWN`."""
        texts: dict[str, Callable[[], str]] = {
            "hand_object request": lambda: _texts(self._hand_object(), 1)[0],
            "relations heading of the frame": lambda: _texts(self._relations(), 2)[0],
            "relations heading of the marks": lambda: _texts(self._relations(), 2)[1],
            "activity question": lambda: fill(self._question(), {"frame_count": "4"}),
        }
        for task in ("grounding", "hand_object", "referring"):
            for order in _ORDERS:
                texts[f"{task} system text, {order}"] = partial(self._system, task, order)
        return texts

    def _system(self, task: str, order: Literal["yxyx", "xyxy"]) -> str:
        system, user, extra = self.asked[task]()
        fields = box_fields(PromptTexts(0, system, user, "", extra), BoxFormat(order, 1000))
        return fill(system, fields)

    @staticmethod
    def _hash(read: Callable[[], str]) -> str:
        try:
            return _sha256(read())
        except ConfigError:
            return ""

    def _grounding(self) -> Asked:
        source = self.file("grounding.py")
        (user,) = source.returned(source.function("GroundingTask.render_prompt"), 1)
        system = _formatted(source, "GROUNDING_SYSTEM_PROMPT_TEMPLATE", ("coord_desc", "scale", "coord_order"))
        return system, _lines("{image}", _placed(source, user, ["phrase"])), self._in_either_order(source)

    def _hand_object(self) -> Asked:
        source = self.file("hand_object.py")
        (user,) = source.returned(source.function("HandObjectTask.render_prompt"), 1)
        system = _formatted(source, "HAND_OBJECT_SYSTEM_PROMPT_TEMPLATE", ("coord_desc", "scale", "coord_order"))
        return system, _lines("{image}", _placed(source, user, [])), self._in_either_order(source)

    def _referring(self) -> Asked:
        source = self.file("referring.py")
        system = _formatted(source, "REFERRING_SYSTEM_PROMPT_TEMPLATE", ("coord_desc", "scale"))
        user = _formatted(source, "_QUESTION_TEMPLATE_WITH_FORMAT", ("box",))
        # Frozen with every example, its place for the box not filled in, and shown to judges alone.
        question = {FROZEN_QUESTION: source.text("_QUESTION_TEMPLATE")}
        return system, _lines("{image}", user), self._descriptions() | question

    def _relations(self) -> Asked:
        source = self.file("relation_extraction.py")
        raw, marked, user = source.returned(source.function("RelationExtractionTask.render_prompt"), 3)
        function = source.function("default_system_prompt")
        (system,) = source.returned(function, 1)
        texts = [_placed(source, raw, []), "{image}", _placed(source, marked, []), "{image}"]
        return _placed(source, system, ["vocabulary"]), _lines(*texts, _placed(source, user, ["legend"])), {}

    def _activity(self) -> Asked:
        source = self.file("activity_mcq.py")
        function = source.function("_render_mcq_user_prompt")
        sections = source.listed(_only(source, source.assigned(function, "sections"), "sections"), function)
        # The choices' lines may stand in the list, or be added to it later.
        gap: list[Pieces] = [[None]] if sum(None in line for line in sections) == 1 else []
        pieces: Pieces = []
        for line in [*sections, *gap]:
            pieces += ["\n", *line] if pieces else line
        user = fill(_placed(source, pieces, ["question", "choices"]), {"question": self._question()})
        extra = {IMAGE_TEXT: _FRAME, FROZEN_QUESTION: self._question()}
        return source.text("MCQ_SYSTEM_PROMPT"), _lines("{images}", user), extra

    def _question(self) -> str:
        """The frozen question of activity, the same for all examples."""
        source = self.file("activity_mcq.py")
        function = source.function("ActivityMcqTask.iter_examples")
        asked = _only(source, source.assigned(function, "question"), "question")
        return _placed(source, source.pieces(asked, function), ["frame_count", "frame_count"])

    def _visual_qa(self) -> Asked:
        source = self.file("visual_qa.py")
        function = source.function("_VisualQABaseTask.render_prompt")
        asked = _only(source, source.assigned(function, "user_prompt"), "user_prompt")
        user = _placed(source, source.pieces(asked, function), ["count", "question"])
        return source.text("VISUAL_QA_SYSTEM_PROMPT"), _lines("{images}", user), {IMAGE_TEXT: _FRAME}

    def writer(self) -> Asked:
        """The prompt for the writer of questions."""
        source = self.file("qa_generation.py")
        function = source.function("generate_qa_for_selected_clips")
        asked = _only(source, source.assigned(function, "llm_system"), "llm_system")
        return _placed(source, source.pieces(asked, function), ["category"]), "{changes}", {}

    def _referring_rubric(self) -> dict[str, object]:
        plain = self.file("referring.py")
        name = "_build_vocabulary_for_evaluator"
        categories = plain.value(plain.constant("_VOCABULARY_CATEGORIES"))
        pairs = list(categories.items()) if isinstance(categories, dict) else categories
        if not isinstance(pairs, list) or not all(isinstance(p, list | tuple) and len(p) == 2 for p in pairs):
            raise plain.lacks("_VOCABULARY_CATEGORIES of names and descriptions")
        heading = next((text for text in plain.constants(plain.function(name)) if " " in text), None)
        if heading is None:
            raise plain.lacks(f"heading in {name}")
        words = "\n".join([heading, *(f"  - {word}: {text}" for word, text in pairs)])
        source = SourceFile(self.folder, f"{_TASKS}/referring.py", {name: words})
        return {"question": plain.text("_QUESTION_TEMPLATE"), **self._rubric(source)}

    def _rubric(self, source: SourceFile) -> dict[str, object]:
        stated = source.value(source.constant("_CRITERIA"))
        try:
            criteria = [_criterion(key, fields) for key, fields in stated.items()]  # type: ignore[attr-defined]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise source.lacks("_CRITERIA of names, criteria and rubrics") from error
        return {"criteria": criteria}

    def _descriptions(self) -> dict[str, str]:
        """How a box is described, in either order."""
        source = self.file("bbox.py", _SOURCE)
        descriptions = source.constants(source.function("format_description"), returned=True)
        by_order = {"xyxy" if text.find("x") < text.find("y") else "yxyx": text for text in descriptions}
        if set(by_order) != set(_ORDERS) or len(descriptions) != len(_ORDERS):
            raise source.lacks("format_description of two orders")
        return {f"coord_desc.{order}": text for order, text in by_order.items()}

    def _in_either_order(self, source: SourceFile) -> dict[str, str]:
        function = source.function("default_system_prompt")
        orders = source.assigned(function, "coord_order")
        if len(orders) != len(_ORDERS):
            raise source.lacks("coord_order of two orders")
        texts = [source.closed(source.pieces(node), "coord_order") for node in orders]
        return self._descriptions() | {f"coord_order.{o}": text for o, text in zip(_ORDERS, texts, strict=True)}


def _formatted(source: SourceFile, name: str, fields: Sequence[str]) -> str:
    """A template of `str.format` as one of ours: `{field}` stays, `{{` becomes `{`."""
    pieces: Pieces = []
    names = []
    try:
        for text, field, spec, conversion in string.Formatter().parse(source.text(name)):
            pieces.append(text)
            if field is not None:
                if field not in fields or spec or conversion:
                    raise ValueError(f"a place {field!r}")
                pieces.append(None)
                names.append(field)
    except ValueError as error:
        raise source.lacks(f"{name} with the places {', '.join(fields)} ({error})") from error
    return _placed(source, pieces, names)


def _placed(source: SourceFile, pieces: Pieces, names: Sequence[str]) -> str:
    """A text with `names` as places in its gaps.

    Raises:
        ConfigError: it has more gaps or fewer, or reads like a place where it has none.
    """
    following = iter(names)
    text = "".join(f"{{{next(following, '')}}}" if piece is None else piece for piece in pieces)
    count = sum(text.count(f"{{{name}}}") for name in _PLACES)
    if not sum(piece is None for piece in pieces) == len(names) == count:
        known = ", ".join(names) or "none"
        raise source.lacks(f"text with just these places: {known} (it begins {text[:40]!r})")
    return text


def _lines(*texts: str) -> str:
    """Texts and places of images as one user text: a place takes the line break on either side with it."""
    return "\n".join(texts)


def _texts(asked: Asked, images: int) -> list[str]:
    system, user, extra = asked
    prompt = PromptTexts(0, system, user, "", extra).prompt(images)
    return [part.text for part in prompt.parts if isinstance(part, TextPart)]


def _only(source: SourceFile, values: Sequence[ast.expr], name: str) -> ast.expr:
    if len(values) != 1:
        raise source.lacks(f"{name} that is set once")
    return values[0]


def _criterion(key: str, fields: dict[str, Any]) -> dict[str, object]:
    """One of the release's criteria as a rubric file has it, under the release's key."""
    bands = []
    for band in fields["rubric"]:
        low, high = band["score_range"]
        bands.append({"low": low, "high": high, "text": band["expected_outcome"]})
    return {"name": key, "text": fields["criteria"], "bands": bands}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
