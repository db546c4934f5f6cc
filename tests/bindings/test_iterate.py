"""Generators over batches, plain and asynchronous, give what a batch run gives."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj
from windjoin.session import Session

NAMES = ("a", "b")
A, B = (wj.stream(name, time="t", window=20) for name in NAMES)
QUERY = wj.join(A, B, on=A["k"] == B["k"])


def table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"t": np.sort(rng.integers(0, 500, 200)), "k": rng.integers(0, 9, 200)})


TABLES = {name: table(seed) for seed, name in enumerate(NAMES)}


def rows(tables: list[pa.Table]) -> Counter[tuple[int, ...]]:
    return Counter(tuple(row.values()) for one in tables for row in one.to_pylist())


def test_iterate_gives_what_run_gives():
    sources = {name: one.to_batches(max_chunksize=13) for name, one in TABLES.items()}
    assert rows(list(QUERY.iterate(sources))) == rows([QUERY.run(TABLES)])


def test_iterate_takes_batches_of_very_different_sizes():
    sources = {
        "a": TABLES["a"].to_batches(max_chunksize=3),
        "b": TABLES["b"].to_batches(max_chunksize=150),
    }
    assert rows(list(QUERY.iterate(sources))) == rows([QUERY.run(TABLES)])


def test_aiterate_gives_what_run_gives():
    async def batches(name: str) -> AsyncIterator[pa.RecordBatch]:
        for batch in TABLES[name].to_batches(max_chunksize=17):
            await asyncio.sleep(0)
            yield batch

    async def collect() -> list[pa.Table]:
        sources = {name: batches(name) for name in NAMES}
        return [one async for one in QUERY.aiterate(sources, lateness=500)]

    assert rows(asyncio.run(collect())) == rows([QUERY.run(TABLES)])


def test_sources_must_be_one_for_each_stream():
    with pytest.raises(wj.QueryError, match="sources: got 'a'; give one iterable of batches for"):
        QUERY.iterate({"a": []})
    with pytest.raises(
        wj.QueryError, match=r"sources\['b'\] is a int; give an iterable of batches"
    ):
        QUERY.iterate({"a": [], "b": 3})  # type: ignore[dict-item]


def test_asynchronous_sources_must_be_asynchronous():
    with pytest.raises(wj.QueryError, match="is a list; give an asynchronous iterable of batches"):
        QUERY.aiterate({"a": [], "b": []})  # type: ignore[dict-item]


def test_options_are_refused_at_the_call():
    with pytest.raises(wj.QueryError, match="on_late='no': give on_late="):
        QUERY.iterate({"a": [], "b": []}, on_late="no")
    with pytest.raises(wj.QueryError, match="hosts=0: give a number of hosts"):
        QUERY.aiterate(sleeping(), hosts=0)


@pytest.mark.parametrize("batch_rows", [None, 40])
def test_the_event_loop_goes_on_while_batches_are_joined(
    batch_rows: int | None, monkeypatch: pytest.MonkeyPatch
):
    """Each call that joins waits until the loop has gone on meanwhile: it cannot be in the loop."""
    joined: Counter[str] = Counter()

    async def use() -> list[pa.Table]:
        loop = asyncio.get_running_loop()

        def watched(name: str) -> None:
            works = getattr(Session, name)

            def call(self: Session, *arguments: Any, **options: Any) -> Any:
                went_on = threading.Event()
                loop.call_soon_threadsafe(went_on.set)
                assert went_on.wait(10), f"the event loop stands still in Session.{name}"
                joined[name] += 1
                return works(self, *arguments, **options)

            monkeypatch.setattr(Session, name, call)

        async def batches(name: str) -> AsyncIterator[pa.RecordBatch]:
            for batch in TABLES[name].to_batches(max_chunksize=17):
                yield batch

        for name in ("push", "push_many", "finish", "close"):
            watched(name)
        sources = {name: batches(name) for name in NAMES}
        results = QUERY.aiterate(sources, lateness=500, batch_rows=batch_rows)
        return [one async for one in results]

    assert rows(asyncio.run(use())) == rows([QUERY.run(TABLES)])
    assert joined["push" if batch_rows is None else "push_many"] >= 5
    assert (joined["finish"], joined["close"]) == (2, 1)


# -- handles --------------------------------------------------------------------------------------


def batches(*times: int) -> list[dict[str, list[int]]]:
    return [{"t": [time], "k": [1]} for time in times]


async def paced(*times: int, pace: float = 0) -> AsyncIterator[dict[str, list[int]]]:
    for batch in batches(*times):
        await asyncio.sleep(pace)
        yield batch


def sleeping() -> dict[str, AsyncIterator[Any]]:
    return {"a": paced(1, 2, pace=3600), "b": paced(1, 2)}


def test_late_rows_and_counters_are_on_the_handle():
    results = QUERY.iterate({"a": batches(1, 9, 5), "b": batches(2, 8)}, on_late="keep")
    assert iter(results) is results
    assert results.metrics["rows_in"] == 0
    found = [next(results)]
    assert results.metrics["rejected"] == 0
    found += results
    assert sum(map(len, found)) == 4
    for _ in range(2):
        assert results.metrics["rejected"] == results.metrics["streams"]["a"]["late"] == 1
        assert results.rejected["a"]["t"].to_pylist() == [5]
        results.close()
    with pytest.raises(StopIteration):
        next(results)


def test_the_first_late_row_warns_where_the_loop_is():
    results = QUERY.iterate({"a": batches(1, 9, 5), "b": batches(2)})
    with pytest.warns(wj.LateRowWarning, match="its time 5 .* lateness=4 or more") as told:
        assert len(list(results)) == 2
    assert [one.filename for one in told] == [__file__]


def test_an_error_ends_the_iteration_and_is_told_once():
    results = QUERY.iterate({"a": batches(1, 9, 5), "b": batches(2)}, on_late="raise")
    with pytest.raises(wj.LateRowError, match="its time 5"):
        list(results)
    assert list(results) == []
    assert (results.metrics["rows_in"], results.metrics["rejected"]) == (3, 0)


def test_a_batch_of_nothing_is_an_error_and_not_the_end():
    with pytest.raises(wj.InputError, match="NoneType is not a table"):
        list(QUERY.iterate({"a": [None], "b": []}))


def test_advance_inside_the_loop_lets_rows_go():
    held = []
    with QUERY.iterate({"a": batches(*range(0, 1000, 10)), "b": batches(0, 1000)}) as results:
        for number, _ in enumerate(results):
            if number == 0:
                results.advance("b", 985)
            held.append(results.metrics["streams"]["a"]["state_rows"])
    assert held == [0, 0, 0, 2]
    assert results.metrics["late"] == 0


def test_promises_say_which_stream_has_come_least_far():
    order = []

    def source(name: str, *times: int) -> Iterator[dict[str, list[int]]]:
        for batch in batches(*times):
            order.append((name, *batch["t"]))
            yield batch

    with QUERY.iterate({"a": source("a", 0, 5, 30, 60), "b": source("b", 0, 40)}) as results:
        next(results)
        results.advance("b", 35)
        list(results)
    assert order == [("a", 0), ("b", 0), ("a", 5), ("a", 30), ("a", 60), ("b", 40)]


class Dropped:
    """Whether what a handle holds has been let go of."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ended = 0
        let_go = Session._let_go

        def ending(session: Session) -> None:
            self.ended += 1
            let_go(session)

        monkeypatch.setattr(Session, "_let_go", ending)


@pytest.mark.parametrize("hosts", [None, 2])
@pytest.mark.parametrize("taken", [0, 1])
@pytest.mark.parametrize("how", ["dropped", "closed", "left"])
def test_a_handle_half_way_leaves_no_session_open(
    how: str, taken: int, hosts: int | None, monkeypatch: pytest.MonkeyPatch
):
    watched, threads = Dropped(monkeypatch), threading.active_count()
    known = {name: one.schema for name, one in TABLES.items()}
    sources = {name: one.to_batches(max_chunksize=50) for name, one in TABLES.items()}
    results = QUERY.iterate(sources, schemas=known, hosts=hosts)
    for _ in range(taken):
        next(results)
    if how == "closed":
        results.close()
    elif how == "left":
        with results:
            pass
    if how != "dropped":
        assert results.metrics["rows_in"] > 0 or not taken
        assert list(results) == []
        with pytest.raises(wj.SessionError, match="this session is closed"):
            results.advance("a", 5)
    del results
    gc.collect()
    assert watched.ended == 1
    assert threading.active_count() == threads


@pytest.mark.parametrize("taken", [0, 1])
@pytest.mark.parametrize("how", ["dropped", "closed", "awaited", "left", "aclose"])
def test_an_asynchronous_handle_half_way_leaves_nothing_open(
    how: str, taken: int, monkeypatch: pytest.MonkeyPatch
):
    watched = Dropped(monkeypatch)

    async def use() -> None:
        results = QUERY.aiterate({"a": paced(1, 2), "b": paced(1, 9, pace=0.001)})
        for _ in range(taken):
            await anext(results)
        assert results.metrics["rejected"] == 0
        if how == "closed":
            results.close()
        elif how == "awaited":
            await results.close()
        elif how == "aclose":
            await results.aclose()
        elif how == "left":
            async with results:
                pass
        if how != "dropped":
            assert [table async for table in results] == []
            assert results.rejected == {} or taken
        del results
        gc.collect()
        assert watched.ended == 1
        await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(use())


def test_an_asynchronous_handle_may_outlive_its_loop(monkeypatch: pytest.MonkeyPatch):
    watched = Dropped(monkeypatch)

    async def use() -> Any:
        results = QUERY.aiterate(sleeping())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(results), 0.05)
        return results

    results = asyncio.run(use())
    assert results.metrics["rows_in"] == 2
    del results
    gc.collect()
    assert watched.ended == 1


def test_closing_while_another_task_waits_ends_its_loop():
    async def use() -> list[Any]:
        results = QUERY.aiterate(sleeping())

        async def consume() -> list[Any]:
            return [table async for table in results]

        consumer = asyncio.create_task(consume())
        await asyncio.sleep(0.02)
        await results.close()
        return await asyncio.wait_for(consumer, 5)

    assert asyncio.run(use()) == []


def test_a_timeout_while_waiting_loses_nothing():
    async def use() -> int:
        found = 0
        async with QUERY.aiterate({"a": paced(1, 2, 3), "b": paced(1, 2, pace=0.03)}) as results:
            while True:
                try:
                    found += len(await asyncio.wait_for(anext(results), 0.005))
                except TimeoutError:
                    results.advance("a", 0)
                except StopAsyncIteration:
                    return found

    assert asyncio.run(use()) == 6


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError])
def test_an_error_of_a_source_is_told_and_ends_all(error: type[BaseException]):
    async def failing() -> AsyncIterator[Any]:
        yield batches(1)[0]
        raise error

    async def use() -> None:
        results = QUERY.aiterate({"a": failing(), "b": paced(1, 2, pace=0.01)})
        with pytest.raises(error):
            async for _ in results:
                pass
        assert [table async for table in results] == []
        assert results.metrics["rows_in"] >= 1

    asyncio.run(use())


def test_another_thread_may_close_a_handle():
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[Any]:
        yield batches(1)[0]
        begun.set()
        go_on.wait(10)
        yield batches(2)[0]

    results = QUERY.iterate({"a": slow(), "b": batches(1)})
    found: list[Any] = []
    loop = threading.Thread(target=lambda: found.extend(results))
    loop.start()
    assert begun.wait(10)
    results.close()
    go_on.set()
    loop.join(10)
    assert not loop.is_alive()
    assert len(found) == 1
