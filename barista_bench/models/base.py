"""Defines what every model does: it takes requests and returns one completion per request and seed, in order.

Models that see videos receive the images of a request as clips with the times of their frames (`core/frame_times.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

from PIL import Image

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat
from barista_bench.core.frame_times import FrameTimes
from barista_bench.core.prompt import ImagePart, Prompt
from barista_bench.errors import BaristaError, ConfigError, TaskError, flag_of

FinishReason = Literal["stop", "length", "thinking", "refusal"]
"""`length`: the answer was cut off; `thinking`: the thoughts were cut off, so there is no answer."""
TOKEN_COUNTS = ("input_tokens", "output_tokens", "thinking_tokens", "cached_tokens")
"""Names of the token counts in a `Completion`."""

_MAX_STOPS = 64
_MAX_LOGPROBS = 100  # alternatives per step; each of them is stored for every token of every answer


@dataclass(frozen=True, slots=True)
class GenerationConfig:
    """Settings that change generated text; all of them are part of a sample's key.

    Args:
        temperature: 0 is greedy decoding. The BARISTA protocol is 0.7 over three runs (paper, section 4.1).
        max_new_tokens: limit of generated tokens, including the reasoning; a longer answer counts as truncated.
        top_p: threshold of nucleus sampling; 1.0 turns it off.
        top_k: sample only from the k likeliest tokens; None for all.
        repetition_penalty: divides the logits of tokens that already appear in the text. 1.0 keeps the checkpoint's own
            penalty, which is part of the model's identity.
        stop: strings that end the answer; they are not part of it.
        thinking_budget: limit of reasoning tokens, after which the model must answer; None for no limit. Loading a
            model that does not support budgets raises an error.
        top_logprobs: the completion contains the log-probabilities of this many alternatives per token, if the model
            supports it; 0 for none. Judges weight their scores with these probabilities.

    Raises:
        ConfigError: a setting is out of range.
    """

    temperature: float = 0.7
    max_new_tokens: int = 4096
    top_p: float = 1.0
    top_k: int | None = None
    repetition_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    thinking_budget: int | None = None
    top_logprobs: int = 0

    def __post_init__(self) -> None:
        at_least_one = "a whole number of 1 or more"
        rules = {
            "temperature": (0 <= self.temperature <= 100, "0 (greedy) to 100"),
            "max_new_tokens": (self.max_new_tokens >= 1, at_least_one),
            "top_p": (0 < self.top_p <= 1, "a fraction above 0 and up to 1"),
            "top_k": (self.top_k is None or self.top_k >= 1, at_least_one),
            "repetition_penalty": (0 < self.repetition_penalty < math.inf, "a number above 0, 1.0 for none"),
            "stop": (len(self.stop) <= _MAX_STOPS and all(self.stop), f"up to {_MAX_STOPS} non-empty texts"),
            "thinking_budget": (self.thinking_budget is None or self.thinking_budget >= 0, "0 or more tokens"),
            "top_logprobs": (0 <= self.top_logprobs <= _MAX_LOGPROBS, f"0 to {_MAX_LOGPROBS}"),
        }
        for name, (holds, wanted) in rules.items():
            if not holds:
                raise ConfigError(f"{name} is {getattr(self, name)!r}. Fix: give {flag_of(name)} {wanted}")


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt with its images, to be answered once for each seed.

    Args:
        images: RGB images in the order of the prompt's parts.
        files: for models that send files on (`sends_files`), the JPEG or PNG file of each image that is shown as
            stored, else None. The `images` of these models are decoded on access. Empty for all other models.
        seeds: one seed per sample, derived from task, example id and run. So batch size and order change no sample, if
            the library allows this.
        inputs: the question as data (such as a phrase to ground), for specialists that read no prompt. It never
            contains the reference.
        schema: JSON Schema of the answer that the prompt requests, for models that support it; None for free text.
        choices: the text of each choice by its label, for models that score given texts (`barista_bench.core.example`);
            empty for a question without choices.
        times: when each of the images was filmed, for models that take videos; None if unknown or not needed.
    """

    request_id: str
    prompt: Prompt
    images: tuple[Image.Image, ...]
    seeds: tuple[int, ...] = (0,)
    inputs: Mapping[str, object] = field(default_factory=dict)
    schema: Mapping[str, object] | None = None
    choices: Mapping[str, str] = field(default_factory=dict)
    files: tuple[bytes | None, ...] = ()
    times: FrameTimes | None = None

    def with_images(self, indices: Sequence[int]) -> Request:
        """Return the request with only the images at `indices`, in this order; the times are not reordered."""
        files = tuple(self.files[index] for index in indices) if self.files else ()
        return replace(self, images=tuple(self.images[index] for index in indices), files=files)

    def check_images(self) -> None:
        """Raise ValueError with the request's id unless the prompt places each image exactly once."""
        placed = sorted(part.index for part in self.prompt.parts if isinstance(part, ImagePart))
        if placed != list(range(len(self.images))):
            raise ValueError(
                f"request {self.request_id}: the prompt places images {placed}, but {len(self.images)} images came; "
                "place each image exactly once"
            )


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One generated token, its natural log-probability, and the likeliest tokens at its position (including itself)."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a model. `text` has only the answer; `reasoning` has the thoughts before it.

    Counts of tokens are None if unknown. `output_tokens` include `thinking_tokens`, the tokens of the reasoning and its
    tags. `input_tokens` include `cached_tokens`, the tokens at the prompt's beginning that were already computed.
    `logprobs` cover the tokens of the answer but not of the reasoning; None if not requested or not supported.
    `batch_size` is the number of samples that were generated together, None for models without batches. `note`
    describes an oddity of an answer that still counts. It is a verb phrase that completes "2 answers ..."; None without
    an oddity.
    """

    text: str
    finish_reason: FinishReason = "stop"
    reasoning: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    cached_tokens: int | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    batch_size: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """An infrastructure error (network, memory) instead of an answer.

    Such an error is never scored, and the next start tries again. `by_task` means that the code of the task raised the
    error.
    """

    error: str
    by_task: bool = False

    @classmethod
    def of(cls, error: BaristaError) -> Failure:
        """Return a failure for a sample whose request could not be made."""
        return cls(str(error), isinstance(error, TaskError))


def repeat_answer(answer: Completion | Failure, count: int) -> list[Completion | Failure]:
    """Repeat a greedy answer for `count` seeds. The copies count no tokens, so that sums equal the tokens used."""
    if isinstance(answer, Failure):
        return [answer] * count
    no_tokens: dict[str, Any] = {name: 0 for name in TOKEN_COUNTS if getattr(answer, name) is not None}
    return [answer, *[replace(answer, **no_tokens)] * (count - 1)]


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """The identity of a model in results: its name, its exact revision, and the settings that change its answers.

    Args:
        name: the name that the user gave, such as `chance` or `org/model`.
        revision: commit or content hash of the weights; None for models without weights.
        settings: dtype, adapters, processor limits, ...: all settings that change an answer, except generation.
    """

    name: str
    revision: str | None = None
    settings: dict[str, str | int | float | bool | None] = field(default_factory=dict)


def sends_files(model: Model) -> bool:
    """Return True if the model sends the stored picture files on, so that a request must contain these files."""
    return bool(getattr(model, "sends_files", False))


class Model(Protocol):
    """The contract of a model.

    A request that the model cannot take becomes a `Failure` and affects no other request. An error (ValueError) is
    raised only if the image places of a prompt do not match its images, since this is the caller's mistake.
    `batch_size` may shrink during a run when memory runs out.
    """

    identity: ModelIdentity
    box_format: BoxFormat
    batch_size: int

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        """Return one list per request, in order, with one entry for each of its seeds."""
        ...


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A finished request: one entry for each of its seeds, and the seconds that generation took."""

    request: Request
    completions: list[Completion | Failure]
    seconds: float


@runtime_checkable
class StreamingModel(Model, Protocol):
    """A model that takes requests when it has room, and yields answers as they finish, in any order.

    `window` is the number of requests, running or waiting, that the runner prepares ahead for the model. `generate` of
    a streaming model gives the same answers as `stream`, in order.
    """

    window: int

    def stream(self, requests: Iterable[Request], config: GenerationConfig) -> Iterator[AnsweredRequest]:
        """Answer every request once.

        Taking the next request may block while its frames are decoded. So finished answers are yielded first, and can
        be logged.
        """


class NumberedStream:
    """Implements `StreamingModel` with a method that yields answers together with the numbers of their requests."""

    def _numbered_answers(
        self, requests: Iterable[Request], config: GenerationConfig, *, at_once: bool
    ) -> Iterator[tuple[int, AnsweredRequest]]:
        """Answer every request once, in any order; with `at_once`, the first answer may wait for all requests."""
        raise NotImplementedError

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        """Return one list per request, in order, with one entry for each of its seeds.

        Raises the errors of `stream`.
        """
        for request in requests:
            request.check_images()
        answers = dict(self._numbered_answers(requests, config, at_once=True))
        return [answers[number].completions for number in range(len(requests))]

    def stream(self, requests: Iterable[Request], config: GenerationConfig) -> Iterator[AnsweredRequest]:
        """Yield answers as they finish.

        Raises:
            ModelError: the model does not support a setting, or can no longer answer.
            ValueError: a prompt does not place its images exactly once; the message names the request.
        """
        for _, answered in self._numbered_answers(requests, config, at_once=False):
            yield answered


def reads_text_alone(model: Model) -> bool:
    """Return True if a model is known to take no images, as a local language model. Unknown for models on servers."""
    return bool(getattr(model, "reads_text_alone", False))


class ScriptedModel:
    """A model that answers by calling `answer(request_id, seed)`. It ignores images."""

    def __init__(self, name: str, answer: Callable[[str, int], str], *, batch_size: int = 8) -> None:
        self.identity, self.box_format, self.batch_size = ModelIdentity(name), DEFAULT_BOX_FORMAT, batch_size
        self._answer = answer

    def generate(self, requests: Sequence[Request], config: GenerationConfig) -> list[list[Completion | Failure]]:
        return [[self._completion(request.request_id, seed) for seed in request.seeds] for request in requests]

    def _completion(self, request_id: str, seed: int) -> Completion | Failure:
        try:
            return Completion(self._answer(request_id, seed))
        except TaskError as error:
            return Failure.of(error)


FramesAs = Literal["images", "video"]
TIMES_SETTING = "video_times"
"""Key in a model's identity for the frame times that its processor receives. Models that see images lack this key."""
OWN_TIMES = "own"
ONE_RATE = "own, one rate a video"


def video_settings(frames_as: FramesAs, fps: float | None, input_names: Sequence[str] = ()) -> dict[str, str]:
    """Return the video settings for a model's identity; empty if the model sees images.

    Args:
        fps: frames per second, used instead of the frames' times.
        input_names: outputs of the model's processor, if known.
    """
    if frames_as == "images":
        return {}
    times_told = ONE_RATE if knows_one_rate(input_names) else OWN_TIMES
    return {"frames_as": frames_as, TIMES_SETTING: times_told if fps is None else f"{fps} a second"}


def sees_videos(identity: ModelIdentity) -> bool:
    """Return True if this model receives frames as videos."""
    return TIMES_SETTING in identity.settings


def tells_own_times(identity: ModelIdentity) -> bool:
    """Return True if the input of this model includes the times of an example's frames."""
    return identity.settings.get(TIMES_SETTING) in (OWN_TIMES, ONE_RATE)


def knows_one_rate(input_names: Iterable[str]) -> bool:
    """Return True if a processor with these outputs gives its model one rate per video instead of a time per frame."""
    return bool({"second_per_grid_ts", "video_second_per_grid"} & set(input_names))


def is_out_of_memory(error: BaseException) -> bool:
    """Return True if memory ran out, on a GPU or on the CPU; on the CPU, the error is a plain RuntimeError."""
    import torch

    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    messages = ("can't allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED")
    return isinstance(error, RuntimeError) and any(message in str(error) for message in messages)
