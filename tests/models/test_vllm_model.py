"""`VllmModel` before a stand-in for vLLM: its requests, and its reading of answers."""

import json
from dataclasses import replace

import pytest
from PIL import Image

pytest.importorskip("torch")
pytest.importorskip("transformers")

from barista_bench.core.settings import check_settings
from barista_bench.errors import ConfigError, ModelError
from barista_bench.models import Completion, Failure, GenerationConfig, Request
from barista_bench.models.base import repeat_answer
from barista_bench.models.served.remedies import engine_remedy_for
from barista_bench.models.vllm import model as vllm_model
from barista_bench.models.vllm.engine import Call, EngineOutput
from barista_bench.models.vllm.model import VllmModel
from barista_bench.runs.ask.catalog import load_model
from barista_bench.runs.ask.config import RunConfig
from tests.models.test_vllm_engine import STANDIN, lives
from tests.models.transformers_kit import GREEDY, SAMPLED, request_of


@pytest.fixture
def load(folders, monkeypatch, tmp_path):
    """Loads the tiny Gemma 3; its answers begin with the tokens of `answer`."""
    monkeypatch.setattr(vllm_model, "WORKER", STANDIN)
    monkeypatch.setenv("STANDIN", str(tmp_path))
    loaded = []

    def load(answer: list[int] = [], **settings: object) -> VllmModel:  # noqa: B006
        monkeypatch.setenv("STANDIN_ANSWER", json.dumps(answer))
        loaded.append(VllmModel.load(str(folders["gemma3"]), **settings))
        return loaded[-1]

    yield load
    for model in loaded:
        model._engine.close()


@pytest.fixture
def starts(monkeypatch):
    """Commands, environments and arguments of engines, none of which is started."""
    seen = []

    class Seen(vllm_model.VllmEngine):
        def start(self):
            seen.append(self._launch)
            return {"vllm": "0.0", "dtype": "torch.bfloat16"}

    monkeypatch.setattr(vllm_model, "VllmEngine", Seen)
    return seen


def tokens_of(model: VllmModel, text: str) -> list[int]:
    return model._reader.tokenizer(text, add_special_tokens=False)["input_ids"]


def call_of(model: VllmModel, config: GenerationConfig, request: Request | None = None):
    return model._call(0, request or request_of(0, 1, "the cup", (4, 5)), config)


def test_identity_names_what_changes_answers_and_not_what_only_takes_memory(load):
    arguments = {"max_model_len": 512, "gpu_memory_utilization": 0.5}
    model = load(engine_args=arguments, tensor_parallel=1)
    assert model.identity.settings["engine"] == "vllm"
    assert model.identity.settings["dtype"] == "float32"
    assert model.identity.settings["engine_args"] == '{"max_model_len": 512}'
    assert len(model.identity.revision) == 64
    assert model.versions == {"vllm": "0.0"}


def test_every_sample_is_asked_with_its_own_seed_and_greedy_ones_once(load):
    model = load()
    request = request_of(0, 2, "the cup", (3, 200, 70))
    assert call_of(model, SAMPLED, request).head["seeds"] == [3, 200, 70]
    assert call_of(model, GREEDY, request).head["seeds"] == [3]
    [sampled], [greedy] = model.generate([request], SAMPLED), model.generate([request], GREEDY)
    assert len(sampled) == 3
    assert len(greedy) == 3
    assert [entry.cached_tokens for entry in sampled] == [8, 8, 8]
    assert greedy == repeat_answer(greedy[0], 3)
    assert len({entry.text for entry in sampled}) == 3


def test_a_prompt_becomes_the_tokens_that_the_local_model_reads(load, loaded):
    request = request_of(0, 0, "the cup", system="Answer in JSON.")
    head = call_of(load(), GREEDY, request).head
    encoder = loaded["gemma3"]._engine.encoder
    written = encoder.tokenizer(head["prompt"], add_special_tokens=head["adds_special_tokens"])["input_ids"]
    assert encoder.encode(request).tensors["input_ids"][0].tolist() == written


def test_a_file_in_gguf_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"some\.gguf: vLLM reads no GGUF. Fix: leave engine out"):
        VllmModel.load(str(tmp_path / "some.gguf"))


def test_images_reach_the_engine_in_the_order_of_their_places(load):
    model, request = load(), request_of(0, 2, "the cup")
    first, second = request.prompt.parts[:2]
    swapped = replace(request, prompt=replace(request.prompt, parts=(second, first, *request.prompt.parts[2:])))
    assert call_of(model, GREEDY, swapped).images == list(reversed(call_of(model, GREEDY, request).images))


def test_settings_of_generation_reach_vllm(load):
    model = load()
    config = GenerationConfig(0.5, 99, top_p=0.9, top_k=7, repetition_penalty=1.2, stop=("END",), top_logprobs=4)
    sampling = call_of(model, config).head["sampling"]
    wanted = {"temperature": 0.5, "max_tokens": 99, "top_p": 0.9, "top_k": 7, "repetition_penalty": 1.2, "logprobs": 4}
    assert {name: sampling[name] for name in wanted} == wanted
    assert list(sampling["stop"]) == ["END"]
    assert sampling["stop_token_ids"] == sorted(model._reader.end_ids)
    assert sampling["ignore_eos"]
    assert call_of(model, replace(config, stop=(" END",))).head["sampling"]["stop"] == []
    with pytest.raises(ModelError, match="thinking_budget"):
        model.generate([request_of(0, 0, "the cup")], replace(config, thinking_budget=8))


def test_a_grammar_constrains_only_its_own_answer_and_no_free_one(load):
    pytest.importorskip("llguidance")
    model, asked = load(structured_output=True), request_of(0, 0, "the cup")
    tokens = [*tokens_of(model, '["<think>"]'), *model._reader.end_ids]
    held = call_of(model, GREEDY, replace(asked, schema={"type": "array", "items": {"type": "string"}})).head
    assert '%json {"type": "array"' in held["grammar"]
    free = [call_of(model, GREEDY, replace(asked, schema=schema)).head["grammar"] for schema in (None, {})]
    assert free == [None, None]
    assert model.identity.settings["structured_output"] is True
    entry = model._completion(EngineOutput(tokens, "stop"), Call(0, held, ()), 4, replace(GREEDY, max_new_tokens=99))
    assert (entry.text, entry.reasoning, entry.finish_reason) == ('["<think>"]', None, "stop")
    [[failure]] = model.generate([replace(asked, schema={"uniqueItems": True})], GREEDY)
    assert "uniqueItems" in failure.error


def test_finish_reasons_are_read_as_servers_name_them_and_a_refused_prompt_names_the_remedy(load):
    model = load()
    call, tokens = call_of(model, GREEDY), tokens_of(model, "the cup")
    entries = {
        ended: model._completion(EngineOutput(tokens, ended), call, 4, GREEDY)
        for ended in ("stop", "length", "repetition", "pooled", "abort", "error")
    }
    assert [entries[ended].finish_reason for ended in list(entries)[:4]] == ["stop", "length", "length", "stop"]
    assert [entries[ended].note for ended in list(entries)[:4]] == [None, None, None, "ended with 'pooled'"]
    assert all(isinstance(entries[ended], Failure) for ended in ("abort", "error"))
    assert "max_model_len" in engine_remedy_for("The prompt (length 9) is longer than the maximum model length of 4")
    assert "limit_mm_per_prompt" in engine_remedy_for("ValueError: At most 1 image(s) may be provided in one prompt.")
    assert engine_remedy_for("out of luck") == ""


def test_held_answers_have_the_backend_of_vllm_that_is_used_beside_transformers(load, starts):
    pytest.importorskip("llguidance")
    load(structured_output=True)
    load()
    assert [arguments.get("structured_outputs_config") for *_, arguments in starts] == [{"backend": "guidance"}, None]


def test_stop_texts_of_a_model_that_thinks_are_cut_only_from_its_answer(load):
    model = load(think_tags="<think>,</think>")
    assert call_of(model, replace(GREEDY, stop=("up",))).head["sampling"]["stop"] == []
    model = load(tokens_of(model, "<think>the cup</think> jug up"), think_tags="<think>,</think>")
    [[entry]] = model.generate([request_of(0, 0, "which?")], replace(GREEDY, stop=("up",)))
    assert (entry.reasoning, entry.text, entry.finish_reason) == ("the cup", "jug ", "stop")


def test_tokens_are_read_as_by_the_local_model(load):
    model = load()
    model = load([*tokens_of(model, " the cup"), *sorted(model._reader.hidden_ids)[:1], *model._reader.end_ids])
    [[entry]] = model.generate([request_of(0, 0, "which?")], GREEDY)
    assert (entry.text, entry.finish_reason) == ("the cup", "stop")
    assert entry.input_tokens == len(call_of(model, GREEDY, request_of(0, 0, "which?")).head["prompt"])


def test_a_request_that_vllm_cannot_take_costs_only_its_example(load, monkeypatch):
    model = load()
    broken = replace(request_of(1, 1, "broken"), images=(Image.new("RGB", (4, 4)),))
    monkeypatch.setattr(broken.images[0], "convert", lambda mode: (_ for _ in ()).throw(OSError("truncated file")))
    asked = [request_of(0, 1, "cup"), broken, request_of(2, 0, "refused", (1, 2)), request_of(3, 2, "jug")]
    answers = model.generate(asked, SAMPLED)
    kinds = [[type(entry) for entry in entries] for entries in answers]
    assert kinds == [[Completion], [Failure], [Failure] * 2, [Completion]]
    assert answers[1][0].error == "request example-1: its prompt cannot be prepared: OSError: truncated file"
    assert answers[2][0].error == "request example-2: ValueError: too long for this model"


def test_a_stream_takes_what_fits_and_a_closed_one_leaves_no_work_behind(load, tmp_path):
    model, taken = load(engine_requests=3), []

    def requests():
        for number in range(50):
            taken.append(number)
            yield request_of(number, 0, "hang" if number == 4 else "the cup")

    stream = model.stream(requests(), GREEDY)
    next(stream)
    assert len(taken) <= model.window
    stream.close()
    [[entry]] = model.generate([request_of(0, 0, "the jug")], GREEDY)
    assert isinstance(entry, Completion)
    assert len(lives(tmp_path)) == 2


def test_no_request_is_lost_or_mixed_up_over_a_crash(load):
    model = load(engine_requests=3)
    asked = [request_of(n, n % 3, "crash once" if n == 4 else "cup", (n,)) for n in range(9)]
    answered = {each.request.request_id: each for each in model.stream(asked, SAMPLED)}
    alone = model.generate(asked, SAMPLED)
    assert [answered[each.request_id].completions for each in asked] == alone
    assert len(answered) == 9


@pytest.mark.parametrize(
    ("settings", "visible", "gpus"),
    [
        ({}, None, None),
        ({"device": "cpu"}, "0,1", ""),
        ({"device": "cuda:1", "tensor_parallel": 2}, None, "2,3"),
        ({"device": "cuda:1", "tensor_parallel": 2}, "4,5,6,7", "6,7"),
    ],
)
def test_an_engine_sees_its_own_gpus_and_no_launcher(load, starts, monkeypatch, settings, visible, gpus):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    load(**settings)
    _, environment, arguments = starts[0]
    assert environment.get("CUDA_VISIBLE_DEVICES") == gpus
    assert "RANK" not in environment
    assert arguments["tensor_parallel_size"] == settings.get("tensor_parallel", 1)
    assert arguments["load_format"] == "safetensors"
    assert arguments["dtype"] == "float32"


def test_gpus_that_are_not_there_are_an_error(load, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with pytest.raises(ConfigError, match="GPUs 2 to 3, counted from 0, but CUDA_VISIBLE_DEVICES names 2"):
        load(device="cuda:1", tensor_parallel=2)
    with pytest.raises(ConfigError, match="device 'split'"):
        load(device="split")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"adapter": "lora"}, "adapter"),
        ({"max_pixels": 4096}, "max_pixels"),
        ({"attn_implementation": "sdpa"}, "attn_implementation"),
        ({"chat_template": "chat.jinja"}, "chat_template"),
        ({"template_kwargs": {"enable_thinking": False}}, "template_kwargs"),
        ({"model": "served:m", "base_url": "http://localhost:1/v1"}, "served:m"),
        ({"model": "dual:m"}, "dual:m"),
    ],
)
def test_settings_and_models_that_vllm_would_not_heed_are_refused(settings, named):
    config = check_settings(RunConfig, {"data": "d", "out": "o", "model": "m", "engine": "vllm", **settings})
    with pytest.raises(ConfigError, match=f"{named}.*Fix"):
        load_model(config, [])


def test_reasoning_is_refused_for_a_template_without_its_switch_and_for_a_model_without_a_template(load):
    with pytest.raises(ModelError, match=r"no switch for reasoning off. Fix: leave reasoning out"):
        load(reasoning="off")
    with pytest.raises(ConfigError, match=r"chance: has no switch for reasoning. Fix: leave reasoning out"):
        load_model(check_settings(RunConfig, {"data": "d", "out": "o", "model": "chance", "reasoning": "off"}), [])


@pytest.mark.parametrize("arguments", ['{"model": "other"}', {"hf_token": "hf_" + "a" * 20}, "[1]"])
def test_reserved_engine_arguments_are_refused(arguments):
    with pytest.raises(ConfigError, match="engine_args"):
        check_settings(RunConfig, {"data": "d", "out": "o", "model": "m", "engine_args": arguments})
