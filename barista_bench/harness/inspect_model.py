"""Converts inspect_ai's messages, answers and samples to ours, and provides local checkpoints as `barista/PATH`."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio.to_thread
import msgspec
from inspect_ai import model as ai
from inspect_ai.solver import TaskState
from inspect_ai.tool import ToolChoice, ToolInfo
from PIL import Image

from barista_bench.core.boxes import DEFAULT_BOX_FORMAT, BoxFormat
from barista_bench.core.model_names import SCRIPTED
from barista_bench.core.prompt import Exchange, ImagePart, Prompt, TextPart
from barista_bench.core.settings import check_settings
from barista_bench.errors import ConfigError
from barista_bench.harness.batching import Batcher
from barista_bench.harness.questions import QuestionSet, question_set
from barista_bench.models import Completion, GenerationConfig, Request, TokenLogprob
from barista_bench.models.base import FinishReason
from barista_bench.models.box_formats import box_format_of
from barista_bench.models.finish_reasons import Meaning, meaning_of
from barista_bench.runs.ask.catalog import load_model, specialists
from barista_bench.runs.ask.config import ModelSettings
from barista_bench.runs.ask.runner import trained_videos
from barista_bench.runs.log.sample_log import SampleRecord
from barista_bench.runs.score.samples import ScoredSample

_FINISH: dict[Meaning | None, FinishReason] = {"length": "length", "filtered": "refusal"}
"""Meanings of inspect_ai's words for why an answer is incomplete."""
_STOP_REASON: dict[str, ai.StopReason] = {"length": "max_tokens", "thinking": "max_tokens", "refusal": "content_filter"}


def chat(prompt: Prompt, images: Sequence[str] = ()) -> list[ai.ChatMessage]:
    """Return the prompt as a conversation; images (as URLs) are in their places between the texts."""
    content: list[ai.Content] = [
        ai.ContentText(text=part.text) if isinstance(part, TextPart) else ai.ContentImage(image=images[part.index])
        for part in prompt.joined_parts
    ]
    turns: list[ai.ChatMessage] = [ai.ChatMessageSystem(content=prompt.system)] if prompt.system else []
    for each in prompt.earlier:
        turns += [ai.ChatMessageUser(content=each.question), ai.ChatMessageAssistant(content=each.answer)]
    return [*turns, ai.ChatMessageUser(content=content)]


def completion(output: ai.ModelOutput) -> Completion:
    """Return the answer of an inspect_ai model as a completion."""
    choice = output.choices[0] if output.choices else None
    parts = [] if choice is None or isinstance(choice.message.content, str) else choice.message.content
    tokens = choice.logprobs.content if choice and choice.logprobs else None
    reasoning = "\n".join(part.reasoning for part in parts if isinstance(part, ai.ContentReasoning)) or None
    meaning = meaning_of(choice.stop_reason) if choice else "finished"
    reason = _FINISH.get(meaning, "stop")
    is_odd = choice is not None and meaning not in ("finished", *_FINISH)
    return Completion(
        output.completion,
        "thinking" if reason == "length" and reasoning and not output.completion else reason,
        reasoning=reasoning,
        input_tokens=output.usage.input_tokens if output.usage else None,
        output_tokens=output.usage.output_tokens if output.usage else None,
        thinking_tokens=output.usage.reasoning_tokens if output.usage else None,
        logprobs=None if tokens is None else tuple(map(_token, tokens)),
        note=f"ended with {choice.stop_reason!r}" if choice and is_odd else None,
    )


def _token(token: ai.Logprob) -> TokenLogprob:
    top = tuple((other.token, other.logprob) for other in token.top_logprobs or ())
    return TokenLogprob(token.token, token.logprob, top)


QUESTIONS = "questions"
"""Field of a sample's metadata: the key of its questions."""
BOXES, EARLIER, IS_CUT = "barista_boxes", "barista_earlier", "barista_cut"
"""Fields of a sample's store: the model's box format, the answers to earlier questions, and if one of them was cut."""
TRAINED_ON = "trained_on"
"""Field of a sample's store and of its score: the SHA-256 of its video, if the model was trained on this video."""


def questions_of(state: TaskState) -> QuestionSet:
    return question_set(state.metadata[QUESTIONS])


def boxes_of(state: TaskState) -> BoxFormat:
    return BoxFormat(**state.store.get(BOXES))


def sample_of(state: TaskState) -> tuple[QuestionSet, ScoredSample]:
    """Return the answer to the last question, read but not scored.

    It counts as cut if an earlier answer was cut, as in `run`.
    """
    questions, answer = questions_of(state), completion(state.output)
    if state.store.get(IS_CUT, False) and answer.finish_reason == "stop":
        answer = replace(answer, finish_reason="length")
    earlier, box_format = state.store.get(EARLIER, []), boxes_of(state)
    return questions, questions.sample(
        str(state.sample_id), answer, box_format, repetition=state.epoch - 1, earlier=earlier
    )


def kept_fields(sample: ScoredSample, state: TaskState) -> dict[str, Any]:
    """Return the fields of a sample that its score stores, so that scores over all samples can be computed."""
    return {
        "record": msgspec.to_builtins(sample.record),
        "boxes": state.store.get(BOXES),
        TRAINED_ON: state.store.get(TRAINED_ON),
    }


def logged_sample(questions: QuestionSet, fields: Mapping[str, Any]) -> ScoredSample:
    """Return the sample of a score, read from the sample's `kept_fields`."""
    return questions.read(msgspec.convert(fields["record"], SampleRecord), BoxFormat(**fields["boxes"]))


def box_format_now(questions: QuestionSet) -> BoxFormat:
    """Return the box format of the current model: from the settings, else from the architecture that its name shows."""
    if questions.config.box_format:
        return questions.config.box_format
    try:
        model = ai.get_model()
    except ValueError:  # a task may be made before the user names a model
        return DEFAULT_BOX_FORMAT
    api = model.api
    return api.model.box_format if isinstance(api, BaristaAPI) else box_format_of(model.name.rsplit("/", 1)[-1].lower())


def trained_on(questions: QuestionSet, example_id: str) -> str | None:
    """Return the SHA-256 of the example's video if the current model's adapter was trained on it."""
    api = ai.get_model().api
    if not isinstance(api, BaristaAPI) or not api.training:
        return None
    sha256 = questions.video_hashes[questions.example(example_id).video_id]
    return sha256 if sha256 in api.training else None


def sent_seed(model: ai.Model, seed: int) -> int:
    """Return our seed in the form that the model takes: hosted models take 31 bits."""
    return seed if isinstance(model.api, BaristaAPI) else seed % 2**31


@ai.modelapi(name="barista")
def _provider() -> type[ai.ModelAPI]:
    return BaristaAPI


class BaristaAPI(ai.ModelAPI):
    """Provider `barista/PATH`: runs a local checkpoint like `run --model PATH`, in batches of simultaneous requests.

    Args:
        model_args: the settings with which `run` loads a model: `-M dtype=float32 -M batch_size=4`.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: ai.GenerateConfig = ai.GenerateConfig(),  # noqa: B008  (as inspect_ai has it)
        **model_args: Any,  # noqa: ANN401  (`ModelSettings` says which)
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        if model_name.partition(":")[0] in (*SCRIPTED, *specialists()):
            raise ConfigError(
                f"barista/{model_name} answers examples, not messages. Fix: name a checkpoint, or ask --solver "
                "barista_bench/oracle"
            )
        settings = check_settings(ModelSettings, {**model_args, "model": model_name})
        self.model = load_model(settings, [])
        self.training = trained_videos(settings, self.model.box_format)
        self._batcher = Batcher(self.model)
        self._count = 0

    def max_connections(self) -> int:
        """Two batches: one batch runs while the next is prepared."""
        return 2 * self.model.batch_size

    async def generate(
        self, input: list[ai.ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: ai.GenerateConfig
    ) -> ai.ModelOutput:
        if tools:
            raise ConfigError("barista/ models call no tools. Fix: ask a task without tools")
        self._count += 1
        waiting_request = self._batcher.put(_request(str(self._count), input, config.seed or 0), _generation(config))
        return _output(self.model_name, await anyio.to_thread.run_sync(self._batcher.answer, waiting_request))


def _request(name: str, messages: Sequence[ai.ChatMessage], seed: int) -> Request:
    """Convert one question of inspect_ai: system messages, earlier questions with their answers, and a user turn."""
    system = "\n\n".join(message.text for message in messages if isinstance(message, ai.ChatMessageSystem))
    *earlier, question = [message for message in messages if not isinstance(message, ai.ChatMessageSystem)]
    pairs = list(zip(earlier[::2], earlier[1::2], strict=False))
    are_exchanges = 2 * len(pairs) == len(earlier) and all((a.role, b.role) == ("user", "assistant") for a, b in pairs)
    if question.role != "user" or not are_exchanges:
        raise ConfigError("barista/ models take questions and answers in turn. Fix: use barista_bench/ask")
    content = question.content
    images: list[Image.Image] = []
    parts: list[TextPart | ImagePart] = []
    for part in [ai.ContentText(text=content)] if isinstance(content, str) else content:
        if isinstance(part, ai.ContentText):
            parts.append(TextPart(part.text))
        elif isinstance(part, ai.ContentImage) and part.image.startswith("data:"):
            parts.append(ImagePart(len(images)))
            images.append(Image.open(io.BytesIO(base64.b64decode(part.image.partition(",")[2]))).convert("RGB"))
        else:
            raise ConfigError(f"barista/ models take texts and images, not {part.type}. Fix: leave it out")
    exchanges = tuple(Exchange(asked.text, answered.text) for asked, answered in pairs)
    return Request(name, Prompt(system, tuple(parts), exchanges), tuple(images), seeds=(seed,))


_RENAMED = {"max_tokens": "max_new_tokens", "stop_seqs": "stop", "reasoning_tokens": "thinking_budget"}
_TAKEN = ("temperature", "top_p", "top_k", "top_logprobs", *_RENAMED)
_REFUSED = ("frequency_penalty", "presence_penalty", "logit_bias", "num_choices", "response_schema")


def _generation(config: ai.GenerateConfig) -> GenerationConfig:
    """Return generation settings with the defaults of `run`; raise ConfigError for a setting that local models lack."""
    config_fields = config.model_dump(exclude_none=True)
    if refused := [name for name in _REFUSED if name in config_fields]:
        raise ConfigError(f"barista/ models take no {refused[0]}. Fix: leave it out")
    settings = {_RENAMED.get(name, name): config_fields[name] for name in _TAKEN if name in config_fields}
    return GenerationConfig(**{**settings, "stop": tuple(settings.get("stop", ()))})


def _output(model: str, answer: Completion) -> ai.ModelOutput:
    thoughts: list[ai.Content] = [ai.ContentReasoning(reasoning=answer.reasoning)] if answer.reasoning else []
    reason = _STOP_REASON.get(answer.finish_reason, "stop")
    output = ai.ModelOutput.from_content(model, [*thoughts, ai.ContentText(text=answer.text)], reason)
    if answer.logprobs is not None:
        output.choices[0].logprobs = ai.Logprobs(content=[_logprob(token) for token in answer.logprobs])
    n_in, n_out = answer.input_tokens or 0, answer.output_tokens or 0
    output.usage = ai.ModelUsage(
        input_tokens=n_in, output_tokens=n_out, total_tokens=n_in + n_out, reasoning_tokens=answer.thinking_tokens
    )
    return output


def _logprob(token: TokenLogprob) -> ai.Logprob:
    top = [ai.TopLogprob(token=text, logprob=value) for text, value in token.top]
    return ai.Logprob(token=token.token, logprob=token.logprob, top_logprobs=top)
