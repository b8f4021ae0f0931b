"""Runs the commands of the page "From a video to a score": their table, their forms, and the checks of what is sent.

A button runs a command in four steps:

1. `static/make.js` makes a form of each step in `STEPS`, which it reads from `/api/commands`. The button sends
   `{step, values}` to `/api/jobs/start`. (`send` of `static/server.js` is a POST with JSON; `server.py` calls the
   function that `CommandRoutes.writes` names for the path.)
2. `CommandRoutes.call` checks the values, and makes a list of arguments of them.
3. `Jobs.start` (`jobs.py`) starts `python -m barista_bench.cli` with these arguments as a child process.
4. `static/job_table.js` reads `/api/jobs` while a command runs: its state, and the end of its output.

A new button is one `CommandStep` in `STEPS`. The list of commands is fixed. A value becomes one argument in a list of
arguments. It is never part of a shell's command line. It is never an option either, because it may not begin with a
dash. Paths must be in the studio's folder. The only exception is `videos` of a new project: it may be any folder of
this machine, since it is read but not written.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from barista_bench.benchmarks import BENCHMARKS
from barista_bench.errors import DataError
from barista_bench.files.paths import confine
from barista_bench.studio.jobs import Jobs
from barista_bench.studio.workspace import FoundKind, Json, Routes, find_folders, sent_as

FieldKind = Literal["input", "new", "anywhere", "number", "text"]
_LONGEST = 500
"""Limit of characters of one value."""
_NUMBER = re.compile(r"\d{1,9}(\.\d{1,6})?")
_OUTSIDE = re.compile(r"(^|[:=,\s])[/~]|\.\.|[\\]")
"""Parts of a text that may name a file outside the folder, such as the file of a local model."""
PROGRAM = "barista-bench"


@dataclass(frozen=True, slots=True)
class CommandField:
    """An option that the page offers, by the name of its parameter.

    Args:
        kind: the kind of an existing path; `new` for a path to create; `anywhere` for any folder of this machine.
        suggested: kinds of folders to choose from.
        choices: values to choose from. If `open`, other values are allowed too.
        value: the initial value.
    """

    name: str
    kind: FieldKind
    suggested: tuple[FoundKind, ...] = ()
    choices: tuple[str, ...] = ()
    open: bool = False
    value: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class CommandStep:
    """A command.

    `makes` is the field with the path that the studio can open afterwards. `words` replaces the id.
    """

    id: str
    title: str
    fields: tuple[CommandField, ...]
    makes: str = ""
    words: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """The words of the command on the command line."""
        return self.words or (self.id,)


_PROJECT = CommandField("project", "input", ("project",))
_RELEASE: tuple[FoundKind, ...] = ("release",)
_MODELS = ("oracle", "chance", "prior", "kitchen")
STEPS = (
    CommandStep(
        "mini",
        "No videos at hand? Make a kitchen",
        (CommandField("out", "new", value="kitchen"), CommandField("videos", "number", value="3")),
        makes="out",
    ),
    CommandStep(
        "start",
        "Start a project",
        (
            CommandField("project", "new", value="project"),
            CommandField("videos", "anywhere", ("videos", "release"), required=True),
            CommandField("vocabulary", "input", ("vocabulary",)),
            CommandField("propagator", "text", choices=("flow", "copy_nearest", "lucas_kanade"), open=True),
        ),
        makes="project",
        words=("annotate", "start"),
    ),
    CommandStep("stages", "Run the stages that are due", (_PROJECT,), makes="project", words=("annotate", "run")),
    CommandStep(
        "export",
        "Export scene graphs",
        (_PROJECT, CommandField("out", "new", value="graphs")),
        makes="out",
        words=("annotate", "export"),
    ),
    CommandStep("validate", "Validate a release", (CommandField("root", "input", _RELEASE),)),
    CommandStep(
        "generate",
        "Generate questions",
        (
            CommandField("source", "input", _RELEASE),
            CommandField("out", "new", value="generated"),
            CommandField("families", "text"),
            CommandField("per_subtask", "number"),
            CommandField("review", "input", ("review",)),
        ),
        makes="out",
    ),
    CommandStep(
        "build",
        "Build a dataset",
        (
            CommandField("source", "input", _RELEASE, required=True),
            CommandField("out", "new", value="data/barista", required=True),
            CommandField("benchmark", "text", choices=tuple(BENCHMARKS)),
            CommandField("videos", "input", _RELEASE),
            CommandField("sampling", "text"),
            CommandField("frames", "text", choices=("frozen", "linked")),
        ),
        makes="out",
    ),
    CommandStep(
        "run",
        "Run a model",
        (
            CommandField("data", "input", ("dataset",), required=True),
            CommandField("model", "text", choices=_MODELS, open=True, value="oracle"),
            CommandField("out", "new", value="runs/oracle", required=True),
            CommandField("task", "text", value="all"),
            CommandField("repetitions", "number"),
            CommandField("limit", "number"),
            CommandField("temperature", "number"),
        ),
        makes="out",
    ),
    CommandStep(
        "score",
        "Score runs",
        (CommandField("folders", "input", ("runs",)), CommandField("data", "input", ("dataset",))),
        makes="folders",
    ),
    CommandStep(
        "report",
        "Write the report",
        (CommandField("folders", "input", ("runs",)), CommandField("out", "new", value="report")),
    ),
    CommandStep(
        "evaluate",
        "All three in one go: run, score, report",
        (
            CommandField("data", "input", ("dataset",), required=True),
            CommandField("model", "text", choices=_MODELS, open=True, value="chance"),
            CommandField("out", "new", value="runs/chance", required=True),
            CommandField("task", "text", value="all"),
            CommandField("limit", "number"),
        ),
        makes="out",
    ),
)


@dataclass(frozen=True, slots=True)
class CommandCall:
    """Arguments of the command line, and the path that the studio can open afterwards."""

    step: CommandStep
    arguments: tuple[str, ...]
    makes: str

    @property
    def line(self) -> str:
        """The command as a person would type it in a shell."""
        return shlex.join((PROGRAM, *self.arguments))


class StartedCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A completed form: texts by the names of the fields."""

    step: str
    values: dict[str, str]


class CancelledJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    job: int


class OpenedFolder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A path in the studio's folder."""

    path: str


class CommandRoutes(Routes):
    """Requests to run commands in the studio's folder; the folder stays the same when other folders are opened.

    Args:
        program: the command group of the command line. Its options and help texts are shown on the page.
        folder: the folder where commands run. The paths in their arguments must be in this folder.
        reopen: function that opens one more folder in the studio.
    """

    def __init__(
        self,
        program: Any,  # noqa: ANN401  (a class of typer's that it does not export)
        folder: Path,
        jobs: Jobs,
        reopen: Callable[[Path], None],
    ) -> None:
        self.folder, self._jobs, self._reopen = folder, jobs, reopen
        self._parameters = {step.id: _parameters(program, step) for step in STEPS}
        self.reads = {
            "/api/commands": lambda query: self._forms(),
            "/api/command": self._preview,
            "/api/jobs": lambda query: {"jobs": jobs.rows()},
        }
        self.writes = {
            "/api/jobs/start": lambda body: self._start(sent_as(StartedCommand, body)),
            "/api/jobs/cancel": lambda body: self._cancel(sent_as(CancelledJob, body)),
            "/api/open": lambda body: self._open(sent_as(OpenedFolder, body)),
        }

    def _start(self, sent: StartedCommand) -> Json:
        call = self.call(sent.step, sent.values)
        return {"job": self._jobs.start(call.step.title, call.line, call.arguments, call.makes).number}

    def _cancel(self, sent: CancelledJob) -> Json:
        self._jobs.cancel(sent.job)
        return {}

    def _open(self, sent: OpenedFolder) -> Json:
        path = self.folder if sent.path == "." else confine(self.folder, sent.path)
        if not path.exists():
            raise DataError(f"there is no {sent.path!r} in {self.folder}. Fix: load the page again")
        self._reopen(path)
        return {}

    def _preview(self, query: Mapping[str, str]) -> Json:
        values = {name: value for name, value in query.items() if name != "step"}
        try:
            return {"line": self.call(query["step"], values).line, "problem": ""}
        except DataError as error:
            return {"line": "", "problem": str(error)}

    def _forms(self) -> Json:
        """Return the steps as forms, and the paths in the folder that a form can name."""
        steps = [{"id": step.id, "title": step.title, "fields": list(self._fields(step))} for step in STEPS]
        found = [{"kind": kind, "path": path} for kind, path in find_folders(self.folder)]
        return {"folder": str(self.folder), "steps": steps, "found": found}

    def _fields(self, step: CommandStep) -> Iterator[Json]:
        for field in step.fields:
            parameter = self._parameters[step.id][field.name]
            yield {
                **asdict(field),
                "flag": "" if _is_positional(parameter) else parameter.opts[0],
                "help": parameter.help or "",
                "required": field.required or bool(parameter.required),
            }

    def call(self, step_id: str, values: Mapping[str, str]) -> CommandCall:
        """Return the command of a completed form.

        Raises DataError for an unknown step or field, or a value that is not allowed.
        """
        step = next((step for step in STEPS if step.id == step_id), None)
        if step is None:
            raise DataError(f"{step_id[:40]!r}: the page may not run this command. Fix: load the page again")
        unknown = values.keys() - {field.name for field in step.fields}
        if unknown:
            raise DataError(f"{min(unknown)[:40]!r}: no option that the page offers. Fix: load the page again")
        positional: list[str] = []
        options: list[str] = []
        for field in step.fields:
            parameter = self._parameters[step.id][field.name]
            value = values.get(field.name, "").strip()
            if not value:
                if field.required or parameter.required:
                    raise DataError(f"{field.name.replace('_', ' ')}: is needed. Fix: fill it in")
                continue
            parts = value.split() if parameter.multiple else [value]
            for part in parts:
                self._check_value(field, part)
            if _is_positional(parameter):
                positional.append(value)
            else:
                options += [text for part in parts for text in (parameter.opts[0], part)]
        return CommandCall(step, (*step.command, *positional, *options), values.get(step.makes, "").strip())

    def _check_value(self, field: CommandField, value: str) -> None:
        name = field.name.replace("_", " ")
        if len(value) > _LONGEST or any(unicodedata.category(character)[0] == "C" for character in value):
            raise DataError(f"{name}: is too long, or contains invisible characters. Fix: type it again")
        if value.startswith("-"):
            raise DataError(f"{name}: {value!r} begins with a dash. Fix: give another name")
        if field.kind == "number" and not _NUMBER.fullmatch(value):
            raise DataError(f"{name}: {value!r} is not a number. Fix: give one from 0")
        if field.kind == "text":
            if field.choices and not field.open and value not in field.choices:
                raise DataError(f"{name}: {value!r} is none of {', '.join(field.choices)}. Fix: choose one")
            if _OUTSIDE.search(value):
                remedy = "put it into the folder and name it from there, or use the terminal"
                raise DataError(f"{name}: {value!r} leads out of the studio's folder. Fix: {remedy}")
        elif field.kind == "anywhere":
            refuse_tilde(value)
            if not (self.folder / value).is_dir():
                raise DataError(f"{name}: there is no folder {value!r}. Fix: name a folder of this machine")
        elif field.kind in ("input", "new"):
            path = path_below(self.folder, value)
            if field.kind == "input" and not path.exists():
                raise DataError(f"{name}: there is no {value!r} in {self.folder}. Fix: choose an existing one")


def refuse_tilde(path: str) -> None:
    """Raise DataError for a path with a tilde: without a shell, the tilde would be the name of a folder."""
    if path.startswith("~"):
        raise DataError(f"{path[:80]!r}: only a shell can expand ~. Fix: write the path out")


def path_below(folder: Path, *parts: str) -> Path:
    """Resolve a path in the studio's folder. Raises DataError if the path leads out of the folder."""
    refuse_tilde(parts[0])
    return confine(folder, *parts)


def _parameters(program: Any, step: CommandStep) -> Mapping[str, Any]:  # noqa: ANN401  (as above)
    command = program
    for word in step.command:
        command = command.commands[word]
    by_name = {parameter.name: parameter for parameter in command.params}
    return {field.name: by_name[field.name] for field in step.fields}


def _is_positional(parameter: Any) -> bool:  # noqa: ANN401  (as above)
    return not parameter.opts[0].startswith("-")
