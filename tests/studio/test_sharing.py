"""A study's server hides data from strangers and participants, on this machine and behind a proxy with TLS."""

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.routing import Mount, Route
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.errors import ConfigError
from barista_bench.studio import sharing as module
from barista_bench.studio.server import StudioApp
from barista_bench.studio.sharing import MAX_ANSWER, study_server
from barista_bench.studio.study import AnswerLog, read_study
from barista_bench.studio.workspace import open_workspace
from tests.studio.studying import Participant, answer_body, answer_to, invited, study_at
from tests.studio.tls_proxy import Certificate, tls_proxy

OWN = ("/", "/api/study", "/static/study.js", "/static/study.html", "/report.css")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return tmp_path / "study"


@pytest.fixture
def public(study: Path, asked_data: Path, certificate: Certificate) -> Iterator[list[Participant]]:
    """Anna and Ben, who reach the study by a proxy that adds TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://localhost:{listener.getsockname()[1]}"
        links = invited(study, asked_data, "anna", "ben", tasks=["activity"], items=3, overlap=0, public_url=url)
        with study_at(study), tls_proxy(listener, read_study(study).port, certificate):
            yield [Participant(links[name], certificate) for name in ("anna", "ben")]


@pytest.fixture(params=["loopback", "proxy"])
def people(request: pytest.FixtureRequest, study: Path, asked_data: Path) -> Iterator[list[Participant]]:
    """Anna and Ben, at the port itself and by a proxy."""
    if request.param == "proxy":
        yield request.getfixturevalue("public")
        return
    links = invited(study, asked_data, "anna", "ben", tasks=["activity"], items=3, overlap=0)
    with study_at(study):
        yield [Participant(links[name]) for name in ("anna", "ben")]


@pytest.mark.full
def test_a_request_without_a_token_of_the_study_gets_nothing(people: list[Participant]) -> None:
    anna, ben = people
    name = anna.cookie.partition("=")[0]
    assert all(anna.answer(path)[0] == 200 for path in OWN)
    strangers = ("", anna.cookie[:-1], f"{name}=", f"{name}=anna", f"{name}={'A' * 43}", f"other={anna.token}")
    strangers += (f"{name}={ben.token[:20]}{anna.token[20:]}", f'{name}="', f"{name}=é")
    for path in (*OWN, "/nowhere", "/?token=", "/?token=wrong", f"/?token={'A' * 43}", "/?token=%00%ff"):
        for cookie in strangers:
            status, body, _ = anna.answer(path, Cookie=cookie)
            assert (status, b"link" in body) == (403, True), (path, cookie)
        assert anna.answer(path, b"{}", Cookie="")[0] == 403


def test_a_link_that_was_replaced_is_refused(study: Path, asked_data: Path) -> None:
    options = {"tasks": ["activity"], "items": 3, "overlap": 3}
    old = invited(study, asked_data, "anna", **options)
    with study_at(study):
        anna = Participant(old["anna"])
        assert anna.answer("/api/study")[0] == 200
        new = invited(study, asked_data, "anna", **options)
        assert anna.answer("/api/study")[0] == 403
        assert anna.answer(f"/?token={anna.token}", Cookie="")[0] == 403
        assert Participant(new["anna"]).answer("/api/study")[0] == 200


def test_another_persons_questions_are_out_of_reach(people: list[Participant], study: Path) -> None:
    anna, ben = people
    of_anna, of_ben = anna.state(), ben.state()
    assert of_anna["question"] != of_ben["question"]
    assert "not open to you" in anna.refusal("/api/study/answer", answer_body(of_ben, "A"))
    for more in ({"person": "ben"}, {"name": "ben"}, {"place": 3}, {"participant": "ben"}):
        assert anna.answer("/api/study/answer", answer_body(of_anna, "A", **more))[0] == 400
    for path in ("/api/study?person=ben", "/api/study?name=ben&token=", "/api/study?question=" + of_ben["question"]):
        assert anna.json(path) == of_anna
    assert anna.answer("/api/study", Cookie=f"{anna.cookie}; person=ben")[0] == 200
    assert not (study / "ben" / "answers.jsonl").exists()
    assert not (study / "anna" / "answers.jsonl").exists()
    both = f"{anna.cookie}; {ben.cookie}"  # never two people at once: one of them, or none at the other's path
    assert anna.answer("/api/study", Cookie=both)[0] == (200 if anna.home == "/" else 403)


@pytest.mark.full
def test_no_route_of_the_owners_studio_is_there(
    people: list[Participant], asked_data: Path, small_release: Path, tmp_path: Path
) -> None:
    anna, _ = people
    owner = StudioApp(open_workspace([asked_data, small_release], person="owner", out=tmp_path / "out"))
    paths = [route.path for route in owner.routes() if isinstance(route, Route)]
    paths += [
        "/api/project",
        "/api/project/frame",
        "/api/project/accept",
        "/api/review",
        "/api/jobs",
        "/api/jobs/start",
    ]
    paths += ["/api/open", "/api/upload", "/api/commands", "/media/graph/v0/0.jpg", "/media/project/v0/proxy.mp4"]
    tried = {path for path in paths if not path.startswith("/static/")} - {"/"}
    assert len(tried) > 20
    for path in tried:
        filled = path.replace(":path", "").format(
            kind="graph", video="v0", frame="0", name="proxy", version="0", path="report.html"
        )
        assert anna.answer(filled)[0] == 404, filled
        assert anna.answer(filled, {})[0] == 404, filled
    assert [route.path for route in owner.routes() if isinstance(route, Mount)] == ["/static/{version}"]


CLIMBING = (
    *(
        "/static/../study.json",
        "/static/..%2F..%2Fstudio%2Fserver.py",
        "/static/%2e%2e/server.py",
        "/static//etc/passwd",
    ),
    *(
        "/static/%2Fetc%2Fpasswd",
        "/static/..%5C..%5Cserver.py",
        "/static/a%00b",
        "/static/....//server.py",
        "/../etc/passwd",
    ),
    *("/static/", "/static", "/study.json", "/anna/answers.jsonl", "/api/study/../../study.json", "/%2e%2e/study.json"),
)


def test_no_path_leads_to_a_file_of_this_machine(people: list[Participant]) -> None:
    anna, _ = people
    for path in CLIMBING:
        status, body, _ = anna.answer(path)
        assert status in (307, 400, 404), path
        shown = [
            text for text in (b"root:", b"import ", b"token_sha256", b"Traceback", b"/work", b"/tmp") if text in body
        ]
        assert not shown, path


def test_a_foreign_host_name_that_leads_here_is_refused(people: list[Participant]) -> None:
    anna, _ = people
    port = anna.host.rpartition(":")[2]
    foreign = ["evil.example", "evil.example:443", "127.0.0.1", "localhost", "0.0.0.0:80"]
    for name in (*foreign, f"evil.example:{port}", f"{anna.host}.evil.example"):
        assert anna.answer("/api/study", Host=name)[0] == 403, name


@pytest.mark.full
def test_another_pages_requests_are_refused_even_with_the_cookie(people: list[Participant]) -> None:
    anna, _ = people
    sent = answer_body(anna.state(), "A")
    for origin in ("https://evil.example", "null", f"http://{anna.host}.evil.example", anna.base + "0"):
        assert anna.answer("/api/study", Origin=origin)[0] == 403
        assert anna.answer("/api/study/answer", sent, Origin=origin)[0] == 403
    other = "http" if anna.base.startswith("https") else "https"
    assert anna.answer("/api/study/answer", sent, Origin=f"{other}://{anna.host}")[0] == 403
    assert anna.answer("/api/study/answer", sent, Origin="")[0] == 403
    for site in ("cross-site", "same-site"):
        assert anna.answer("/api/study", Sec_Fetch_Site=site)[0] == 403
        assert anna.answer("/", Sec_Fetch_Site=site)[0] == 403


def test_a_link_may_be_followed_from_a_letter_and_by_no_script_or_frame(people: list[Participant]) -> None:
    anna, _ = people
    link = f"/?token={anna.token}"
    going = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    status, body, headers = anna.answer(link, Cookie="", **going)
    assert (status, b"http-equiv" in body) == (200, True)
    assert "location" not in headers
    assert {"HttpOnly", "SameSite=strict", f"Path={anna.home}"} <= set(headers["set-cookie"].split("; "))
    assert anna.token.encode() not in body
    for changed in ({"Sec_Fetch_Dest": "iframe"}, {"Sec_Fetch_Mode": "cors"}, {"Sec_Fetch_Mode": "no-cors"}):
        assert anna.answer(link, Cookie="", **{**going, **changed})[0] == 403
    assert anna.answer(f"/api/study?token={anna.token}", Cookie="", **going)[0] == 403
    assert anna.answer(link, {}, Cookie="", **going, Origin="null")[0] == 403


@pytest.mark.full
def test_every_answer_forbids_foreign_scripts_and_frames(people: list[Participant]) -> None:
    anna, _ = people
    for cookie in (anna.cookie, ""):
        for path in (*OWN, f"/?token={anna.token}", "/nowhere"):
            _, _, headers = anna.answer(path, Cookie=cookie)
            assert "unsafe" not in headers["content-security-policy"]
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
            assert headers.get("cache-control") == "no-store"
            assert "server" not in headers


@pytest.mark.full
def test_a_bad_answer_body_is_refused_with_a_message_and_not_kept(people: list[Participant], study: Path) -> None:
    anna, _ = people
    asked = anna.state()
    right = answer_body(asked, "A", 1.0)
    bodies: list[object] = [b"", b"{", b"[]", b"null", b"\xff\xfe", {**right, "kind": "item"}]
    bodies += [{**right, "answer": wrong} for wrong in ("Z", ["A"], None, {"A": 1}, 1, True, "A" * 100_000)]
    bodies += [{**right, "seconds": wrong} for wrong in (-1, "soon", 1e9, None)]
    bodies += [b'{"question":"%s","seconds":1,"answer":%s}' % (asked["question"].encode(), b"[" * 9000 + b"]" * 9000)]
    for body in bodies:
        status, content, _ = anna.answer("/api/study/answer", body)
        text = json.loads(content)["error"]
        assert (status, "Fix" in text, str(study) in text) == (400, True, False), body
    assert not (study / "anna" / "answers.jsonl").exists()


def test_an_answer_of_more_than_a_mebibyte_is_refused_while_it_arrives(people: list[Participant]) -> None:
    anna, _ = people
    body = answer_body(anna.state(), "A" * MAX_ANSWER)
    assert anna.answer("/api/study/answer", body)[0] == 413
    assert anna.answer("/api/study")[0] == 200


def connected(participant: Participant) -> socket.socket:
    host, port = participant.host.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=60)


@pytest.mark.full
def test_an_answer_that_does_not_arrive_is_not_waited_for(
    study: Path, asked_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_WAIT", 0.5)
    links = invited(study, asked_data, "anna", tasks=["activity"])
    with study_at(study):
        anna = Participant(links["anna"])
        asked = f"POST {anna.home}api/study/answer HTTP/1.1\r\nHost: {anna.host}\r\nCookie: {anna.cookie}\r\n"
        with connected(anna) as slow:
            slow.sendall(f"{asked}Origin: {anna.base}\r\nContent-Length: 1000\r\n\r\n{{".encode())
            assert slow.recv(65536).startswith(b"HTTP/1.1 408")


def test_the_cookie_behind_a_proxy_is_of_this_host_only_and_never_sent_without_tls(public: list[Participant]) -> None:
    anna, _ = public
    _, _, headers = anna.answer(f"/?token={anna.token}", Cookie="")
    name, *attributes = headers["set-cookie"].split("; ")
    assert name == f"__Host-study={anna.token}"
    assert {"Secure", "HttpOnly", "SameSite=strict", "Path=/"} == set(attributes)


def test_a_study_behind_a_proxy_answers_no_request_that_goes_round_it(public: list[Participant], study: Path) -> None:
    anna, _ = public
    port = read_study(study).port
    past = Participant(f"http://127.0.0.1:{port}/?token={anna.token}")
    past.home, past.cookie = "/", anna.cookie
    assert past.answer("/api/study")[0] == 403
    assert past.answer("/api/study", Host=anna.host)[0] == 200  # as the proxy forwards it
    assert past.answer("/api/study/answer", answer_body(anna.state(), "A"), Host=anna.host)[0] == 403  # foreign origin


def test_a_study_listens_on_this_machine_only(study: Path, asked_data: Path) -> None:
    invited(study, asked_data, "anna", tasks=["activity"], public_url="https://study.example.org")
    with study_server(study) as server:
        assert server._listener.getsockname() == ("127.0.0.1", read_study(study).port)


def test_a_study_that_is_served_already_is_not_served_again(study: Path, asked_data: Path) -> None:
    invited(study, asked_data, "anna", tasks=["activity"])
    with study_server(study), pytest.raises(ConfigError, match=r"port .* cannot be used.*Fix"), study_server(study):
        pass


def test_a_study_has_a_separate_server_and_port(study: Path, asked_data: Path, tmp_path: Path) -> None:
    invited(study, asked_data, "anna", tasks=["activity"])
    for more in ([str(asked_data)], ["--folder", str(tmp_path)], ["--by", "anna"], ["--port", "9"]):
        shown = CliRunner().invoke(cli.app, ["studio", str(study), "--no-browser", *more])
        assert (shown.exit_code, "Fix" in shown.output) == (1, True), more


def test_the_owner_and_not_the_participant_sees_errors_of_the_server(
    study: Path, asked_data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = shutil.copytree(asked_data, tmp_path / "data")
    links = invited(study, data, "anna", tasks=["activity"])
    with study_at(study):
        anna = Participant(links["anna"])
        asked = anna.state()
        (study / "anna").mkdir(exist_ok=True)
        (study / "anna" / "answers.jsonl").mkdir()
        status, body, _ = anna.answer("/api/study/answer", answer_body(asked, answer_to(asked)))
        assert (status, json.loads(body)["error"].startswith("This cannot be done now")) == (500, True)
        assert str(study).encode() not in body
        assert "answers.jsonl" in caplog.text
        (study / "anna" / "answers.jsonl").rmdir()
        assert anna.answer("/api/study/answer", answer_body(asked, answer_to(asked)))[0] == 200
    assert len(AnswerLog(study / "anna" / "answers.jsonl").answers) == 1
