"""Uploads, with the real hub client against a local server."""

import logging
import traceback
from collections.abc import Iterator

import pytest
import yaml

from barista_bench.errors import ConfigError, DataError
from barista_bench.hub.files import ExistingFiles, model_files
from barista_bench.hub.pushing import Destination, Push, Pusher, PushError, find_token
from barista_bench.hub.submission import Submission
from tests.hub.made_results import MODEL, results, row, submission
from tests.hub.standin import TOKEN, UploadStandIn

CARD = b"---\nlicense: mit\n---\n# Fruit\n"
RESULTS = ".eval_results/barista.yaml"


@pytest.fixture
def hub() -> Iterator[UploadStandIn]:
    with UploadStandIn() as server:
        server.make(MODEL, "model", {"README.md": CARD, "config.json": b"{}"})
        yield server


@pytest.fixture
def made() -> Submission:
    return submission()


def push(hub: UploadStandIn, made: Submission, *, token: str = TOKEN, **where: object) -> Push:
    pusher = Pusher(token, Destination(**where), endpoint=hub.endpoint)  # type: ignore[arg-type]
    return pusher.push_model(MODEL, "barista", lambda existing: model_files(made, existing))


def test_the_default_is_a_pull_request_and_main_stays_unchanged(hub: UploadStandIn, made: Submission) -> None:
    done = push(hub, made)
    assert done.url.endswith(f"/{MODEL}/discussions/1")
    assert done.changed == (RESULTS, "README.md")
    assert hub.files(MODEL) == {"README.md": CARD, "config.json": b"{}"}
    proposed = hub.files(MODEL, "refs/pr/1")
    assert proposed["config.json"] == b"{}"
    assert proposed["README.md"].endswith(b"---\n# Fruit\n")
    assert yaml.safe_load(proposed["README.md"].split(b"---")[1])["license"] == "mit"
    assert yaml.safe_load(proposed[RESULTS])[0]["value"] == 42.0


@pytest.mark.full
def test_the_same_results_open_no_second_pull_request_and_another_of_that_title_is_ignored(
    hub: UploadStandIn, made: Submission
) -> None:
    push(hub, submission(row(results("grounding"))))
    first, second = push(hub, made), push(hub, made)
    assert first.url.endswith("/discussions/2")
    assert second.url == first.url
    assert first.changed
    assert not second.changed
    assert len(hub.commits_asked()) == 2


def test_a_branch_is_made_and_written_to_once(hub: UploadStandIn, made: Submission) -> None:
    assert push(hub, made, branch="results").changed
    assert RESULTS in hub.files(MODEL, "results")
    assert RESULTS not in hub.files(MODEL)
    assert not push(hub, made, branch="results").changed
    assert len(hub.commits_asked()) == 1
    assert not hub.repos["model", MODEL].pulls


@pytest.mark.full
def test_an_open_pull_request_can_be_added_to(hub: UploadStandIn, made: Submission) -> None:
    push(hub, submission(row(results("grounding"))))
    push(hub, made, branch="refs/pr/1")
    entries = yaml.safe_load(hub.files(MODEL, "refs/pr/1")[RESULTS])
    assert {entry["dataset"]["task_id"] for entry in entries} == {"grounding", "relations"}
    assert len(hub.repos["model", MODEL].pulls) == 1


@pytest.mark.full
def test_main_is_written_only_on_request(hub: UploadStandIn, made: Submission) -> None:
    for branch in ("main", "refs/heads/main", ""):
        with pytest.raises(ConfigError, match=r"Fix: use a pull request, or --to-main"):
            Destination(branch)
    with pytest.raises(ConfigError, match="both a branch and main"):
        Destination("results", to_main=True)
    assert push(hub, made, to_main=True).changed
    assert RESULTS in hub.files(MODEL)
    assert not push(hub, made, to_main=True).changed
    # Content that main has already needs no pull request either.
    assert not push(hub, made).changed
    assert len(hub.commits_asked()) == 1


def test_a_card_that_changed_during_the_push_is_not_overwritten(hub: UploadStandIn, made: Submission) -> None:
    def somebody() -> None:
        hub.make(MODEL, "model", {"README.md": b"# New\n"})

    hub.before_commit.append(somebody)
    with pytest.raises(PushError, match=r"garden/fruit-8b: uploading: .*Fix: try again: somebody changed"):
        push(hub, made, to_main=True)
    assert hub.files(MODEL) == {"README.md": b"# New\n"}
    push(hub, made, to_main=True)
    assert hub.files(MODEL)["README.md"].endswith(b"\n\n# New\n")


def test_results_go_to_their_dataset(hub: UploadStandIn) -> None:
    hub.make("garden/results", "dataset", {"README.md": b"old", "kept.txt": b"kept"})
    pusher = Pusher(TOKEN, Destination(), endpoint=hub.endpoint)
    files = {"README.md": b"new", "results/a/b/relations/results.json": b"{}\n"}
    done = pusher.push("garden/results", "dataset", files)
    assert set(done.changed) == set(files)
    assert hub.files("garden/results", "refs/pr/1", "dataset") == {"kept.txt": b"kept", **files}
    assert not pusher.push("garden/results", "dataset", files).changed


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ({"rights": "read"}, r"uploading: the Hub refuses.*Fix: use a token that may write"),
        ({"rights": "none"}, r"no such repository, or the token may not see it.*Fix"),
        ({"fail": 500}, r"uploading: the Hub refuses.*Fix: try again later"),
        ({"fail": 412}, r"uploading: the Hub refuses.*Fix: try again: somebody"),
        ({"fail": 400}, r"uploading: the Hub refuses"),
    ],
)
def test_a_refusal_is_explained_without_the_token_even_of_a_server_that_repeats_it(hub, made, trouble, said, caplog):
    for name, value in {**trouble, "careless": True}.items():
        setattr(hub, name, value)
    with pytest.raises(PushError, match=said) as caught:
        push(hub, made)
    assert "[token]" in str(caught.value) or hub.rights == "none"  # it was there to be taken out
    assert_secret("".join(traceback.format_exception(caught.value)) + caplog.text, hub)


def test_a_hub_out_of_reach_and_a_pull_request_that_is_not_there_are_explained(
    hub: UploadStandIn, made: Submission
) -> None:
    pusher = Pusher(TOKEN, Destination(), endpoint="http://127.0.0.1:9")
    with pytest.raises(PushError, match=r"out of reach.*Fix: check the network"):
        pusher.existing_files(MODEL, "barista")
    with pytest.raises(PushError, match=r"no such revision.*Fix: give another --branch"):
        push(hub, made, branch="refs/pr/7")


def test_a_broken_card_on_the_hub_stays_unchanged(hub: UploadStandIn, made: Submission) -> None:
    hub.make(MODEL, "model", {"README.md": b"---\nlicense: [\n---\n"})
    with pytest.raises(DataError, match=r"README.md: is not YAML"):
        push(hub, made)
    assert not hub.commits_asked()


def test_the_token_comes_from_the_variable_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    assert find_token("MY_TOKEN") == TOKEN
    with pytest.raises(ConfigError, match=r"no access token in the environment variable OTHER.*Fix"):
        find_token("OTHER")
    with pytest.raises(ConfigError, match=r"token_env: is not a name.*Fix") as caught:
        find_token(TOKEN)
    assert TOKEN not in str(caught.value)
    monkeypatch.setenv("HF_TOKEN", TOKEN + "x")
    assert find_token() == TOKEN + "x"


@pytest.mark.parametrize(
    "endpoint", ["http://hub.example", "https://me:hush@hub.example", "https://hub.example?token=hush"]
)
def test_an_endpoint_where_the_token_would_be_read_is_refused(endpoint: str) -> None:
    with pytest.raises(ConfigError, match=r"endpoint.*Fix") as caught:
        Pusher(TOKEN, Destination(), endpoint=endpoint)
    assert "hush" not in str(caught.value)


def assert_secret(text: str, hub: UploadStandIn) -> None:
    assert any(request.authorization == f"Bearer {TOKEN}" for request in hub.requests)  # it was really sent
    assert TOKEN not in text
    for repo in hub.repos.values():
        assert all(TOKEN.encode() not in body for files in repo.commits.values() for body in files.values())


@pytest.mark.full
def test_the_token_appears_in_no_log_however_much_is_logged(
    hub: UploadStandIn, made: Submission, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="huggingface_hub")
    push(hub, made)
    push(hub, made, branch="results")
    assert len(caplog.records) > 10
    assert_secret(caplog.text + repr(Pusher(TOKEN, Destination())), hub)


def test_a_file_that_holds_the_token_is_never_sent(hub: UploadStandIn) -> None:
    odd = "a-token-of-no-known-form"
    pusher = Pusher(odd, Destination(), endpoint=hub.endpoint)
    with pytest.raises(DataError, match="access token") as caught:
        pusher.push(MODEL, "model", {"notes.txt": odd.encode()})
    assert odd not in str(caught.value)
    assert not hub.commits_asked()
    assert pusher.existing_files(MODEL, "barista") == ExistingFiles(CARD, None)
