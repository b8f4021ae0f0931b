"""A model's limits are reported when it loads; a limit that one example exceeds costs only that example."""

import json

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from barista_bench.core.prompt import ImagePart, Prompt, TextPart  # noqa: E402
from barista_bench.errors import ConfigError, DataError, ModelError  # noqa: E402
from barista_bench.models.base import Completion, Failure, Request  # noqa: E402
from barista_bench.models.local.model import TransformersModel  # noqa: E402
from barista_bench.models.local.processors import reasoning_switches  # noqa: E402
from tests.models.transformers_kit import GREEDY, SAMPLED, change_json, mixed_requests, request_of, texts  # noqa: E402


def prompt_of(model: TransformersModel) -> str:
    encoder = model._engine.encoder
    return encoder.tokenizer.decode(encoder.encode(request_of(0, 1, "cup")).tensors["input_ids"][0])


def test_a_family_that_answers_no_question_is_refused_when_it_is_loaded(zoo):
    """BLIP's `generate` takes no setting that it sets itself; every example would have failed."""
    with pytest.raises(ModelError, match=r"blip: cannot answer about an image: TypeError: .*pad_token_id.*Fix: "):
        TransformersModel.load(zoo("blip"))


def test_a_template_that_places_no_images_is_refused_when_it_is_loaded(zoo, tmp_path):
    """Many language models' templates write only the text of a turn."""
    words_alone = tmp_path / "words.jinja"
    words_alone.write_text("{% for part in messages[0]['content'] %}{{ part['text'] }}{% endfor %}")
    with pytest.raises(ModelError, match=r"cannot answer about an image: ValueError: .*number of images"):
        TransformersModel.load(zoo("qwen2_5_vl"), chat_template=words_alone)


def test_a_prompt_that_is_the_same_without_its_image_is_refused(model, monkeypatch):
    encoder = model._engine.encoder
    encode = encoder.encode

    def without_images(request: Request):
        texts_alone = tuple(part for part in request.prompt.parts if not isinstance(part, ImagePart))
        return encode(Request(request.request_id, Prompt("", texts_alone), ()))

    monkeypatch.setattr(encoder, "encode", without_images)
    with pytest.raises(ModelError, match=r"its chat template places no images\. Fix: "):
        model._engine.check_start()


def test_a_template_among_the_tokenizer_s_settings_is_used(copy, loaded):
    template = copy / "chat_template.jinja"
    change_json(copy / "tokenizer_config.json", chat_template=template.read_text())
    template.unlink()
    model, usual = TransformersModel.load(str(copy)), loaded["gemma3"]
    assert model.identity.settings["chat_template"] == usual.identity.settings["chat_template"]
    assert texts(model.generate(mixed_requests(), GREEDY)) == texts(usual.generate(mixed_requests(), GREEDY))


def test_a_template_of_one_s_own_replaces_the_checkpoint_s(copy, loaded, tmp_path):
    mine = tmp_path / "mine.jinja"
    mine.write_text((copy / "chat_template.jinja").read_text().replace("assistant", "barista"))
    model = TransformersModel.load(str(copy), chat_template=mine)
    assert model.identity.settings["chat_template"] != loaded["gemma3"].identity.settings["chat_template"]
    assert prompt_of(model).endswith("barista\n")
    with pytest.raises(DataError, match=r"nowhere.jinja: .*Fix: name a file"):
        TransformersModel.load(str(copy), chat_template=tmp_path / "nowhere.jinja")


THINKS = "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"


def test_thinking_is_switched_off_by_a_variable_of_the_template_or_by_the_common_setting(copy):
    template = copy / "chat_template.jinja"
    template.write_text(template.read_text() + THINKS)
    plain = TransformersModel.load(str(copy))
    off = TransformersModel.load(str(copy), template_kwargs='{"enable_thinking": false}')
    same = TransformersModel.load(str(copy), reasoning="off")
    written = [prompt_of(model) for model in (plain, off, same)]
    assert [text.endswith("</think>\n\n") for text in written] == [False, True, True]
    assert {"template_kwargs", "reasoning"}.isdisjoint(plain.identity.settings)
    assert off.identity.settings["template_kwargs"] == '{"enable_thinking": false}'
    assert same.identity.settings["reasoning"] == "off"
    with pytest.raises(ModelError, match=r"no switch for reasoning high. Fix: say --reasoning off, on"):
        TransformersModel.load(str(copy), reasoning="high")
    with pytest.raises(ModelError, match=r"sets \['enable_thinking'\], as reasoning does"):
        TransformersModel.load(str(copy), reasoning="off", template_kwargs={"enable_thinking": False})


EFFORT = "Reasoning: {{ reasoning_effort | default('medium') }}"
GLM = "{% if enable_thinking is defined and not enable_thinking %}/nothink{% endif %}{{ reasoning_effort }}"
SET_BY_ITSELF = "{% set enable_thinking = true %}{{ enable_thinking }}{% generation %}{% endgeneration %}"


@pytest.mark.parametrize(
    ("template", "wanted", "switches"),
    [
        ("{{ thinking }}", "on", {"thinking": True}),
        ("{{ thinking }}", "low", {}),
        (EFFORT, "high", {"reasoning_effort": "high"}),
        (EFFORT, "off", {}),
        (f"{EFFORT}{{% if reasoning_effort == 'none' %}}{{% endif %}}", "off", {"reasoning_effort": "none"}),
        (EFFORT, "on", {}),
        (GLM, "off", {"enable_thinking": False}),
        (GLM, "low", {"enable_thinking": True, "reasoning_effort": "low"}),
        (SET_BY_ITSELF, "on", {}),
        ({"default": "{{ messages }}", "tools": "{{ thinking }}"}, "off", {"thinking": False}),
    ],
)
def test_reasoning_is_the_switch_that_a_template_reads(template, wanted, switches):
    assert reasoning_switches(template, wanted) == switches


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        *(
            ({"template_kwargs": {name: False}}, f"its chat template reads no '{name}'. Fix: leave it out")
            for name in ("enable_thinking", "tokenize", "messages")
        ),
        ({"reasoning": "off"}, "no switch for reasoning off. Fix: leave reasoning out"),
        ({"template_kwargs": {"enable_thinking": {1, 2}}}, "template_kwargs"),  # which are JSON
    ],
)
def test_a_switch_or_variable_that_the_template_does_not_read_is_refused(copy, settings, said):
    with pytest.raises((ModelError, ConfigError), match=said):
        TransformersModel.load(str(copy), **settings)


def test_a_prompt_longer_than_the_context_costs_its_example(copy):
    config = json.loads((copy / "config.json").read_text())
    config["text_config"]["max_position_embeddings"] = 48
    (copy / "config.json").write_text(json.dumps(config))
    long, short = request_of(0, 1, "milk " * 60), request_of(1, 1, "cup")
    [[failure], [answer]] = TransformersModel.load(str(copy)).generate([long, short], GREEDY)
    assert isinstance(answer, Completion)
    assert "request example-0: its prompt of" in failure.error
    assert "leaves no room in a context of 48. Fix: fewer or smaller images" in failure.error


@pytest.mark.parametrize("error", [TypeError("no grid"), KeyError("grid"), IndexError("2"), AttributeError("x")])
def test_an_error_in_the_model_costs_only_its_example(model, monkeypatch, error):
    made, length = model._engine.model.generate, []

    def refuse(**kwargs):
        if bool((kwargs["attention_mask"].sum(dim=1) == length[0]).any()):
            raise error
        return made(**kwargs)

    requests = mixed_requests()
    length.append(model._engine.encoder.encode(requests[2]).prompt_tokens)
    monkeypatch.setattr(model._engine.model, "generate", refuse)
    answers = [answer for [answer] in model.generate(requests, GREEDY)]
    assert [isinstance(answer, Failure) for answer in answers] == [False, False, True, False]
    assert type(error).__name__ in answers[2].error


def test_llama_3_2_vision_answers_several_samples_of_a_prompt(zoo):
    model = TransformersModel.load(zoo("mllama"))
    requests = mixed_requests(seeds=(1, 2, 3))
    together = model.generate(requests, SAMPLED)
    assert all(isinstance(answer, Completion) for answers in together for answer in answers)
    for request, answers in zip(requests, texts(together), strict=True):
        for seed, text in zip(request.seeds, answers, strict=True):
            alone = Request(request.request_id, request.prompt, request.images, (seed,))
            assert texts(model.generate([alone], SAMPLED)) == [[text]]


@pytest.mark.full
def test_got_ocr_takes_images_in_one_list(zoo):
    model = TransformersModel.load(zoo("got_ocr2"))
    requests = mixed_requests()[::2]  # of one image and of two
    answers = [answer for [answer] in model.generate(requests, GREEDY)]
    assert all(isinstance(answer, Completion) for answer in answers)
    for answer, request in zip(answers, requests, strict=True):
        assert answer.input_tokens > 256 * len(request.images)


def test_special_tokens_without_meaning_are_hidden_in_answers(zoo):
    """Of a tokenizer that has an unknown token, and no think tags: `<unk>` would be kept in their place."""
    engine = TransformersModel.load(zoo("qwen2_vl"))._engine
    assert engine.encoder.tokenizer.unk_token_id in engine.reader.hidden_ids


def test_a_model_that_was_started_with_a_picture_also_takes_only_texts(model):
    model._engine.check_start()
    [[answer]] = model.generate([Request("words", Prompt("", (TextPart("a jug"),)), ())], GREEDY)
    assert isinstance(answer, Completion)
