"""Handle untrusted files: paths that stay inside a folder, and reading within bounds.

Names and paths come from annotations, archives and listings. No function holds more of a file in memory than its caller
allows. `bounded_bytes` and `bounded_lines` raise OSError, even for files that are too large, since their callers log
skipped files. The other functions raise errors of this package, which name the file and the remedy. A pydantic schema
can check JSON. YAML is for text written by people: values are plain, names do not repeat, and aliases are not allowed.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from barista_bench.errors import BaristaError, ConfigError, DataError

try:  # several times as fast, but missing if PyYAML was built without libyaml
    from yaml import CBaseLoader as _BaseLoader, CSafeLoader as _SafeLoader
except ImportError:
    from yaml import BaseLoader as _BaseLoader, SafeLoader as _SafeLoader  # type: ignore[assignment]

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)

MAX_JSON = 256 * 2**20
"""Maximum number of bytes of a JSON file that a schema describes. The largest files contain the scores of a thousand
runs.
"""
MAX_YAML = 2**20
"""Maximum number of bytes of one YAML file."""
_MAX_DIGITS = 400
"""Maximum number of characters of one number: far more than any setting needs."""
_MAX_SHOWN = 200
"""Maximum number of characters of a parser's message that an error shows."""
_MAX_NAME = 100
"""Maximum number of characters of a name that an error shows."""


def read_bounded(
    path: str | Path, most: int, *, what: str = "cannot be read", remedy: str, error: type[BaristaError] = DataError
) -> bytes:
    """Return a file's bytes, if there are at most `most`.

    Args:
        what: text of errors for a file that is missing or larger, such as `no rubric file`.
        remedy: advice in errors.
        error: type of the error.

    Raises:
        BaristaError: of the type `error`, if the file cannot be read or is larger.
    """
    try:
        return bounded_bytes(path, most)
    except OSError as raised:
        raise error(f"{path}: {what} ({raised.strerror}). Fix: {remedy}") from raised


def as_utf8(content: bytes, where: str) -> bytes:
    """Return the bytes of a text file without UTF-8's byte order mark.

    Raises:
        DataError: the file is compressed, or in UTF-16. The message names the format and how to write the file.
    """
    refuse_packed(content, where)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{where}: is UTF-16 text. Fix: save it as UTF-8")
    return content.removeprefix(b"\xef\xbb\xbf")


def refuse_packed(content: bytes, where: str) -> None:
    """Raise DataError for a compressed file or an archive."""
    for mark, kind, remedy in (
        (b"\x1f\x8b", "compressed (gzip)", "unpack it first: gunzip FILE"),
        (b"PK\x03\x04", "a ZIP archive", "unpack it first: unzip FILE"),
    ):
        if content.startswith(mark):
            raise DataError(f"{where}: is {kind}. Fix: {remedy}")


def read_bounded_text(
    path: str | Path, most: int, *, what: str = "cannot be read", remedy: str, encoding: str = "utf-8"
) -> str:
    """Return a file's text. Raises DataError as `read_bounded` does, and also for bytes of another encoding."""
    try:
        return read_bounded(path, most, what=what, remedy=remedy).decode(encoding)
    except UnicodeDecodeError as raised:
        raise DataError(f"{path}: {what} (is not UTF-8: {raised.reason}). Fix: {remedy}") from raised


def json_value(text: str, otherwise: object = None) -> Any:  # noqa: ANN401  # as `json.loads`
    """Return the JSON value of an untrusted text; `otherwise` if the text is not JSON or is nested too deeply."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise


def read_bounded_json(path: str | Path, most: int, *, what: str = "cannot be read", remedy: str) -> object:
    """Return a file's JSON value. Raises DataError as `read_bounded` does, and also for invalid JSON."""
    content = read_bounded(path, most, what=what, remedy=remedy)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as raised:
        raise DataError(f"{path}: {what} ({raised}). Fix: {remedy}") from raised


def read_json_lines(
    path: str | Path, most: int, decode: Callable[[bytes], T], *, what: str, remedy: str
) -> Iterator[tuple[int, T]]:
    """Yield the line number, from 1, and the record of each line that is not blank.

    Args:
        most: maximum number of bytes of a line.
        decode: makes a record of a line, or raises ValueError, TypeError, KeyError or RecursionError.
        what: text of errors, such as `no frozen example`.
        remedy: advice in errors.

    Raises:
        DataError: the file cannot be read, a line is longer, or `decode` rejects a line. The error names the line.
    """
    try:
        for number, line in bounded_lines(path, most):
            try:
                record = decode(line)
            except (ValueError, TypeError, KeyError, RecursionError) as raised:
                raise DataError(f"{path}: line {number}: {what} ({raised}). Fix: {remedy}") from raised
            yield number, record
    except OSError as raised:
        raise DataError(f"{path}: {what} ({raised.strerror}). Fix: {remedy}") from raised


def bounded_bytes(path: str | Path, most: int) -> bytes:
    """Return a file's bytes. Raises OSError, with EFBIG for a file of more than `most` bytes."""
    with Path(path).open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise _too_large(path, f"is larger than {most} bytes")
    return content


def bounded_lines(
    path: str | Path, most: int, *, overlong: Literal["refuse", "cut"] = "refuse", max_file: int | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield the line number, from 1, and the content of each line that is not blank. Only one line is in memory.

    Args:
        most: maximum number of bytes of a line, including the line end.
        overlong: how a longer line is handled. It is an error, or is cut to its first `most + 1` bytes, so that callers
            can detect it by the length.
        max_file: maximum number of bytes of the file, if there is a limit.

    Raises:
        OSError: EFBIG for a file or line that is too large.
    """
    with Path(path).open("rb") as file:
        if max_file is not None and os.fstat(file.fileno()).st_size > max_file:
            raise _too_large(path, f"is larger than {max_file} bytes")
        number = 0
        while line := file.readline(most + 1):
            number += 1
            if len(line) > most and overlong == "refuse":
                raise _too_large(path, f"line {number} is longer than {most} bytes")
            line_end = line
            while line_end and not line_end.endswith(b"\n"):
                line_end = file.readline(most)
            if line.strip():
                yield number, line


def _too_large(path: str | Path, problem: str) -> OSError:
    return OSError(errno.EFBIG, problem, str(path))


_MOST = 10**24
Count: TypeAlias = Annotated[int, Field(ge=0, le=_MOST)]
Amount: TypeAlias = Annotated[float, Field(ge=0, le=_MOST)]


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds control characters")
    return text


Line: TypeAlias = Annotated[str, StringConstraints(max_length=500), AfterValidator(_one_line)]
"""A text that is shown in one cell."""


class Strict(BaseModel):
    """A schema that refuses unknown fields and numbers that are not finite."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


def read_model(path: str | Path, schema: type[Model], *, what: str, remedy: str) -> Model:
    """Read a JSON file as `schema`.

    Args:
        what: text of errors for a file that is missing or too large, such as `no results here`.
        remedy: advice in errors.

    Raises:
        DataError: the file is missing, is too large, or breaks the schema. The error names the field.
    """
    content = read_bounded(path, MAX_JSON, what=what, remedy=remedy)
    try:
        return schema.model_validate_json(content)
    except ValidationError as error:
        raise DataError(f"{path}: {first_complaint(error)}. Fix: {remedy}") from error


def first_complaint(error: ValidationError) -> str:
    """Return `field: what is wrong` for the first error.

    >>> try:
    ...     Strict.model_validate({"length": 1})
    ... except ValidationError as error:
    ...     print(first_complaint(error))
    length: Extra inputs are not permitted
    """
    complaint = error.errors(include_url=False, include_context=False, include_input=False)[0]
    # Names of fields may come from the file and have any length.
    field = ".".join(map(str, complaint["loc"]))[:200] or "the whole"
    return f"{field}: {complaint['msg']}"


def load_yaml(
    document: bytes | str,
    where: str,
    *,
    error: type[BaristaError] = ConfigError,
    remedy: str = "correct that line",
    text_only: bool = False,
) -> object:
    """Return the content of one YAML document; None for an empty document.

    Args:
        document: text, or bytes in UTF-8 or UTF-16 (with its mark).
        where: name of the document in errors, such as a path.
        error: type of the error.
        remedy: advice in errors.
        text_only: read every scalar as text, so that `on`, `no` and `1` stay unchanged. Tags are then ignored.

    Raises:
        BaristaError: of the type `error`. The document is larger than `MAX_YAML`, not YAML or nested too deeply, or it
        contains an alias, a name that appears twice in one mapping, a number of more than 400 characters or a tag that
        makes objects. The message gives the line, but no text of the document except a repeated name.
    """
    if len(document) > MAX_YAML:
        raise error(f"{where}: has {len(document)} bytes, more than {MAX_YAML}. Fix: give the file that is meant")
    try:
        return yaml.load(document, Loader=_TextLoader if text_only else PlainLoader)  # noqa: S506  (neither makes objects)
    # Beside YAMLError, PyYAML raises the errors of values that do not fit their tag, such as a date in month 13.
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError, OverflowError) as raised:
        raise error(f"{where}: is not YAML that is read here ({_cause(raised)}). Fix: {remedy}") from raised


def packaged_data(package: str, name: str) -> object:
    """Return the content of a YAML file of a package. Every scalar is read as text."""
    document = resources.files(package).joinpath(name).read_bytes()
    return load_yaml(document, name, text_only=True)


class _StrictLoader(yaml.composer.Composer, yaml.constructor.BaseConstructor):
    """A loader that refuses repeated names and aliases. A few lines of aliases can expand to gigabytes.

    The loader composes in Python, from the events of either parser, since libyaml's composer crashes on deep nesting.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        # Events come from the parser, which subclasses add.
        if self.check_event(yaml.AliasEvent):  # type: ignore[attr-defined]
            problem = "aliases (*name) are not read: write the value out"
            mark = self.peek_event().start_mark  # type: ignore[attr-defined]
            raise yaml.composer.ComposerError(None, None, problem, mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in names:
                problem = f"{key.value[:_MAX_NAME]!r} appears here twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            names.add(key.value)
        return super().construct_mapping(node, deep)


class _TextLoader(_StrictLoader, _BaseLoader):
    """A loader of lists, mappings and text."""

    def __init__(self, stream: bytes | str) -> None:
        yaml.composer.Composer.__init__(self)
        _BaseLoader.__init__(self, stream)


class PlainLoader(_StrictLoader, _SafeLoader):
    """A loader that refuses long numbers, since Python needs time quadratic in the number of digits."""

    def __init__(self, stream: bytes | str) -> None:
        yaml.composer.Composer.__init__(self)
        _SafeLoader.__init__(self, stream)

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        if len(node.value) > _MAX_DIGITS:
            problem = f"a number of {len(node.value)} characters"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        is_integer = node.tag == "tag:yaml.org,2002:int"
        return self.construct_yaml_int(node) if is_integer else self.construct_yaml_float(node)


PlainLoader.add_constructor("tag:yaml.org,2002:int", PlainLoader.construct_number)
PlainLoader.add_constructor("tag:yaml.org,2002:float", PlainLoader.construct_number)


def _cause(raised: Exception) -> str:
    """Return the cause in one line, without PyYAML's excerpt, which may contain a secret."""
    if isinstance(raised, yaml.MarkedYAMLError):
        problem = " ".join((raised.problem or "").split())[:_MAX_SHOWN]
        return f"line {raised.problem_mark.line + 1}: {problem}" if raised.problem_mark else problem
    if isinstance(raised, RecursionError):
        return "nested too deeply"
    return " ".join(str(raised).split())[:_MAX_SHOWN] or type(raised).__name__
