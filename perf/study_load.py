"""How does a study's server bear everybody at once? Over TLS, on this machine.

    python perf/study_load.py build/data/barista [--people 100] [--one-address]

People open their links at one moment as a browser does (the page's parts by six connections), each from an address of
their own or, as in a class, all from one; then all answer, one question after the other without a pause. Printed: how
long pages and answers take, what was refused, whether each answer is on disk and in its run, and the server's memory.
"""

import argparse
import asyncio
import json
import re
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
from resident import memory_of

from barista_bench.studio.inviting import invite
from barista_bench.studio.pages import STATIC
from barista_bench.studio.study import ANSWERS_FILE, Study, read_study

ADDRESS, ITEMS, CONNECTIONS = "localhost:8443", 10, 6
Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_IMPORT = re.compile(r'^import .* from "\./([\w.]+)"', re.MULTILINE)


def parts_of_page() -> list[str]:
    """Everything that the page loads."""
    waiting, modules = ["study.js"], dict[str, None]()
    while waiting:
        modules[name := waiting.pop()] = None
        waiting += set(_IMPORT.findall((STATIC / name).read_text())) - set(modules)
    named = re.findall(r'"(/[\w/.]+\.(?:css|svg))"', (STATIC / "study.html").read_text())
    return [*named, *(f"/static/{name}" for name in modules)]


@dataclass
class Person:
    """Somebody with a link, at an address."""

    link: str
    address: str
    tls: ssl.SSLContext
    refused: Counter[int] = field(default_factory=Counter)
    broken: int = 0
    answered: list[float] = field(default_factory=list)
    opened: float = 0
    asked: float = 0
    """Until the first question was there."""

    async def connected(self) -> Streams:
        return await asyncio.open_connection(
            "127.0.0.1",
            int(ADDRESS.rpartition(":")[2]),
            ssl=self.tls,
            server_hostname="localhost",
            local_addr=(self.address, 0),
        )

    async def ask(self, streams: Streams, path: str, body: bytes = b"") -> bytes:
        """The body of the answer."""
        reader, writer = streams
        head = [f"{'POST' if body else 'GET'} {path} HTTP/1.1", f"Host: {ADDRESS}"]
        head += [f"Cookie: __Host-study={self.link.partition('token=')[2]}", f"Content-Length: {len(body)}"]
        head += [f"Origin: https://{ADDRESS}"] if body else []
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        status = int(answer.split()[1])
        size = re.search(r"content-length: (\d+)", answer)
        content = await reader.readexactly(int(size[1])) if size else b""
        if status != 200:
            self.refused[status] += 1
        return content

    async def open_page(self, parts: list[str]) -> None:
        """As a browser does."""
        started, waiting = time.perf_counter(), list(parts)

        async def load(streams: Streams | None = None) -> None:
            try:
                streams = streams or await self.connected()
                while waiting:
                    await self.ask(streams, waiting.pop())
                streams[1].close()
            except (OSError, asyncio.IncompleteReadError):
                self.broken += 1

        try:
            first = await self.connected()
            await self.ask(first, f"/?{self.link.partition('?')[2]}")
            await self.ask(first, "/")
        except (OSError, asyncio.IncompleteReadError):
            self.broken += 1
            return
        await asyncio.gather(load(first), *(load() for _ in range(CONNECTIONS - 1)))
        self.opened = time.perf_counter() - started

    async def answer_all(self) -> None:
        streams, started = await self.connected(), time.perf_counter()
        asked = json.loads(await self.ask(streams, "/api/study"))
        self.asked = time.perf_counter() - started
        while "question" in asked:
            sent = json.dumps({"question": asked["question"], "answer": "A", "seconds": 1.0}).encode()
            started = time.perf_counter()
            asked = json.loads(await self.ask(streams, "/api/study/answer", sent))
            self.answered.append(time.perf_counter() - started)
        streams[1].close()


def told(name: str, seconds: list[float]) -> str:
    median, late, worst = (1000 * value for value in np.quantile(seconds, (0.5, 0.99, 1)))
    return f"{name}: median {median:.0f} ms, worst 1 % from {late:.0f} ms, worst {worst:.0f} ms, {len(seconds)} of them"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--one-address", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        certificate, key, folder = Path(scratch, "cert.pem"), Path(scratch, "key.pem"), Path(scratch, "study")
        made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
        made += f" -addext subjectAltName=DNS:localhost -out {certificate} -keyout {key}"
        subprocess.run(made.split(), check=True, capture_output=True)
        study = Study(1, ADDRESS, True, (str(options.data.resolve()),), ("activity",), ITEMS, ITEMS)
        links = invite(folder, study, [f"person-{number}" for number in range(options.people)])
        tls = ssl.create_default_context(cafile=certificate)
        people = [
            Person(link, "127.0.0.1" if options.one_address else f"127.0.1.{number + 1}", tls)
            for number, link in enumerate(links.values())
        ]
        command = [str(Path(sys.executable).with_name("barista-bench")), "studio", str(folder), "--share-on", ADDRESS]
        command += ["--tls-cert", str(certificate), "--tls-key", str(key)]
        with subprocess.Popen(command) as server:
            try:
                asyncio.run(load(people))
                print(memory_of(server.pid))
            finally:
                server.terminate()
        check(folder, len(people[0].answered))


async def load(people: list[Person]) -> None:
    for _ in range(600):
        try:
            _, writer = await people[0].connected()
            writer.close()
            break
        except OSError:
            await asyncio.sleep(0.1)
    parts = parts_of_page()
    await asyncio.gather(*(person.open_page(parts) for person in people))
    print(told(f"pages of {len(parts) + 2} requests", [person.opened for person in people if person.opened]))
    refused = sum((person.refused for person in people), Counter[int]())
    print(f"  refused, by status: {dict(refused)}; connections cut off: {sum(person.broken for person in people)}")
    await asyncio.gather(*(person.answer_all() for person in people))
    print(told("first questions", [person.asked for person in people]))
    print(told("answers", [seconds for person in people for seconds in person.answered]))
    refused = sum((person.refused for person in people), Counter[int]()) - refused
    print(f"  refused, by status: {dict(refused)}")


def check(folder: Path, answers: int) -> None:
    """Print what of the answers is on disk."""
    people = read_study(folder).participants
    logged = [len((folder / person.name / ANSWERS_FILE).read_bytes().splitlines()) for person in people]
    runs = [sum(1 for path in (folder / person.name).rglob("samples*.jsonl") for _ in path.open()) for person in people]
    print(f"on disk: {sum(logged)} answers of {len(people) * answers}; in runs {sum(runs)} of {len(people) * ITEMS}")


if __name__ == "__main__":
    main()
