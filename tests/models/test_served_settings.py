"""Settings are checked before the first request, images are sent as declared, and the estimate counts them."""

import base64
import io
import sys

import numpy as np
import pytest
from PIL import Image

from barista_bench.core.boxes import BoxFormat
from barista_bench.core.prompt import Exchange, ImagePart, Prompt, TextPart
from barista_bench.errors import ConfigError, ModelError
from barista_bench.models import GenerationConfig, Request, StreamingModel
from barista_bench.models.served.model import ServedModel
from barista_bench.models.served.requests import estimated_image_tokens, picture_file, request_body
from barista_bench.models.served.settings import ServedSettings

LOCAL = "http://127.0.0.1:9/v1"  # no server listens there
KEY = "sk-planted-0123456789abcdef"
GREEDY = GenerationConfig(temperature=0.0, max_new_tokens=50)


def picture(width: int = 64, height: int = 48) -> Image.Image:
    return Image.fromarray(np.random.default_rng(3).integers(0, 256, (height, width, 3), dtype=np.uint8))


def load(**settings) -> ServedModel:
    return ServedModel.load("org/some-model", **{"base_url": LOCAL, "api_key_env": None, **settings})


def body_of(asked: Request, config: GenerationConfig = GREEDY, **settings) -> dict:
    model = load(**settings)
    return request_body(asked, config, model.name, model.settings)


def request(*parts, images=(), seeds=(5,), system="", schema=None) -> Request:
    return Request("r", Prompt(system, parts), tuple(images), seeds, schema=schema)


OUT_OF_RANGE: dict[str, tuple[object, ...]] = {
    "timeout": (0, float("inf")),
    **dict.fromkeys(("max_concurrency", "max_attempts", "jpeg_quality"), (0,)),
    "image_format": ("gif",),
    "image_detail": ("hih",),
    "think_tags": (("<think>", ""),),
    "token_limit_field": ("tokens",),
    "omit": (("messages",),),
    "extra_body": ({"temperature": 0.1}, {"x": {1, 2}}),
    "base_url": ("ftp://host/v1", "localhost:8000", "http://[::1/v1"),
}


def test_earlier_turns_are_sent_between_the_system_text_and_the_question():
    asked = Request("r", Prompt("Look.", (TextPart("the scores"),), (Exchange("the steps", "a cup"),)), ())
    assert [(turn["role"], turn["content"]) for turn in body_of(asked)["messages"]] == [
        ("system", "Look."),
        ("user", "the steps"),
        ("assistant", "a cup"),
        ("user", "the scores"),
    ]


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_a_setting_out_of_range_is_refused_with_a_remedy(name):
    for value in OUT_OF_RANGE[name]:
        with pytest.raises(ConfigError, match="Fix: "):
            load(**{name: value})


@pytest.mark.parametrize("url", ["https://user:hush@host/v1", "https://host/v1?key=hush", "https://host/v1#hush"])
def test_an_address_with_a_secret_is_refused_without_repeating_it(url):
    with pytest.raises(ConfigError) as caught:
        load(base_url=url)
    assert "host" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_the_hosted_server_wants_a_key_when_it_is_loaded(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for name in ("SOME_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match="OPENAI_API_KEY is empty"):
        ServedModel.load("gpt")
    monkeypatch.setenv("SOME_KEY", "sk-something-long")
    assert ServedModel.load("gpt", api_key_env="SOME_KEY").settings.base_url == "https://api.openai.com/v1"
    monkeypatch.setenv("SOME_KEY", "line\nbreak")
    with pytest.raises(ModelError, match="characters") as caught:
        ServedModel.load("gpt", api_key_env="SOME_KEY")
    assert "break" not in str(caught.value).replace("line breaks", "")


@pytest.mark.parametrize(
    ("url", "variable"),
    [
        ("https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("https://API.OpenAI.com:443/v1", "OPENAI_API_KEY"),
        ("https://eu.api.openai.com/v1", None),
        ("https://api.openai.com.evil.example/v1", None),
        ("https://api.openai.com:8443/v1", None),
        ("http://api.openai.com/v1", None),
        ("https://other.example/v1", None),
        (LOCAL, None),
    ],
)
def test_the_default_key_is_sent_only_to_the_default_host(monkeypatch, url, variable):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    settings = load(base_url=url).settings
    assert (settings.key_env, settings.api_key()) == (variable, KEY if variable else "")
    if url.startswith("https"):
        assert load(base_url=url, api_key_env="OPENAI_API_KEY").settings.api_key() == KEY


@pytest.mark.parametrize("url", ["http://other.example/v1", "http://10.0.0.1:8000/v1", "http://a.localhost/v1"])
def test_plain_http_carries_a_key_only_to_this_machine(monkeypatch, url):
    monkeypatch.setenv("SOME_KEY", KEY)
    with pytest.raises(ConfigError, match=r"plain http.*Fix"):
        load(base_url=url, api_key_env="SOME_KEY")
    for local in ("http://localhost:1/v1", "http://127.0.0.1:1/v1", "http://[::1]:1/v1"):
        assert load(base_url=local, api_key_env="SOME_KEY").settings.api_key() == KEY


def test_a_variable_that_is_not_set_is_an_error_that_does_not_repeat_its_name():
    with pytest.raises(ModelError, match=r"the environment variable that api_key_env names is empty.*Fix") as caught:
        load(api_key_env="hunter_two")
    assert "hunter" not in str(caught.value)


def test_without_the_library_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ModelError, match=r"openai.*pip install '?barista_bench\[api\]"):
        load()


def test_a_thinking_budget_is_refused_until_its_field_is_named():
    config = GenerationConfig(thinking_budget=512)
    with pytest.raises(ModelError, match="thinking_budget_field"):
        load().check(config)
    with pytest.raises(ModelError, match="thinking_budget_field"):
        load().generate([request(TextPart("hi"))], config)
    model = load(thinking_budget_field="chat_template_kwargs.budget", extra_body={"chat_template_kwargs": {"a": 1}})
    model.check(config)
    body = request_body(request(TextPart("hi")), config, model.name, model.settings)
    assert body["chat_template_kwargs"] == {"a": 1, "budget": 512}
    assert model.settings.extra_body == {"chat_template_kwargs": {"a": 1}}


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ({}, {}),
        ({"reasoning": "low"}, {"reasoning_effort": "low"}),
        ({"reasoning": "off"}, {"reasoning_effort": "none"}),
        (
            {"reasoning": "off", "reasoning_field": "chat_template_kwargs.enable_thinking"},
            {"chat_template_kwargs": {"enable_thinking": False, "a": 1}},
        ),
        ({"reasoning": "high", "reasoning_field": "reasoning.effort"}, {"reasoning": {"effort": "high"}}),
        ({"reasoning": "on", "reasoning_field": "reasoning.enabled"}, {"reasoning": {"enabled": True}}),
    ],
)
def test_reasoning_is_sent_in_the_field_that_is_named(settings, sent):
    extra = {"chat_template_kwargs": {"a": 1}} if "chat_template_kwargs" in sent else {}
    body, plain = body_of(request(TextPart("hi")), extra_body=extra, **settings), body_of(request(TextPart("hi")))
    assert {name: value for name, value in body.items() if name not in plain} == sent


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"reasoning": "on"}, "say --reasoning off, low, medium or high, or name another --reasoning-field"),
        ({"reasoning": "low", "reasoning_field": "chat_template_kwargs.thinking"}, "say --reasoning on or off"),
        ({"reasoning": "low", "extra_body": {"reasoning_effort": "high"}}, "leave out one"),
        ({"reasoning": "max"}, "give another --reasoning"),
    ],
)
def test_reasoning_that_a_field_cannot_say_is_refused(settings, remedy):
    with pytest.raises(ConfigError, match=f"reasoning.*Fix: {remedy}"):
        load(**settings)


def test_every_setting_is_in_the_identity_unless_it_cannot_change_an_answer():
    at_most_failures = {"timeout", "max_concurrency", "max_attempts", "api_key_env", "batch_api"}
    elsewhere = {"revision", "box_format"}  # of `ModelIdentity` itself, and in the prompt
    where_set = {"frames_as", "video_fps", "reasoning", "reasoning_field"}
    assert isinstance(load(), StreamingModel)
    assert set(load().identity.settings) == set(ServedSettings.model_fields) - at_most_failures - elsewhere - where_set
    assert set(load(reasoning="low").identity.settings) >= {"reasoning", "reasoning_field"}


def test_the_box_format_follows_the_family_unless_it_is_given():
    assert ServedModel.load("google/gemma-3-4b", base_url=LOCAL).box_format == BoxFormat("yxyx", 1000)
    assert ServedModel.load("Qwen/Qwen3-VL-8B", base_url=LOCAL).box_format == BoxFormat("xyxy", 1000)
    assert load(box_format=BoxFormat("xyxy", None)).box_format == BoxFormat("xyxy", None)


def test_the_conversation_keeps_the_order_of_texts_and_images():
    images = (picture(), picture(32, 32))
    asked = request(ImagePart(1), TextPart("a"), TextPart("b"), ImagePart(0), TextPart("c"), images=images, system="be")
    body = body_of(asked, image_format="png", image_detail="low")
    system, user = body["messages"]
    assert system == {"role": "system", "content": "be"}
    assert [part["type"] for part in user["content"]] == ["image_url", "text", "image_url", "text"]
    assert [part["text"] for part in user["content"] if part["type"] == "text"] == ["ab", "c"]
    sent = [part["image_url"] for part in user["content"] if part["type"] == "image_url"]
    assert [image["detail"] for image in sent] == ["low", "low"]
    for image, original in zip(sent, reversed(images), strict=True):
        start, data = image["url"].split(",")
        assert start == "data:image/png;base64"
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))), np.asarray(original))


def test_generation_settings_are_sent_under_the_names_that_servers_know():
    config = GenerationConfig(0.7, 99, 0.9, top_k=20, repetition_penalty=1.1, stop=("END",), top_logprobs=5)
    body = body_of(request(TextPart("a")), config, extra_body={"min_p": 0.1})
    del body["messages"]
    assert body == {
        "model": "org/some-model",
        "max_completion_tokens": 99,
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": 20,
        "repetition_penalty": 1.1,
        "stop": ["END"],
        "logprobs": True,
        "top_logprobs": 5,
        "min_p": 0.1,
    }


def test_text_is_a_string_and_neutral_settings_are_sent_on_request_and_omitted_ones_never():
    plain = body_of(request(TextPart("a"), TextPart("b")))
    assert plain["messages"] == [{"role": "user", "content": "ab"}]
    assert set(plain) == {"model", "messages", "max_completion_tokens", "temperature"}
    explicit = body_of(request(TextPart("a")), explicit_sampling=True)
    assert (explicit["top_k"], explicit["repetition_penalty"]) == (-1, 1.0)
    omitting = body_of(request(TextPart("a")), omit=("temperature", "top_p"), token_limit_field="max_tokens")
    assert set(omitting) == {"model", "messages", "max_tokens"}


def test_a_schema_is_sent_only_where_structured_output_is_wanted_and_the_task_has_one():
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    asked, free = request(TextPart("a"), schema=schema), request(TextPart("a"))
    sent = body_of(asked, structured_output=True)["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"] == {"name": "answer", "schema": schema, "strict": True}
    assert "response_format" not in body_of(free, structured_output=True)
    assert "response_format" not in body_of(asked)


def test_jpeg_is_what_pillow_writes_at_the_declared_quality():
    image = picture()
    for quality in (75, 90):
        file = io.BytesIO()
        image.save(file, "JPEG", quality=quality)
        assert picture_file(image, ServedSettings(jpeg_quality=quality)) == file.getvalue()
    file = io.BytesIO()
    image.save(file, "JPEG")
    assert picture_file(image, ServedSettings()) == file.getvalue()  # the default is the released harness's


@pytest.mark.parametrize("mode", ["L", "RGBA", "P"])
def test_any_mode_of_image_is_sent_as_rgb(mode):
    for kind in ("jpeg", "png"):
        sent = Image.open(io.BytesIO(picture_file(picture().convert(mode), ServedSettings(image_format=kind))))
        assert (sent.mode, sent.size) == ("RGB", (64, 48))


@pytest.mark.parametrize(
    ("size", "tokens"),
    # The first two are worked out in OpenAI's guide; the rest by hand.
    [((1024, 1024), 765), ((2048, 4096), 1105), ((512, 512), 255), ((1, 1), 255), ((1920, 1080), 1105)],
)
def test_image_tokens_follow_the_published_rule(size, tokens):
    assert estimated_image_tokens(size) == tokens


def test_the_estimate_counts_the_most_tokens():
    model = load()
    images = (picture(512, 384), picture())
    asked = request(ImagePart(0), ImagePart(1), TextPart("x" * 400), images=images, seeds=(1, 2, 3))
    sampled = model.estimate(iter([asked, asked]), GenerationConfig(temperature=0.7, max_new_tokens=100))
    assert sampled.max_output_tokens == 600
    text = 2 * (100 + 10)
    assert text + 4 * 255 <= sampled.input_tokens <= text + 4 * 255 + 20
    assert model.estimate([asked], GREEDY).max_output_tokens == 50
    with pytest.raises(ValueError, match="request r: the prompt places images"):
        model.estimate([request(ImagePart(0))], GREEDY)
