"""One join of every kind of predicate, over rows that let everything grow, and ways to run it."""

from __future__ import annotations

import gc
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.arrow import joiner
from windjoin.pyx.base.output import release
from windjoin.runs import Runs

from tests import functions

ROWS, BATCH = 1_200, 300
WINDOW = 500  # rows of a stream come every tick: keys are swept, rings grow, rows expire
HOSTS_ROWS = 400  # of a join on hosts, which has a thread for each
Result = np.ndarray  # a number for each
Tables = dict[str, pa.Table]


# -- rows ----------------------------------------------------------------------------------------


def _lists(random: np.random.Generator, n: int, most: int, kinds: int, as_text: bool) -> pa.Array:
    """Lists of up to so many items, popular ones and others."""
    items: list[list[Any]] = []
    for _ in range(n):
        drawn = (kinds * random.random(random.integers(0, most + 1)) ** 2).astype(int)
        items.append([f"w{item}" if as_text else int(item) for item in drawn])
    return pa.array(items, pa.list_(pa.string() if as_text else pa.int64()))


def _weighted(random: np.random.Generator, n: int, items: int, kinds: int) -> pa.Array:
    """Items in an order of their own in every row."""
    drawn = [random.permutation(kinds)[:items] for _ in range(n)]
    pairs = [[(int(item), float(random.integers(1, 4))) for item in row] for row in drawn]
    return pa.array(pairs, pa.map_(pa.int64(), pa.float64()))


def _vectors(random: np.random.Generator, n: int, width: int, dtype: str) -> pa.Array:
    near = random.integers(0, 40, (n, 1)) + 0.05 * random.random((n, width))
    return pa.FixedSizeListArray.from_arrays(near.astype(dtype).ravel(), width)


def _images(random: np.random.Generator, n: int) -> pa.Array:
    shades = random.integers(0, 25, (n, 1)) * 10 + random.integers(0, 3, (n, 96))
    return pa.array([row.astype(np.uint8).tobytes() for row in shades], pa.binary())


MADE: dict[str, Callable[[np.random.Generator, int], Any]] = {
    # a few keys that come often enough for lists beside their lines, and many that do not
    "k": lambda r, n: np.where(r.random(n) < 0.1, r.integers(0, 3, n), r.integers(3, 900, n)),
    "j": lambda r, n: r.integers(0, 3, n),
    "s": lambda r, n: pa.array([f"key-{k}" for k in r.integers(0, 600, n)]),
    "r": lambda r, n: pa.array([f"key-{k}" for k in np.arange(n) % 40]),
    "x": lambda r, n: r.random(n),
    "y": lambda r, n: r.random(n),
    "i": lambda r, n: _lists(r, n, 8, 1500, False),
    "o": lambda r, n: pa.array([[int(k)] for k in r.integers(0, 300, n)], pa.list_(pa.int64())),
    "w": lambda r, n: _lists(r, n, 8, 300, True),
    "few": lambda r, n: _weighted(r, n, 4, 60),
    "many": lambda r, n: _weighted(r, n, 90, 170),
    "v": lambda r, n: _vectors(r, n, 12, "f4"),
    "d": lambda r, n: _vectors(r, n, 5, "f8"),
    "u": lambda r, n: pa.FixedSizeListArray.from_arrays(r.normal(size=12 * n), 12),
    "m": lambda r, n: _images(r, n),
    "one": lambda r, n: np.zeros(n, np.int64),
}


def rows_of(columns: str, streams: str, rows: int) -> Tables:
    """Tables with a time, a row number and these columns."""
    random = np.random.default_rng(16)
    return {
        name: pa.table(
            {"t": np.arange(rows), "n": np.arange(rows)}
            | {column: MADE[column](random, rows) for column in columns.split()}
        )
        for name in streams
    }


# -- joins ---------------------------------------------------------------------------------------

Conditions = Callable[[Any], Any]  # of a list of streams


class Kind:
    """A join: its columns and its conditions, and by how much its rows are fewer than others'."""

    def __init__(
        self,
        columns: str,
        on: Conditions,
        *,
        streams: str = "ab",
        share: float = 1,
        window: int | wj.RowWindow = WINDOW,
        score: Conditions | None = None,
        apart: str = "",
        **options: Any,
    ) -> None:
        self.columns, self.share, self.streams = columns, share, streams
        self.on_hosts = "nearest" not in options and isinstance(window, int)
        made = [wj.stream(name, time="t", window=window) for name in streams]
        if apart:
            options[apart] = made[-1:]
        self.names = streams[:1] if options.get("how") == "anti" else streams
        self.names = self.names[:-1] if apart else self.names
        selected = [stream["n"] for stream in made if stream.name in self.names]
        selected += [score(made).alias("score")] if score else []
        self.query = wj.join(*made, on=on(made), select=selected, **options)

    def tables(self, rows: int) -> Tables:
        """The rows it is tried with."""
        return rows_of(self.columns, self.streams, int(rows * self.share))


def _measure(name: str, column: str, passes: Callable[[Any], Any]) -> Kind:
    measure = getattr(wj, name)
    return Kind(column, lambda s: passes(measure(s[0][column], s[1][column])), share=0.6)


KINDS: dict[str, Callable[[], Kind]] = {
    "equality": lambda: Kind("k", lambda s: s[0]["k"] == s[1]["k"]),
    "left": lambda: Kind("k x", lambda s: s[0]["k"] == s[1]["k"], how="left"),
    "anti": lambda: Kind("k", lambda s: s[0]["k"] == s[1]["k"], how="anti"),
    "missing": lambda: Kind(
        "k",
        lambda s: [s[0]["k"] == s[1]["k"], s[1]["k"] == s[2]["k"]],
        streams="abc",
        share=0.5,
        apart="missing",
    ),
    "rows": lambda: Kind("k", lambda s: s[0]["k"] == s[1]["k"], window=wj.rows(300)),
    "as-of": lambda: Kind(
        "k", lambda s: s[0]["k"] == s[1]["k"], nearest=1, direction="backward", how="left"
    ),
    "as-of, filtered": lambda: Kind(
        "k x",
        lambda s: [s[0]["k"] == s[1]["k"], s[0]["x"] < s[1]["x"]],
        nearest=2,
        direction="nearest",
    ),
    "texts": lambda: Kind("s", lambda s: s[0]["s"] == s[1]["s"]),
    "composite key": lambda: Kind(
        "k j r", lambda s: [s[0][c] == s[1][c] for c in "kjr"], window=900
    ),
    "band": lambda: Kind("x", lambda s: abs(s[0]["x"] - s[1]["x"]) <= 0.001),
    "two bands": lambda: Kind("x y", lambda s: [abs(s[0][c] - s[1][c]) <= 0.04 for c in "xy"]),
    "inequality": lambda: Kind("x", lambda s: s[0]["x"] + 0.97 < s[1]["x"]),
    "udf": lambda: Kind(
        "x y", lambda s: wj.udf(functions.product_at_least_one, s[0]["x"] + 0.3, s[1]["y"] + 0.1)
    ),
    "band and udf": lambda: Kind(
        "k x", lambda s: [s[0]["k"] == s[1]["k"], wj.udf(functions.even_sum, s[0]["k"], s[1]["k"])]
    ),
    "pairs": lambda: Kind(
        "k x", lambda s: (s[0]["k"] == s[1]["k"]) | (s[0]["x"] + 0.99 < s[1]["x"]), share=0.5
    ),
    "itself": lambda: Kind("k", lambda s: s[0]["k"] == s[1]["k"], exclude_self=True),
    "three streams": lambda: Kind(
        "k", lambda s: [s[0]["k"] == s[1]["k"], s[1]["k"] == s[2]["k"]], streams="abc", share=0.6
    ),
    "many results": lambda: Kind(
        "one", lambda s: s[0]["one"] == s[1]["one"], share=0.5, window=2 * ROWS
    ),
    "sets": lambda: Kind("i", lambda s: wj.jaccard(s[0]["i"], s[1]["i"]) >= 0.3),
    "words": lambda: Kind("w", lambda s: wj.overlap(s[0]["w"], s[1]["w"]) >= 3),
    "single items": lambda: Kind("o", lambda s: wj.overlap(s[0]["o"], s[1]["o"]) >= 1),
    "sets of three": lambda: Kind(
        "w",
        lambda s: [
            wj.overlap(s[0]["w"], s[1]["w"]) >= 2,
            wj.overlap(s[1]["w"], s[2]["w"]) >= 2,
            wj.overlap(s[0]["w"], s[2]["w"]) >= 2,
        ],
        streams="abc",
        share=0.4,
    ),
    "scores": lambda: Kind(
        "i k",
        lambda s: s[0]["k"] == s[1]["k"],
        score=lambda s: wj.jaccard(s[0]["i"], s[1]["i"]),
        share=0.6,
    ),
    "weighted sets": lambda: Kind(
        "few", lambda s: wj.inner_product(s[0]["few"], s[1]["few"]) >= 14
    ),
    "large weighted sets": lambda: Kind(
        "many", lambda s: wj.cosine(s[0]["many"], s[1]["many"]) > 0.58, share=0.2
    ),
    "l2": lambda: _measure("l2", "v", lambda m: m <= 0.18),
    "l1": lambda: _measure("l1", "d", lambda m: m <= 0.08),
    "linf": lambda: _measure("linf", "d", lambda m: m <= 0.03),
    "dot": lambda: _measure("dot", "v", lambda m: m >= 17_000),
    "cosine": lambda: _measure("cosine", "u", lambda m: m > 0.7),
    "images": lambda: _measure("mean_abs_diff", "m", lambda m: m <= 1.0),
    "hamming": lambda: _measure("hamming", "m", lambda m: m < 62),
    "nearest": lambda: Kind(
        "v", lambda s: wj.l2(s[0]["v"], s[1]["v"]) <= 0.3, share=0.5, nearest=2
    ),
}


# -- ways to run them ----------------------------------------------------------------------------


def _of_table(kind: Kind, table: pa.Table) -> Result:
    return _of_columns(table[f"{name}_n"].fill_null(-1).to_numpy() for name in kind.names)


def _of_numbers(kind: Kind, found: dict[str, Any]) -> Result:
    return _of_columns(found[name] for name in kind.names)


def _of_columns(columns: Iterable[Any]) -> Result:
    """One number for all row numbers of a result."""
    whole: Any = 0
    for column in columns:
        whole = whole * 4096 + column + 1
    return whole


class Way:
    """One way to run a join; what it gave is in ``parts`` when `run` comes back."""

    rows = ROWS

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.tables = kind.tables(self.rows)
        self.parts: list[Result] = []

    @property
    def found(self) -> bytes:
        """All that came out, in one order."""
        return np.sort(np.concatenate(self.parts)).tobytes() if self.parts else b""

    def run(self) -> None:
        """All of it."""
        raise NotImplementedError

    def goes_on(self) -> bool:
        """Whether it goes on after an error, all of it unchanged; ``found`` then tells all."""
        return False

    def let_go(self) -> None:
        """Forget all that it holds."""
        self.parts = []
        gc.collect()  # of an error what it went through, before memory that is used again is freed
        release()


class Run(Way):
    """Whole tables to a table."""

    options: dict[str, Any] = {"threads": 1}  # noqa: RUF012

    def run(self) -> None:
        self.parts = [_of_table(self.kind, self.kind.query.run(self.tables, **self.options))]

    def let_go(self) -> None:
        object.__setattr__(self.kind.query, "runs", Runs())  # what is known of the last run
        super().let_go()


class RunOnTwoThreads(Run):
    options = {"threads": 2}  # noqa: RUF012


class RunOnHosts(Run):
    rows = HOSTS_ROWS
    options = {"hosts": 3}  # noqa: RUF012


class Indices(Run):
    """Whole tables to row numbers."""

    def run(self) -> None:
        self.parts = [_of_numbers(self.kind, self.kind.query.indices(self.tables, threads=1))]


class Push(Way):
    """A session; a push that fails ends it, or leaves it as it was."""

    rows_only = False
    options: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self.session: Any = None
        self.left: list[tuple[str, Any]] = []  # pushes to come

    def batches(self) -> Iterator[tuple[str, Any]]:
        """What is pushed, in order."""
        for first in range(0, len(next(iter(self.tables.values()))), BATCH):
            for name, table in self.tables.items():
                yield name, self.batch(table.slice(first, BATCH))

    def batch(self, rows: pa.Table) -> Any:
        """Rows as they are handed in."""
        return rows

    def run(self) -> None:
        self.left = list(self.batches())
        schemas = {name: table.schema for name, table in self.tables.items()}
        self.session = self.kind.query.open(
            schemas=schemas, rows_only=self.rows_only, **self.options
        )
        self.go_on()

    def go_on(self) -> None:
        """Push all that is left."""
        while self.left:
            self.take(self.session.push(*self.left[0]))
            del self.left[0]
        self.take(self.session.close())

    def take(self, results: Any) -> None:
        of = _of_numbers if self.rows_only else _of_table
        self.parts.append(of(self.kind, results))

    def goes_on(self) -> bool:
        if self.session is None:
            return False
        if not self.session.closed:
            self.go_on()
            return True
        assert self.session.state_bytes == 0
        assert self.session.metrics["rows_in"] >= 0
        with pytest.raises(wj.SessionError, match="this session ended when a push into it"):
            self.session.advance("a", 0)
        return False

    def let_go(self) -> None:
        self.session, self.left = None, []
        super().let_go()


class PushWithinMemory(Push):
    """A bound that is never reached."""

    options = {"memory": "1GB"}  # noqa: RUF012


class PushShedding(Push):
    """Less may be looked at than there is."""

    options = {  # noqa: RUF012
        "shed": wj.Shedding(comparisons_per_s=1, clock="event", adapt_every="100s", seed=3)
    }

    def run(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", wj.SheddingWarning)
            super().run()


class PushTogether(Push):
    """Rows of all streams in one call."""

    def go_on(self) -> None:
        streams = len(self.tables)
        while self.left:
            self.take(self.session.push_many(dict(self.left[:streams])))
            del self.left[:streams]
        self.take(self.session.close())


class PushSaved(Push):
    """Saved now and then, and restored."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self.folder = tempfile.mkdtemp(prefix="windjoin-faults-")
        self.saved = False
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def go_on(self) -> None:
        while self.left:
            self.take(self.session.push(*self.left[0]))
            del self.left[0]
            if len(self.left) in (3, 4):
                self.session.save(self.folder)
                self.session.abandon()
                self.session, self.saved = None, True
                self.session = wj.restore(self.kind.query, self.folder)
        self.take(self.session.close())

    def goes_on(self) -> bool:
        if self.session is None and self.saved:
            self.session = wj.restore(self.kind.query, self.folder)
        return super().goes_on()

    def let_go(self) -> None:
        self.saved = False
        super().let_go()


class Joiner(Way):
    """Rows of all streams in one table, for the functions of record batches."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        schemas = {name: table.schema for name, table in self.tables.items()}
        self.join = joiner(kind.query, stream_column="stream", schemas=schemas)
        self.schema = kind.query.bind(schemas).schema

    def run(self) -> None:
        named = [
            table.append_column("stream", pa.array([name] * len(table), pa.string()))
            for name, table in self.tables.items()
        ]
        found = self.join(iter(pa.concat_tables(named).to_batches()))
        self.parts = [_of_table(self.kind, pa.Table.from_batches(found, self.schema))]


class PushRowsOnly(Push):
    rows_only = True


class PushArrays(PushRowsOnly):
    """Rows as dictionaries of NumPy arrays, which take the shortest way in."""

    def batch(self, rows: pa.Table) -> Any:
        def plain(column: pa.ChunkedArray) -> Any:
            if pa.types.is_fixed_size_list(column.type):
                whole = column.combine_chunks()
                return whole.flatten().to_numpy().reshape(-1, column.type.list_size)
            return column.to_numpy()

        return {name: plain(rows[name]) for name in rows.column_names}


class PushToHosts(Push):
    rows = HOSTS_ROWS
    options = {"hosts": 2}  # noqa: RUF012


# kinds that are run in these ways as well, as others would take the same steps
SOME = {
    "push within memory": ("equality", "texts", "sets"),
    "push shedding": ("equality", "band", "two bands", "three streams", "sets", "l2"),
    "push together": ("equality", "left", "three streams", "rows", "as-of"),
    "push saved": ("equality", "left", "texts", "sets", "rows", "as-of", "nearest"),
    "joiner": ("equality", "left", "texts", "three streams", "nearest"),
}
WAYS: dict[str, type[Way]] = {
    "run": Run,
    "run on two threads": RunOnTwoThreads,
    "indices": Indices,
    "push": Push,
    "push within memory": PushWithinMemory,
    "push shedding": PushShedding,
    "push together": PushTogether,
    "push saved": PushSaved,
    "joiner": Joiner,
    "push rows_only": PushRowsOnly,
    "push arrays": PushArrays,
    "run on hosts": RunOnHosts,
    "push to hosts": PushToHosts,
}


def ways_of(name: str) -> dict[str, type[Way]]:
    """Those that a kind can take."""
    kind = KINDS[name]()
    ways = dict(WAYS)
    if not kind.on_hosts:
        del ways["run on hosts"], ways["push to hosts"]
    for way, kinds in SOME.items():
        if name not in kinds:
            del ways[way]
    if name == "missing":  # combinations of several streams are none of a host
        del ways["push to hosts"], ways["run on hosts"]
    if set(kind.columns.split()) - {"k", "j", "x", "y", "v", "d", "u", "one"}:
        del ways["push arrays"]
    return ways


@contextmanager
def heard(swallowed: list[str]) -> Iterator[None]:
    """Note errors that nobody could be told of, in this thread and others."""
    import sys
    import threading

    before = sys.unraisablehook, threading.excepthook
    sys.unraisablehook = lambda what: swallowed.append(f"{what.exc_value!r} in {what.object!r}")
    threading.excepthook = lambda what: swallowed.append(f"{what.exc_value!r} in {what.thread!r}")
    try:
        yield
    finally:
        sys.unraisablehook, threading.excepthook = before
