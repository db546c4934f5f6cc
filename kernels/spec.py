"""What the kernels are told: streams with windows, a conjunction of predicates, plain arrays.

Nothing here knows of Arrow, column names or types.  ``bindings`` turns a query and its schemas into
a `JoinSpec` once, and every table or batch into `Rows`; the kernels answer with row numbers.

Three promises that whoever builds these objects keeps, and that the kernels rely on:

* all times and windows are int64 in one common unit, windows inclusive and >= 0
  (``closed="right"`` is ``max(ceil(W) - 1, 0)`` on integer times);
* a row whose operand is null or NaN for any predicate but `Opaque` is marked unusable: every
  predicate must hold, so it can never be part of a result;
* operands that meet in one predicate have the same dtype and comparable values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Bools = NDArray[np.bool_]
Dtype = Literal["int64", "float64"]
Operator = Literal["<", "<=", ">", ">=", "!="]
Direction = Literal["backward", "forward", "nearest"]
MeasureOperator = Literal["<", "<=", ">", ">=", "==", "!="]
WideForm = Literal["set", "weighted", "float32", "float64", "uint8"]
MOST_OPERANDS = 32  # of a `Function`
# of a predicate in `JoinSpec.predicates`, which sets it; no part of what the predicate says
UNPLACED: Any = field(default=-1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Operand:
    """Column number ``column`` of ``Rows.columns`` of stream number ``stream``."""

    stream: int
    column: int


@dataclass(frozen=True, slots=True)
class Key:
    """Key number ``key`` of ``Rows.keys`` of stream number ``stream``.

    Keys that are compared with each other live in one ``space``: equal values get equal codes.
    """

    stream: int
    key: int
    space: int


@dataclass(frozen=True, slots=True)
class Varlen:
    """Wide column number ``column`` of ``Rows.varlen`` of stream number ``stream``."""

    stream: int
    column: int


class Reading:
    """What a predicate says of itself, so that a new kind is one class with these.

    ``moved`` is the same predicate about other places: each of its operands, keys and wide columns
    is handed to ``place``, which says where it lies now.  One that is `Opaque` knows rows by their
    numbers: who moves rows gives it another ``evaluate``.
    """

    __slots__ = ()
    usual_share: ClassVar[float]  # of the pairs in a window that pass, before any row was seen
    filter_cost: ClassVar[float]  # nanoseconds per candidate, as a filter
    calls: ClassVar[bool] = False  # a function of the user's, which may raise
    sampled_as_asked: ClassVar[bool] = False  # its share is found by joining a sample

    @property
    def operands_read(self) -> tuple[Operand, ...]:
        """The columns that it compares, or calls a function with."""
        return ()

    @property
    def keys_read(self) -> tuple[Key, ...]:
        """The keys that it compares."""
        return ()

    @property
    def varlen_read(self) -> tuple[Varlen, ...]:
        """The wide columns that it measures."""
        return ()

    @property
    def streams_read(self) -> frozenset[int]:
        """The streams whose rows it is about.

        >>> sorted(Equal(Key(2, 0, 0), Key(1, 0, 0)).streams_read)
        [1, 2]
        """
        places: tuple[Operand | Key | Varlen, ...] = (
            *self.operands_read,
            *self.keys_read,
            *self.varlen_read,
        )
        return frozenset(place.stream for place in places)

    def moved(self, place: Callable[[Any], Any]) -> Self:
        """The same with every operand, key and wide column where ``place`` says."""
        pair: Any = self
        return cast(Self, replace(pair, left=place(pair.left), right=place(pair.right)))


@dataclass(frozen=True, slots=True)
class Equal(Reading):
    """``left == right``, by key."""

    code_operator: ClassVar[str] = "== code"
    usual_share: ClassVar[float] = 0.01
    filter_cost: ClassVar[float] = 1.5

    left: Key
    right: Key
    text: str = ""  # as the user wrote it; for explain() and errors
    place: int = UNPLACED

    @property
    def keys_read(self) -> tuple[Key, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class NotEqual(Reading):
    """``left != right``, by key."""

    code_operator: ClassVar[str] = "!= code"
    usual_share: ClassVar[float] = 0.99
    filter_cost: ClassVar[float] = 1.5

    left: Key
    right: Key
    text: str = ""
    place: int = UNPLACED

    @property
    def keys_read(self) -> tuple[Key, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Compare(Reading):
    """``left <operator> right`` on two operands of one dtype; int64 exactly, float64 as IEEE."""

    usual_share: ClassVar[float] = 0.4
    filter_cost: ClassVar[float] = 1.5

    left: Operand
    operator: Operator
    right: Operand
    dtype: Dtype
    text: str = ""
    place: int = UNPLACED

    @property
    def operands_read(self) -> tuple[Operand, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Between(Reading):
    """``low <= left - right <= high``: int64 without wrapping, float64 with the rounded difference.

    Bounds are inclusive; for float64 an exclusive bound is ``nextafter``, for int64 ``+-1``.
    """

    usual_share: ClassVar[float] = 0.05
    filter_cost: ClassVar[float] = 1.5

    left: Operand
    right: Operand
    low: float
    high: float
    dtype: Dtype
    text: str = ""
    place: int = UNPLACED

    @property
    def operands_read(self) -> tuple[Operand, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class InRowWindow(Reading):
    """``left <= right``: the time of a row, and the last at which a window of rows has the other.

    No index serves it: of live rows the right side becomes known later.
    """

    usual_share: ClassVar[float] = 0.5
    filter_cost: ClassVar[float] = 1.5

    left: Operand
    right: Operand
    text: str = ""
    place: int = UNPLACED

    @property
    def operands_read(self) -> tuple[Operand, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Function(Reading):
    """A user's scalar function of operands of any number of streams, true where it returns true.

    Or where ``value <operator> right`` holds of the value it returns; ``right`` is None where the
    last operand is compared with, which the function then does not get.  An operand and a value
    that are compared have one dtype, and a constant is exact in it.  It has MOST_OPERANDS at most;
    one of more is `Opaque`.
    """

    usual_share: ClassVar[float] = 0.2
    filter_cost: ClassVar[float] = 3.0
    calls: ClassVar[bool] = True
    sampled_as_asked: ClassVar[bool] = True

    function: Callable[..., Any]
    operands: tuple[Operand, ...]
    dtypes: tuple[Dtype, ...]
    text: str = ""
    operator: MeasureOperator | None = None
    right: float | None = None  # int or float
    place: int = UNPLACED

    @property
    def operands_read(self) -> tuple[Operand, ...]:
        return self.operands

    def moved(self, place: Callable[[Any], Any]) -> Function:
        return replace(self, operands=tuple(map(place, self.operands)))

    @property
    def arguments(self) -> int:
        """How many of the operands the function is called with."""
        compared = self.operator is not None and self.right is None
        return len(self.operands) - compared


@dataclass(frozen=True, slots=True)
class Call:
    """A user's function and what it was called with, in a condition that reads ``text``."""

    function: Callable[..., Any]
    values: tuple[float, ...]  # int or float, as the function gets them
    text: str


def no_call(rows: Mapping[int, I64]) -> Call:
    """Of a predicate that calls no function."""
    raise AssertionError("no function of this predicate raised")


@dataclass(frozen=True, slots=True)
class Opaque(Reading):
    """Anything else: ``evaluate({stream: rows}) -> mask`` over candidate row numbers.

    ``evaluate`` gets one int64 array of row numbers per stream in ``streams``, all of one length,
    and returns a boolean array of that length, or bytes: 0, 1, and 2 where a function raised.  For
    one combination of that kind ``call`` says which call it was.  Exact and vectorised, but never
    an index.
    """

    usual_share: ClassVar[float] = 0.2
    filter_cost: ClassVar[float] = 60.0
    calls: ClassVar[bool] = True
    sampled_as_asked: ClassVar[bool] = True

    streams: tuple[int, ...]
    evaluate: Callable[[Mapping[int, I64]], NDArray[Any]]
    text: str = ""
    call: Callable[[Mapping[int, I64]], Call] = no_call
    place: int = UNPLACED

    @property
    def streams_read(self) -> frozenset[int]:
        return frozenset(self.streams)


@dataclass(frozen=True, slots=True)
class Similarity(Reading):
    """``measure(left, right) <operator> threshold``, the measure computed in doubles.

    False where the measure has no value: vectors of different lengths, a zero vector's cosine, ...
    """

    usual_share: ClassVar[float] = 0.01
    filter_cost: ClassVar[float] = 20.0
    sampled_as_asked: ClassVar[bool] = True

    left: Varlen
    right: Varlen
    measure: str  # one of pyx.similarity.measures.MEASURES
    operator: MeasureOperator
    threshold: float
    text: str = ""
    place: int = UNPLACED

    @property
    def varlen_read(self) -> tuple[Varlen, ...]:
        return (self.left, self.right)


Predicate = Equal | NotEqual | Compare | Between | InRowWindow | Function | Opaque | Similarity


@dataclass(frozen=True, slots=True)
class Score:
    """``measure(left, right)`` of the members of every result, given beside their row numbers."""

    left: Varlen
    right: Varlen
    measure: str  # one of pyx.similarity.measures.MEASURES
    certain: bool = False  # every result has a value


@dataclass(frozen=True, slots=True)
class VarlenSpec:
    """What a wide column holds; items of sets that are compared live in one key ``space``."""

    form: WideForm
    items: Literal["int64", "bytes"] = "int64"
    space: int = -1


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One stream as the kernels see it."""

    name: str
    window: int  # inclusive, in the common time unit
    columns: tuple[Dtype, ...] = ()
    keys: tuple[Literal["int64", "bytes"], ...] = ()
    spaces: tuple[int, ...] = ()  # the key space of each key
    varlen: tuple[VarlenSpec, ...] = ()
    rows: int = 0  # so many last rows are the window, however long that is; 0: a length of time is


@dataclass(frozen=True, slots=True)
class Nearest:
    """Of every row that completes results only those with the ``most`` best partners stay.

    With a direction: of every row of the first stream those with the partners nearest in time;
    windows are 0 where that direction does not look.
    """

    most: int
    predicate: int  # number of the `Similarity` whose measure says what is better; -1: time does
    direction: Direction | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows that come out although, or because, they are in no result.

    ``pairs``: results come out too; "matched": instead of results, rows of the stream that are in
    one; "unmatched": rows that are in none, and nothing else.
    """

    streams: tuple[int, ...]
    form: Literal["pairs", "matched", "unmatched"] = "pairs"


@dataclass(frozen=True, slots=True)
class JoinSpec:
    """The whole query: 2 to 16 streams and predicates that must all hold."""

    streams: tuple[StreamSpec, ...]
    predicates: tuple[Predicate, ...]
    # pairs of streams that are one table: a row never pairs with itself
    distinct: tuple[tuple[int, int], ...] = ()
    nearest: Nearest | None = None  # of two streams
    scores: tuple[Score, ...] = ()
    kept: Kept | None = None

    def __post_init__(self) -> None:
        placed = tuple(
            predicate if predicate.place == place else replace(predicate, place=place)
            for place, predicate in enumerate(self.predicates)
        )
        object.__setattr__(self, "predicates", placed)


@dataclass(frozen=True, slots=True)
class BytesColumn:
    """Variable-length keys as Arrow has them: value i is ``data[offsets[i]:offsets[i + 1]]``."""

    offsets: I64  # (n + 1,)
    data: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(slots=True)
class SetColumn:
    """Sets: row i has ``items[offsets[i]:offsets[i + 1]]``, in any order, repeated or not."""

    offsets: I64  # (n + 1,)
    items: I64 | BytesColumn
    valid: Bools | None = None  # of each item; None: all
    weights: F64 | None = None  # of each item, for a weighted set
    absent: Bools | None = None  # rows that join without a value, in columns of scores alone


@dataclass(slots=True)
class ArrayColumn:
    """Vectors and byte arrays: row i is ``values[offsets[i]:offsets[i + 1]]``."""

    offsets: I64  # (n + 1,)
    values: NDArray[Any]  # float32, float64 or uint8
    absent: Bools | None = None  # as that of sets


@dataclass(slots=True)
class Rows:
    """Rows of one stream, column by column; values at unusable rows are arbitrary."""

    time: I64
    columns: list[I64 | F64] = field(default_factory=list)
    keys: list[I64 | BytesColumn] = field(default_factory=list)
    varlen: list[SetColumn | ArrayColumn] = field(default_factory=list)
    usable: Bools | None = None  # None: every row; False also for a null time
    present: Bools | None = None  # rows with a time that filters let pass; None: every row
    parts: list[Rows | None] | None = None  # of a join that is several, the rows for each

    def __len__(self) -> int:
        return len(self.time)
