"""A study: people who are each invited, by a link of their own, to answer a part of what models are asked.

    STUDY/study.json             who is invited, by the hash of the token of the link, and each one's questions in order
    STUDY/PERSON/answers.jsonl   all that the person answered, in that order, practice and checks too
    STUDY/PERSON/BENCHMARK/TASK  what counts of it: a run folder of the model human:PERSON

A token is in its link and nowhere else; whoever reads the folder cannot answer in another's name by it.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import os
import re
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.reading import read_bounded
from barista_bench.files.writing import name_full_disk
from barista_bench.runs.log.sample_log import is_whole, last_start, seal, whole_lines

log = logging.getLogger(__name__)

STUDY_FILE, ANSWERS_FILE = "study.json", "answers.jsonl"
MAX_STUDY = 256 * 2**20
"""Bytes of the file: about 100 a question and person."""
QuestionKind = Literal["practice", "item", "repeat", "attention"]
"""`item` counts; `repeat` is an item put again, `attention` says itself which answer to give."""
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?):([0-9]{1,5})")


class Address(NamedTuple):
    """The address at which a server is reached. `name` is a host's, or an IP address; IPv6 without brackets."""

    name: str
    port: int

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"

    @classmethod
    def read(cls, text: str) -> Address:
        """Raises ConfigError for what is no `HOST:PORT`, and for an address that stands for all of a machine's."""
        match = _ADDRESS.fullmatch(text)
        name, port = (match[1].strip("[]").lower(), int(match[2])) if match else ("", 0)
        if not 0 < port < 2**16:
            raise ConfigError(f"{text!r} is no address. Remedy: give HOST:PORT, such as lab.example.org:8443")
        try:
            stands_for_all = ipaddress.ip_address(name).is_unspecified
        except ValueError:
            stands_for_all = False
        if stands_for_all:
            raise ConfigError(
                f"{text} stands for all addresses of a machine. Remedy: name the one that people will open"
            )
        return cls(name, port)


class StudyQuestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """One question to one person. `expected` is the answer that an attention check asks for."""

    kind: QuestionKind
    benchmark: str
    task: str
    example: str = ""
    expected: str = ""


class Participant(msgspec.Struct, frozen=True):
    """Somebody who is invited."""

    name: str
    token_sha256: str
    questions: tuple[StudyQuestion, ...]


class Study(msgspec.Struct, frozen=True):
    """What is asked, and whom.

    Args:
        address: where the links lead.
        shared: whether that is beyond this machine, by TLS.
        data: datasets made by `build`.
        tasks: names, or `all`.
        items: questions a task and person that count; `overlap` of them are the same for everybody.
    """

    version: Literal[1]
    address: str
    shared: bool
    data: tuple[str, ...]
    tasks: tuple[str, ...]
    items: Annotated[int, msgspec.Meta(ge=1)]
    overlap: Annotated[int, msgspec.Meta(ge=0)]
    participants: tuple[Participant, ...] = ()

    @property
    def origin(self) -> str:
        """The address as a browser names it."""
        scheme, usual_port = ("https", ":443") if self.shared else ("http", ":80")
        return f"{scheme}://{self.address.removesuffix(usual_port)}"


class LoggedAnswer(msgspec.Struct, frozen=True):
    """One line of a person's answers.

    Args:
        place: of the question among the person's, from 0.
        text: as the task reads it; None: skipped.
        seconds: since the question was shown, as the page measured.
        at: when it came, UTC.
    """

    place: int
    kind: QuestionKind
    benchmark: str
    task: str
    example: str
    text: str | None
    seconds: float
    at: str


_decode_answer = msgspec.json.Decoder(LoggedAnswer).decode
_decode_study = msgspec.json.Decoder(Study).decode


def hash_of(token: str) -> str:
    """What the study's file holds of a token. It has 256 random bits, so that nothing slower than SHA-256 is needed."""
    return hashlib.sha256(token.encode()).hexdigest()


def is_study(folder: Path) -> bool:
    """Whether `invite` made this folder."""
    return (folder / STUDY_FILE).is_file()


def read_study(folder: Path) -> Study:
    """Raises DataError where there is none, or it cannot be read."""
    path = folder / STUDY_FILE
    if not path.is_file():
        raise DataError(f"{folder}: is no study. Remedy: make one with `barista-bench invite`")
    try:
        return _decode_study(read_bounded(path, MAX_STUDY, remedy="invite fewer people at once"))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: is no study ({error}). Remedy: invite again, with another --out") from error


class AnswerLog:
    """A person's answers on disk, appended one by one; of two to one question the first counts.

    A line that a kill cut off, or that is damaged, costs its question alone, which is put again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.answers: dict[int, LoggedAnswer] = {}
        if path.exists():
            with path.open("rb") as file:
                for number, (_, line) in enumerate(whole_lines(file), start=1):
                    self._take(number, line[last_start(line) :])

    def _take(self, number: int, line: bytes) -> None:
        try:
            answer = _decode_answer(line) if is_whole(line) else None
        except (msgspec.MsgspecError, UnicodeDecodeError):
            answer = None
        if answer is None:
            log.warning("%s: line %d is damaged: passed over, its question is put again", self._path, number)
        else:
            self.answers.setdefault(answer.place, answer)

    def append(self, answer: LoggedAnswer) -> None:
        """Write one answer; it survives a loss of power from here on."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with name_full_disk(self._path), self._path.open("ab") as file:
            file.write(seal(msgspec.json.encode(answer)))
            file.flush()
            os.fsync(file.fileno())
        self.answers.setdefault(answer.place, answer)
