"""A study of the small kitchen, its server, and requests of its participants."""

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barista_bench.studio.inviting import invite
from barista_bench.studio.sharing import study_server
from barista_bench.studio.study import Study
from tests.studio.serving import Visitor
from tests.studio.tls_proxy import Certificate


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
    public_url: str = "",
) -> dict[str, str]:
    """Links of a study, which is made, or continues at its port."""
    known = folder / "study.json"
    port = json.loads(known.read_text())["port"] if known.exists() else free_port()
    return invite(folder, Study(1, port, public_url, (str(data),), tuple(tasks), items, overlap), names)


@contextmanager
def study_at(folder: Path) -> Iterator[None]:
    """The study's server, running."""
    with study_server(folder) as server:
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        yield
        server.stop()
        thread.join(10)


class Participant(Visitor):
    """A person with a link."""

    def __init__(self, link: str, certificate: Certificate | None = None) -> None:
        super().__init__(link, certificate.trusting() if certificate else None)
        if certificate:
            self.cookie, self.home = f"__Host-study={self.token}", "/"
        else:
            self.cookie = f"study-{self.host.rpartition(':')[2]}={self.token}"

    def state(self) -> Any:
        return self.json("/api/study")

    def hand_in(self, asked: dict[str, Any], answer: object, seconds: float = 2.0, **more: object) -> Any:
        return self.json("/api/study/answer", answer_body(asked, answer, seconds, **more))

    def answer_all(self) -> list[dict[str, Any]]:
        """Answer every question that is still open, and return the questions."""
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
