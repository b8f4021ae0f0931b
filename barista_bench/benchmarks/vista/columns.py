"""What the columns of a ViSTa example hold."""

from __future__ import annotations

from barista_bench.core.example import Int64, TypedFields


class MatchingInputs(TypedFields):
    """One video of a problem set.

    `labels` and `descriptions` stand side by side, in the order of the set's file; `prompt_gpt` and `example_gpt` are
    the release's words about the set; `frame_count` is how many frames are shown.
    """

    problem_set: str
    labels: list[str]
    descriptions: list[str]
    prompt_gpt: str
    example_gpt: str | None
    frame_count: int

    @property
    def choices(self) -> dict[str, str]:
        """Label to description."""
        return dict(zip(self.labels, self.descriptions, strict=True))


class MatchingTarget(TypedFields):
    """The labels that fit the video: one, but for Minecraft's `multilabel`."""

    labels: list[str]


class MatchingMetadata(TypedFields):
    """What analysis groups by.

    `environment`, `level` and `type` in the paper's words; `frames` is how many were asked for, `frame_count` how many
    the video has; `seconds` is None where the video has no times; `shared_prefix`: see `ProblemSet`.
    """

    split: str
    environment: str
    type: str
    problem_set: str
    release_level: str
    release_type: str
    level: int
    sequence_length: int
    frames: int
    set_videos: int
    set_labels: int
    shared_prefix: int | None
    frame_count: Int64
    fps: float
    seconds: float | None


class EntryEvidence(TypedFields):
    """The set's file, and the video's index in `<id>_data.json`."""

    file: str
    entry: Int64
