"""Batches, order and memory never change an answer, and no failure costs another request its answer."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

from barista_bench.errors import ModelError  # noqa: E402
from barista_bench.models.base import Completion, Failure, GenerationConfig, Request  # noqa: E402
from barista_bench.models.tiny import make_tiny_model  # noqa: E402
from barista_bench.models.transformers_decoding import sampling_processors  # noqa: E402
from barista_bench.models.transformers_inputs import PromptEncoder  # noqa: E402
from barista_bench.models.transformers_loading import box_format_of, content_hash  # noqa: E402
from barista_bench.models.transformers_model import TransformersModel  # noqa: E402
from barista_bench.prompt import BoxFormat, ImagePart, Prompt, TextPart  # noqa: E402

FAMILIES = ("gemma3", "llava", "idefics3")
GREEDY = GenerationConfig(temperature=0, max_new_tokens=16)
SAMPLED = GenerationConfig(temperature=0.7, max_new_tokens=16)


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("tiny")
    return {family: make_tiny_model(root / family, family) for family in FAMILIES}


@pytest.fixture(scope="session")
def loaded(folders):
    return {family: TransformersModel.load(str(folder)) for family, folder in folders.items()}


@pytest.fixture(params=FAMILIES)
def any_model(request, loaded):
    yield loaded[request.param]
    loaded[request.param].batch_size = 8


@pytest.fixture
def model(loaded):
    yield loaded["gemma3"]
    loaded["gemma3"].batch_size = 8


def picture(seed: int, size: tuple[int, int]) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def request_of(number: int, images: int, text: str, seeds=(0,), system: str = "") -> Request:
    pictures = tuple(picture(10 * number + k, (60 + 20 * k, 40 + 15 * number)) for k in range(images))
    parts = (*(ImagePart(k) for k in range(images)), TextPart(text))
    return Request(f"example-{number}", Prompt(system, parts), pictures, tuple(seeds))


def mixed_requests(seeds=(0,)) -> list[Request]:
    """Images of different sizes and counts, texts of different lengths."""
    return [
        request_of(0, 1, "Which hand holds the cup?", seeds),
        request_of(1, 3, "left or right", seeds, system="Answer in JSON."),
        request_of(2, 2, "milk " * 20, seeds),
        request_of(3, 0, "yes or no", seeds),
    ]


def texts(answers) -> list[list[str]]:
    return [[completion.text for completion in one] for one in answers]


def test_batched_answers_equal_single_ones(any_model):
    requests = mixed_requests()
    batched = any_model.generate(requests, GREEDY)
    assert batched == [any_model.generate([request], GREEDY)[0] for request in requests]
    assert len({text for [text] in texts(batched)}) == len(requests)


def test_the_answer_depends_on_the_order_of_the_images(any_model):
    request = mixed_requests()[1]
    turned = Request(request.request_id, request.prompt, request.images[::-1], request.seeds)
    assert any_model.generate([request], GREEDY) != any_model.generate([turned], GREEDY)


def test_answers_come_in_the_order_of_the_requests(model):
    requests = mixed_requests()
    expected = model.generate(requests, GREEDY)
    model.batch_size = 1
    assert model.generate(requests, GREEDY) == expected
    assert model.generate(requests[::-1], GREEDY) == expected[::-1]
    assert model.generate([], GREEDY) == []


def test_longest_requests_are_generated_first(model, monkeypatch):
    lengths = []
    made = model._model.generate
    monkeypatch.setattr(
        model._model, "generate", lambda **kw: (lengths.append(kw["input_ids"].shape[1]), made(**kw))[1]
    )
    model.batch_size = 1
    model.generate(mixed_requests(), GREEDY)
    assert lengths == sorted(lengths, reverse=True)


def test_samples_depend_on_their_seed_alone(any_model):
    seeds = [(11, 12, 13), (21,), (31, 32), (41, 42, 43)]
    requests = [Request(r.request_id, r.prompt, r.images, s) for r, s in zip(mixed_requests(), seeds, strict=True)]
    together = any_model.generate(requests, SAMPLED)
    assert any_model.generate(requests[::-1], SAMPLED) == together[::-1]
    for request, answers in zip(requests, together, strict=True):
        alone = [
            any_model.generate([Request("x", request.prompt, request.images, (seed,))], SAMPLED)[0][0]
            for seed in request.seeds
        ]
        assert alone == answers
        assert len({answer.text for answer in answers}) == len(request.seeds)


def test_settings_of_the_checkpoint_do_not_break_shared_samples(folders, tmp_path):
    """Hub checkpoints ask for static caches, penalties and sampling of their own."""
    folder = Path(shutil.copytree(folders["llava"], tmp_path / "settings"))
    settings = json.loads((folder / "generation_config.json").read_text())
    settings |= {
        "do_sample": True,
        "temperature": 0.1,
        "top_k": 3,
        "top_p": 0.2,
        "cache_implementation": "static",
    }
    settings |= {"repetition_penalty": 1.3, "num_beams": 1}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    model = TransformersModel.load(str(folder))
    assert model.identity.settings["repetition_penalty"] == 1.3
    requests, batches = mixed_requests(seeds=(1, 2, 3)), []
    counting = fail_above(8, model._model.generate, RuntimeError("too many"), batches)
    model._model.generate = counting
    together = model.generate(requests, SAMPLED)
    assert batches == [4]
    for request, answers in zip(requests, together, strict=True):
        alone = [Request("x", request.prompt, request.images, (seed,)) for seed in request.seeds]
        assert [one for [one] in model.generate(alone, SAMPLED)] == answers


def test_samples_of_a_prompt_share_one_prefill(any_model):
    rows = []
    hook = any_model._model.register_forward_pre_hook(
        lambda _module, _args, kwargs: rows.append(kwargs["input_ids"].shape[0]), with_kwargs=True
    )
    any_model.generate(mixed_requests(seeds=(1, 2, 3)), SAMPLED)
    hook.remove()
    assert rows[0] == 4
    assert set(rows[1:]) == {12}


def test_greedy_decoding_is_done_once_for_all_seeds(model, monkeypatch):
    rows = []
    made = model._model.generate
    monkeypatch.setattr(model._model, "generate", lambda **kw: (rows.append(len(kw["input_ids"])), made(**kw))[1])
    [answers] = model.generate([request_of(0, 1, "cup", seeds=(1, 2, 3))], GREEDY)
    assert rows == [1]
    assert answers == [answers[0]] * 3


def test_a_request_without_seeds_wants_nothing(model):
    answers = model.generate([request_of(0, 1, "cup", seeds=()), request_of(1, 1, "jug")], SAMPLED)
    assert [len(one) for one in answers] == [0, 1]


def test_global_random_state_is_untouched(model):
    before = torch.get_rng_state()
    model.generate([request_of(0, 1, "cup", seeds=(1, 2))], SAMPLED)
    assert torch.equal(torch.get_rng_state(), before)


def test_gumbel_sampling_follows_the_distribution():
    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05])
    draws = 4000
    processors = sampling_processors(1.0, 1.0, range(draws))
    chosen = processors(torch.zeros(draws, 1, dtype=torch.long), probabilities.log().repeat(draws, 1)).argmax(-1)
    counts = torch.bincount(chosen, minlength=4).double()
    expected = probabilities.double() * draws
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert chi_square < 16.3  # 3 degrees of freedom, p = 0.001


def test_nucleus_leaves_unlikely_tokens_out():
    scores = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().repeat(500, 1)
    chosen = sampling_processors(1.0, 0.7, range(500))(torch.zeros(500, 1, dtype=torch.long), scores).argmax(-1)
    assert set(chosen.tolist()) == {0, 1}


def fail_above(limit: int, generate, error: Exception, calls: list[int]):
    """Stands for `generate` of a device whose memory holds `limit` prompts."""

    def generate_or_fail(**kwargs):
        calls.append(len(kwargs["input_ids"]))
        if calls[-1] > limit:
            raise error
        return generate(**kwargs)

    return generate_or_fail


def test_out_of_memory_halves_the_batch_for_good_and_loses_nothing(model, monkeypatch):
    requests = mixed_requests(seeds=(1, 2))
    expected = model.generate(requests, SAMPLED)
    calls: list[int] = []
    failing = fail_above(1, model._model.generate, torch.OutOfMemoryError("CUDA out of memory"), calls)
    monkeypatch.setattr(model._model, "generate", failing)
    assert model.generate(requests, SAMPLED) == expected
    assert calls == [4, 2, 1, 1, 2, 1, 1]
    assert model.batch_size == 1
    calls.clear()
    assert model.generate(requests, SAMPLED) == expected
    assert calls == [1, 1, 1, 1]


def test_out_of_memory_with_one_prompt_splits_its_samples(model, monkeypatch):
    request = request_of(0, 1, "cup", seeds=(1, 2, 3))
    expected = model.generate([request], SAMPLED)
    made = model._model.generate

    def generate(**kwargs):
        if kwargs["custom_generate"] is not None:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return made(**kwargs)

    monkeypatch.setattr(model._model, "generate", generate)
    assert model.generate([request], SAMPLED) == expected
    assert model.batch_size == 8


def test_a_request_too_large_for_the_memory_fails_alone(model, monkeypatch):
    requests = [request_of(0, 1, "cup"), request_of(1, 6, "milk " * 50), request_of(2, 1, "jug")]
    expected = model.generate(requests, GREEDY)
    made = model._model.generate

    def generate(**kwargs):
        if kwargs["input_ids"].shape[1] > 100:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return made(**kwargs)

    monkeypatch.setattr(model._model, "generate", generate)
    first, [failure], last = model.generate(requests, GREEDY)
    assert [first, last] == [expected[0], expected[2]]
    assert isinstance(failure, Failure)
    assert "out of memory" in failure.error


def test_other_generation_errors_cost_only_their_request(model, monkeypatch):
    requests = mixed_requests()
    expected = model.generate(requests, GREEDY)
    made = model._model.generate

    def generate(**kwargs):
        if kwargs.get("pixel_values") is not None and len(kwargs["pixel_values"]) >= 3:
            raise RuntimeError("shapes do not match\nmore")
        return made(**kwargs)

    monkeypatch.setattr(model._model, "generate", generate)
    answers = model.generate(requests, GREEDY)
    assert answers[1] == [Failure("generation failed: RuntimeError: shapes do not match")]
    assert [answers[k] for k in (0, 2, 3)] == [expected[k] for k in (0, 2, 3)]
    assert model.batch_size == 8


def test_a_request_that_the_processor_refuses_fails_alone(model):
    bad = Request("bad", Prompt("", (TextPart("<start_of_image> cup"),)), (), (1, 2))
    good = mixed_requests()
    answers = model.generate([good[0], bad, good[1]], GREEDY)
    assert len(answers[1]) == 2
    assert all(isinstance(one, Failure) and "request bad" in one.error for one in answers[1])
    assert [answers[0], answers[2]] == model.generate(good[:2], GREEDY)


@pytest.mark.parametrize(
    ("parts", "images"),
    [((ImagePart(0),), 2), ((ImagePart(0), ImagePart(1)), 1), ((ImagePart(0), ImagePart(0)), 2), ((), 1)],
)
def test_images_that_are_not_placed_once_are_an_error(model, parts, images):
    pictures = tuple(picture(k, (32, 32)) for k in range(images))
    request = Request("example-7", Prompt("", (*parts, TextPart("cup"))), pictures)
    with pytest.raises(ValueError, match="request example-7: the prompt places images"):
        model.generate([request_of(0, 1, "cup"), request], GREEDY)


def test_truncation_is_marked(model):
    [[answer]] = model.generate([request_of(0, 1, "cup")], GenerationConfig(0, max_new_tokens=5))
    assert (answer.finish_reason, answer.output_tokens) == ("length", 5)


def test_the_end_token_ends_an_answer(model, monkeypatch):
    """A token of one answer, absent from its neighbour, is declared to end answers: the neighbour goes on."""
    requests = [request_of(0, 1, "cup"), request_of(1, 2, "jug and kettle")]
    written: list[list[int]] = []
    made = model._completion
    monkeypatch.setattr(
        model, "_completion", lambda job, row, ids, *a: (written.append(ids), made(job, row, ids, *a))[1]
    )
    [[full], neighbour] = model.generate(requests, GREEDY)
    end = next(token for token in written[0][3:] if token not in written[1])
    monkeypatch.setattr(model, "_end_ids", frozenset({end}))
    [[ended], beside] = model.generate(requests, GREEDY)
    assert (ended.finish_reason, ended.output_tokens) == ("stop", written[0].index(end) + 1)
    assert full.text.startswith(ended.text)
    assert beside == neighbour


def test_stop_texts_end_the_answer_and_are_no_part_of_it(model):
    requests = [request_of(0, 1, "cup"), request_of(1, 2, "jug and kettle")]
    full = model.generate(requests, GREEDY)
    stop = full[0][0].text[4:7]
    answers = model.generate(requests, GenerationConfig(0, max_new_tokens=16, stop=(stop, "never written")))
    assert answers[0][0].text == full[0][0].text[: full[0][0].text.index(stop)]
    assert answers[0][0].finish_reason == "stop"
    assert answers[0][0].output_tokens < 16
    if stop not in full[1][0].text:
        assert answers[1] == full[1]


def test_a_prompt_that_ends_like_a_stop_text_stops_nothing(model):
    request = request_of(0, 1, "cup")
    [[full]] = model.generate([request], GREEDY)
    first = full.text[0]
    [[answer]] = model.generate([request], GenerationConfig(0, max_new_tokens=16, stop=("assistant\n" + first,)))
    assert answer == full


def test_tokens_are_counted_without_padding(any_model):
    requests = mixed_requests()
    alone = [any_model._encoder.encode(request).prompt_tokens for request in requests]
    answers = any_model.generate(requests, GREEDY)
    assert [one.input_tokens for [one] in answers] == alone
    assert len(set(alone)) == 4


def test_batches_are_padded_on_the_left(any_model):
    encoder = any_model._encoder
    encoder.tokenizer.padding_side = "left"
    batch = encoder.batch([encoder.encode(request) for request in mixed_requests()])
    assert bool((batch["attention_mask"][:, -1] == 1).all())
    assert int(batch["attention_mask"][3].argmax()) > 0


def test_a_batch_put_together_equals_one_from_the_processor(any_model):
    """Requests are processed one by one, so that a bad one fails alone."""
    encoder = any_model._encoder
    encoded = [encoder.encode(request) for request in mixed_requests()[:3]]
    batch, whole = encoder.batch(encoded), encoder._apply([one.messages for one in encoded])
    assert batch.keys() == whole.keys()
    assert all(torch.equal(batch[name], whole[name]) for name in batch)


def test_right_padding_set_by_the_checkpoint_is_overruled(folders, tmp_path):
    folder = Path(shutil.copytree(folders["gemma3"], tmp_path / "right"))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"padding_side": "right"}))
    assert TransformersModel.load(str(folder))._encoder.tokenizer.padding_side == "left"


def test_reasoning_is_kept_apart(model, monkeypatch):
    request = request_of(0, 1, "cup")
    [[full]] = model.generate([request], GREEDY)
    opening, closing = full.text[1], full.text[8]
    monkeypatch.setattr(model, "_think_tags", (opening, closing))
    [[answer]] = model.generate([request], GREEDY)
    assert answer.reasoning is not None
    assert closing not in answer.text
    assert full.text.endswith(answer.text)
    monkeypatch.setattr(model, "_think_tags", (opening, "never closed"))
    assert model.generate([request], GREEDY)[0][0].text == ""


def test_reasoning_opened_by_the_template_and_truncated_is_no_answer(folders, tmp_path):
    folder = Path(shutil.copytree(folders["gemma3"], tmp_path / "thinking"))
    template = folder / "chat_template.jinja"
    template.write_text(template.read_text().replace("assistant\n", "assistant\n<think>\n"))
    [[answer]] = TransformersModel.load(str(folder)).generate([request_of(0, 1, "cup")], GREEDY)
    assert (answer.text, answer.finish_reason) == ("", "length")
    assert answer.reasoning


REFUSES = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
DROPS = "{% set messages = messages | rejectattr('role', 'equalto', 'system') %}"


@pytest.mark.parametrize(("prefix", "style"), [("", "parts"), (REFUSES, "folded"), (DROPS, "folded")])
def test_the_system_text_reaches_the_model_whatever_the_template(folders, tmp_path, prefix, style):
    folder = Path(shutil.copytree(folders["gemma3"], tmp_path / "chat"))
    template = folder / "chat_template.jinja"
    template.write_text(prefix + template.read_text())
    encoder = TransformersModel.load(str(folder))._encoder
    assert encoder.system_style == style
    encoded = encoder.encode(request_of(0, 1, "the cup", system="Answer in JSON."))
    written = encoder.tokenizer.decode(encoded.tensors["input_ids"][0])
    assert Counter(written.split())["JSON."] + written.count("JSON.<") == 1
    assert written.index("JSON") < written.index("the cup")


def test_an_empty_system_text_writes_no_system_turn(model):
    encoded = model._encoder.encode(request_of(0, 1, "cup"))
    assert "system" not in model._encoder.tokenizer.decode(encoded.tensors["input_ids"][0])


def test_identity_names_the_content(folders, loaded, tmp_path):
    identity = loaded["gemma3"].identity
    assert identity.name == str(folders["gemma3"])
    assert identity.revision == content_hash(folders["gemma3"])
    assert identity.settings["dtype"] == "float32"
    assert identity.settings.keys() == {"dtype", "attn_implementation", "repetition_penalty"}


@pytest.mark.parametrize("changed", ["model.safetensors", "chat_template.jinja", "tokenizer.json"])
def test_one_changed_byte_changes_the_revision(folders, tmp_path, changed):
    folder = Path(shutil.copytree(folders["gemma3"], tmp_path / "copy"))
    before = content_hash(folder)
    (folder / "README.md").write_text("no part of the model")
    assert content_hash(folder) == before
    content = bytearray((folder / changed).read_bytes())
    content[-1] ^= 1
    (folder / changed).write_bytes(content)
    assert content_hash(folder) != before
    assert len(before) == hashlib.sha256().digest_size * 2


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("gemma3", BoxFormat("yxyx", 1000)),
        ("gemma4", BoxFormat("yxyx", 1000)),
        ("qwen3_vl", BoxFormat("xyxy", 1000)),
        ("llava", BoxFormat()),
    ],
)
def test_the_family_declares_its_boxes(family, expected):
    assert box_format_of(family) == expected


def test_settings_given_by_the_user_win(folders):
    model = TransformersModel.load(
        str(folders["gemma3"]),
        device="cpu",
        dtype="bfloat16",
        attn_implementation="eager",
        batch_size=2,
        box_format=BoxFormat("xyxy", None),
    )
    assert (model.box_format, model.batch_size) == (BoxFormat("xyxy", None), 2)
    assert model.identity.settings["dtype"] == "bfloat16"
    assert model.identity.settings["attn_implementation"] == "eager"
    assert isinstance(model.generate([request_of(0, 1, "cup")], GREEDY)[0][0], Completion)


def without(name: str):
    def damage(folder: Path) -> None:
        (folder / name).unlink()

    return damage


def lose_a_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors.pop(sorted(tensors)[0])
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def cut_the_weights(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def break_the_config(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "no_such_family"}')


@pytest.mark.parametrize(
    "damage",
    [
        without("config.json"),
        without("model.safetensors"),
        without("tokenizer.json"),
        without("chat_template.jinja"),
        lose_a_tensor,
        cut_the_weights,
        break_the_config,
    ],
)
def test_a_damaged_checkpoint_is_named(folders, tmp_path, damage):
    folder = Path(shutil.copytree(folders["gemma3"], tmp_path / "damaged"))
    damage(folder)
    with pytest.raises(ModelError, match=r"damaged.*; "):
        TransformersModel.load(str(folder))


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ModelError, match="nowhere: there is no such folder; check the path"):
        TransformersModel.load(str(tmp_path / "nowhere"))


def test_a_folder_has_no_revisions(folders):
    with pytest.raises(ModelError, match="a folder has no revisions"):
        TransformersModel.load(str(folders["gemma3"]), revision="main")


def test_missing_libraries_name_the_extra(monkeypatch, folders):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ModelError, match=r"pip install barista_bench\[run\]"):
        TransformersModel.load(str(folders["gemma3"]))


def test_a_batch_size_below_one_is_refused(folders):
    with pytest.raises(ValueError, match="batch_size must be 1 or more"):
        TransformersModel.load(str(folders["gemma3"]), batch_size=0)


def test_importing_the_models_is_cheap():
    code = (
        "import sys, barista_bench.models; "
        "import barista_bench.models.transformers_model, barista_bench.models.tiny; "
        "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_encoder_measures_each_size_of_image_once(loaded, monkeypatch):
    encoder = loaded["llava"]._encoder
    monkeypatch.setattr(encoder, "_image_tokens", {})
    calls = []
    made = PromptEncoder._apply
    monkeypatch.setattr(PromptEncoder, "_apply", lambda self, c: (calls.append(1), made(self, c))[1])
    one, three = request_of(0, 1, "cup"), request_of(0, 3, "cup")
    assert encoder.tokens(three) > encoder.tokens(one)
    encoder.tokens(one)
    assert len(calls) == len({(-(-w // 32), -(-h // 32)) for w, h in (i.size for i in three.images)})
