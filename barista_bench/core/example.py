"""Define questions and answers: Example and Prediction, the typed columns of a question, and answers as scores.

An example reads from left to right. `inputs` is all that the model and the parser may see, and `target` is the
reference. `metadata` has the keys of analysis, and `evidence` refers to the scene graph. Each of these columns is
declared once, as a `TypedFields`. This declaration defines the checks, the types and the `datasets` features.

Models that score given texts answer `{"scores": {"A": 0.31, "B": 0.27}}`, with a finite number for each of
`Task.choices`.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from barista_bench.errors import DataError

if TYPE_CHECKING:
    from datasets import Features

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Fields: TypeAlias = dict[str, "Json"]
ValueT = TypeVar("ValueT")
ArgsT = ParamSpec("ArgsT")
MAX_TEXT = 2**20
"""Maximum number of characters of an answer that are read."""
_DTYPES = {int: "int32", float: "float64", str: "string", bool: "bool"}


@dataclass(frozen=True, slots=True)
class FrameRef:
    """One frame of one video; `frame_index` counts from 0."""

    video_id: str
    frame_index: int


@dataclass(frozen=True, slots=True)
class Example:
    """One complete question. It holds only JSON values, so that every format stores it without loss."""

    example_id: str
    benchmark: str
    task: str
    label: str
    frames: tuple[FrameRef, ...]
    inputs: Fields
    target: Fields
    metadata: Fields = field(default_factory=dict)
    evidence: Fields = field(default_factory=dict)
    cache: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Values computed once from the example (`core/remembering.py`). They are neither copied nor sent to other
    processes.
    """

    def __reduce__(self) -> tuple[type[Example], tuple[object, ...]]:
        return Example, tuple(getattr(self, each.name) for each in fields(self) if each.init)

    @property
    def video_id(self) -> str:
        return self.frames[0].video_id


@dataclass(frozen=True, slots=True)
class ParseError:
    """An answer that could not be read. Not an exception: a model that answers badly is an outcome to count."""

    reason: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """A parsed answer. `dropped` counts entries of the answer that the task's rules left out as invalid."""

    value: Fields
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Scored:
    """One sample as a metric sees it: `prediction` is None if there is no readable answer."""

    example: Example
    prediction: Prediction | None


@dataclass(frozen=True, slots=True)
class SkippedExample:
    """A candidate that could not become an example, and the reason. Skipped examples are counted and reported.

    Args:
        frame: the candidate's first frame, if known.
        reason: the reason, in the same words for all examples with this reason.
        about: the candidate's name in the release's file, if it has one.
    """

    frame: FrameRef
    reason: str
    about: str = ""

    @property
    def text(self) -> str:
        """Return the skipped example and the reason as text."""
        return f"{self.about}: {self.reason}" if self.about else self.reason


def evidence_objects(example: Example) -> tuple[str, ...]:
    """Return the ids of the annotated objects that an example is about. Without objects in its evidence, the result is
    empty.

    If the example was generated from a scene graph, the ids are ids of that graph (`GraphEvidence`).
    """
    graph = example.evidence.get("graph")
    ids = (graph if isinstance(graph, dict) else example.evidence).get("object_ids")
    return tuple(str(name) for name in ids if name) if isinstance(ids, list | tuple) else ()


FACT_ROWS = {
    "relation_rows": "relation",
    "attribute_rows": "attribute",
    "activity_rows": "activity",
    "activity_row": "activity",
}
"""Evidence of examples made from a graph: the field with rows of the annotation file, and their kind."""


class GraphSpan(NamedTuple):
    """The moment of an example in its graph: the first and the last frame that it is about."""

    video_id: str
    first: int
    last: int


def graph_span(example: Example) -> GraphSpan:
    """Return the moment of an example, by the graph it was generated from, else by its own frames."""
    graph = example.evidence.get("graph")
    if isinstance(graph, dict):
        return GraphSpan(graph["video_id"], graph["frames"][0], graph["frames"][-1])
    frames = [frame.frame_index for frame in example.frames]
    return GraphSpan(example.video_id, min(frames), max(frames))


def graph_facts(example: Example) -> tuple[str, ...]:
    """Return the facts of the graph that an example asks: kind and row of the annotation file."""
    facts = example.evidence.get("facts")
    if isinstance(facts, list | tuple):
        return tuple(map(str, facts))
    rows = {kind: example.evidence.get(field) for field, kind in FACT_ROWS.items() if field in example.evidence}
    return tuple(
        f"{kind}:{row}" for kind, value in rows.items() for row in (value if isinstance(value, list) else [value])
    )


def content_seed(*parts: str | int) -> int:
    """Return a 63-bit seed made from content. The seed is the same on every machine and in every order of work."""
    digest = hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


Int64 = Annotated[int, msgspec.Meta(extra={"dtype": "int64"})]
"""A whole number that may exceed 32 bits. Plain `int` is an int32 column."""
PixelBox = Annotated[list[float], msgspec.Meta(min_length=4, max_length=4)]
"""Four numbers; the field's own documentation defines their order and unit."""
GridBox = Annotated[list[int], msgspec.Meta(min_length=4, max_length=4)]
"""Four whole numbers on the release's grid."""


_FIRST_READ = threading.Lock()
_PREPARED_TYPES: set[type[TypedFields]] = set()


class TypedFields(msgspec.Struct):
    """The fields of one column of an example, or of records inside a column.

    Reading drops fields that the class does not declare.
    """

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Return the checked fields.

        Raises:
            DataError: a field is missing or has another type. A dataset may come from anywhere.
        """
        if cls not in _PREPARED_TYPES:
            with _FIRST_READ:  # msgspec crashes the process if two threads are the first to use a type
                msgspec.json.Decoder(cls)
                _PREPARED_TYPES.add(cls)
        try:
            return msgspec.convert(fields, cls)
        except msgspec.ValidationError as error:
            raise DataError(f"an example's {cls.__name__}: {error}. Fix: build the dataset again") from error

    def write(self) -> dict[str, Any]:
        """Return the fields as JSON values, in the order of declaration."""
        return msgspec.to_builtins(self)


class _Column(TypedFields):
    """The fields of a complete column."""

    column: ClassVar[Literal["inputs", "target", "metadata", "evidence"]]

    @classmethod
    def of(cls, example: Example) -> Self:
        """Return the column of an example. It is read once and cached, so callers must not change it.

        Raises:
            DataError: as `read`.
        """
        if cls not in example.cache:
            example.cache[cls] = cls.read(getattr(example, cls.column))
        column: Self = example.cache[cls]
        return column


class Inputs(_Column):
    """The part of an example that a model and a parser may see."""

    column = "inputs"


class Target(_Column):
    """The part of an example that answers are compared with."""

    column = "target"


class Metadata(_Column):
    """The keys that analysis groups by."""

    column = "metadata"


class Evidence(_Column):
    """The rows of the scene graph that an example comes from."""

    column = "evidence"


class GraphEvidence(TypedFields):
    """The part of a scene graph that a question was generated from, in the same form for all benchmarks.

    Attributes:
        video_id: the graph's video.
        frames: frames of that video that the question is about, ascending; for a span, its first and last frame.
        object_ids: ids of `graph_instances`. The objects that the question asks about come first.
    """

    video_id: str
    frames: list[Int64]
    object_ids: list[str]


class Visibility(TypedFields):
    """How well the objects of a question can be seen; unknown values are None.

    Attributes:
        area: fraction of the frame, 0 to 1, that the box of an object covers at the moments asked about. The smallest
            box counts.
        seconds: seconds in the shown frames for which an object is visible. The object with the shortest time counts.
        hidden: fraction of an object's median mask area that is missing at the moments asked about, 0 to 1. The largest
            fraction counts.
    """

    area: float | None
    seconds: float | None
    hidden: float | None


class GraphRow(TypedFields):
    """The graph evidence of one example: see `TracedEvidence`."""

    graph: GraphEvidence
    visibility: Visibility
    facts: list[str]


class TracedEvidence(Evidence, kw_only=True):
    """Evidence with the part of a scene graph that the question was generated from.

    That part is None for all other questions. `facts` are rows of the annotation file that the right answer states:
    `relation:12`, `attribute:3`, `activity:0`.
    """

    graph: GraphEvidence | None = None
    visibility: Visibility | None = None
    facts: list[str] | None = None


def features_of(kind: type[TypedFields]) -> Features:
    """Return the `datasets` features of a column.

    >>> class Inputs(TypedFields): boxes: list[PixelBox]; row: Int64
    >>> features_of(Inputs)["row"]
    Value('int64')
    """
    from datasets import Features

    return Features({name: _feature(hint) for name, hint in field_types(kind).items()})


def field_types(kind: type[TypedFields]) -> dict[str, Any]:
    """Return each field's type, with its annotations."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hints[name] for name in kind.__struct_fields__}


def _feature(hint: Any) -> Any:  # noqa: ANN401  # type hints and features have no common type
    from datasets import List, Value

    if get_origin(hint) is Annotated:
        plain, *notes = get_args(hint)
        meta = next((note for note in notes if isinstance(note, msgspec.Meta)), msgspec.Meta())
        if meta.extra and "dtype" in meta.extra:
            return Value(meta.extra["dtype"])
        feature = _feature(plain)
        is_fixed = meta.min_length is not None and meta.min_length == meta.max_length
        return List(feature.feature, length=meta.min_length) if is_fixed else feature
    if get_origin(hint) in (Union, UnionType):
        (present,) = (choice for choice in get_args(hint) if choice is not type(None))
        return _feature(present)
    if get_origin(hint) is list:
        return List(_feature(get_args(hint)[0]))
    if isinstance(hint, type) and issubclass(hint, TypedFields):
        return dict(features_of(hint))
    return Value(_DTYPES[hint])


class _ScoredChoices(msgspec.Struct, forbid_unknown_fields=True):
    scores: dict[str, float]


def write_scores(scores: Mapping[str, float]) -> str:
    """Return the answer of a model that scores. Rounding to six decimals keeps the answer equal on different hardware.

    >>> write_scores({"A": 0.31000000001, "B": -0.5})
    '{"scores": {"A": 0.31, "B": -0.5}}'
    """
    return json.dumps({"scores": {label: round(float(value), 6) for label, value in scores.items()}})


def read_scores(text: str, labels: Collection[str]) -> dict[str, float] | None:
    """Return the scores of an answer of `write_scores`, in the order of `labels`; None for any other text.

    >>> read_scores('{"scores": {"B": 1, "A": 0.5}}', ["A", "B"])
    {'A': 0.5, 'B': 1.0}
    >>> read_scores("(A)", ["A", "B"])
    """
    if len(text) > MAX_TEXT or not text.lstrip().startswith("{"):
        return None
    try:
        scores = msgspec.json.decode(text, type=_ScoredChoices).scores
    except (msgspec.MsgspecError, UnicodeError):
        return None
    if set(scores) != set(labels) or not all(map(math.isfinite, scores.values())):
        return None
    return {label: scores[label] for label in labels}
