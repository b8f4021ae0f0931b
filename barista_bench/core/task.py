"""The contract that every task keeps, in three parts: what is asked, how it is scored, how it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

from barista_bench.core.display import Display
from barista_bench.core.example import Example as Example
from barista_bench.core.example import Fields as Fields
from barista_bench.core.example import FrameRef as FrameRef
from barista_bench.core.example import Json as Json
from barista_bench.core.example import ParseError as ParseError
from barista_bench.core.example import Prediction as Prediction
from barista_bench.core.example import Scored as Scored
from barista_bench.core.example import SkippedExample as SkippedExample
from barista_bench.core.example import Status as Status
from barista_bench.core.example import content_seed as content_seed
from barista_bench.core.example import evidence_objects as evidence_objects
from barista_bench.core.explanation import FAILURE_KINDS as FAILURE_KINDS
from barista_bench.core.explanation import AnswerFailure as AnswerFailure
from barista_bench.core.explanation import Explanation as Explanation
from barista_bench.core.explanation import ExplanationRow as ExplanationRow
from barista_bench.core.explanation import FailureKind as FailureKind
from barista_bench.core.explanation import Judged as Judged
from barista_bench.core.explanation import Overlay as Overlay
from barista_bench.core.explanation import OverlayKind as OverlayKind
from barista_bench.core.explanation import Rationale as Rationale
from barista_bench.core.explanation import Verdict as Verdict
from barista_bench.core.options import Option, OptionValue, effective
from barista_bench.core.prompt_sets import PromptTexts, packaged_prompts
from barista_bench.core.question import Question
from barista_bench.core.sampling import Sampling as Sampling
from barista_bench.core.scoring import Scoring
from barista_bench.errors import ConfigError

ProtocolName: TypeAlias = Literal["release", "paper"]
PROTOCOLS: tuple[ProtocolName, ...] = ("release", "paper")
"""Whose rules hold: those of the released code (the default), or the paper's where it says otherwise."""


@dataclass(frozen=True, slots=True)
class ProtocolRule:
    """One rule on which a benchmark's release and its paper differ, in words.

    `changes` says what depends on the protocol here: `nothing` where a rule is only documented.
    """

    changes: Literal["examples", "images", "prompt", "parsing", "scores", "nothing"]
    rule: str
    release: str
    paper: str


class Task(Question, Scoring, Display):
    """One task is one class: a question, its scoring and its display, and under which rules they stand."""

    upstream_name: ClassVar[str]
    """`task_name` in frozen files."""
    version: ClassVar[int]
    """Goes up with every change that alters prompts, parsing or scores; part of a sample's key."""
    sampling: ClassVar[Sampling]
    """The published parameters."""
    sampling_uses: ClassVar[frozenset[str]]
    """The fields of `Sampling` that this task reads beside the common ones."""
    prompt_package: ClassVar[str]
    """Where `prompts/<name>.yaml` lies, and `rubrics/<name>.yaml` of a judged task."""
    protocol_rules: ClassVar[tuple[ProtocolRule, ...]] = ()
    """Where release and paper differ."""
    options: ClassVar[Mapping[str, Option]] = {}
    """What the user may choose."""

    def __init__(
        self,
        prompts: PromptTexts | None = None,
        *,
        protocol: ProtocolName = "release",
        options: Mapping[str, object] | None = None,
    ) -> None:
        if protocol not in PROTOCOLS:
            raise ConfigError(f"no protocol {protocol!r}. Remedy: use one of {', '.join(PROTOCOLS)}")
        self.prompts = prompts or packaged_prompts(self.prompt_package, self.name)
        self.protocol: ProtocolName = protocol
        self.chosen: dict[str, OptionValue] = effective(self.options, options or {}, f"{self.benchmark}/{self.name}")

    def option(self, name: str) -> OptionValue:
        """The value of one of the task's options."""
        return self.chosen[name]

    @property
    def follows_paper(self) -> bool:
        return self.protocol == "paper"

    @property
    def counts_provider_errors(self) -> bool:
        """Whether an example without any answer counts as one whose answer cannot be read; else it is left out."""
        return False

    @classmethod
    def freezes_by_protocol(cls) -> bool:
        """Whether the two protocols freeze different examples or images; where not, they share the frozen sets."""
        return any(rule.changes in ("examples", "images") for rule in cls.protocol_rules)

    def stamped(self, example: Example) -> Example:
        """The example with its protocol in its metadata, where that makes a difference: it is part of its identity.

        Examples of the release stay as they are, and keep the bytes that they always had.
        """
        if self.protocol == "release" or not self.freezes_by_protocol():
            return example
        return replace(example, metadata={**example.metadata, "protocol": self.protocol})

    def refuse_other_protocol(self, examples: Sequence[Example]) -> None:
        """Raise ConfigError where an example was frozen by other rules than those that this task follows."""
        for example in examples if self.freezes_by_protocol() else ():
            frozen = example.metadata.get("protocol", "release")
            if frozen != self.protocol:
                raise ConfigError(
                    f"{example.example_id}: was frozen by the protocol {frozen!r}, not {self.protocol!r}. "
                    f"Remedy: say protocol={frozen}, or build the set again with protocol={self.protocol}"
                )
