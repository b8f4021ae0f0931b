"""Texts in Python source, read from its syntax tree alone: none of the code is ever run.

What is understood: string constants (also implicitly joined), `+`, f-strings, `"...".join` of a list display, and names
that were bound to such texts before, once. Whatever else stands in a text is a gap, which the caller names.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from barista_bench.errors import ConfigError
from barista_bench.files.reading import read_bounded

MAX_FILE = 2**20
MAX_TEXT = 2**18
REMEDY = "name a clone of the released repository as it was published"
GAP = "\0"
"""The mark in a text for a value that only running the code could tell."""

Texts: TypeAlias = Mapping[str, str]
"""Texts by name; a gap where a name is bound to something else."""
Node: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class SourceFile:
    """One file of a clone.

    Args:
        folder: the clone.
        name: path below it.

    Raises:
        ConfigError: the file is missing, too large, no Python, or holds a text that is too long.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        data = read_bounded(self.path, MAX_FILE, what="no file of the release", remedy=REMEDY, error=ConfigError)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of escapes that Python does not know: not ours to mend
                self._tree = ast.parse(data)
            self._values = dict(_bindings(self._tree.body))
            self._names = self._texts_of(self._values.items(), {})
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ConfigError(f"{self.path}: is not readable Python. Remedy: {REMEDY}") from error

    def constant(self, name: str) -> str:
        """A text of the module. Raises ConfigError unless there is one without gaps."""
        if name not in self._names:
            raise self.missing_error(name)
        return self.whole_text(self._names[name], name)

    def display(self, name: str) -> object:
        """A name's dicts, lists, texts with their gaps, and whole numbers. Raises ConfigError where it is not there."""
        if name not in self._values:
            raise self.missing_error(name)
        return self._display(self._values[name])

    def function(self, name: str) -> Function:
        """A function, or a method as `Class.method`. Raises ConfigError where it is not there."""
        owner, _, plain = name.rpartition(".")
        classes = [node for node in ast.walk(self._tree) if isinstance(node, ast.ClassDef) and node.name == owner]
        for root in classes if owner else [self._tree]:
            for node in ast.walk(root):
                if isinstance(node, Node) and node.name == plain:
                    return Function(self, node)
        raise self.missing_error(name)

    def whole_text(self, text: str, name: str) -> str:
        """A text without gaps. Raises ConfigError where it has any."""
        if GAP in text:
            raise ConfigError(f"{self.path}: {name} is more than text. Remedy: {REMEDY}")
        return text

    def missing_error(self, name: str) -> ConfigError:
        return ConfigError(f"{self.path}: has no {name}. Remedy: {REMEDY}")

    def template(self, node: ast.expr, names: Texts) -> str:
        """An expression's text, with a gap for whatever is none. Raises ConfigError where it is too long."""
        parts: list[ast.expr] = []
        between = ""
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id=name):
                return names.get(name, GAP)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                parts = [value]
            case ast.JoinedStr(values=values):
                parts = values
            case ast.BinOp(op=ast.Add()):
                parts = _summands(node)
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str(between)), attr="join"),
                args=[ast.List(elts=elements) | ast.Tuple(elts=elements)],
            ):
                parts = elements
            case _:
                return GAP
        texts = [self.template(part, names) for part in parts]
        if sum(map(len, texts)) + len(between) * len(texts) > MAX_TEXT:
            raise ConfigError(f"{self.path}: line {node.lineno}: is too long. Remedy: {REMEDY}")
        return between.join(texts)

    def texts_in(self, root: ast.AST, names: Texts) -> Iterator[str]:
        """All texts below a node, in the order of the source, without keys of dicts and what is compared."""
        nodes = [root]
        while nodes:
            match node := nodes.pop():
                case ast.Constant(value=str()) | ast.Name() | ast.JoinedStr() | ast.BinOp():
                    yield self.template(node, names)
                case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="join")):
                    yield self.template(node, names)
                case ast.Dict(values=values):
                    nodes += reversed(values)
                case _ if not isinstance(node, ast.Compare):
                    nodes += reversed([*ast.iter_child_nodes(node)])

    def names_within(self, function: Node) -> Texts:
        """The texts of a function's names: gaps for its parameters and for names that it binds more than once."""
        stored_names = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        gaps = [name for name, count in Counter(stored_names).items() if count > 1]
        gaps += [node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)]
        single_bindings = (item for item in bindings(function) if item[0] not in gaps)
        return self._texts_of(single_bindings, {**self._names, **dict.fromkeys([*stored_names, *gaps], GAP)})

    def _texts_of(self, bindings_read: Iterable[tuple[str, ast.expr]], outer_names: Texts) -> Texts:
        names = dict(outer_names)
        for name, value in bindings_read:
            names[name] = self.template(value, names)
        return names

    def _display(self, node: ast.expr) -> object:
        match node:
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return {self._display(key): self._display(item) for key, item in zip(keys, values, strict=True) if key}
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [self._display(element) for element in elements]
            case ast.Constant(value=int(number)) if not isinstance(number, bool):
                return number
        return self.template(node, self._names)


class Function:
    """A function of a file, and the texts in it."""

    def __init__(self, source: SourceFile, node: Node) -> None:
        self._source, self._node = source, node
        self._names = source.names_within(node)

    def assigned_texts(self, name: str, count: int = 1) -> list[str]:
        """The `count` texts that a name is bound to, in the order of the source; both ends of a choice.

        Raises ConfigError where it is bound more often, or less.
        """
        return [self._source.template(value, self._names) for value in self._assigned_values(name, count)]

    def list_texts(self, name: str) -> list[str]:
        """The texts of the list that a name is bound to. Raises ConfigError where it is none."""
        (value,) = self._assigned_values(name, 1)
        if not isinstance(value, ast.List):
            raise self._source.missing_error(f"list {name}")
        return [self._source.template(element, self._names) for element in value.elts]

    def returned_texts(self) -> list[list[str]]:
        """The texts of each value that it returns."""
        values = [node.value for node in ast.walk(self._node) if isinstance(node, ast.Return) and node.value]
        return [list(self._source.texts_in(value, self._names)) for value in values]

    def returned_list(self, count: int) -> list[str]:
        """The `count` texts with white space of a list that it returns. Raises ConfigError where none has as many."""
        for texts in self.returned_texts():
            spaced = [text for text in texts if " " in text]
            if len(spaced) == count:
                return spaced
        problem = f"{self._node.name} returns no list with {count} texts"
        raise ConfigError(f"{self._source.path}: {problem}. Remedy: {REMEDY}")

    def texts(self) -> list[str]:
        """All its texts but the docstring."""
        body = self._node.body[1:] if ast.get_docstring(self._node, clean=False) is not None else self._node.body
        return [text for node in body for text in self._source.texts_in(node, self._names)]

    def _assigned_values(self, name: str, count: int) -> list[ast.expr]:
        values = [value for target, value in bindings(self._node) if target == name]
        ends = [[value.body, value.orelse] if isinstance(value, ast.IfExp) else [value] for value in values]
        if len(branches := [value for pair in ends for value in pair]) != count:
            raise self._source.missing_error(f"{name} that is set {'once' if count == 1 else f'{count} times'}")
        return branches


def _summands(node: ast.expr) -> list[ast.expr]:
    """The parts of a sum from left to right, however many."""
    parts = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts.append(node.right)
        node = node.left
    return [node, *reversed(parts)]


def bindings(function: Node) -> list[tuple[str, ast.expr]]:
    """The names that a function binds and their values, in the order of the source."""
    return sorted(_bindings(ast.walk(function)), key=lambda item: (item[1].lineno, item[1].col_offset))


def _bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
