"""inspect_ai: our tasks, their solvers, scorer and figures, and a provider that runs local checkpoints.

inspect_ai finds this module by the entry point in setup.cfg; nothing of ours imports it. Names are
`barista_bench/relations`, and `barista_bench/vista_all` of another benchmark than BARISTA; models are `barista/PATH`.
"""

from __future__ import annotations

import base64
import io
import math
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import anyio.to_thread
import msgspec
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    Logprob,
    Logprobs,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    TopLogprob,
    get_model,
    modelapi,
)
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolChoice, ToolInfo
from PIL import Image

from barista_bench.benchmarks import BENCHMARKS, task_names
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.prompt import ImagePart, Prompt, TextPart
from barista_bench.errors import ConfigError, ModelError
from barista_bench.harness.questions import QuestionSet, question_set, question_sets
from barista_bench.models import Completion, Failure, GenerationConfig, Model, Request
from barista_bench.models.base import SCRIPTED, SPECIALISTS
from barista_bench.models.local.loading import box_format_of
from barista_bench.models.served.requests import data_url
from barista_bench.models.settings import ServedSettings, checked, part_of
from barista_bench.runs.ask.catalog import load_model
from barista_bench.runs.ask.config import ModelSettings
from barista_bench.runs.log.asked import sample_seed
from barista_bench.runs.log.sample_log import SampleRecord

BOXES, EARLIER, IS_CUT = "barista_boxes", "barista_earlier", "barista_cut"
"""In a sample's store: how its model writes boxes, answers to earlier questions, and whether one of them was cut."""
_SERVED_SEED = 2**31  # hosted models take no longer seeds


def _declare(benchmark: str, name: str) -> None:
    """Register one task with inspect_ai."""

    @task(name=name if benchmark == "barista" else f"{benchmark}_{name}")
    def questions(
        data: str,
        split: str = "all",
        root: str | None = None,
        prompts: str | None = None,
        protocol: str = "release",
        option: str | list[str] | None = None,
        box_format: str | None = None,
        image_format: str = "png",
    ) -> Task:
        """The settings of `run` of these names; png holds exactly the pixels of the data, jpeg is smaller."""
        given = {"data": data, "split": split, "root": root, "prompts": prompts, "protocol": protocol}
        given |= {"option": option, "box_format": box_format, "image_format": image_format}
        chosen = {setting: value for setting, value in given.items() if value is not None}
        return _task_of(question_sets({**chosen, "benchmark": benchmark, "task": name})[0])


for _benchmark in BENCHMARKS:
    for _name in task_names(_benchmark):
        _declare(_benchmark, _name)


def _task_of(questions: QuestionSet) -> Task:
    boxes = questions.config.box_format or BoxFormat()
    samples = [
        Sample(
            id=example_id,
            input=questions.task.prompt(example, boxes).as_text(),  # `pose` asks it, with images, once it is its turn
            target=questions.task.reference_answer(example, boxes),
            metadata={"settings": questions.settings, **example.metadata},
        )
        for example_id in questions.positions
        for example in [questions.example(example_id)]
    ]
    return Task(dataset=MemoryDataset(samples), setup=pose(), solver=ask(), scorer=answers())


def _questions(state: TaskState) -> QuestionSet:
    return question_set(state.metadata["settings"])


def _boxes(state: TaskState) -> BoxFormat:
    return BoxFormat(**state.store.get(BOXES))


@solver
def pose() -> Solver:
    """Put the first question, with its images in their places; runs before any other solver."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        questions, model = _questions(state), get_model()
        theirs = model.api.model.box_format if isinstance(model.api, BaristaAPI) else _boxes_by_name(model.name)
        boxes = questions.config.box_format or theirs
        state.store.set(BOXES, asdict(boxes))
        return await _posed(state, questions.task.prompt(questions.example(str(state.sample_id)), boxes))

    return solve


def _boxes_by_name(name: str) -> BoxFormat:
    return box_format_of(name.rsplit("/", 1)[-1].lower())


async def _posed(state: TaskState, prompt: Prompt) -> TaskState:
    """The question as a conversation of its own."""
    state.messages = await anyio.to_thread.run_sync(_messages, _questions(state), str(state.sample_id), prompt)
    return state


def _messages(questions: QuestionSet, example_id: str, prompt: Prompt) -> list[ChatMessage]:
    images, settings = questions.images(example_id, prompt), part_of(questions.config, ServedSettings)
    served = checked(ServedSettings, settings)
    content: list[Content] = [
        ContentText(text=part.text)
        if isinstance(part, TextPart)
        else ContentImage(image=data_url(images[part.index], served))
        for part in prompt.joined_parts
    ]
    system: list[ChatMessage] = [ChatMessageSystem(content=prompt.system)] if prompt.system else []
    return [*system, ChatMessageUser(content=content)]


@solver
def ask() -> Solver:
    """Ask the model, and on after its answers where the task does; seeds are those of `run`, epochs its repetitions."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        questions, earlier, is_cut = _questions(state), list[str](), False
        example = questions.example(str(state.sample_id))
        limit = 2**63 if isinstance(get_model().api, BaristaAPI) else _SERVED_SEED
        while True:
            seed = sample_seed(questions.task, example.example_id, state.epoch - 1, len(earlier))
            state = await generate(state, seed=seed % limit)
            answer = completion(state.output)
            is_cut |= answer.finish_reason == "length"
            state.store.set(EARLIER, earlier)
            state.store.set(IS_CUT, is_cut)
            if answer.finish_reason == "refusal":
                return state
            prompt = questions.task.follow_up(example, (*earlier, answer.text), _boxes(state))
            if prompt is None:
                return state
            earlier = [*earlier, answer.text]
            state = await _posed(state, prompt)

    return solve


@solver
def oracle() -> Solver:
    """The ground truth, as a model would write it: anything below the maximum is a fault of the pipeline."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        questions = _questions(state)
        answer = questions.task.reference_answer(questions.example(str(state.sample_id)), _boxes(state))
        state.output = ModelOutput.from_content("oracle", answer)
        return state

    return solve


def completion(output: ModelOutput) -> Completion:
    """What a model of inspect_ai's answered."""
    reasons = {"max_tokens": "length", "model_length": "length", "content_filter": "refusal"}
    content = output.message.content if output.choices else ""
    thoughts = [part.text for part in content if isinstance(part, ContentReasoning)] if content else []
    return Completion(
        output.completion,
        reasons.get(output.stop_reason, "stop") if output.choices else "stop",
        reasoning="\n".join(thoughts) or None,
        input_tokens=output.usage.input_tokens if output.usage else None,
        output_tokens=output.usage.output_tokens if output.usage else None,
    )


@metric(scores="unreduced")
def figures() -> Metric:
    """All figures of `barista-bench score`, of the samples together, and how many there are of each status."""

    def calculate(scores: list[SampleScore]) -> Value:
        if not scores:  # as it is called before the first answer
            return {}
        questions = question_set((scores[0].sample_metadata or {})["settings"])
        logged = [score.score.metadata or {} for score in scores]
        samples = [
            questions.read(msgspec.convert(kept["record"], SampleRecord), BoxFormat(**kept["boxes"])) for kept in logged
        ]
        return dict(questions.figures(samples))

    return calculate


@scorer(metrics=[figures()])
def answers() -> Scorer:
    """Each answer read by the task's parser and compared with the truth; a sample's value is its figures by name."""

    async def score(state: TaskState, target: Target) -> Score:
        questions, boxes, answer = _questions(state), _boxes(state), completion(state.output)
        if state.store.get(IS_CUT, False) and answer.finish_reason == "stop":
            answer = replace(answer, finish_reason="length")
        earlier = state.store.get(EARLIER, [])
        record = questions.record(str(state.sample_id), answer, boxes, run=state.epoch - 1, earlier=earlier)
        sample = questions.read(record, boxes)
        values = questions.task.score(sample.example, sample.prediction)
        return Score(
            value={name: None if math.isnan(value) else value for name, value in values.items()},
            answer=answer.text,
            explanation=record.error,
            metadata={
                "status": str(sample.record.status),
                "record": msgspec.to_builtins(sample.record),
                "boxes": asdict(boxes),
            },
        )

    return score


@dataclass(slots=True)
class _Asked:
    """A request on its way, and what came of it."""

    request: Request
    config: GenerationConfig
    completion: Completion | Failure | None = None


@modelapi(name="barista")
def _provider() -> type[ModelAPI]:
    return BaristaAPI


class BaristaAPI(ModelAPI):
    """`barista/PATH`: a local checkpoint, as `run --model PATH` runs it, in batches of what waits at the same time.

    Args:
        model_args: settings of `run` that say how a model is loaded: `-M dtype=float32 -M batch_size=4`.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008  (as inspect_ai has it)
        **model_args: Any,  # noqa: ANN401  (`ModelSettings` says which)
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        if model_name.partition(":")[0] in (*SCRIPTED, *SPECIALISTS):
            raise ConfigError(
                f"barista/{model_name} answers examples, not messages. Remedy: name a checkpoint, or ask --solver "
                "barista_bench/oracle"
            )
        self.model: Model = load_model(checked(ModelSettings, {**model_args, "model": model_name}), [])
        self._waiting: deque[_Asked] = deque()
        self._generating = threading.Lock()
        self._count = 0

    def max_connections(self) -> int:
        """Two batches: one is generated while the next one is put together."""
        return 2 * self.model.batch_size

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        if tools:
            raise ConfigError("barista/ models call no tools. Remedy: ask a task without tools")
        self._count += 1
        asked = _Asked(_request(str(self._count), input, config.seed or 0), _generation(config))
        self._waiting.append(asked)
        await anyio.to_thread.run_sync(self._answer, asked)
        if not isinstance(asked.completion, Completion):
            raise ModelError(asked.completion.error if asked.completion else "the model returned no answer")
        return _output(self.model_name, asked.completion)

    def _answer(self, asked: _Asked) -> None:
        """Wait for the batch at work, which may hold it; else generate it, with others that wait by now."""
        with self._generating:
            if asked.completion is not None:
                return
            batch = [other for other in self._waiting if other.config == asked.config][: self.model.batch_size]
            batch = batch if asked in batch else [asked, *batch[1:]]
            for other in batch:
                self._waiting.remove(other)
                other.completion = Failure("the model returned no answer")
            completions = self.model.generate([other.request for other in batch], asked.config)
            for other, [answer] in zip(batch, completions, strict=True):
                other.completion = answer


def _request(name: str, messages: Sequence[ChatMessage], seed: int) -> Request:
    """One question of inspect_ai's: system messages and one turn of the user's."""
    system = "\n\n".join(message.text for message in messages if isinstance(message, ChatMessageSystem))
    turns = [message for message in messages if not isinstance(message, ChatMessageSystem)]
    if len(turns) != 1 or not isinstance(turns[0], ChatMessageUser):
        raise ConfigError("barista/ models are asked one question a conversation. Remedy: use barista_bench/ask")
    content = turns[0].content
    images: list[Image.Image] = []
    parts: list[TextPart | ImagePart] = []
    for part in [ContentText(text=content)] if isinstance(content, str) else content:
        if isinstance(part, ContentText):
            parts.append(TextPart(part.text))
        elif isinstance(part, ContentImage) and part.image.startswith("data:"):
            parts.append(ImagePart(len(images)))
            images.append(Image.open(io.BytesIO(base64.b64decode(part.image.partition(",")[2]))).convert("RGB"))
        else:
            raise ConfigError(f"barista/ models take texts and images, not {part.type}. Remedy: leave it out")
    return Request(name, Prompt(system, tuple(parts)), tuple(images), seeds=(seed,))


_TAKEN = {
    "temperature": "temperature",
    "max_tokens": "max_new_tokens",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop_seqs": "stop",
    "reasoning_tokens": "thinking_budget",
    "top_logprobs": "top_logprobs",
}
"""What inspect_ai calls a field of `GenerationConfig`."""
_REFUSED = ("frequency_penalty", "presence_penalty", "logit_bias", "num_choices", "response_schema")


def _generation(config: GenerateConfig) -> GenerationConfig:
    """Settings that are left out are those of `run`.

    Raises:
        ConfigError: one is out of range, or none of a local model's.
    """
    given = config.model_dump(exclude_none=True)
    if refused := [name for name in _REFUSED if name in given]:
        raise ConfigError(f"barista/ models take no {refused[0]}. Remedy: leave it out")
    taken = {ours: given[theirs] for theirs, ours in _TAKEN.items() if theirs in given}
    return GenerationConfig(**{**taken, "stop": tuple(taken.get("stop", ()))})


def _output(model: str, answer: Completion) -> ModelOutput:
    thoughts: list[Content] = [ContentReasoning(reasoning=answer.reasoning)] if answer.reasoning else []
    content: str | list[Content] = [*thoughts, ContentText(text=answer.text)] if thoughts else answer.text
    reasons = {"stop": "stop", "length": "max_tokens", "refusal": "content_filter"}
    tokens = [
        Logprob(token=t.token, logprob=t.logprob, top_logprobs=[TopLogprob(token=n, logprob=p) for n, p in t.top])
        for t in answer.logprobs or ()
    ]
    known = answer.input_tokens or 0, answer.output_tokens or 0
    return ModelOutput(
        model=model,
        choices=[
            ChatCompletionChoice(
                message=ChatMessageAssistant(content=content, model=model, source="generate"),
                stop_reason=reasons[answer.finish_reason],  # type: ignore[arg-type]
                logprobs=Logprobs(content=tokens) if answer.logprobs is not None else None,
            )
        ],
        usage=ModelUsage(input_tokens=known[0], output_tokens=known[1], total_tokens=sum(known)),
    )
