"""One table of settings: keyword, flag, environment and run file mean the same, and mistakes are named."""

import traceback
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.core.boxes import BoxFormat
from barista_bench.core.settings import ENVIRONMENT_PREFIX, check_settings
from barista_bench.errors import ConfigError
from barista_bench.models import GenerationConfig
from barista_bench.runs.ask.config import RunConfig, resolve_settings

NEEDED = {"data": "barista", "model": "oracle", "out": "runs/x"}
OTHERS = {
    "task": "grounding,relations",
    "model": "chance",
    "repetitions": "5",
    "limit": "7",
    "split": "test",
    "temperature": "0.25",
    "stop": "END",
    "batch_size": "auto",
    "trust_remote_code": "true",
    "box_format": "yxyx/1000",
    "prices": "prices.yaml",
    "max_cost": "1.5",
}


def test_file_environment_and_keywords_mean_the_same(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("\n".join(f"{name}: {value}" for name, value in (NEEDED | OTHERS).items()))
    environment = {f"{ENVIRONMENT_PREFIX}{name.upper()}": value for name, value in (NEEDED | OTHERS).items()}
    from_file = resolve_settings(RunConfig, {}, file=file, environment={})
    assert from_file == resolve_settings(RunConfig, {}, environment=environment)
    assert from_file == resolve_settings(RunConfig, NEEDED | OTHERS, environment={})
    assert from_file.task == ("grounding", "relations")
    assert (from_file.repetitions, from_file.limit, from_file.batch_size) == (5, 7, "auto")
    assert from_file.box_format == BoxFormat("yxyx", 1000)


def test_flags_mean_the_same_as_keywords(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[RunConfig] = []

    def caught(config: RunConfig) -> object:
        seen.append(config)
        raise ConfigError("far enough. Fix: none")

    monkeypatch.setattr("barista_bench.runs.ask.runner.run_config", caught)
    flags = [part for name, value in OTHERS.items() if name != "trust_remote_code" for part in (_flag(name), value)]
    CliRunner().invoke(cli.app, ["run", "barista", "--out", "runs/x", "--trust-remote-code", "--no-progress", *flags])
    assert seen == [resolve_settings(RunConfig, NEEDED | OTHERS, environment={})]


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def test_every_field_is_a_flag_with_a_help_text() -> None:
    shown = CliRunner().invoke(cli.app, ["run", "--help"], terminal_width=250).output
    for name, field in RunConfig.model_fields.items():
        assert field.description, name
        assert name == "data" or _flag(name) in shown


def test_a_keyword_goes_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("repetitions: 1\nlimit: 1\nmodel: chance\n")
    config = resolve_settings(
        RunConfig,
        {"data": "barista", "out": "runs/x", "repetitions": 3},
        file=file,
        environment={f"{ENVIRONMENT_PREFIX}REPETITIONS": "2", f"{ENVIRONMENT_PREFIX}LIMIT": "2"},
        defaults={"model": "prior", "split": "train"},
    )
    assert (config.repetitions, config.limit, config.model, config.split) == (3, 2, "chance", "train")


@pytest.mark.parametrize("where", ["keyword", "file", "environment"])
def test_an_unknown_setting_is_an_error_that_names_the_nearest(where: str, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("max_new_token: 5\n" if where == "file" else "repetitions: 3\n")
    environment = {f"{ENVIRONMENT_PREFIX}MAX_NEW_TOKEN": "5"} if where == "environment" else {}
    keywords = {"max_new_token": 5} if where == "keyword" else {}
    with pytest.raises(ConfigError, match=r"max_new_token.*nearest is 'max_new_tokens'"):
        resolve_settings(RunConfig, NEEDED | keywords, file=file, environment=environment)


UNUSABLE: dict[str, tuple[object, ...]] = {
    **dict.fromkeys(("repetitions", "max_new_tokens", "max_tokens_total"), (0,)),
    "limit": (-1,),
    "temperature": (float("nan"), -1),
    **dict.fromkeys(("task", "split"), ("",)),
    "batch_size": (0, "large"),
    "quantization": ("2bit",),
}


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        *(({name: value}, name) for name, values in UNUSABLE.items() for value in values),
        ({"box_format": "xxyy/1000"}, "box format"),
        ({"max_cost": 1.0}, "prices"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_a_remedy(setting: dict[str, object], what: str) -> None:
    with pytest.raises(ConfigError, match=f"{what}(.|\n)*Fix"):
        check_settings(RunConfig, NEEDED | setting)


def test_a_missing_setting_says_where_to_give_it() -> None:
    for name in NEEDED:
        others = {other: value for other, value in NEEDED.items() if other != name}
        with pytest.raises(ConfigError, match=f"{name} is missing.*{ENVIRONMENT_PREFIX}{name.upper()}"):
            check_settings(RunConfig, others)


NO_RUN_FILES = (
    *("- repetitions", "repetitions: [", "\x00", "&a [*a]", "? [repetitions]\n: 3", "extra_body: " + "[" * 100_000),
    *("model: 2001-13-45", "model: !!timestamp x", "progress: !!bool x", "repetitions: !!int ''"),
    *("repetitions: " + "9" * 5000, "repetitions: 0x" + "f" * 5000, "temperature: " + "1:" * 190 + "1.0"),
    "!!python/object/apply:os.system ['true']",
)


@pytest.mark.parametrize("content", NO_RUN_FILES)
def test_a_file_that_is_no_run_file_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(content)
    with pytest.raises(ConfigError, match=r"run\.yaml"):
        resolve_settings(RunConfig, NEEDED, file=file, environment={})


def test_a_setting_that_a_run_file_has_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    for content in ("repetitions: 1\nlimit: 2\n'repetitions': 3\n", "extra_body: {seed: 1, seed: 2}\n"):
        file.write_text(content)
        with pytest.raises(ConfigError, match=r"run\.yaml.*'(repetitions|seed)' appears here twice(.|\n)*Fix"):
            resolve_settings(RunConfig, NEEDED, file=file, environment={})


SECRET = "sk-not-to-be-seen"


@pytest.mark.parametrize(
    "setting",
    [
        {"jpeg_quality": 99, "base_url": f"https://{SECRET}@host/v1"},
        {"extra_body": f"[{SECRET}"},
        {"extra_body": [SECRET]},
        {"base_url": [SECRET]},
        {"api_key_env": [SECRET]},
    ],
)
def test_errors_never_show_a_possible_secret(setting: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="Fix") as error:
        check_settings(RunConfig, NEEDED | setting)
    whole = "".join(traceback.format_exception(error.value))
    assert "pydantic" in whole, "the cause is told too"
    # Tracebacks show source lines and no values: only this file's parameters spell the secret.
    assert SECRET not in whole


HUGE: tuple[dict[str, object], ...] = (
    *({"repetitions": value} for value in (10**5000, "9" * 5000, 1001)),
    *({name: "x" * 10_000} for name in ("box_format", "quantization")),
    *({"temperature": 10**5000}, {"model": ["x" * 10_000]}, {"x" * 10_000: 1}),
)


@pytest.mark.parametrize("setting", HUGE)
def test_huge_values_are_refused_in_few_words(setting: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="Fix") as error:
        check_settings(RunConfig, NEEDED | setting)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize("value", ["[" * 100_000, '{"a":' * 100_000, '{"a": ' + "9" * 5000 + "}", "{"])
def test_an_extra_body_in_the_environment_without_json_is_refused_as_a_setting(value: str) -> None:
    with pytest.raises(ConfigError, match=r"extra_body: .*Fix"):
        resolve_settings(RunConfig, NEEDED, environment={f"{ENVIRONMENT_PREFIX}EXTRA_BODY": value})


def test_generation_settings_reach_the_model_whole() -> None:
    """A field of `GenerationConfig` that a run cannot set would be unreachable."""
    of_judges_alone = {"top_logprobs"}
    shared = set(GenerationConfig.__dataclass_fields__) - of_judges_alone
    assert shared <= set(RunConfig.model_fields)
    config = check_settings(RunConfig, NEEDED | {"top_k": 5, "top_p": 0.5, "stop": ["a", "b"], "thinking_budget": 9})
    assert config.generation == GenerationConfig(top_k=5, top_p=0.5, stop=("a", "b"), thinking_budget=9)


@given(st.sampled_from(["xyxy", "yxyx"]), st.sampled_from(["1000", "1", "pixels"]))
def test_box_formats_are_read_as_they_are_written(order: str, scale: str) -> None:
    box_format = BoxFormat.parse(f"{order}/{scale}")
    assert box_format.order == order
    assert str(box_format.scale or "pixels") == scale
