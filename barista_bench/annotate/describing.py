"""Lets a vision-language model describe attributes, relations and activities; a person must accept its claims.

The model sees each keyframe twice: as filmed, and with numbers on its objects. For each stretch of contact, it sees a
few frames. Every answer is written immediately. So the same call after an interruption asks only the remaining
questions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec
from PIL import Image

from barista_bench.annotate import records
from barista_bench.annotate.geometry import until_next
from barista_bench.annotate.project import Project, VideoFiles, VideoSource, writing
from barista_bench.annotate.propagation import drawn_masks
from barista_bench.core.frame_times import FrameTimes
from barista_bench.core.prompt import Prompt, object_schema
from barista_bench.core.prompt_files import packaged_prompts
from barista_bench.errors import ConfigError, DataError
from barista_bench.media.set_of_mark import Mark, draw_marks
from barista_bench.media.video import FrameReader
from barista_bench.models.base import Failure, GenerationConfig, Model, Request, reads_text_alone
from barista_bench.scene_graph.domain import Domain
from barista_bench.scene_graph.masks import decode_mask
from barista_bench.scene_graph.release import MALFORMED

_SHOWN = 4  # frames shown for a stretch of contact
_LONGEST = 200  # characters of a `Name`


class VideoDescription(NamedTuple):
    """The number of answered questions about a video, the number of unusable answers, and the errors."""

    video_id: str
    questions: int = 0
    answered: int = 0
    unusable: int = 0
    problem: str = ""


class _AnsweredAttribute(msgspec.Struct):
    object: int
    type: str
    value: str

    @property
    def marks(self) -> tuple[int, ...]:
        return (self.object,)


class _AnsweredRelation(msgspec.Struct):
    source: int
    target: int
    type: str
    value: str

    @property
    def marks(self) -> tuple[int, ...]:
        return self.source, self.target


class _KeyframeAnswer(msgspec.Struct):
    attributes: list[_AnsweredAttribute]
    relations: list[_AnsweredRelation]


class _SegmentAnswer(msgspec.Struct):
    verb: records.Name
    thing: records.Name


class _Question(NamedTuple):
    """A question about the keyframe at `span[0]`, with objects numbered from 1; without objects, about a stretch."""

    key: str
    span: records.Range
    names: list[str]
    prompt: Prompt
    images: Callable[[], tuple[Image.Image, ...]]
    frames: tuple[int, ...]  # one frame per image
    schema: Mapping[str, object]


def describe(project: Project, model: Model, config: GenerationConfig) -> Iterator[VideoDescription]:
    """Ask a model about all keyframes and stretches of contact of each video, and write `described.json`.

    The next call repeats failed questions (`Failure`). Videos that are not propagated yet, or cannot be used, are
    skipped. Raises ConfigError if another process writes the project, or if the model reads only text, since all
    questions show pictures.
    """
    if reads_text_alone(model):
        what = "reads text alone, and every question about a video shows pictures"
        raise ConfigError(f"{model.identity.name}: {what}. Fix: ask a vision-language model")
    with writing(project.folder):
        for video_id in sorted(project.file.videos):
            try:
                yield _describe_video(project.video(video_id), model, config)
            except DataError as error:
                yield VideoDescription(video_id, problem=str(error))


def _describe_video(video: VideoFiles, model: Model, config: GenerationConfig) -> VideoDescription:
    domain = video.project.vocabulary()
    if not video.has(records.LinksFile):
        raise DataError(f"{video.video_id}: has no tracks yet. Fix: run `barista-bench annotate run` first")
    identities, identity = video.identities(), model.identity
    keyframes = [identities.rename(keyframe) for keyframe in video.accepted().keyframes]
    asked_with = (identity.name, identity.revision, identity.settings, dataclasses.asdict(config), video.source.sha256)
    before = video.read(records.DescribedFile).answers if video.has(records.DescribedFile) else {}
    provenance = records.Provenance.of("described", identity, asked_with)
    failures: list[str] = []
    with video.open() as frames:
        about_keyframes = (_keyframe_question(k, identities.categories, domain, asked_with, frames) for k in keyframes)
        questions = [question for question in about_keyframes if question.names]
        questions += [_segment_question(span, domain, asked_with, frames) for span in video.segments()]
        answers = {question.key: before[question.key] for question in questions if question.key in before}
        unanswered = [question for question in questions if question.key not in answers]
        while unanswered:
            batch, unanswered = unanswered[: model.batch_size], unanswered[model.batch_size :]
            requests = [_request(item, video.source) for item in batch]
            for question, (answer,) in zip(batch, model.generate(requests, config), strict=True):
                if isinstance(answer, Failure):
                    failures.append(answer.error)
                else:
                    answers[question.key] = answer.text.encode("utf-8", "backslashreplace").decode()
            video.write(_described_file(questions, answers, video.source.frames, provenance))
    if failures:
        what = f"{len(failures)} of {len(questions)} questions failed, first: {failures[0]}"
        raise DataError(f"{video.video_id}: {what}. Fix: remove the cause, and run the same command again")
    described = _described_file(questions, answers, video.source.frames, provenance)
    video.write(described)
    return VideoDescription(video.video_id, len(questions), len(answers), described.unusable)


def _request(item: _Question, source: VideoSource) -> Request:
    times = FrameTimes(source.fps, item.frames, source.frames) if source.fps else None
    return Request(item.key, item.prompt, item.images(), schema=item.schema, times=times)


def _keyframe_question(
    keyframe: records.AcceptedKeyframe,
    categories: Mapping[str, str],
    domain: Domain,
    asked_with: tuple[object, ...],
    frames: FrameReader,
) -> _Question:
    masks = drawn_masks({name: mask.rle for name, mask in keyframe.masks.items()})
    names = list(masks)
    attributes = {kind: words.values for kind, words in domain.attributes.items()}
    relations = {domain.contact_type: tuple(domain.contacts), domain.place_type: tuple(domain.places)}
    prompt = packaged_prompts("barista_bench.annotate", "keyframe").prompt(
        2,
        attributes=_lines(attributes),
        relations=_lines(relations),
        objects="\n".join(f"{number}: {categories[name]}" for number, name in enumerate(names, start=1)),
    )

    def images() -> tuple[Image.Image, ...]:
        (picture,) = frames.read([keyframe.frame])
        marks = (Mark(number, decode_mask(rle)) for number, rle in enumerate(masks.values(), start=1))
        plain = Image.fromarray(picture)
        return plain, draw_marks(picture, marks, plain.size)

    mark = {"type": "integer", "minimum": 1, "maximum": max(len(names), 1)}
    text = {"type": "string"}
    schema = object_schema(
        {
            "attributes": _array(object=mark, type={"enum": list(attributes)}, value=text),
            "relations": _array(source=mark, target=mark, type={"enum": list(relations)}, value=text),
        }
    )
    key = records.digest(*asked_with, keyframe.frame, masks, prompt.as_text())
    return _Question(key, (keyframe.frame, keyframe.frame + 1), names, prompt, images, (keyframe.frame,) * 2, schema)


def _segment_question(
    span: records.Range, domain: Domain, asked_with: tuple[object, ...], frames: FrameReader
) -> _Question:
    length = span[1] - span[0]
    indices = sorted({span[0] + length * (2 * part + 1) // (2 * _SHOWN) for part in range(_SHOWN)})
    verbs = sorted({verb for group in domain.verbs for verb in group})
    prompt = packaged_prompts("barista_bench.annotate", "segment").prompt(
        len(indices), verbs=", ".join(verbs), things=", ".join(domain.categories)
    )
    key = records.digest(*asked_with, span, prompt.as_text())
    schema = object_schema({"verb": {"type": "string"}, "thing": {"type": "string"}})
    return _Question(
        key, span, [], prompt, lambda: tuple(map(Image.fromarray, frames.read(indices))), tuple(indices), schema
    )


def _lines(values: Mapping[str, tuple[str, ...]]) -> str:
    return "\n".join(f"{kind}: {', '.join(words)}" for kind, words in values.items())


def _array(**properties: object) -> dict[str, object]:
    return {"type": "array", "items": object_schema(properties)}


def _described_file(
    questions: list[_Question], answers: Mapping[str, str], count: int, provenance: records.Provenance
) -> records.DescribedFile:
    """Return the claims in the answers. A claim about a keyframe holds until the next keyframe that was asked about."""
    unusable = 0
    claims: dict[int, set[records.Claim]] = {}
    activities = []
    for question in questions:
        if question.key not in answers:
            continue
        text = answers[question.key]
        try:
            json_text = text[text.index("{") : text.rindex("}") + 1]
            if question.names:
                answer = msgspec.json.decode(json_text, type=_KeyframeAnswer)
                usable = list(_claims(answer, question.names))
                claims[question.span[0]] = set(usable)
                unusable += len(answer.attributes) + len(answer.relations) - len(usable)
            else:
                segment_answer = msgspec.json.decode(json_text, type=_SegmentAnswer)
                words = f"{segment_answer.verb} {segment_answer.thing}".strip().capitalize()[:_LONGEST]
                activities.append(records.LayerSegment(name=msgspec.convert(words, records.Name), range=question.span))
        except (ValueError, *MALFORMED):
            unusable += 1
    layers = records.Layers.of(until_next(claims, count) if claims else {}, activities)
    return records.DescribedFile(
        provenance=provenance, answers=dict(sorted(answers.items())), unusable=unusable, layers=layers
    )


def _claims(answer: _KeyframeAnswer, names: list[str]) -> Iterator[records.Claim]:
    names_by_mark = dict(enumerate(names, start=1))
    items: list[_AnsweredAttribute | _AnsweredRelation] = [*answer.attributes, *answer.relations]
    for item in items:
        objects = tuple(names_by_mark.get(mark, "") for mark in item.marks)
        kind, value = item.type.strip(), item.value.strip()
        if all(0 < len(part) <= _LONGEST for part in (*objects, kind, value)) and len({*objects}) == len(objects):
            yield objects, kind, value
