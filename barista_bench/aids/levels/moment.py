"""Show the keyframes around the event of a question again."""

from __future__ import annotations

from collections.abc import Sequence

from barista_bench.aids.facts import Fact, Finder, QuestionScene, content_digest, sort_facts
from barista_bench.aids.level import Level, pictures_below_lines
from barista_bench.scene_graph.video_graph import WINDOW


def _moment(scene: QuestionScene) -> list[Fact]:
    """Return the keyframes around the changes in the question's evidence, unless these are all keyframes."""
    changes: list[dict[str, int]] = scene.example.evidence["changes"]  # type: ignore[assignment]
    frames = {frame for change in changes for frame in (change["start"], change["end"])}
    return [_frame(frame) for frame in sorted(frames)] if frames < set(scene.frames) else []


def _frame(frame: int) -> Fact:
    return Fact((), ("frame",), (frame, frame + 1), ("frame", str(frame)))


def _other_frames(scene: QuestionScene, needed: Sequence[Fact], _: Finder) -> list[Fact]:
    shown = {frame for fact in needed for frame in range(fact.span[0] - WINDOW, fact.span[1] + WINDOW)}
    others = [frame for frame in range(scene.video.frame_count) if frame not in shown]
    others.sort(key=lambda frame: content_digest(scene.example.example_id, frame))
    return sort_facts(map(_frame, others[: len(needed)])) if len(others) >= len(needed) else []


MOMENT = Level(
    heading="Frames that matter, shown again:",
    given="the frames that matter",
    verb="is",
    fill="#1d4ed8",
    facts=_moment,
    inert=_other_frames,
    pictures=pictures_below_lines,
    has_false=False,  # a look elsewhere implies no answer
)
