"""Runs checkpoints in vLLM, with continuous batching, and the same prompts and answers as `TransformersModel`.

This process applies the chat template and decodes tokens to text, with the code used for transformers. vLLM does all
other work, in separate processes, whose environment may have another version of transformers. Greedy decoding gives the
same tokens, except for differences by rounding.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barista_bench.core.frame_times import VideoClip
from barista_bench.core.prompt import ImagePart
from barista_bench.core.settings import check_settings
from barista_bench.errors import ConfigError, ModelError, with_remedy
from barista_bench.files.checkpoints import GGUF, fetch_checkpoint, naming_cause, require_libraries
from barista_bench.files.text_out import first_line, one_line
from barista_bench.models.answers import AnswerReader, GeneratedRow, TokenScores
from barista_bench.models.base import (
    AnsweredRequest,
    Completion,
    Failure,
    GenerationConfig,
    ModelIdentity,
    NumberedStream,
    Request,
    repeat_answer,
    video_settings,
)
from barista_bench.models.box_formats import box_format_of_checkpoint
from barista_bench.models.finish_reasons import meaning_of
from barista_bench.models.local.loading import answer_holder, template_hash
from barista_bench.models.served.remedies import engine_remedy_for
from barista_bench.models.settings import VllmSettings
from barista_bench.models.vllm.engine import WORKER, Call, EngineOutput, Outcome, VllmEngine

if TYPE_CHECKING:
    from PIL import Image
    from transformers import GenerationConfig as DecodingConfig, PreTrainedConfig, ProcessorMixin

    from barista_bench.models.local.processors import TextProcessor

_READY = 2  # requests that wait while the engines are full
_MAX_ERROR = 500  # limit of characters quoted from vLLM's message about a prompt
_LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_")


class VllmModel(NumberedStream):
    """A `StreamingModel` that runs a checkpoint in vLLM; make one with `VllmModel.load`.

    Settings of the checkpoint apply as in `TransformersModel`, and log-probabilities have the same meaning. vLLM draws
    the samples: each sample depends only on its seed, but differs from the sample that transformers draws with this
    seed. At temperature 0, a request is generated once, and its completion is repeated.

    A prompt that vLLM refuses (too long, too many images) is a `Failure`. When an engine dies, it is restarted, and its
    requests are repeated one by one. A request that kills the engine again is a `Failure`. An engine that dies
    repeatedly ends the stream with a ModelError.

    Attributes:
        batch_size: limit of requests in the engines.
        window: limit of requests at hand, in the engines or waiting.
        versions: version numbers by name, such as vLLM's.
    """

    def __init__(self, name: str, folder: Path, revision: str, settings: VllmSettings) -> None:
        from barista_bench.models.local.inputs import PromptEncoder

        with naming_cause(f"model {name}: cannot be read for vLLM"):
            processor, config, generation = _read_checkpoint(folder, settings)
        self._encoder = encoder = PromptEncoder(processor, name, settings)
        self.reads_text_alone = encoder.reads_text_alone
        self._reader = reader = AnswerReader.of(encoder.tokenizer, encoder.tags, generation)
        vocabulary = len(encoder.tokenizer)
        self._holder = answer_holder(encoder, reader, vocabulary) if settings.structured_output else None
        self._penalty = generation.repetition_penalty
        self.batch_size, self.window = settings.engine_requests, settings.engine_requests + _READY
        # Isolated (-I), so that the other environment sees neither our PYTHONPATH nor the modules beside worker.py.
        command = [settings.engine_python or sys.executable, "-I", WORKER]
        self._engine = VllmEngine(
            name,
            command,
            _environment(settings),
            _arguments(folder, config, settings),
            capacity=settings.engine_requests,
            timeout=settings.engine_timeout,
        )
        self.box_format = settings.box_format or box_format_of_checkpoint(name, config.model_type)
        ready = self._engine.start()
        self.versions = {"vllm": ready["vllm"]}
        arguments = settings.answer_args
        settings_set = {
            "engine_args": json.dumps(arguments, sort_keys=True) if arguments else None,
            **settings.identity_of_answers(),
        }
        identity_settings = {
            "engine": "vllm",
            "dtype": ready["dtype"].removeprefix("torch."),
            "repetition_penalty": self._penalty,
            "chat_template": template_hash(processor),
            **video_settings(settings.frames_as, settings.video_fps, processor.model_input_names),
            **{setting: value for setting, value in settings_set.items() if value is not None},
        }
        self.identity = ModelIdentity(name, revision, identity_settings)

    @classmethod
    def load(cls, name: str, **settings: Any) -> VllmModel:  # noqa: ANN401  (`VllmSettings` says which)
        """Fetch a checkpoint and start its engines. Weights are read only from safetensors files.

        Args:
            name: path of a folder, or `org/name` on the Hub.
            settings: fields of `VllmSettings`, which describes each of them.

        Raises:
            ModelError: the checkpoint cannot be read or prompted, or vLLM cannot start. The message gives the cause.
            ConfigError: a setting is unknown or out of range.
        """
        require_libraries()
        if name.endswith(GGUF):  # vLLM 0.32 needs a plugin for this, which is built only for CUDA
            remedy = "leave engine out, or give a folder with safetensors"
            raise ModelError(f"model {name}: vLLM reads no GGUF. Fix: {remedy}")
        table = check_settings(VllmSettings, settings)
        folder, revision = fetch_checkpoint(name, table.revision)
        return cls(name, folder, revision, table)

    def _numbered_answers(
        self, requests: Iterable[Request], config: GenerationConfig, *, at_once: bool
    ) -> Iterator[tuple[int, AnsweredRequest]]:
        if config.thinking_budget is not None:
            remedy = "leave thinking_budget out, or run it without --engine"
            raise ModelError(f"model {self.identity.name}: vLLM is given no thinking budget here. Fix: {remedy}")
        source, has_more = enumerate(requests), True
        at_engine: dict[int, Request] = {}
        try:
            while at_engine or has_more:
                outcome = self._engine.next_result(wait=not has_more or not self._engine.has_room)
                if outcome is not None:
                    number = outcome.call.number
                    yield number, self._read_outcome(at_engine.pop(number), outcome, config)
                    continue
                number, request = next(source, (-1, None))
                if request is None:
                    has_more = False
                    continue
                call = self._call(number, request, config)
                if isinstance(call, Failure) or not request.seeds:
                    entries: list[Completion | Failure] = [call for _ in request.seeds if isinstance(call, Failure)]
                    yield number, AnsweredRequest(request, entries, 0.0)
                else:
                    at_engine[number] = request
                    self._engine.submit(call)
        finally:
            if at_engine:  # the answers of these calls are no longer needed
                self._engine.close()

    def _call(self, number: int, request: Request, config: GenerationConfig) -> Call | Failure:
        from barista_bench.models.local.inputs import MODEL_ERRORS

        request.check_images()
        images: list[Image.Image] = []
        videos: list[dict[str, object]] = []
        grammar = None
        try:
            text, adds_special_tokens, opens_thinking = self._encoder.text(request)
            if self._holder and self._holder.matcher(request.schema, opens_thinking=opens_thinking):
                grammar = self._holder.grammar(request.schema, opens_thinking=opens_thinking)
            for part in self._encoder.parts(request):
                if isinstance(part, VideoClip):
                    numbers = range(len(images), len(images) + len(part.images))
                    metadata = {**part.times.metadata(), "do_sample_frames": False}
                    videos.append({"images": list(numbers), "metadata": metadata})
                part_images = (
                    part.images if isinstance(part, VideoClip) else (part.index,) if isinstance(part, ImagePart) else ()
                )
                images += [request.images[index].convert("RGB") for index in part_images]
        except MODEL_ERRORS as error:
            problem = f"its prompt cannot be prepared: {type(error).__name__}: {first_line(error)}"
            return Failure(f"request {request.request_id}: {problem}")
        seeds = request.seeds if config.temperature > 0 else request.seeds[:1]
        # A stop text ends an answer, but vLLM cannot tell where an answer begins after thoughts and spaces. We cut here
        # instead.
        stop = [] if self._encoder.thinks or any(end.startswith(" ") for end in config.stop) else config.stop
        # With a grammar, vLLM ends an answer with the tokenizer's end token, which the checkpoint may not have as its
        # own.
        ends = self._reader.end_ids | ({self._encoder.tokenizer.eos_token_id} if grammar else set())
        penalty = self._penalty if config.repetition_penalty == 1.0 else config.repetition_penalty
        sampling = {
            "temperature": config.temperature,
            "top_p": config.top_p,
            "top_k": config.top_k or 0,
            "repetition_penalty": penalty or 1.0,
            "max_tokens": config.max_new_tokens,
            "stop": stop,
            "include_stop_str_in_output": True,
            "ignore_eos": True,  # otherwise vLLM adds the tokenizer's end token to the end tokens of the checkpoint
            "stop_token_ids": sorted(ends),
            "detokenize": bool(stop),
            "skip_special_tokens": False,
            "logprobs": config.top_logprobs or None,
        }
        head = {
            "prompt": text,
            "videos": videos,
            "adds_special_tokens": adds_special_tokens,
            "seeds": [seed % 2**63 for seed in seeds],
            "sampling": sampling,
            "grammar": grammar,
        }
        return Call(number, head, images, opens_thinking)

    def _read_outcome(self, request: Request, outcome: Outcome, config: GenerationConfig) -> AnsweredRequest:
        call, message, seeds = outcome.call, outcome.message, len(request.seeds)
        if message.error is not None:
            problem = f"request {request.request_id}: {one_line(message.error)[:_MAX_ERROR]}"
            remedy = engine_remedy_for(message.error)
            failure = Failure(with_remedy(problem, remedy) if remedy else problem)
            return AnsweredRequest(request, [failure] * seeds, 0.0)
        entries = [self._completion(sample, call, message.prompt_tokens, config) for sample in message.samples]
        # Greedy decoding gives all seeds the same answer.
        entries = entries if config.temperature > 0 else repeat_answer(entries[0], seeds)
        return AnsweredRequest(request, entries, outcome.seconds)

    def _completion(
        self, sample: EngineOutput, call: Call, prompt_tokens: int, config: GenerationConfig
    ) -> Completion | Failure:
        meaning = meaning_of(sample.ended)
        if meaning == "broken off":
            return Failure(f"vLLM ended the answer with {sample.ended!r}")
        scores = None if sample.logprobs is None else TokenScores(*map(list, zip(*sample.logprobs, strict=True)))
        row = GeneratedRow(
            tokens=sample.tokens,
            opens_thinking=call.opens_thinking,
            stop_length=len(sample.tokens) if sample.met_stop_text or meaning != "length" else None,
            prompt_tokens=prompt_tokens,
            cached=sample.cached,
            rows=None,
            scores=scores,
            is_held=call.head["grammar"] is not None,
        )
        completion = self._reader.read(row, config.stop)
        is_known = meaning in ("finished", "length")
        return completion if is_known else replace(completion, note=f"ended with {sample.ended!r}")


def _read_checkpoint(
    folder: Path, settings: VllmSettings
) -> tuple[ProcessorMixin | TextProcessor, PreTrainedConfig, DecodingConfig]:
    """Return the processor, configuration and generation settings of a checkpoint, without its weights."""
    import transformers

    from barista_bench.models.local.processors import load_processor, text_processor

    trust: dict[str, Any] = {"trust_remote_code": settings.trust_remote_code}
    processor: ProcessorMixin | TextProcessor | None = text_processor(str(folder), revision="main", **trust)
    processor = processor or load_processor(str(folder), wants_video=False, revision="main", **trust)
    config, decoding = transformers.AutoConfig.from_pretrained(folder, **trust), transformers.GenerationConfig
    has_decoding = (folder / "generation_config.json").is_file()
    return processor, config, decoding.from_pretrained(folder) if has_decoding else decoding.from_model_config(config)


def _arguments(folder: Path, config: PreTrainedConfig, settings: VllmSettings) -> dict[str, object]:
    """Return the arguments of vLLM's `LLM`. They keep the checkpoint's number type, since vLLM would narrow float32."""
    own_dtype = getattr(config, "dtype", None) or getattr(config.get_text_config(), "dtype", None) or "auto"
    return {
        "model": str(folder.resolve()),
        "dtype": str(own_dtype).removeprefix("torch.") if settings.dtype == "auto" else settings.dtype,
        "trust_remote_code": settings.trust_remote_code,
        "tensor_parallel_size": settings.tensor_parallel,
        "load_format": "safetensors",
        "max_logprobs": -1,
        # This vLLM backend refuses unsupported schemas, and is the same library that we use with transformers.
        **({"structured_outputs_config": {"backend": "guidance"}} if settings.structured_output else {}),
        **settings.engine_args,
    }


def _environment(settings: VllmSettings) -> dict[str, str]:
    """Return our environment without the variables of a multi-process launch, and with the engine's GPUs.

    The processes of one launch have the devices `cuda:0`, `cuda:1`, ... The engine of each process takes the next
    `tensor_parallel` GPUs.

    Raises:
        ConfigError: the device is invalid, or too few GPUs are visible.
    """
    quiet = {"VLLM_LOGGING_LEVEL": "WARNING", "VLLM_NO_USAGE_STATS": "1"}
    variables = {name: value for name, value in os.environ.items() if not name.startswith(_LAUNCHER)}
    device_type, _, number = settings.device.partition(":")
    if device_type not in ("auto", "cuda", "cpu") or not (number or "0").isdecimal():
        remedy = "give --device auto, cpu, cuda or cuda:1; --tensor-parallel spreads the weights"
        raise ConfigError(f"device {settings.device!r}: vLLM does not support it. Fix: {remedy}")
    if device_type == "cpu":
        variables["CUDA_VISIBLE_DEVICES"] = ""
    elif number:
        first = int(number) * settings.tensor_parallel
        last = first + settings.tensor_parallel - 1
        visible = variables.get("CUDA_VISIBLE_DEVICES")
        names = [str(gpu) for gpu in range(last + 1)] if visible is None else visible.split(",")
        if len(names) <= last:
            need = f"device {settings.device} takes GPUs {first} to {last}, counted from 0"
            remedy = "start fewer processes, or lower tensor_parallel"
            raise ConfigError(f"{need}, but CUDA_VISIBLE_DEVICES names {len(names)}. Fix: {remedy}")
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(names[first : last + 1])
    return {**quiet, **variables}
