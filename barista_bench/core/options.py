"""Define the user's choices for a task: the sampling of its set, and options, which are recorded with every run.

One option is defined here: `protocol` selects the rules of a benchmark's released code or, where they differ,
the rules of its paper.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Annotated, Literal, Self, TypeAlias, TypeVar, get_type_hints

import msgspec
from msgspec import Meta

from barista_bench.errors import ConfigError, DataError, nearest_of
from barista_bench.files.reading import packaged_data
from barista_bench.scene_graph import SceneGraph, VideoGraph

CandidateT = TypeVar("CandidateT")
SamplingT = TypeVar("SamplingT", bound="Sampling")
Index = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
Rate = Annotated[float, Meta(gt=0, le=1000)]
"""Frames per second."""
Seconds = Annotated[float, Meta(gt=0, le=3600)]


@dataclass(frozen=True, slots=True)
class Sampling:
    """The parameters that sample a frozen set. Every value changes the set, so all values are part of the set's
    identity.

    These parameters apply to every task; a subclass adds a task's own parameters.

    Args:
        limit: maximum number of examples, after shuffling; None for all.
        seed: seed of the shuffle and, without another seed, of a task's own choices. None keeps the order of the
            videos.
        videos: only these videos; None for all.
        preparations: only videos of these preparation types; None for all.
        splits: only videos of these splits; None for all.
        frame_range: only frames in [start, stop) of each video; None for all.
    """

    limit: Count | None = None
    seed: int | None = 42
    videos: tuple[str, ...] | None = None
    preparations: tuple[str, ...] | None = None
    splits: tuple[str, ...] | None = None
    frame_range: tuple[Index, Index] | None = None

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all parameters, those of every task first."""
        return tuple(parameter.name for parameter in fields(cls))

    def with_overrides(self, overrides: Mapping[str, object]) -> Self:
        """Return a copy with other values.

        Raises ConfigError if a parameter does not exist or a value is out of range.
        """
        unknown = sorted(set(overrides) - set(self.names()))
        if unknown:
            remedy = nearest_of(unknown[0], sorted(self.names()))
            raise ConfigError(f"sampling has no {unknown[0]!r} here. Fix: {remedy}")
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in overrides.items()}
        types = get_type_hints(type(self), include_extras=True)
        for name, value in values.items():
            try:
                msgspec.convert(value, types[name])  # only a check: an integer stays an integer
            except msgspec.ValidationError as error:
                raise ConfigError(f"{name} is {value!r}. Fix: give a value of its kind ({error})") from error
        sampling = replace(self, **values)  # type: ignore[arg-type]
        if sampling.frame_range and sampling.frame_range[0] >= sampling.frame_range[1]:
            raise ConfigError(f"frame_range is {sampling.frame_range}. Fix: give two frames, start before stop")
        return sampling

    def differences(self, default: Sampling) -> dict[str, object]:
        """Return the values that differ from `default`, by name."""
        return {name: value for name, value in asdict(self).items() if value != getattr(default, name)}

    def is_selected(self, video: VideoGraph) -> bool:
        """Whether a video is sampled. `splits` is applied only to videos with a known split."""
        named = self.videos is None or video.video_id in self.videos
        return named and (not self.preparations or video.preparation in self.preparations)

    def refuse_unknown_videos(self, graph: SceneGraph) -> None:
        """Raise DataError if `videos` names a video that the graph lacks."""
        absent = sorted(set(self.videos or ()) - set(graph.video_ids))
        if absent:
            raise DataError(f"{graph.root}: no video {absent[0]!r}. Fix: choose one of its {len(graph)} videos")

    def sample(self, candidates: Sequence[CandidateT]) -> list[CandidateT]:
        """Shuffle and limit, as the released freezer does: `Random(seed).shuffle`, then the first `limit`.

        The sampled order depends only on the number of candidates, so candidates are sampled exactly as their examples
        would be. Without a seed, the order is unchanged.
        """
        sampled = list(candidates)
        if self.seed is not None:
            random.Random(self.seed).shuffle(sampled)  # noqa: S311  (reproducible sampling, not secrets)
        return sampled[: self.limit]

    def generator(self, sampling_seed: int | None = None) -> random.Random:
        """Return the random generator for a task's own choices over all videos.

        Its seed is `sampling_seed`, or else `seed`, or else 0.
        """
        seeds = (seed for seed in (sampling_seed, self.seed, 0) if seed is not None)
        return random.Random(next(seeds))  # noqa: S311  (reproducible sampling, not secrets)


@dataclass(frozen=True, slots=True)
class EvenSampling(Sampling):
    """The sampling of tasks that show a fixed number of evenly spread frames.

    Args:
        frames: number of frames of one example.
    """

    frames: Count = 16


OptionValue: TypeAlias = "bool | int | float | str | None"
MAX_TEXT = 1000
"""Maximum number of characters of a textual value."""
MAX_NUMBER = 2**63
"""The absolute value of every number is smaller than this: `run.json` cannot hold larger numbers."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a task.

    Args:
        default: value if the user gives none; its type is the option's type. With None, the option is off and `kind` is
            its type.
        help: one line for users.
        changes: the thing that depends on the option: the examples of a set, which then record it; the run on any set;
            the prompt; or scores. Options that change only scores may be changed whenever a run is scored. All other
            options belong to the run and are stored in its folder.
        choices: allowed values; empty for any.
        low: minimum.
        high: maximum.
        kind: type of the value, if the default is None.
        fetched_with: for a value that may be fetched from the Hub: the other option, and the value with which the task
            reads the fetched one.
        is_added: True if the option is newer than some runs. Fingerprints then do not contain its default.
        names_run: True if the value is a run folder. `run` reads this run's answers (`Task.run_answers`), and then
            replaces the value by the run's model and the hash of its answers.
    """

    default: OptionValue
    help: str
    changes: Literal["examples", "run", "prompt", "scores"]
    choices: tuple[OptionValue, ...] = ()
    low: float | None = None
    high: float | None = None
    kind: type[bool | int | float | str] | None = None
    fetched_with: tuple[str, OptionValue] | None = None
    is_added: bool = False
    names_run: bool = False

    def checked(self, name: str, value: object) -> OptionValue:
        """Return the value if the option accepts it. Otherwise, raise a ConfigError that names the option."""
        if value is None and self.default is None:
            return None
        kind = self.kind or type(self.default)
        if kind is float and type(value) is int and abs(value) < MAX_NUMBER:
            value = float(value)
        remedy = f"Fix: give --option {name}=VALUE, {self._expected_text(kind)}: {self.help}"
        if type(value) is not kind or not isinstance(value, bool | int | float | str):
            raise ConfigError(f"option {name} is {quote_value(value)}. {remedy}")
        if isinstance(value, str) and len(value) > MAX_TEXT:
            raise ConfigError(f"option {name} has more than {MAX_TEXT} characters. {remedy}")
        is_a_choice = not self.choices or value in self.choices
        if not is_a_choice or (isinstance(value, int | float) and not self._is_in_range(value)):
            raise ConfigError(f"option {name} is {quote_value(value)}. {remedy}")
        return value

    def _is_in_range(self, value: float) -> bool:
        """Whether a number can be recorded and is in the option's range."""
        if not math.isfinite(value) if isinstance(value, float) else abs(value) >= MAX_NUMBER:
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def _expected_text(self, kind: type) -> str:
        if self.choices:
            return f"one of {', '.join(map(str, self.choices))}"
        names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
        limits = [f"{word} {value:g}" for word, value in (("from", self.low), ("to", self.high)) if value is not None]
        return " ".join([names[kind], *limits])


def quote_value(value: object) -> str:
    """Return a value in the form that messages show."""
    if type(value) is int and abs(value) >= MAX_NUMBER:  # Python does not print integers of more than 4300 digits
        return "a number that is too large"
    return f"{value!r}"[:100] if isinstance(value, bool | int | float | str) else f"a {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class ProtocolRule:
    """One rule on which a benchmark's release and its paper differ, in words.

    `changes` names the things that depend on the protocol here: `nothing` if a rule is only documented.
    """

    changes: Literal["examples", "images", "prompt", "parsing", "scores", "nothing"]
    rule: str
    release: str
    paper: str


@dataclass(frozen=True, slots=True)
class Protocol(Option):
    """The option `protocol`, and the rules that depend on it."""

    rules: tuple[ProtocolRule, ...] = ()


def protocol_option(rules: Sequence[ProtocolRule]) -> dict[str, Option]:
    """Return the option `protocol` of a task for which the release and the paper differ in these rules."""
    freezes = any(rule.changes in ("examples", "images") for rule in rules)
    note = "whose rules: the released code's, or the paper's where they differ"
    choices = ("release", "paper")
    return {"protocol": Protocol("release", note, "examples" if freezes else "run", choices, rules=tuple(rules))}


@cache
def _all_rules(package: str) -> dict[str, tuple[ProtocolRule, ...]]:
    return msgspec.convert(packaged_data(package, "protocols.yaml"), dict[str, tuple[ProtocolRule, ...]])


def packaged_protocol(package: str, task: str) -> dict[str, Option]:
    """Return the option `protocol` of a task, with the rules in a package's `protocols.yaml`."""
    return protocol_option(_all_rules(package)[task])


def rules_of(options: Mapping[str, Option]) -> tuple[ProtocolRule, ...]:
    """Return the protocol rules of a task with these options, including rules that are only documented."""
    option = options.get("protocol")
    return option.rules if isinstance(option, Protocol) else ()
