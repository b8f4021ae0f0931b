"""A planted key: it goes to the server that it is for, and into no file and no output of any command."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from barista_bench.cli.commands import app
from barista_bench.data.folder import build
from barista_bench.models.served import client as served_client
from tests.releases import eventful, write_release
from tests.served_standin import Call, Fault, ServedStandIn, change_message

KEY = "sk-planted-0123456789abcdef"
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PLANTED", "OPENAI_API_KEY", "HF_TOKEN", "OPENAI_ORG_ID"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setattr(served_client, "_FIRST_BACKOFF", 0.001)


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Free-text questions, which a model answers and a judge grades."""
    folder = tmp_path_factory.mktemp("canary")
    write_release(folder / "release", "v0", eventful("capsule"))
    sampling = {"temporal_vqa": {"frames": 6, "spacing": 4}}
    return build(
        folder / "release", folder / "barista", configs=["temporal_vqa"], sampling=sampling, cache=False
    ).folder


def assert_secret(folder: Path, *outputs: str) -> None:
    assert not any(KEY in output for output in outputs)
    for path in folder.rglob("*"):
        assert KEY not in path.name
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


def command(*arguments: object) -> tuple[int, str]:
    """Exit code and all output of a command, its traceback included."""
    done = CliRunner().invoke(app, list(map(str, arguments)))
    return done.exit_code, f"{done.output}{done.stderr}{done.exception!r}"


def echoing(call: Call) -> Fault | None:
    """A server that repeats the key in answers, and now and then in refusals."""
    said = f"Answer: {KEY}" if "Criterion" not in str(call.body) else f'{{"score": 5, "reason": "{KEY}"}}'
    if int(call.digest, 16) % 4 == 0 and call.attempt == 1:
        return Fault("status", 500, body=f'{{"error": {{"message": "Bearer {KEY}"}}}}'.encode())
    return Fault("reply", change=change_message(content=said))


@pytest.mark.full
def test_a_key_is_in_no_file_and_no_output_of_any_command(
    questions: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "barista_bench")
    records = []
    with ServedStandIn(echoing) as server:
        served = ("--base-url", server.url, "--api-key-env", "PLANTED", "--max-attempts", 4)
        runs = [tmp_path / "runs" / name / "temporal_vqa" for name in ("a", "b")]
        for run in runs:
            asked = (questions, "--task", run.name, "--out", run.parent, "--repetitions", 2)
            records.append(command("run", *asked, "--model", f"served:org/{run.parent.name}", *served))
            records.append(
                command(
                    "judge", run, "--judge", "served:teacher", "--verdicts-per-answer", 1, "--top-logprobs", 0, *served
                )
            )
    target = ("--model-repo", "org/a", "--dataset-repo", "org/d", "--judge", "teacher")
    records += [
        command("score", *runs),
        command("report", *runs, "--out", tmp_path / "report"),
        command("compare", *runs, "--csv", tmp_path / "compare.csv", "--permutations", 100),
        command("compare", "all", *runs, "--out", tmp_path / "analysis", "--permutations", 100),
        command("compare", "settings", *runs),
        command("export", "run", runs[0], "--out", tmp_path / "released"),
        command("publish", "submission", runs[0], *target, "--out", tmp_path / "submission"),
    ]
    assert [code for code, _ in records] == [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], records
    assert server.calls
    assert {call.headers["authorization"] for call in server.calls} == {f"Bearer {KEY}"}
    assert all("openai-organization" not in call.headers for call in server.calls)
    assert any(b"[key]" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()), "was echoed"
    assert_secret(tmp_path, caplog.text, *(output for _, output in records))


@pytest.mark.full
@pytest.mark.parametrize(
    "flags",
    [
        ("--api-key-env", KEY),
        ("--extra-body", f'{{"api_key": "{KEY}"}}'),
        ("--extra-body", f'{{"extra_headers": {{"Authorization": "x {KEY}"}}}}'),
        ("--extra-body", f'{{"a": [{{"b": "{KEY}"}}]}}'),
        ("--extra-body", '{"a": [{"clientSecret": "hunter2"}]}'),
        ("--base-url", f"https://me:{KEY}@host.example/v1"),
        ("--base-url", f"https://host.example/v1?key={KEY}"),
        ("--base-url", f"https://host.example/{KEY}/v1"),
        ("--base-url", "http://host.example/v1", "--api-key-env", "PLANTED"),
        ("--revision", KEY),
        ("--stop", KEY),
        ("--option", f"matcher={KEY}"),
        ("--think-tags", f"{KEY},x"),
    ],
)
@pytest.mark.parametrize("how", ["run", "evaluate", "judge", "questions"])
def test_a_key_among_the_flags_is_refused_before_anything_is_written(
    tmp_path: Path, how: str, flags: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    commands = {
        "run": ("run", tmp_path, "--model", "served:m", "--out", out),
        "evaluate": ("evaluate", tmp_path, "--model", "served:m", "--out", out),
        "judge": ("judge", out, "--judge", "served:m"),
        "questions": ("generate", "questions", "--source", tmp_path, "--model", "served:m", "--out", out),
    }
    if how in ("judge", "questions") and flags[0] == "--option":
        pytest.skip("has no such flag")
    address = () if "--base-url" in flags else ("--base-url", NOWHERE)
    code, output = command(*commands[how], *address, *flags)
    assert code == 1
    assert "Fix: " in output
    assert_secret(tmp_path, output)
    assert not out.exists()


@pytest.mark.parametrize("name", ["API_KEY_ENV", "EXTRA_BODY", "BASE_URL", "MODEL"])
def test_a_key_among_the_variables_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    value = f'{{"api_key": "{KEY}"}}' if name == "EXTRA_BODY" else f"https://me:{KEY}@host/"
    monkeypatch.setenv(f"BARISTA_BENCH_{name}", value)
    refused = [command("run", tmp_path, "--out", tmp_path / "out")]
    if name == "API_KEY_ENV":  # a token in place of the name of its variable
        target = ("--model-repo", "a/b", "--dataset-repo", "a/d", "--push")
        refused.append(command("publish", "submission", tmp_path, *target, "--token-env", KEY))
    assert [(code, "Fix: " in output) for code, output in refused] == [(1, True)] * len(refused)
    assert_secret(tmp_path, *(output for _, output in refused))


def test_a_key_in_a_settings_file_is_refused(tmp_path: Path) -> None:
    settings = tmp_path / "settings" / "run.yaml"
    settings.parent.mkdir()
    settings.write_text(f"model: served:m\nextra_body: {{headers: [{{X-Api-Key: {KEY}}}]}}\n")
    code, output = command("run", tmp_path, "--out", tmp_path / "out", "--config", settings)
    assert (code, "Fix: " in output) == (1, True)
    assert_secret(tmp_path / "out", output)
