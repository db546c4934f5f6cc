"""A program as users write it, which mypy and pyright check strictly."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from datetime import timedelta

import pyarrow as pa
import windjoin as wj

calls = wj.stream("calls", time="ts", window="60s", unit="s", where=lambda calls: calls["x"] > 0)
trades = wj.stream("trades", time="ts", window=timedelta(seconds=30), unit="s")
last = wj.stream("last", time="ts", window=wj.rows(100))

query = wj.join(
    calls,
    trades,
    on=[
        calls["person"] == trades["person"],
        abs(calls["x"] - trades["y"]) <= 0.5,
        calls["ts"] <= trades["ts"],
    ],
    select=[calls["person"], (calls["x"] + trades["y"]).alias("sum")],
    how="left",
)
tables = {
    "calls": {"ts": [1, 2], "person": ["ann", "bob"], "x": [1.0, 2.0]},
    "trades": pa.table({"ts": [5], "person": ["ann"], "y": [1.25]}),
}


def batch() -> int:
    found = query.run(tables, threads=2, ordered=True)
    rows: int = found.num_rows
    people = found.column("calls_person").to_pylist()
    indices = query.indices(tables)
    return rows + len(people) + int(indices["calls"][0]) + query.metrics["results"]


def near(stream: wj.Stream) -> wj.Expression:
    """Conditions that programs make out of others."""
    soon: wj.Expression = calls["ts"].within(30, before=stream["ts"])
    alike = calls["person"].str.lower() == wj.coalesce(stream["person"], "nobody")
    return soon & alike & (calls["x"] + stream["y"]).is_in([1, 2.25])


def expressions() -> list[dict[str, object]]:
    both = wj.join(
        calls,
        trades,
        on=[near(trades), wj.udf(lambda x, y: x < y + 10, calls["x"], trades["y"])],
        select=[
            calls["x"].cast("float32").alias("x"),
            wj.greatest(calls["x"], trades["y"]).alias("most"),
            (-calls["x"] * 2).alias("twice"),
        ],
    )
    bound = both.bind({name: pa.table(tables[name]).schema for name in both.names})
    assert bound.schema.names == ["x", "most", "twice"]
    assert "select" not in f"{both.explain()} {both.explain('json')['streams']}"
    assert both.metrics["streams"]["calls"]["joinable"] == 0
    return [row for found in both.stream(tables) for row in found.to_pylist()]


def planned() -> float:
    plan: wj.Plan = wj.plan(query, rates={"calls": 10, "trades": 20})
    with query.open(plan=plan, keep_rejected=100, on_late="keep") as session:
        return sum(stream["lag"] or 0.0 for stream in session.metrics["streams"].values())


def asof() -> wj.Query:
    return wj.join(calls, trades, on=calls["person"] == trades["person"], nearest=1,
                   direction="backward")  # fmt: skip


def continuous(folder: str) -> int:
    with query.open(lateness="2s", idle="30s") as session:
        sink: wj.ParquetSink = session.to_parquet(folder, every="1m")
        session.push("calls", tables["calls"])
        session.push_many({"trades": tables["trades"]})
        session.advance("calls", 10)
        metrics = session.metrics
        session.save(f"{folder}/saved")
        again: wj.Session = wj.restore(query, f"{folder}/saved")
        again.close()
        return metrics["rows_in"] + metrics["streams"]["calls"]["late"] + sink.rows


def numbers() -> int:
    """With ``rows_only`` results are arrays of row numbers; else tables."""
    with query.open(rows_only=True) as session:
        session.push("calls", tables["calls"])
        found = session.push("trades", tables["trades"])
        rows = len(found["calls"]) + len(session.close()["trades"])
    with query.open() as other:
        other.push("calls", tables["calls"])
        rows += other.push("trades", tables["trades"]).num_rows + other.close().num_rows
    sources = {name: [tables[name]] for name in query.names}
    rows += sum(table.num_rows for table in query.iterate(sources, lateness="1s"))
    return rows + sum(len(one["calls"]) for one in query.iterate(sources, rows_only=True))


async def source(name: str) -> AsyncIterator[object]:
    yield tables[name]


async def asynchronous() -> int:
    rows = 0
    async for found in query.aiterate({name: source(name) for name in query.names}, lateness="5s"):
        rows += found.num_rows
    return rows


if __name__ == "__main__":
    assert batch() > 0
    assert expressions()
    assert planned() == 0.0
    assert numbers() > 0
    with tempfile.TemporaryDirectory() as made:
        assert continuous(made) > 0
    assert asyncio.run(asynchronous()) > 0
    assert asof().direction == "backward"
