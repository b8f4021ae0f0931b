"""Defines a study: its people are invited, each by a separate link, to answer a part of the questions for models.

    STUDY/study.json             participants, by the hash of the token of the link, and their questions in order
    STUDY/PERSON/answers.jsonl   all answers of the person, in that order, with practice and checks
    STUDY/PERSON/BENCHMARK/TASK  the answers that count: a run folder of the model human:PERSON

The folder does not contain the token of a link, so a reader of the folder cannot answer in another person's name.
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
"""Limit of bytes for the file; a question of a person takes about 100."""
QuestionKind = Literal["practice", "item", "repeat", "attention"]
"""`item` counts; `repeat` repeats an item; an `attention` question contains its own answer."""
_ORIGIN = re.compile(r"https://[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?")


def public_origin(url: str) -> str:
    """Return the origin of the address that people open, in the form that browsers use.

    Raises ConfigError if `url` is not a valid address.
    """
    origin = url.lower().removesuffix("/")
    if not _ORIGIN.fullmatch(origin):
        remedy = "give the address of the reverse proxy, such as https://study.example.org"
        raise ConfigError(f"--public-url {url}: is not https:// and a host. Fix: {remedy}")
    return origin.removesuffix(":443")


class StudyQuestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """One question for one person. `expected` is the answer that an attention check asks for."""

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
        port: the port of this machine where the study is served.
        public_url: the origin of the reverse proxy that participants open; empty if they open the port itself.
        data: datasets made by `build`.
        tasks: names of tasks, or `all`.
        items: number of questions that count, per task and person. Of these, `overlap` are the same for every person.
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
        """The origin of the links: scheme, host and port in the form that browsers use."""
        return self.public_url or f"http://{HOST}:{self.port}".removesuffix(":80")


class LoggedAnswer(msgspec.Struct, frozen=True):
    """One line of a person's answers.

    Args:
        place: the question's number among the person's questions, from 0.
        text: the text that the task reads; None for a skipped question.
        seconds: time since the question was shown, measured by the page.
        at: the time of arrival, UTC.
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
    """Return the hash of a token for the study's file. SHA-256 is enough, since a token has 256 random bits."""
    return hashlib.sha256(token.encode()).hexdigest()


def is_study(folder: Path) -> bool:
    """Return True if `studio invite` made this folder."""
    return (folder / STUDY_FILE).is_file()


def read_study(folder: Path) -> Study:
    """Read a study. Raises DataError if the study does not exist or cannot be read."""
    path = folder / STUDY_FILE
    if not path.is_file():
        raise DataError(f"{folder}: is not a study. Fix: make one with `barista-bench studio invite`")
    content = read_bounded(path, MAX_STUDY, remedy="invite fewer people at once")
    try:
        return _decode_study(content)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: is not a study ({error}). Fix: invite again, with another --out") from error


class AnswerLog:
    """A person's answers on disk, appended one by one; if a question has two answers, the first counts.

    If a line is damaged or incomplete, only its question is lost, and is asked again.
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
        """Write one answer. When this returns, the answer survives a power failure."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with name_full_disk(self._path), self._path.open("ab") as file:
            file.write(seal(msgspec.json.encode(answer)))
            file.flush()
            os.fsync(file.fileno())
        self.answers.setdefault(answer.place, answer)
