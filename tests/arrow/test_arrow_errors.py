"""What users of the Arrow functions are told when something cannot be."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.arrow import Limits, joiner, place, probe
from windjoin.arrow.pieces import cut
from windjoin.arrow.plan import Strategy, single
from windjoin.arrow.routes import Copies
from windjoin.arrow.segments import SegmentWriter
from windjoin.diffusion.choose import KNOWN
from windjoin.diffusion.registry import SHIPPED, STRATEGIES

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64())])


def pair(**options: Any) -> wj.Query:
    a, b = (wj.stream(name, time="ts", window=5) for name in "ab")
    return wj.join(a, b, on=a["k"] == b["k"], **options)


def test_strategies_are_those_of_the_registry() -> None:
    assert set(get_args(Strategy)) == set(SHIPPED) == set(KNOWN)
    assert set(SHIPPED) <= set(STRATEGIES)


def test_segments_out_of_order_are_refused() -> None:
    plan = single(pair(), {"a": SCHEMA, "b": SCHEMA})
    rows = pa.record_batch({"ts": [5], "k": [1]})
    segments = []
    for start in (5, 4):
        writer = SegmentWriter(0, 0, Limits())
        copies = Copies(np.array([0]), np.array([0], np.int32))
        segments += [*writer.write(rows, np.array([start]), copies), *writer.finish()]
    with pytest.raises(wj.DataError, match=r"starts at 4 comes after one that starts at 5; sort"):
        list(probe(segments, plan))


def test_joiner_refuses_what_it_cannot_tell() -> None:
    schemas = {"a": SCHEMA, "b": SCHEMA}
    with pytest.raises(wj.QueryError, match=r"joiner cannot tell which rows of different streams"):
        joiner(pair(exclude_self=True), stream_column="s", schemas=schemas)
    join = joiner(pair(), stream_column="s", schemas=schemas)
    rows = pa.record_batch({"s": ["a", "q"], "ts": [1, 1], "k": [1, 1]})
    with pytest.raises(wj.DataError, match=r"column 's', row 1 of its batch: 'q' is not a stream"):
        list(join([rows]))
    with pytest.raises(wj.SchemaError, match=r"stream 'a': these rows have no column 'k'"):
        list(join([pa.record_batch({"s": ["a"], "ts": [1]})]))
    with pytest.raises(wj.SchemaError, match=r"stream 'a': column 'k' is string in these rows but"):
        list(join([pa.record_batch({"s": ["a"], "ts": [1], "k": ["1"]})]))
    with pytest.raises(wj.SchemaError, match=r"stream_column='s': these rows have no such column"):
        list(join([pa.record_batch({"of": ["a"], "ts": [1], "k": [1]})]))
    with pytest.raises(wj.QueryError, match=r"stream_column=5: give the name of a column"):
        joiner(pair(), stream_column=5, schemas=schemas)  # type: ignore[arg-type]


def test_joiner_takes_numbers_of_another_type_and_columns_of_nulls() -> None:
    join = joiner(pair(), stream_column="s", schemas={"a": SCHEMA, "b": SCHEMA})
    narrow = pa.record_batch({"s": ["a"], "ts": [1], "k": pa.array([1.0], pa.float32())})
    nulls = pa.record_batch({"s": ["b"], "ts": [1], "k": pa.nulls(1)})
    other = pa.record_batch({"s": ["b"], "ts": [1], "k": [1]})
    assert sum(batch.num_rows for batch in join([narrow, nulls, other])) == 1


def test_joiner_takes_the_nearest_which_place_refuses() -> None:
    schemas = {"a": SCHEMA, "b": SCHEMA}
    query = pair(nearest=1, direction="backward")
    rows = pa.record_batch({"s": ["a", "b", "b"], "ts": [5, 2, 4], "k": [1, 1, 1]})
    (found,) = joiner(query, stream_column="s", schemas=schemas)([rows])
    assert found.to_pylist() == [{"a_ts": 5, "a_k": 1, "b_ts": 4, "b_k": 1}]
    with pytest.raises(wj.QueryError, match="nearest= is not for hosts="):
        place(query, schemas, hosts=1, strategy="single")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hosts": 0, "strategy": "groups"}, "hosts=0: give a number of hosts, 1 or more"),
        ({"hosts": 2, "strategy": "grups"}, "strategy='grups' is not known; did you mean 'groups'"),
    ],
)
def test_place_refuses_hosts_and_strategies_that_are_none(options: Any, message: str) -> None:
    with pytest.raises(wj.QueryError, match=message):
        place(pair(), {"a": SCHEMA, "b": SCHEMA}, **options)


def test_place_refuses_a_key_that_is_not_there() -> None:
    a, b = (wj.stream(name, time="ts", window=5) for name in "ab")
    query = wj.join(a, b, on=a["k"] != b["k"])
    with pytest.raises(wj.QueryError, match=r'strategy="groups" sends equal keys to one host'):
        place(query, {"a": SCHEMA, "b": SCHEMA}, hosts=2, strategy="groups")


def test_messages_stay_below_what_spark_can_move() -> None:
    gigabyte = pa.py_buffer(np.empty(2**30, np.uint8).data)  # never touched, so never in memory
    with pytest.raises(wj.DataError, match=r"a message of 2147483648 bytes is more than the 2 GiB"):
        cut([gigabyte, gigabyte], 8192)


def test_limits_are_positive_and_keep_numbers_aligned() -> None:
    with pytest.raises(wj.QueryError, match=r"Limits: block_rows=0; give 1 or more"):
        Limits(block_rows=0)
    with pytest.raises(wj.QueryError, match=r"Limits: piece_bytes=12; give a multiple of 8, so"):
        Limits(piece_bytes=12)


def test_nearest_is_refused() -> None:
    schema = pa.schema([("ts", pa.int64()), ("v", pa.list_(pa.float64()))])
    a, b = (wj.stream(name, time="ts", window=5) for name in "ab")
    query = wj.join(a, b, on=wj.l2(a["v"], b["v"]) <= 1, nearest=2)
    with pytest.raises(wj.QueryError, match=r"nearest= compares all partners of a row, which"):
        single(query, {"a": schema, "b": schema})
