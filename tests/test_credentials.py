"""A key, token or password is refused wherever it would be written down, and the refusal does not repeat it."""

import contextlib

import pytest
from hypothesis import given, strategies as st

from barista_bench.errors import ConfigError
from barista_bench.files.text_out import check_variable_name, holds_key, refuse_credentials

KEYS = [
    "sk-planted-0123456789abcdef",
    "sk-proj-Ab1_-Cd2efghijklmnop",
    "sk-ant-api03-abcdefghijkl",
    "hf_abcdefghijklmnopqrstuvwxyz01",
    "ghp_0123456789abcdefghij0123",
    "gsk_0123456789abcdefghijkl",
    "xai-0123456789abcdefghijkl",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
    "Bearer abcdef0123456789",
    "-----BEGIN RSA PRIVATE KEY-----",
    "https://me:hunter2@host/v1",
]
SECRET_NAMES = [
    *("api_key", "apiKey", "APIKEY", "X-Api-Key", "openai_api_key", "Ocp-Apim-Subscription-Key", "key", "keys"),
    *("token", "hf_token", "accessToken", "refresh-token", "Authorization", "proxy-authorization", "auth", "bearer"),
    *("password", "passwd", "clientSecret", "aws_secret_access_key", "credentials", "Cookie", "jwt"),
]
HARMLESS_NAMES = [
    *("prompt_cache_key", "max_tokens", "stop_token_ids", "eos_token", "thinking_token_budget", "top_k", "tokenizer"),
    *("skip_special_tokens", "return_tokens_as_token_ids", "reasoning_effort", "chat_template_kwargs", "author"),
]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_recognised_by_its_form_and_refused_as_a_variable_name(key: str) -> None:
    assert holds_key(f"x {key} y")
    for refuse in (
        lambda: check_variable_name("api_key_env", key),
        lambda: refuse_credentials("extra_body", {"a": [{"b": key}]}),
        lambda: refuse_credentials("extra_body", {"a": {key: 1}}),
    ):
        with pytest.raises(ConfigError, match=r"Fix: ") as caught:
            refuse()
        assert key not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "$KEY", "2KEY", "KEY=1", "pass-word", "a" * 101, "x9" * 12, "é", "K\n"])
def test_a_bad_variable_name_is_refused_and_not_repeated(name: str) -> None:
    with pytest.raises(ConfigError, match="not repeated here") as caught:
        check_variable_name("api_key_env", name)
    assert not name or name not in str(caught.value).replace("api_key_env", "")


@pytest.mark.parametrize("name", SECRET_NAMES)
@pytest.mark.parametrize("depth", [0, 1, 50, 5000])
def test_a_field_called_like_a_credential_is_refused_at_any_depth(name: str, depth: int) -> None:
    value: object = {name: "hush"}
    for level in range(depth):
        value = {"a": value} if level % 2 else [value]
    with pytest.raises(ConfigError, match=r"called like a credential\. Fix: ") as caught:
        refuse_credentials("extra_body", value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_fields_that_servers_know_pass(name: str) -> None:
    refuse_credentials("extra_body", {name: {"x": [1, "text", None, True, {"y": "org/sk-learn-vlm-base"}]}})


def test_variable_names_and_plain_words_are_not_taken_for_keys() -> None:
    for name in ("OPENAI_API_KEY", "_key2", "AZURE_OPENAI_KEY_EUROPE_WEST_2"):
        check_variable_name("api_key_env", name)
    words = ("the basic understanding of bearer authentication", "task-0123456789abcdef", "a/disk-0123456789abcd")
    words += ("vit-base-patch16-224-in21k", "gpt-4o-mini-transcribe-2025-12-15", "yi-vl-34b")
    assert not any(map(holds_key, (*words, "x:y@z")))


@given(st.recursive(st.none() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)))
def test_any_value_is_passed_or_refused(value: object) -> None:
    with contextlib.suppress(ConfigError):
        refuse_credentials("extra_body", value)
