"""A study of the small kitchen, its server, and requests of its participants."""

import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barista_bench.studio.inviting import invite
from barista_bench.studio.sharing import study_server
from barista_bench.studio.study import Study
from tests.studio.serving import Visitor

Tls = tuple[Path, Path]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def invited(
    folder: Path,
    data: Path,
    *names: str,
    tasks: Sequence[str] = ("all",),
    items: int = 4,
    overlap: int = 4,
    address: str | None = None,
    shared: bool = False,
) -> dict[str, str]:
    """Links of a study, which is made, or goes on at its address."""
    known = folder / "study.json"
    host = "localhost" if shared else "127.0.0.1"
    address = address or (json.loads(known.read_text())["address"] if known.exists() else f"{host}:{free_port()}")
    study = Study(1, address, shared, (str(data),), tuple(tasks), items, overlap)
    return invite(folder, study, names)


@contextmanager
def study_at(folder: Path, tls: Tls | None = None) -> Iterator[None]:
    """The study's server, running."""
    with study_server(folder, *(tls or ())) as server:
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        yield
        server.stop()
        thread.join(10)


def made_certificate(folder: Path) -> Tls:
    """A certificate of localhost that its own key has signed, and the key."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    return certificate, key


class Participant(Visitor):
    """Whoever has a link."""

    def __init__(self, link: str, tls: Tls | None = None) -> None:
        super().__init__(link, ssl.create_default_context(cafile=tls[0]) if tls else None)
        if tls:
            self.cookie, self.home = f"__Host-study={self.token}", "/"
        else:
            self.cookie = f"study-{self.host.rpartition(':')[2]}={self.token}"

    def state(self) -> Any:
        return self.json("/api/study")

    def hand_in(self, asked: dict[str, Any], answer: object, seconds: float = 2.0, **more: object) -> Any:
        return self.json("/api/study/answer", answer_body(asked, answer, seconds, **more))

    def answer_all(self) -> list[dict[str, Any]]:
        """Answer every question that is still open, and tell what was asked."""
        asked = [self.state()]
        while asked[-1].get("question"):
            asked.append(self.hand_in(asked[-1], answer_to(asked[-1])))
        return asked


def answer_body(asked: dict[str, Any], answer: object, seconds: float = 2.0, **more: object) -> dict[str, object]:
    return {"question": asked["question"], "answer": answer, "seconds": seconds, **more}


def answer_to(asked: dict[str, Any]) -> object:
    """What can be read, and does as attention checks say."""
    if asked["form"] == "choice":
        (text,) = asked["parts"] if len(asked["parts"]) == 1 else [""]
        named = (label for label, choice in asked["choices"].items() if f"“{choice}”" in str(text))
        return next(named, "A")
    return {"bboxes": [[10, 20, 300, 400]]} if asked["form"] == "fields" else "Description: A red cup on the machine."
