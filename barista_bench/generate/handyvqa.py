"""HanDyVQA's questions: what hands do in a clip of five seconds, how, where, to what, and what changes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import ClassVar

import msgspec

from barista_bench.benchmarks.handyvqa import release
from barista_bench.benchmarks.kinds.masks import union
from barista_bench.errors import DataError
from barista_bench.files.writing import write_whole
from barista_bench.generate.balanced import sample_balanced
from barista_bench.generate.candidates import Choice, Item, QuestionCandidate, by_video, sample, with_choices
from barista_bench.generate.family import Family, domain_error, place_video, section
from barista_bench.generate.handyvqa_questions import HanDyVQAWords, Questions
from barista_bench.generate.scene import Scene
from barista_bench.generate.spans import COLOUR
from barista_bench.media.frame_choice import in_window
from barista_bench.media.video.readers import VideoFacts, video_facts
from barista_bench.scene_graph import SceneGraph, VideoGraph
from barista_bench.scene_graph.domain import Domain

OPTIONS = 5
"""Of a question; more where there are so many right ones that fewer than `LEAST_DISTRACTORS` would be wrong."""
LEAST_DISTRACTORS = 2


class HanDyVQAFamily(Family):
    """All eight categories of the benchmark, over clips of the source's videos."""

    name: ClassVar[str] = "handyvqa"
    subtasks: ClassVar[tuple[str, ...]] = release.CATEGORIES
    choice_subtasks: ClassVar[tuple[str, ...]] = release.MCQ_CATEGORIES

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self.domain_words = section(domain, self.name, HanDyVQAWords)
        for key, known, said in (
            ("grip", domain.contacts, (self.domain_words.grip,)),
            ("where", domain.places, self.domain_words.where),
            ("state", domain.attributes, (self.domain_words.state,)),
        ):
            if unknown := sorted(set(said) - set(known)):
                raise domain_error(
                    domain, f"families.{self.name}.{key}: {unknown[0]!r} is described nowhere in the file"
                )
        if domain.lengths.clip != 2 * release.HALF_WINDOW_S:
            clip = f"{domain.lengths.clip:g} s, and a clip of this benchmark has {2 * release.HALF_WINDOW_S:g} s"
            raise domain_error(domain, f"lengths.clip is {clip}")
        self._colours = frozenset(domain.attributes[COLOUR].values) if COLOUR in domain.attributes else frozenset()

    def distractors_needed(self, candidate: QuestionCandidate) -> int:
        """None where masks are asked for: no model is shown the options then."""
        return 0 if candidate.subtask in release.RVOS_CATEGORIES else _usual_distractors(candidate)

    def candidates(self, scene: Scene) -> Iterator[QuestionCandidate]:
        questions = Questions(scene, self.domain_words)
        yield from chain(questions.actions(), questions.processes(), questions.locations())
        yield from chain(questions.states(), questions.parts(), questions.objects())

    def sample_subtask(self, subtask: str, offered: Sequence[QuestionCandidate], size: int, seed: int) -> list[Item]:
        if subtask in release.RVOS_CATEGORIES:
            return with_choices(sample(offered, size, seed), subtask, _known_distractors, seed)
        sampled = sample_balanced(offered, size, seed, self.distractors_needed, self.words)
        return with_choices(sampled, subtask, self.distractors_needed, seed)

    def words(self, candidate: QuestionCandidate, choice: Choice) -> tuple[str, ...]:
        """A choice's words, its text as one, and that with what the question names; but for colours, which tell things
        of one video apart."""
        words, named = (
            [word for word in re.findall(r"\w+", text.lower()) if word not in self._colours]
            for text in (choice.text, candidate.slots.get("name", ""))
        )
        return tuple(dict.fromkeys((*words, " ".join(words), " ".join([*named, "?", *words]))))

    def write(self, items: Sequence[Item], source: SceneGraph, out: Path) -> None:
        """Write `<category>.jsonl` of each category that has items, and the videos whole, below `videos`.

        Raises:
            DataError: a video is missing, or its frames do not lie where its graph has them.
        """
        lines: dict[str, list[bytes]] = defaultdict(list)
        (out / "videos").mkdir()
        for video_id, of_video in by_video(items):
            path = out / _video_name(video_id)
            place_video(source, video_id, path)
            graph, facts = source[video_id], video_facts(path)
            for item in of_video:
                lines[item.candidate.subtask].append(msgspec.json.encode(_record(item, graph, facts)) + b"\n")
        for category, records in lines.items():
            write_whole(out / f"{category}.jsonl", b"".join(sorted(records)))


def _usual_distractors(candidate: QuestionCandidate) -> int:
    return max(LEAST_DISTRACTORS, OPTIONS - len(candidate.right))


def _known_distractors(candidate: QuestionCandidate) -> int:
    """As many as usual, or as the graph excludes where these are fewer."""
    return min(_usual_distractors(candidate), len(candidate.distractors))


def _video_name(video_id: str) -> str:
    return f"videos/{video_id}.mp4"


def _record(item: Item, graph: VideoGraph, facts: VideoFacts) -> release.ItemRecord:
    candidate = item.candidate
    fps = graph.video.fps or facts.fps
    centre = candidate.frames[0] / fps
    window = in_window(facts, centre, release.HALF_WINDOW_S)
    if (window.start, window.stop) != candidate.span:
        raise DataError(
            f"{candidate.video_id}: frames {candidate.span} of its graph are {window} in its video, by their times. "
            "Remedy: give the video that was annotated, at a constant rate, and its fps"
        )
    return release.ItemRecord(
        id=item.id,
        question=candidate.question,
        options=[choice.text for choice in item.choices],
        correct_idx=list(item.correct),
        clip=release.ClipRecord(video=_video_name(candidate.video_id), centre_seconds=centre),
        annotated=[
            release.AnnotatedRecord(frame=frame, targets=_targets(item, graph, frame))
            for frame in candidate.extra.get("annotated", ())
        ],
    )


def _targets(item: Item, graph: VideoGraph, frame: int) -> list[release.TargetRecord]:
    """The masks of the right options on a frame: each of an object with all its parts."""
    instances = {instance.object.id: instance for instance in graph.instances(frame)}
    masked: list[list[str]] = item.candidate.extra["masked"]
    targets = []
    for option in item.correct:
        ids = masked[item.candidate.right.index(item.choices[option])]
        rles = [graph.rle(instances[object_id]) for object_id in ids if object_id in instances]
        if rles:
            mask = union([rle.counts for rle in rles], rles[0].size)
            segmentation = release.RunLengths(size=mask.size, counts=mask.counts)
            targets.append(release.TargetRecord(option=option, segmentation=segmentation))
    return targets
