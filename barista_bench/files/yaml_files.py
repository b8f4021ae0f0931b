"""YAML that people write: plain values, each name once, no aliases, of bounded size."""

from __future__ import annotations

from typing import Any

import yaml

from barista_bench.errors import BaristaError, ConfigError

try:  # several times as fast, and absent where PyYAML was built without libyaml
    from yaml import CBaseLoader as _BaseLoader
except ImportError:
    from yaml import BaseLoader as _BaseLoader  # type: ignore[assignment]

MAX_BYTES = 2**20
"""Of one file."""
_MAX_DIGITS = 400
"""Characters of one number: far above every number that a setting can hold."""
_MAX_SHOWN = 200
"""Characters of what a parser says that an error shows."""
_MAX_NAME = 100
"""Likewise of a name."""


def load_yaml(
    data: bytes | str,
    where: str,
    *,
    error: type[BaristaError] = ConfigError,
    remedy: str = "correct that line",
    text_only: bool = False,
) -> object:
    """The content of one YAML document; None for an empty one.

    Args:
        data: the document, UTF-8 or UTF-16 (with its mark) where it is bytes.
        where: what errors call it, such as a path.
        error: what is raised.
        remedy: what errors advise.
        text_only: leave every scalar as text: `on`, `no` and `1` stay what they are. Tags then say nothing.

    Raises:
        BaristaError: of the kind `error`. It is larger than `MAX_BYTES`, no YAML, nested too deeply, holds an alias, a
            name that stands twice in one mapping, a number of more than 400 characters or a tag that makes objects.
            Names the line and shows nothing of its text but such a name.
    """
    if len(data) > MAX_BYTES:
        raise error(f"{where}: has {len(data)} bytes, more than {MAX_BYTES}. Remedy: give the file that is meant")
    try:
        return yaml.load(data, Loader=_TextLoader if text_only else _PlainLoader)  # noqa: S506  (neither makes objects)
    # Beside YAMLError, PyYAML raises what values raise that do not fit their tag, such as a date in month 13.
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError, OverflowError) as raised:
        raise error(f"{where}: is no YAML that is read here ({_cause(raised)}). Remedy: {remedy}") from raised


class _StrictLoader(yaml.composer.Composer, yaml.constructor.BaseConstructor):
    """Refuses repeated names, and aliases, since a few lines of them can spell gigabytes.

    Composes in Python over the events of either parser: libyaml's composer crashes on deep nesting.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        # Events are the parser's, which subclasses bring.
        if self.check_event(yaml.AliasEvent):  # type: ignore[attr-defined]
            problem = "aliases (*name) are not read: write the value out"
            mark = self.peek_event().start_mark  # type: ignore[attr-defined]
            raise yaml.composer.ComposerError(None, None, problem, mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                problem = f"{key.value[:_MAX_NAME]!r} stands here twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class _TextLoader(_StrictLoader, _BaseLoader):
    """Lists, mappings and text."""

    def __init__(self, stream: bytes | str) -> None:
        yaml.composer.Composer.__init__(self)
        _BaseLoader.__init__(self, stream)


class _PlainLoader(_StrictLoader, yaml.SafeLoader):
    """Refuses long numbers, since Python's integers take time in the square of their digits."""

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        if len(node.value) > _MAX_DIGITS:
            problem = f"a number of {len(node.value)} characters"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        is_integer = node.tag == "tag:yaml.org,2002:int"
        return self.construct_yaml_int(node) if is_integer else self.construct_yaml_float(node)


_PlainLoader.add_constructor("tag:yaml.org,2002:int", _PlainLoader.construct_number)
_PlainLoader.add_constructor("tag:yaml.org,2002:float", _PlainLoader.construct_number)


def _cause(raised: Exception) -> str:
    """One line, without the excerpt that PyYAML shows: it may hold a secret."""
    if isinstance(raised, yaml.MarkedYAMLError):
        problem = " ".join((raised.problem or "").split())[:_MAX_SHOWN]
        return f"line {raised.problem_mark.line + 1}: {problem}" if raised.problem_mark else problem
    if isinstance(raised, RecursionError):
        return "nested too deeply"
    return " ".join(str(raised).split())[:_MAX_SHOWN] or type(raised).__name__
