"""Texts in Python source, read from its syntax tree alone: none of the code is ever run.

What is understood: string constants (also implicitly joined), `+`, f-strings, `"...".join` of a list display, names of
the module and of a function that are bound once, and displays of lists and dicts. Whatever else stands in a text is a
gap, which the caller names.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from barista_bench.errors import ConfigError
from barista_bench.files.reading import read_bounded

MAX_FILE = 2**20
MAX_WORK = 2**18
"""Characters and parts that one text is made of at the most."""
REMEDY = "name a clone of the released repository as it was published"

Pieces: TypeAlias = list[str | None]
"""A text in order; None is a gap: a value that only running the code could tell."""
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Scope: TypeAlias = Mapping[str, ast.expr]


class SourceFile:
    """One file of a clone.

    Args:
        folder: the clone.
        name: path below it.
        calls: what calls of these functions give, by name: they are texts then, and no gaps.

    Raises:
        ConfigError: the file is missing, too large, or no Python.
    """

    def __init__(self, folder: Path, name: str, calls: Mapping[str, str] | None = None) -> None:
        self.path = folder / name
        self._calls = calls or {}
        self._left = MAX_WORK
        data = read_bounded(self.path, MAX_FILE, what="no file of the release", remedy=REMEDY, error=ConfigError)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of escapes that Python does not know: not ours to mend
                self._tree = ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ConfigError(f"{self.path}: is no Python that can be read. Remedy: {REMEDY}") from error

    def text(self, name: str) -> str:
        """A constant of the module. Raises ConfigError unless there is one, and all of it is text."""
        return self.closed(self.pieces(self.constant(name)), name)

    def constant(self, name: str) -> ast.expr:
        """The value of a name of the module. Raises ConfigError where it is not there."""
        if name not in self._names:
            raise self.lacks(name)
        return self._names[name]

    def function(self, name: str) -> Function:
        """A function, or a method as `Class.method`. Raises ConfigError where it is not there."""
        owner, _, plain = name.rpartition(".")
        roots = [node for node in ast.walk(self._tree) if isinstance(node, ast.ClassDef) and node.name == owner]
        for root in roots if owner else [self._tree]:
            for node in ast.walk(root):
                if isinstance(node, Function) and node.name == plain:
                    return node
        raise self.lacks(name)

    def assigned(self, function: Function, name: str) -> list[ast.expr]:
        """The values of a name in a function, in the order of the source; both ends of a choice."""
        values = []
        for target, value in sorted(_bindings(function), key=lambda item: (item[1].lineno, item[1].col_offset)):
            if target == name:
                values += [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
        return values

    def pieces(self, node: ast.expr, function: Function | None = None) -> Pieces:
        """A text and its gaps, touching texts joined. Raises ConfigError where it is too long or too deep."""
        with self._bounded(node):
            pieces = self._pieces(node, _scope(function) if function else {})
        runs = groupby(pieces, lambda piece: piece is None)
        return [piece for is_gap, run in runs for piece in (run if is_gap else ["".join(map(str, run))])]

    def returned(self, function: Function, count: int) -> list[Pieces]:
        """The `count` texts that the list which a function returns shows: those with white space in them.

        Raises:
            ConfigError: no list has as many.
        """
        scope = _scope(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                with self._bounded(node):
                    texts = list(self._texts(node.value, scope))
                candidates = [self.pieces(text, function) for text in texts]
                shown = [pieces for pieces in candidates if any(" " in piece for piece in pieces if piece)]
                if len(shown) == count:
                    return shown
        raise ConfigError(f"{self.path}: {function.name} returns no list with {count} texts. Remedy: {REMEDY}")

    def listed(self, node: ast.expr, function: Function) -> list[Pieces]:
        """The texts of a list display. Raises ConfigError where it is none."""
        if not isinstance(node, ast.List):
            raise self.error(node, "is no list")
        return [self.pieces(element, function) for element in node.elts]

    def constants(self, function: Function, *, returned: bool = False) -> list[str]:
        """The string constants of a function, or those that it returns: not its docstring, no parts of f-strings."""
        body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
        roots: list[ast.AST] = list(body)
        if returned:
            roots = [node for root in body for node in ast.walk(root) if isinstance(node, ast.Return)]
        return [text for root in roots for text in _strings(root)]

    def value(self, node: ast.expr) -> object:
        """A display of dicts, lists, texts and whole numbers. Raises ConfigError where it holds anything else."""
        match node:
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return {self.value(key): self.value(item) for key, item in zip(keys, values, strict=True) if key}
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [self.value(element) for element in elements]
            case ast.Constant(value=int(number)) if not isinstance(number, bool):
                return number
        return self.closed(self.pieces(node), "a value of it")

    def closed(self, pieces: Pieces, name: str) -> str:
        """A text without gaps. Raises ConfigError where it has any."""
        if None in pieces:
            raise ConfigError(f"{self.path}: {name} is more than text. Remedy: {REMEDY}")
        return "".join(piece for piece in pieces if piece)

    def error(self, node: ast.AST, what: str) -> ConfigError:
        return ConfigError(f"{self.path}: line {getattr(node, 'lineno', 0)}: {what}. Remedy: {REMEDY}")

    def lacks(self, name: str) -> ConfigError:
        return ConfigError(f"{self.path}: has no {name}. Remedy: {REMEDY}")

    @cached_property
    def _names(self) -> dict[str, ast.expr]:
        return {target: value for node in self._tree.body for target, value in _bound_by(node)}

    @contextmanager
    def _bounded(self, node: ast.AST) -> Iterator[None]:
        """For what follows names: they may name each other, and each may double the other."""
        self._left = MAX_WORK
        try:
            yield
        except RecursionError as error:
            raise self.error(node, "nests too deeply") from error

    def _spend(self, node: ast.AST, work: int = 1) -> None:
        self._left -= work
        if self._left < 0:
            raise self.error(node, "is too long")

    def _pieces(self, node: ast.expr, scope: Scope) -> Pieces:
        self._spend(node)
        match node:
            case ast.Constant(value=str(text)):
                self._spend(node, len(text))
                return [text]
            case ast.JoinedStr(values=values):
                return [piece for value in values for piece in self._pieces(value, scope)]
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self._pieces(value, scope)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._pieces(left, scope) + self._pieces(right, scope)
            case ast.Name(id=name) if name in scope:
                return self._pieces(scope[name], scope)
            case ast.Name(id=name) if name in self._names:
                return self._pieces(self._names[name], {})
            case ast.Call(func=ast.Name(id=name)) if name in self._calls:
                return [self._calls[name]]
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str(between)), attr="join"),
                args=[ast.List(elts=elements) | ast.Tuple(elts=elements)],
            ):
                joined: Pieces = []
                for index, element in enumerate(elements):
                    joined += [between] if index else []
                    joined += self._pieces(element, scope)
                return joined
        return [None]

    def _texts(self, node: ast.AST, scope: Scope) -> Iterator[ast.expr]:
        """The expressions of text in a display, in the order of the source; keys of dicts are none."""
        self._spend(node)
        match node:
            case ast.Constant(value=str()) | ast.JoinedStr() | ast.BinOp():
                assert isinstance(node, ast.expr)
                yield node
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="join")):
                yield node
            case ast.Name(id=name) if name in scope:
                yield from self._texts(scope[name], scope)
            case ast.Name(id=name) if name in self._names:
                yield node
            case ast.Dict(values=values):
                for value in values:
                    yield from self._texts(value, scope)
            case _:
                for child in ast.iter_child_nodes(node):
                    yield from self._texts(child, scope)


def _strings(node: ast.AST) -> Iterator[str]:
    """The string constants below a node but those in f-strings and in conditions, in the order of the source."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr() | ast.Compare():
            return
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _strings(child)


def _bound_by(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The name that one statement binds, and to what."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value


def _bindings(function: Function) -> list[tuple[str, ast.expr]]:
    return [bound for node in ast.walk(function) for bound in _bound_by(node)]


def _scope(function: Function) -> dict[str, ast.expr]:
    """The names that a function binds once and never changes; its parameters stand for gaps."""
    bindings = _bindings(function)
    stores = Counter(
        node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    arguments = function.args
    gaps = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    unknown = ast.Constant(value=None)
    changed = {name: unknown for name, count in stores.items() if count > 1}
    return dict(bindings) | changed | dict.fromkeys(gaps, unknown)
