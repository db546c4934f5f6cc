"""Columns of live windows in pages: gathered rows are those that Arrow would take."""

from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from windjoin.layout import gatherable_type
from windjoin.payload import Payload, layout_of
from windjoin.pyx.base.crew import share_out

INTEGERS = [pa.int8(), pa.uint16(), pa.int32(), pa.uint64()]
TIMES = [
    pa.timestamp("us"),
    pa.date32(),
    pa.time64("ns"),
    pa.duration("s"),
    pa.month_day_nano_interval(),
]
PAGED = [
    *INTEGERS,
    *TIMES,
    *(pa.bool_(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.decimal128(20, 2), pa.decimal256(50, 2), pa.binary(3), pa.uuid()),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
    *(pa.list_(pa.int32()), pa.large_list(pa.float64()), pa.list_(pa.binary(2))),
    *(pa.list_(pa.float32(), 3), pa.list_(pa.int64(), 1)),
]
IN_CHUNKS = [
    *(pa.null(), pa.struct([("x", pa.int8())]), pa.list_(pa.string()), pa.list_(pa.bool_())),
    *(pa.dictionary(pa.int8(), pa.string()), pa.map_(pa.int8(), pa.int8()), pa.list_(pa.int8(), 0)),
]
WIDE = pa.binary(20_000)  # so that a page has few rows
LONG = pa.large_binary()  # of some thousand bytes each
ROWS = st.integers(0, 30) | st.sampled_from([8, 16, 24, 32])  # these fill pages of WIDE


@pytest.mark.parametrize("arrow", PAGED, ids=str)
def test_values_of_these_types_lie_in_pages(arrow: pa.DataType) -> None:
    assert layout_of(arrow) is not None


@pytest.mark.parametrize("arrow", IN_CHUNKS, ids=str)
def test_values_of_these_types_lie_in_chunks(arrow: pa.DataType) -> None:
    assert layout_of(gatherable_type(arrow)) is None


def values(arrow: Any, n: int, seed: int, nulls: bool) -> pa.Array:
    """Values of a type with nulls also inside lists, from any bytes of random numbers."""
    if isinstance(arrow, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow, values(arrow.storage_type, n, seed, nulls))
    random = np.random.default_rng(seed)
    missing = random.random(n) < 0.3 if nulls else np.zeros(n, np.bool_)
    bits = pa.py_buffer(np.packbits(~missing, bitorder="little")) if nulls else None
    if pa.types.is_null(arrow):
        return pa.nulls(n)
    if pa.types.is_dictionary(arrow):
        return values(arrow.value_type, n, seed, nulls).dictionary_encode().cast(arrow)
    if pa.types.is_fixed_size_list(arrow):
        items = values(arrow.value_type, n * arrow.list_size, seed + 1, nulls)
        return pa.Array.from_buffers(arrow, n, [bits], children=[items])
    lengths = random.integers(0, 40, n) * (random.random(n) < 0.7)
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        texts = [None if gone else "é" * k for gone, k in zip(missing, lengths, strict=True)]
        return pa.array(texts, arrow)
    if pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow):
        return pa.array(
            [None if gone else bytes(k) for gone, k in zip(missing, lengths, strict=True)], arrow
        )
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        size = np.dtype(np.int32 if pa.types.is_list(arrow) else np.int64)
        offsets = pa.py_buffer(np.concatenate([[0], np.cumsum(lengths)]).astype(size))
        items = values(arrow.value_type, int(lengths.sum()), seed + 1, nulls)
        return pa.Array.from_buffers(arrow, n, [bits, offsets], children=[items])
    if pa.types.is_struct(arrow) or pa.types.is_map(arrow):
        made = [{"x": k} if pa.types.is_struct(arrow) else [(1, k)] for k in range(n)]
        return pa.array(
            [None if gone else one for gone, one in zip(missing, made, strict=True)], arrow
        )
    data = random.integers(0, 256, (n, max(arrow.bit_width // 8, 1)), np.uint8)
    if not pa.types.is_boolean(arrow):
        data[:, 1:] = 0  # small numbers are valid times and decimals
    return pa.Array.from_buffers(arrow, n, [bits, pa.py_buffer(data)])


def same(got: Any, owed: Any) -> None:
    got = pa.chunked_array([got]) if isinstance(got, pa.Array) else got
    got.validate(full=True)
    got, owed = got.combine_chunks(), owed.combine_chunks()
    assert got.type == owed.type
    assert got.null_count == owed.null_count
    assert repr(got.to_pylist()) == repr(owed.to_pylist())  # with NaN


class Disk:
    """A file that can be as if it had no room, or could not be read."""

    def __init__(self) -> None:
        self.file = self.good = -1

    def opened(self) -> int:
        self.file, path = tempfile.mkstemp()
        os.unlink(path)
        self.good = os.dup(self.file)
        return self.file

    def chill(self, payload: Payload) -> None:
        payload.pages.chill(self.opened, None)

    def as_if(self, path: str | None) -> None:
        """It is another file from now on, or itself again."""
        if self.file >= 0:
            other = self.good if path is None else os.open(path, os.O_RDWR)
            os.dup2(other, self.file)
            if path is not None:
                os.close(other)

    def close(self) -> None:
        if self.good >= 0:
            os.close(self.good)


@given(
    types=st.lists(st.sampled_from(PAGED + IN_CHUNKS), min_size=1, max_size=4),
    wide=st.sampled_from([[], [WIDE], [LONG], [WIDE, LONG]]),
    cold=st.lists(st.sampled_from(["", "", "chill", "full"]), min_size=8, max_size=8),
    pushes=st.lists(st.tuples(ROWS, st.booleans(), st.integers(0, 9)), max_size=8),
    lent=st.sets(st.integers(0, 7)),
    begin=st.integers(0, 20),
    data=st.data(),
)
def test_gathered_rows_are_those_that_arrow_takes(
    types: list[pa.DataType],
    wide: list[pa.DataType],
    cold: list[str],
    pushes: Any,
    lent: set[int],
    begin: int,
    data: st.DataObject,
) -> None:
    """Those of some tables lie where they came from until they are asked for; of others in a file,
    which has no room now and then.
    """
    types = types + wide
    disk = Disk()
    schema = pa.schema([(f"c{k}", gatherable_type(arrow)) for k, arrow in enumerate(types)])
    names = data.draw(st.permutations(schema.names))[: data.draw(st.integers(1, len(types)))]
    payload = Payload(schema, names)
    payload.begin(begin)
    come, head = schema.empty_table(), 0
    for number, (n, nulls, cut) in enumerate(pushes):
        arrays = [values(arrow, n + cut, number, nulls) for arrow in types]
        if LONG in wide:
            texts = [
                None if nulls and i % 3 == 0 else bytes([i]) * (70 * i) for i in range(n + cut)
            ]
            arrays[-1] = pa.array(texts, LONG)
        rows = pa.table(arrays, schema.names).cast(schema).slice(cut, n)
        if cut % 3 == 1:
            rows = pa.concat_tables([rows.slice(0, n // 2), rows.slice(n // 2)])  # two batches
        if cut % 3 == 2:
            rows = rows.select(schema.names[::-1])  # another order of columns
        if cold[number] == "full":  # while rows come: they wait in memory
            disk.as_if("/dev/full")
        (payload.lend if number in lent else payload.append)(rows)
        disk.as_if(None)
        if cold[number] == "chill":
            disk.chill(payload)
        come = pa.concat_tables([come, rows.select(schema.names)])
        head = data.draw(st.integers(head, len(come)))
        payload.expire(begin + head)
        if head == len(come) or data.draw(st.booleans()):
            continue
        some = np.array(data.draw(st.lists(st.integers(head, len(come) - 1), max_size=20)), "i8")
        for name, got in zip(names, payload.take(names, begin + some), strict=True):
            same(got, come.column(name).take(pa.array(some)))
    disk.close()


def wide_rows(n: int, first: int = 0) -> pa.Table:
    values = [bytes([(first + i) % 251]) * 5000 for i in range(n)]
    return pa.table({"n": np.arange(first, first + n), "p": pa.array(values, pa.binary(5000)),
                     "s": pa.array(values, pa.binary())})  # fmt: skip


def test_wide_values_go_to_a_file_first_and_then_as_they_come() -> None:
    payload, disk = Payload(wide_rows(0).schema, ["n", "p", "s"]), Disk()
    payload.append(wide_rows(1000))
    assert payload.nbytes > 10_000_000
    disk.chill(payload)
    assert payload.bytes_on_disk == 10_000_000
    assert payload.mapped_bytes == 0
    payload.append(wide_rows(1000, 1000))
    assert payload.bytes_on_disk == 20_000_000
    assert payload.nbytes < 200_000
    disk.chill(payload)  # all else
    assert payload.nbytes < 20_000
    assert 16_000 < payload.mapped_bytes < 400_000
    rows = np.array([0, 1, 2, 2, 999, 1000, 1500, 1501, 1999, 7])
    wanted = wide_rows(2000).take(pa.array(rows))
    for name, got in zip(wanted.column_names, payload.take(wanted.column_names, rows), strict=True):
        same(got, wanted.column(name))
    disk.close()


def test_texts_that_fill_all_pages_there_are_go_to_a_file() -> None:
    """Where the next row's page would begin, the ring of pages has its first one."""
    for page in (2048, 8):  # rows; of texts alone, or beside wide values
        texts = [f"{number:04}" * 200 for number in range(4 * page)]
        others = {"p": pa.array([bytes(20_000)] * len(texts), WIDE)} if page == 8 else {}
        table = pa.table({"s": texts, **others})
        payload, disk = Payload(table.schema, table.column_names), Disk()
        payload.append(table)
        disk.chill(payload)
        (got,) = payload.take(["s"], np.arange(4 * page))
        assert got.to_pylist() == texts
        disk.close()


def test_a_file_grows_no_more_than_it_may() -> None:
    payload, disk = Payload(wide_rows(0).schema, ["n", "p", "s"]), Disk()
    payload.append(wide_rows(1000))
    with pytest.raises(OSError, match="quota"):
        payload.pages.chill(disk.opened, 4_000_000)
    assert os.fstat(disk.file).st_size <= 4_000_000
    assert payload.nbytes > 5_000_000
    (got,) = payload.take(["p"], np.array([999]))
    assert got[0].as_py() == bytes([999 % 251]) * 5000
    payload.pages.chill(disk.opened, 20_000_000)
    assert payload.nbytes < 200_000
    payload.append(wide_rows(4000, 1000))  # as far as there is room: the others wait in memory
    assert os.fstat(disk.file).st_size <= 24_000_000
    assert [v.as_py()[0] for v in payload.take(["s"], np.array([5, 4999]))[0]] == [5, 4999 % 251]
    disk.close()


def test_what_lay_in_a_file_is_written_over() -> None:
    """Rows come and go: the file has as much as the most that there were, about."""
    payload, disk = Payload(wide_rows(0).schema, ["n", "p", "s"]), Disk()
    payload.append(wide_rows(1000))
    disk.chill(payload)
    for first in range(1000, 21_000, 1000):
        payload.append(wide_rows(1000, first))
        payload.expire(first - 500)
        assert 10_000_000 <= payload.bytes_on_disk <= 15_000_000
        (got,) = payload.take(["p"], np.array([first - 500]))
        assert got[0].as_py() == bytes([(first - 500) % 251]) * 5000
    assert os.fstat(disk.file).st_size < 35_000_000
    payload.expire(21_000)
    assert payload.bytes_on_disk == 0
    disk.close()


def test_rows_wait_in_memory_for_a_disk_that_is_full() -> None:
    payload, disk = Payload(wide_rows(0).schema, ["n", "p", "s"]), Disk()
    payload.append(wide_rows(1000))
    disk.chill(payload)
    disk.as_if("/dev/full")
    payload.append(wide_rows(1000, 1000))
    assert payload.nbytes > 10_000_000
    with pytest.raises(OSError, match="No space left"):
        disk.chill(payload)
    disk.as_if(None)
    payload.append(wide_rows(10, 2000))
    assert [v.as_py()[0] for v in payload.take(["s"], np.array([1999, 2009]))[0]] == [242, 1]
    disk.chill(payload)
    assert payload.nbytes < 200_000
    assert payload.bytes_on_disk == 20_100_000
    assert [v.as_py()[0] for v in payload.take(["s"], np.array([1999, 2009]))[0]] == [242, 1]
    disk.close()


@pytest.mark.parametrize("name", ["p", "s"])
def test_a_file_that_cannot_be_read_is_an_error(name: str) -> None:
    payload, disk = Payload(wide_rows(0).schema, ["n", "p", "s"]), Disk()
    payload.append(wide_rows(100))
    disk.chill(payload)
    disk.as_if("/dev/null")
    with pytest.raises(OSError, match="rows of a window cannot be read: Input/output error"):
        payload.take(["n", name], np.arange(5))
    disk.as_if(None)
    assert len(payload.take(["n", name], np.arange(5))[0]) == 5
    disk.close()


def test_lent_rows_are_copied_when_they_are_asked_for() -> None:
    payload = Payload(pa.schema([("n", pa.int64())]), ["n"])
    payload.lend(pa.table({"n": range(100_000)}))
    before = payload.nbytes
    (found,) = payload.take(["n"], np.array([70_000, 5, 70_001]))
    assert found.to_pylist() == [70_000, 5, 70_001]
    page = 8 * 2048
    assert 2 * page <= payload.nbytes - before < 3 * page
    payload.chill(lambda: Path(tempfile.mkstemp()[1] + "x"))  # all of them are in a file then
    assert payload.bytes_on_disk > 8 * 90_000
    assert payload.take(["n"], np.array([99_000]))[0].to_pylist() == [99_000]


def test_what_was_gathered_stays_when_its_rows_have_gone() -> None:
    schema = pa.schema([("n", pa.int64()), ("s", pa.string()), ("v", pa.list_(pa.int8(), 2))])
    payload = Payload(schema, schema.names)
    held, first = [], 0
    for number in range(200):
        rows = {"n": [number] * 50, "s": [f"{number}"] * 50, "v": [[1, number % 100]] * 50}
        payload.append(pa.table(rows, schema=schema))
        held.append(payload.take(schema.names, np.array([first])))
        first += 50
        payload.expire(first)
    del payload
    gc.collect()
    for number, (n, s, v) in enumerate(held):
        assert (n[0].as_py(), s[0].as_py()) == (number, str(number))
        assert v[0].as_py() == [1, number % 100]


def test_arrays_of_one_result_may_be_kept_apart() -> None:
    schema = pa.schema([("n", pa.int64()), ("v", pa.list_(pa.int8(), 2))])
    payload = Payload(schema, schema.names)
    payload.append(pa.table({"n": [1, 2], "v": [[1, 2], [3, None]]}, schema=schema))
    n, v = payload.take(schema.names, np.array([1, 0]))
    items = v.flatten()
    del n, v, payload
    gc.collect()
    assert items.to_pylist() == [3, None, 1, 2]


def test_pages_are_few_while_rows_come_and_go() -> None:
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    payload = Payload(schema, schema.names)
    rows = pa.table({"n": range(1000), "s": [f"text {k}" for k in range(1000)]}, schema=schema)
    sizes = set()
    for push in range(300):
        payload.append(rows)
        payload.expire(1000 * push)
        if push > 100:
            sizes.add(payload.nbytes)
    assert max(sizes) < 8 * rows.nbytes


def test_texts_of_more_bytes_than_one_array_may_have_come_in_several() -> None:
    schema = pa.schema([("s", pa.string())])
    payload = Payload(schema, ["s"])
    payload.append(pa.table({"s": ["x" * (1 << 20)]}, schema=schema))
    (column,) = payload.take(["s"], np.zeros(2100, np.int64))
    assert column.num_chunks == 2
    assert len(column) == 2100
    assert column[2099].as_py() == "x" * (1 << 20)


def test_threads_gather_rows_of_their_own_at_the_same_time() -> None:
    """Hosts of a session do so for what they evaluate on candidates."""
    names = ["a", "b", "c", "d"]
    payload = Payload(pa.schema(dict.fromkeys(names, pa.int64())), names)
    payload.append(pa.table(dict.fromkeys(names, np.arange(8))))

    def others(row: int) -> int:
        """How many values are not of the row that was asked for."""
        rows = np.full(200_000, row)
        columns = [column for _ in range(20) for column in payload.take(names, rows)]
        return sum(int((column.to_numpy() != row).sum()) for column in columns)

    assert share_out(3, others, [(1,), (2,), (3,)]) == [0, 0, 0]
