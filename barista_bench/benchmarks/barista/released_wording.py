"""The release's own wording, read out of a user's clone of it: none of it is part of this package.

`_Clone` says where each text stands. A clone whose texts have the known hashes is the release
(`release@<commit>`); any other has a wording of its own, named by its hash.
"""

from __future__ import annotations

import hashlib
import logging
import string
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from barista_bench.benchmarks import ReleasedRubric
from barista_bench.benchmarks.barista.common import PROMPT_PACKAGE, RELEASED_WORDING as RELEASED_WORDING
from barista_bench.benchmarks.barista.python_texts import GAP, Function, SourceFile
from barista_bench.benchmarks.kinds.box_answers import box_fields
from barista_bench.core.boxes import BoxFormat, BoxOrder
from barista_bench.core.prompt import FROZEN_QUESTION, IMAGE_PLACES, IMAGE_TEXT, PromptTexts, TextPart, fill, hash_name
from barista_bench.errors import ConfigError
from barista_bench.files.reading import packaged_data

log = logging.getLogger(__name__)

_SOURCE = "src/barista"
_TASKS = f"{_SOURCE}/vlm_benchmarks/tasks"
_HASHES = msgspec.convert(packaged_data(PROMPT_PACKAGE, "released_hashes.yaml"), dict[str, dict[str, Any]])
SHA256 = {(file, name): sha256 for file, names in _HASHES["constants"].items() for name, sha256 in names.items()}
"""SHA-256 of the release's constants as UTF-8, by file and name."""
SENT_SHA256: dict[str, str] = _HASHES["shown"]
"""The same of texts in functions, as they are sent."""

MAX_NAMED = 3
"""Texts that are not as released which are named at the most."""
_FRAME = "Frame {number}:"
_ORDERS: tuple[BoxOrder, ...] = ("yxyx", "xyxy")
_PLACES = {"scale", "coord_desc", "coord_order", "phrase", "box", "vocabulary", "legend", "frame_count", "choices"}
_PLACES |= {"count", "question", "category", "changes", *IMAGE_PLACES}
Wording: TypeAlias = tuple[str, str, dict[str, str]]
"""System text, user text and further texts."""


def released_prompts(clone: Path, task: str) -> PromptTexts:
    """The release's wording of a task.

    Raises ConfigError where the clone does not hold it, naming file and constant or function.
    """
    clone_texts = _Clone(clone)
    return clone_texts.prompts(clone_texts.wordings[task]())


def released_writer(clone: Path) -> PromptTexts:
    """The release's wording for the writer of questions: its places are `{category}` and, as user text, `{changes}`.

    Raises ConfigError as `released_prompts`.
    """
    clone_texts = _Clone(clone)
    return clone_texts.prompts(clone_texts.writer_wording())


def released_rubric(clone: Path, task: str) -> ReleasedRubric:
    """The rubric of a task in the release, as the content of a rubric file: no steps, so that the judge makes its own.

    Raises ConfigError as `released_prompts`, also for a task that no judge scores there.
    """
    clone_texts = _Clone(clone)
    if task not in clone_texts.rubrics:
        raise ConfigError(f"the release has no judge for {task}. Remedy: judge {' or '.join(clone_texts.rubrics)}")
    content: dict[str, object] = {"version": 0, "introduction": "", **clone_texts.rubrics[task]()}
    return ReleasedRubric(content, clone_texts.wording(str(content)))


class _Clone:
    """A clone, and what stands where in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, SourceFile] = {}

    @cached_property
    def wordings(self) -> dict[str, Callable[[], Wording]]:
        """Readers of the wording of each task, by our name."""
        return {
            "grounding": partial(self._box_wording, "grounding.py", "GroundingTask", "GROUNDING", ["phrase"]),
            "hand_object": partial(self._box_wording, "hand_object.py", "HandObjectTask", "HAND_OBJECT", []),
            "referring": self._referring_wording,
            "relations": self._relations_wording,
            "activity": self._activity_wording,
            "temporal_vqa": self._visual_qa_wording,
        }

    @cached_property
    def rubrics(self) -> dict[str, Callable[[], dict[str, object]]]:
        return {"referring": self._referring_rubric, "temporal_vqa": lambda: _rubric(self.file("visual_qa.py"))}

    def file(self, name: str, folder: str = _TASKS) -> SourceFile:
        path = f"{folder}/{name}"
        if path not in self._files:
            self._files[path] = SourceFile(self.folder, path)
        return self._files[path]

    def prompts(self, wording: Wording) -> PromptTexts:
        system, user, extra = wording
        content = repr((system, user, sorted(extra.items())))
        return PromptTexts(0, system, user, _sha256(content), extra, self.wording(content))

    def wording(self, content: str) -> str:
        """The origin of the wording: the release's if every known hash is right, else the content's own."""
        if not self.differences:
            return RELEASED_WORDING
        first_names = ", ".join(self.differences[:MAX_NAMED]) + (", ..." if len(self.differences) > MAX_NAMED else "")
        log.warning(
            "%s: %d texts are not as released, so that the wording is its own: %s",
            self.folder,
            len(self.differences),
            first_names,
        )
        return hash_name("clone", _sha256(content))

    @cached_property
    def differences(self) -> list[str]:
        """Texts that the clone lacks, or has otherwise than the release."""
        constants = [
            f"{file}: {name}"
            for (file, name), sha256 in SHA256.items()
            if self._hash(lambda file=file, name=name: self.file(file).constant(name)) != sha256  # type: ignore[misc]
        ]
        sent = [f"the {name}" for name, sha256 in SENT_SHA256.items() if self._hash(self._sent_texts[name]) != sha256]
        return constants + sent

    @cached_property
    def _sent_texts(self) -> dict[str, Callable[[], str]]:
        """Texts as a model sees them that do not depend on an example, by their name in `SENT_SHA256`."""
        texts: dict[str, Callable[[], str]] = {
            "hand_object request": lambda: _user_texts(self.wordings["hand_object"](), 1)[0],
            "relations heading of the frame": lambda: _user_texts(self._relations_wording(), 2)[0],
            "relations heading of the marks": lambda: _user_texts(self._relations_wording(), 2)[1],
            "activity question": lambda: fill(self._activity_question(), {"frame_count": "4"}),
        }
        for task in ("grounding", "hand_object", "referring"):
            for order in _ORDERS:
                texts[f"{task} system text, {order}"] = partial(self._system_text, task, order)
        return texts

    def _system_text(self, task: str, order: BoxOrder) -> str:
        system, user, extra = self.wordings[task]()
        fields = box_fields(PromptTexts(0, system, user, "", extra), BoxFormat(order, 1000))
        return fill(system, fields)

    @staticmethod
    def _hash(read: Callable[[], str]) -> str:
        try:
            return _sha256(read())
        except ConfigError:
            return ""

    def _function(self, file: str, name: str, folder: str = _TASKS) -> tuple[SourceFile, Function]:
        source = self.file(file, folder)
        return source, source.function(name)

    def _box_wording(self, file: str, task: str, system: str, places: Sequence[str]) -> Wording:
        """The texts of a task that asks for boxes in one picture.

        A place of an image takes the line break on either side with it.
        """
        source, render = self._function(file, f"{task}.render_prompt")
        (user,) = render.returned_list(1)
        orders = source.function("default_system_prompt").assigned_texts("coord_order", len(_ORDERS))
        extra = {
            f"coord_order.{order}": source.whole_text(text, "coord_order")
            for order, text in zip(_ORDERS, orders, strict=True)
        }
        text = _read_format(source, f"{system}_SYSTEM_PROMPT_TEMPLATE", ("coord_desc", "scale", "coord_order"))
        return text, "{image}\n" + _put_places(source, user, places), self._descriptions() | extra

    def _referring_wording(self) -> Wording:
        source = self.file("referring.py")
        system = _read_format(source, "REFERRING_SYSTEM_PROMPT_TEMPLATE", ("coord_desc", "scale"))
        user = _read_format(source, "_QUESTION_TEMPLATE_WITH_FORMAT", ("box",))
        # Frozen with every example, its place for the box not filled in, and shown to judges alone.
        question = {FROZEN_QUESTION: source.constant("_QUESTION_TEMPLATE")}
        return system, "{image}\n" + user, self._descriptions() | question

    def _relations_wording(self) -> Wording:
        source, render = self._function("relation_extraction.py", "RelationExtractionTask.render_prompt")
        raw, marked, user = render.returned_list(3)
        (system,) = source.function("default_system_prompt").returned_list(1)
        headings = [f"{_put_places(source, heading, [])}\n{{image}}\n" for heading in (raw, marked)]
        return (
            _put_places(source, system, ["vocabulary"]),
            "".join(headings) + _put_places(source, user, ["legend"]),
            {},
        )

    def _activity_wording(self) -> Wording:
        source, render = self._function("activity_mcq.py", "_render_mcq_user_prompt")
        sections = render.list_texts("sections")
        # The choices' lines may stand in the list, or be added to it later.
        choices_gap = [GAP] if sum(GAP in line for line in sections) == 1 else []
        user = _put_places(source, "\n".join([*sections, *choices_gap]), ["question", "choices"])
        extra = {IMAGE_TEXT: _FRAME, FROZEN_QUESTION: self._activity_question()}
        user = fill(user, {"question": self._activity_question()})
        return source.constant("MCQ_SYSTEM_PROMPT"), "{images}\n" + user, extra

    def _activity_question(self) -> str:
        """The frozen question of activity, the same for all examples."""
        source, examples = self._function("activity_mcq.py", "ActivityMcqTask.iter_examples")
        return _put_places(source, examples.assigned_texts("question")[0], ["frame_count", "frame_count"])

    def _visual_qa_wording(self) -> Wording:
        source, render = self._function("visual_qa.py", "_VisualQABaseTask.render_prompt")
        user = _put_places(source, render.assigned_texts("user_prompt")[0], ["count", "question"])
        return source.constant("VISUAL_QA_SYSTEM_PROMPT"), "{images}\n" + user, {IMAGE_TEXT: _FRAME}

    def writer_wording(self) -> Wording:
        """The prompt for the writer of questions."""
        source, generate = self._function("qa_generation.py", "generate_qa_for_selected_clips")
        return _put_places(source, generate.assigned_texts("llm_system")[0], ["category"]), "{changes}", {}

    def _referring_rubric(self) -> dict[str, object]:
        source, vocabulary = self._function("referring.py", "_build_vocabulary_for_evaluator")
        categories = source.display("_VOCABULARY_CATEGORIES")
        pairs = list(categories.items()) if isinstance(categories, dict) else categories
        if not isinstance(pairs, list) or not all(isinstance(p, list | tuple) and len(p) == 2 for p in pairs):
            raise source.missing_error("_VOCABULARY_CATEGORIES of names and descriptions")
        heading = next((text for text in vocabulary.texts() if " " in text and GAP not in text), None)
        if heading is None:
            raise source.missing_error("heading in _build_vocabulary_for_evaluator")
        words = "\n".join([heading, *(f"  - {word}: {text}" for word, text in pairs)])
        return {"question": source.constant("_QUESTION_TEMPLATE"), **_rubric(source, words)}

    def _descriptions(self) -> dict[str, str]:
        """The descriptions of a box, in either order."""
        source, describe = self._function("bbox.py", "format_description", _SOURCE)
        texts = [text for texts in describe.returned_texts() for text in texts if GAP not in text]
        by_order = {"xyxy" if text.find("x") < text.find("y") else "yxyx": text for text in texts}
        if set(by_order) != set(_ORDERS) or len(texts) != len(_ORDERS):
            raise source.missing_error("format_description of two orders")
        return {f"coord_desc.{order}": text for order, text in by_order.items()}


def _read_format(source: SourceFile, name: str, fields: Sequence[str]) -> str:
    """A template of `str.format` as one of ours: `{field}` stays, `{{` becomes `{`."""
    text, names = "", []
    try:
        for literal, field, spec, conversion in string.Formatter().parse(source.constant(name)):
            text += literal
            if field is not None:
                if field not in fields or spec or conversion:
                    raise ValueError(f"a place {field!r}")
                text += GAP
                names.append(field)
    except ValueError as error:
        raise source.missing_error(f"{name} with the places {', '.join(fields)} ({error})") from error
    return _put_places(source, text, names)


def _put_places(source: SourceFile, template: str, names: Sequence[str]) -> str:
    """A text with `names` as places in its gaps.

    Raises ConfigError where it has more gaps or fewer, or reads like a place where it has none.
    """
    places = [f"{{{name}}}" for name in names]
    text = "".join(chain.from_iterable(zip_longest(template.split(GAP), places, fillvalue="")))
    if not template.count(GAP) == len(names) == sum(text.count(f"{{{name}}}") for name in _PLACES):
        wanted_places = ", ".join(names) or "none"
        raise source.missing_error(f"text with just these places: {wanted_places} (it begins {text[:40]!r})")
    return text


def _user_texts(wording: Wording, images: int) -> list[str]:
    system, user, extra = wording
    prompt = PromptTexts(0, system, user, "", extra).prompt(images)
    return [part.text for part in prompt.parts if isinstance(part, TextPart)]


def _rubric(source: SourceFile, vocabulary: str = GAP) -> dict[str, object]:
    """The release's criteria as a rubric file has them, under their keys; `vocabulary` is what a call in them gives."""
    criteria: list[dict[str, object]] = []
    try:
        for key, fields in source.display("_CRITERIA").items():  # type: ignore[attr-defined]
            bands = [
                {"low": low, "high": high, "text": source.whole_text(band["expected_outcome"], key)}
                for band in fields["rubric"]
                for low, high in [band["score_range"]]
            ]
            text = source.whole_text(fields["criteria"].replace(GAP, vocabulary), key)
            criteria.append({"name": key, "text": text, "bands": bands})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise source.missing_error("_CRITERIA of names, criteria and rubrics") from error
    return {"criteria": criteria}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
