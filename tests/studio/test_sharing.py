"""What a study's server keeps from strangers, from participants, and from whoever asks too much."""

import json
import resource
import shutil
import socket
import ssl
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from starlette.routing import Mount, Route
from typer.testing import CliRunner

from barista_bench.cli import commands as cli
from barista_bench.errors import ConfigError
from barista_bench.studio import sharing as module
from barista_bench.studio.server import StudioApp
from barista_bench.studio.sharing import MAX_ANSWER, RateLimit, network_of, study_server
from barista_bench.studio.study import AnswerLog
from barista_bench.studio.workspace import open_workspace
from tests.studio.serving import until
from tests.studio.studying import Participant, Tls, answer_body, answer_to, invited, made_certificate, study_at

OWN = ("/", "/api/study", "/static/study.js", "/static/study.html", "/report.css")


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return made_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return tmp_path / "study"


@pytest.fixture(params=["loopback", "shared"])
def people(request: pytest.FixtureRequest, study: Path, asked_data: Path, tls: Tls) -> Iterator[list[Participant]]:
    """Anna and Ben, by loopback and by TLS."""
    is_shared = request.param == "shared"
    links = invited(study, asked_data, "anna", "ben", tasks=["activity"], items=3, overlap=0, shared=is_shared)
    with study_at(study, tls if is_shared else None):
        yield [Participant(links[name], tls if is_shared else None) for name in ("anna", "ben")]


@pytest.mark.full
def test_nobody_gets_anything_without_a_token_of_the_study(people: list[Participant]) -> None:
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


def test_a_link_that_was_replaced_is_worth_nothing(study: Path, asked_data: Path) -> None:
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
def test_what_is_no_answer_is_refused_in_words_and_not_kept(people: list[Participant], study: Path) -> None:
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
        assert (status, "Remedy" in text, str(study) in text) == (400, True, False), body
    assert not (study / "anna" / "answers.jsonl").exists()


def test_an_answer_of_more_than_a_mebibyte_is_refused_while_it_arrives(people: list[Participant]) -> None:
    anna, _ = people
    body = answer_body(anna.state(), "A" * MAX_ANSWER)
    assert anna.answer("/api/study/answer", body)[0] == 413
    assert anna.answer("/api/study")[0] == 200


def test_who_asks_too_much_waits_and_others_do_not(
    study: Path, asked_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PARTICIPANT_LIMIT", (0.01, 20))
    links = invited(study, asked_data, "anna", "ben", tasks=["activity"])
    with study_at(study):
        anna, ben = (Participant(links[name]) for name in ("anna", "ben"))
        answers = [anna.answer("/api/study", X_Forwarded_For=f"192.0.2.{number}") for number in range(30)]
        assert [status for status, _, _ in answers] == [200] * 20 + [429] * 10
        assert all(int(headers["retry-after"]) >= 1 for _, _, headers in answers[20:])
        assert anna.answer(f"/?token={anna.token}", Cookie="")[0] == 429
        assert ben.answer("/api/study")[0] == 200


def test_strangers_of_one_address_wait_too(study: Path, asked_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ADDRESS_LIMIT", (0.01, 30))
    links = invited(study, asked_data, "anna", tasks=["activity"])
    with study_at(study):
        anna = Participant(links["anna"])
        statuses = [anna.answer("/", Cookie=f"studio-1={n}")[0] for n in range(40)]
        assert statuses == [403] * 30 + [429] * 10
        assert anna.answer("/api/study")[0] == 200  # a class shares an address


def test_a_bucket_fills_with_time_and_strangers_do_not_fill_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = RateLimit(2.0, 3)
    assert [limit.count_use("a", 0.0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert limit.count_use("b", 0.0) == 0
    assert limit.count_use("a", 0.5) == 0
    assert limit.count_use("a", 0.5) > 0
    monkeypatch.setattr(module, "_MOST_REMEMBERED", 10)
    for number in range(100):
        limit.count_use(str(number), 1.0)
    assert len(limit._buckets) == 10


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("testclient", "testclient"),
    ],
)
def test_addresses_that_one_owner_can_choose_from_are_one(host: str, network: str) -> None:
    assert network_of(host) == network


def connected(participant: Participant) -> socket.socket:
    host, port = participant.host.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=60)


@pytest.mark.full
def test_connections_that_ask_nothing_or_never_end_are_closed(
    study: Path, asked_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REQUEST_WAIT", 1.5)
    monkeypatch.setattr(module, "ANSWER_WAIT", 1.5)
    links = invited(study, asked_data, "anna", tasks=["activity"])
    with study_at(study):
        anna = Participant(links["anna"])
        asked = f"GET {anna.home}api/study HTTP/1.1\r\nHost: {anna.host}\r\nCookie: {anna.cookie}\r\n"
        posted = asked.replace("GET ", "POST ").replace("/api/study", "/api/study/answer") + f"Origin: {anna.base}\r\n"
        for begun in ("", "GET / HT", asked, f"{asked}\r\n{asked}"):
            with connected(anna) as silent:
                silent.sendall(begun.encode())
                received = b"".join(iter(lambda: silent.recv(65536), b""))
                assert received.count(b"HTTP/1.1 200") == begun.count("\r\n\r\n"), begun
        with connected(anna) as slow:
            slow.sendall(f"{posted}Content-Length: 1000\r\n\r\n{{".encode())
            assert slow.recv(65536).startswith(b"HTTP/1.1 408")


@pytest.mark.full
def test_a_connection_that_is_used_stays(study: Path, asked_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REQUEST_WAIT", 6)
    links = invited(study, asked_data, "anna", tasks=["activity"])
    with study_at(study):
        anna = Participant(links["anna"])
        used = HTTPConnection(anna.host)
        used.connect()
        opened = used.sock
        for _ in range(5):
            used.request("GET", f"{anna.home}static/icon.svg", headers={"Cookie": anna.cookie})
            with used.getresponse() as answer:
                assert answer.read().startswith(b"<svg")
            time.sleep(1.5)
        assert used.sock is opened
        used.close()


@pytest.mark.parametrize("limit", ["MOST_OF_ADDRESS", "MOST_CONNECTIONS"])
@pytest.mark.full
def test_so_many_connections_are_open_at_once(
    study: Path, asked_data: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(module, limit, 5)
    links = invited(study, asked_data, "anna", tasks=["activity"])
    with study_at(study):
        anna = Participant(links["anna"])
        held = [connected(anna) for _ in range(5)]
        for connection in held:  # the server has seen it once it answers
            head = f"GET {anna.home}static/icon.svg HTTP/1.1\r\nHost: {anna.host}\r\nCookie: {anna.cookie}\r\n\r\n"
            connection.sendall(head.encode())
            assert connection.recv(1024).startswith(b"HTTP/1.1 200")
        with connected(anna) as sixth:
            try:
                sixth.sendall(f"GET / HTTP/1.1\r\nHost: {anna.host}\r\n\r\n".encode())
                received = sixth.recv(1024)
            except ConnectionError:
                received = b""
        assert received == b""
        for connection in held:
            connection.close()
        until(lambda: is_answered(anna))


def is_answered(participant: Participant) -> bool:
    try:
        return participant.answer("/api/study")[0] == 200
    except OSError:
        return False


@pytest.mark.parametrize(("limits", "claimed", "most"), [((256, 2**20), 4096, 1024), ((256, 512), 512, 384)])
def test_connections_leave_files_to_write_answers_in(
    study: Path, asked_data: Path, monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], claimed: int, most: int
) -> None:
    said: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda kind, given: said.append((kind, given)))
    monkeypatch.setattr(module, "BoundedConnection", type("Kept", (module.BoundedConnection,), {}))
    invited(study, asked_data, "anna", tasks=["activity"])
    with study_at(study):
        (protocol,) = module.BoundedConnection.__subclasses__()
    assert (said, protocol.most) == ([(resource.RLIMIT_NOFILE, (claimed, limits[1]))], most)


def test_beyond_this_machine_there_is_tls_alone(study: Path, asked_data: Path, tls: Tls) -> None:
    links = invited(study, asked_data, "anna", tasks=["activity"], shared=True)
    assert links["anna"].startswith("https://localhost:")
    with study_at(study, tls):
        anna = Participant(links["anna"], tls)
        _, _, headers = anna.answer(f"/?token={anna.token}", Cookie="")
        name, *attributes = headers["set-cookie"].split("; ")
        assert name == f"__Host-study={anna.token}"
        assert {"Secure", "HttpOnly", "SameSite=strict", "Path=/"} == set(attributes)
        assert headers["strict-transport-security"].startswith("max-age=")
        with connected(anna) as plain:
            plain.sendall(f"GET / HTTP/1.1\r\nHost: {anna.host}\r\nCookie: {anna.cookie}\r\n\r\n".encode())
            assert b"200" not in plain.recv(1024)
        old = ssl.create_default_context(cafile=tls[0])
        old.minimum_version, old.maximum_version = ssl.TLSVersion.MINIMUM_SUPPORTED, ssl.TLSVersion.TLSv1_1
        with connected(anna) as plain, pytest.raises((ssl.SSLError, OSError)):
            old.wrap_socket(plain, server_hostname="localhost")


def test_a_server_on_this_machine_alone_asks_for_no_tls_from_now_on(study: Path, asked_data: Path) -> None:
    links = invited(study, asked_data, "anna", tasks=["activity"])
    with study_at(study):
        assert "strict-transport-security" not in Participant(links["anna"]).answer("/")[2]


def test_without_a_certificate_nothing_is_shared(study: Path, asked_data: Path, tls: Tls, tmp_path: Path) -> None:
    invited(study, asked_data, "anna", tasks=["activity"], shared=True)
    certificate, key = tls
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    for given in (
        (),
        (certificate, None),
        (None, key),
        (tmp_path / "none.pem", key),
        (broken, key),
        (key, certificate),
    ):
        with pytest.raises(ConfigError, match="Remedy"), study_server(study, *given):
            pass


@pytest.mark.full
def test_a_study_that_is_served_already_is_not_served_again(study: Path, asked_data: Path) -> None:
    invited(study, asked_data, "anna", tasks=["activity"])
    with study_at(study), pytest.raises(ConfigError, match="is served already"), study_server(study):
        pass


@pytest.mark.parametrize(
    "options",
    [
        ["--share-on", "localhost:8443"],
        ["--share-on", "localhost:8443", "--tls-cert", "c", "--tls-key", "k"],
        ["--tls-cert", "c", "--tls-key", "k"],
    ],
)
def test_the_command_shares_nothing_but_a_study(asked_data: Path, options: list[str]) -> None:
    shown = CliRunner().invoke(cli.app, ["studio", str(asked_data), "--no-browser", *options])
    assert (shown.exit_code, "nothing but a study is shared" in shown.output) == (1, True)


def test_the_command_serves_a_study_alone_at_the_address_of_its_links(
    study: Path, asked_data: Path, tmp_path: Path
) -> None:
    invited(study, asked_data, "anna", tasks=["activity"], shared=True)
    for further in (
        [str(asked_data)],
        ["--folder", str(tmp_path)],
        ["--share-on", "other:1"],
        [],
        ["--by", "anna"],
        ["--port", "9"],
    ):
        shown = CliRunner().invoke(cli.app, ["studio", str(study), "--no-browser", *further])
        assert (shown.exit_code, "Remedy" in shown.output) == (1, True), further


def test_what_fails_here_is_told_to_the_owner_and_not_to_the_participant(
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
