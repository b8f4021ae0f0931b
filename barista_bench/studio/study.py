"""A study: people who are each invited, by an individual link, to answer a part of a model's questions.

    STUDY/study.json             participants, by the hash of the token of the link, and their questions in order
    STUDY/PERSON/answers.jsonl   all answers of the person, in that order, with practice and checks
    STUDY/PERSON/BENCHMARK/TASK  the answers that count: a run folder of the model human:PERSON

Only the link contains a token, so a reader of the folder cannot answer in another's name.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from barista_bench.errors import ConfigError, DataError
from barista_bench.files.reading import read_bounded
from barista_bench.files.writing import name_full_disk
from barista_bench.runs.log.sample_log import is_whole, last_start, seal, whole_lines
from barista_bench.studio.web import HOST

log = logging.getLogger(__name__)

STUDY_FILE, ANSWERS_FILE = "study.json", "answers.jsonl"
MAX_STUDY = 256 * 2**20
"""Bytes of the file: about 100 a question and person."""
QuestionKind = Literal["practice", "item", "repeat", "attention"]
"""`item` counts; `repeat` is a repeated item, `attention` contains its answer."""
_ORIGIN = re.compile(r"https://[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?")
_REMOVED = frozenset({"address", "shared"})
"""Fields of studies from versions whose server used TLS itself."""


def public_origin(url: str) -> str:
    """Return the origin of the address that people open, as browsers write it.

    Raises ConfigError for any other address.
    """
    origin = url.lower().removesuffix("/")
    if not _ORIGIN.fullmatch(origin):
        remedy = "give the address of the reverse proxy, such as https://study.example.org"
        raise ConfigError(f"--public-url {url}: is not https:// and a host. Fix: {remedy}")
    return origin.removesuffix(":443")


class StudyQuestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """One question to one person. `expected` is the answer that an attention check asks for."""

    kind: QuestionKind
    benchmark: str
    task: str
    example: str = ""
    expected: str = ""


class Participant(msgspec.Struct, frozen=True):
    """An invited person."""

    name: str
    token_sha256: str
    questions: tuple[StudyQuestion, ...]


class Study(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The questions and participants of a study.

    Args:
        port: on this machine, where the study is served.
        public_url: the origin of the reverse proxy that participants open; empty: they open the port itself.
        data: datasets made by `build`.
        tasks: names, or `all`.
        items: counting questions per task and person; `overlap` of them are the same for every person.
    """

    version: Literal[1]
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    public_url: str
    data: tuple[str, ...]
    tasks: tuple[str, ...]
    items: Annotated[int, msgspec.Meta(ge=1)]
    overlap: Annotated[int, msgspec.Meta(ge=0)]
    participants: tuple[Participant, ...] = ()

    @property
    def origin(self) -> str:
        """The origin of the links: scheme, host and port as a browser writes them."""
        return self.public_url or f"http://{HOST}:{self.port}".removesuffix(":80")


class LoggedAnswer(msgspec.Struct, frozen=True):
    """One line of a person's answers.

    Args:
        place: number of the question among the person's, from 0.
        text: as the task reads it; None: skipped.
        seconds: since the question was shown, as measured by the page.
        at: time of arrival, UTC.
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
    """Return the hash of a token for the study's file. A token has 256 random bits, so SHA-256 is sufficient."""
    return hashlib.sha256(token.encode()).hexdigest()


def is_study(folder: Path) -> bool:
    """Whether `studio invite` made this folder."""
    return (folder / STUDY_FILE).is_file()


def read_study(folder: Path) -> Study:
    """Read a study. Raises DataError if it does not exist or cannot be read."""
    path = folder / STUDY_FILE
    if not path.is_file():
        raise DataError(f"{folder}: is not a study. Fix: make one with `barista-bench studio invite`")
    content = read_bounded(path, MAX_STUDY, remedy="invite fewer people at once")
    try:
        if removed := _REMOVED & msgspec.json.decode(content, type=dict[str, msgspec.Raw]).keys():
            raise DataError(
                f"{path}: has {' and '.join(sorted(removed))}, which studies no longer have: a reverse proxy adds TLS. "
                'Fix: put "port": 8800, "public_url": "https://HOST" in their place ("" without a proxy), or invite '
                "again with another --out"
            )
        return _decode_study(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: is not a study ({error}). Fix: invite again, with another --out") from error


class AnswerLog:
    """A person's answers on disk, appended one by one; of two answers to one question the first counts.

    A damaged or incomplete line loses only its question, which is asked again.
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
        """Write one answer; afterwards it survives a loss of power."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with name_full_disk(self._path), self._path.open("ab") as file:
            file.write(seal(msgspec.json.encode(answer)))
            file.flush()
            os.fsync(file.fileno())
        self.answers.setdefault(answer.place, answer)
