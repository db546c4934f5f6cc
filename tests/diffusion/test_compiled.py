"""What is compiled in routers decides as its definition in plain Python does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from windjoin.diffusion.load import Host, LoadBook, Usage, Weights
from windjoin.diffusion.router import Move, Part
from windjoin.pyx.routing.aging import AgingRows
from windjoin.pyx.routing.tasks import TaskTable

from tests.diffusion import plain

TIMES = st.integers(-20, 60)
TASK = st.tuples(
    st.sampled_from([0, 1, 2, 63, 64, 130]),
    st.integers(0, 61),
    st.lists(st.tuples(TIMES, st.integers(0, 40)), min_size=2, max_size=2),
)


def _tasks(drawn: list[tuple[int, int, list[tuple[int, int]]]]) -> list[plain.Task]:
    return [
        (host, mark, [low for low, _ in box], [low + length for low, length in box])
        for host, mark, box in drawn
    ]


@given(st.lists(TASK, max_size=12), TIMES, st.integers(1, 30), st.lists(TIMES, max_size=3))
def test_parts_of_tasks(drawn, start, length, watermarks) -> None:
    tasks = _tasks(drawn)
    table = TaskTable(2, Part)
    for task in tasks:
        table.add(*task)
    for watermark in sorted(watermarks):
        table.expire(watermark)
        tasks = [task for task in tasks if max(task[3]) > watermark]
        assert [tuple(task) for task in table.dump()] == tasks
        more = (5, 7, [watermark, start], [watermark + 9, start + length])
        table.add(*more)
        tasks.append(more)
    for stream in (0, 1):
        parts, hosts, time = table.parts(stream, start, start + length)
        assert all(type(part) is Part and part.groups == () for part in parts)
        assert [part[:4] for part in parts] == plain.parts_of(tasks, stream, start, start + length)
        assert hosts == tuple(sorted({part.host for part in parts}))
        assert time == sum(part.stop - part.start for part in parts)
    for host in (0, 63, 64):
        ends = [max(task[3]) for task in tasks if task[0] == host]
        assert table.ends_after(host, start) == any(end > start for end in ends)


def test_a_table_of_tasks_keeps_all_of_them_when_it_grows() -> None:
    table, tasks = TaskTable(2, Part), []
    for k in range(1000):
        tasks.append([k % 300, k % 62, [k, -k], [k + 9, k]])
        table.add(*tasks[-1])
        if k % 7 == 0:
            table.expire(k - 400)
            tasks = [task for task in tasks if max(task[3]) > k - 400]
        assert len(table) == len(tasks)
    assert table.dump() == tasks
    table.rehome(3, 900)
    assert table.dump()[3][0] == 900


@given(
    st.permutations([0, 1, 2, 7]),
    st.lists(st.integers(0, 12), min_size=3, max_size=3).map(sorted),
    st.lists(st.tuples(st.sampled_from([0, 1, 2, 7]), st.integers(0, 9), st.integers(1, 9))),
    st.integers(0, 80),
    st.booleans(),
)
def test_rows_age_through_the_slices(order, ages, stretches, now, onward) -> None:
    rows, held, at = AgingRows(Move), [], 0
    for host, gap, length in stretches:
        held.append((host, at + gap, at + gap + length))
        at += gap + length
    rows.fill(held)
    assert rows.dump() == held
    rows.set_slices(order, [*ages, 99])
    cuts = [10_000, *(now - age for age in ages), -10_000]
    slices = [(host, cuts[k + 1], cuts[k]) for k, host in enumerate(order)][::-1]
    moves = rows.settle(1, now, -10_000, 10_000, onward)
    renewed, expected = plain.settled(held, slices, order, onward=onward)
    assert rows.dump() == renewed
    assert moves == [Move(1, *each) for each in expected]
    rows.expire(now)
    assert rows.dump() == [(h, max(a, now), b) for h, a, b in renewed if b > now]
    assert rows.holds(7) == any(host == 7 for host, _, _ in rows.dump())


HOSTS = st.lists(st.sampled_from([1, 2, 4]), min_size=1, unique=True)
USED = st.tuples(*[st.integers(0, 9).map(float)] * 3)
STEP = st.one_of(
    st.tuples(st.just("assign"), HOSTS, st.integers(0, 9), st.integers(0, 9), st.integers(0, 20)),
    st.tuples(st.just("settle"), st.integers(0, 20)),
    st.tuples(st.just("report"), st.dictionaries(st.sampled_from([1, 2, 4]), USED), TIMES),
)


@given(st.lists(STEP, max_size=25))
def test_work_in_flight(steps) -> None:
    weights = (0.5, 0.25, 0.25)
    hosts = [Host(n, cpu=1.0, memory=1.0, network=1.0) for n in (1, 2, 4)]
    book = LoadBook(hosts, span=1, weights=Weights(*weights))
    model = plain.Book(weights, dict.fromkeys((1, 2, 4), 0.0))
    for name, *given_ in steps:
        match name:
            case "assign":
                targets, rows, n_bytes, due = given_
                book.assign(targets, rows=rows, bytes=n_bytes, due=due)
                model.assign(targets, rows, n_bytes, due)
            case "settle":
                book.settle(*given_)
                model.settle(*given_)
            case "report":
                usage, now = given_
                book.report({host: Usage(*used) for host, used in usage.items()}, now=now)
                model.report(usage, now)
        loads = book.loads()
        assert [loads[n] for n in (1, 2, 4)] == pytest.approx([model.load(n) for n in (1, 2, 4)])
        by_load = sorted((1, 2, 4), key=lambda n: (loads[n], n))
        assert book.least_loaded(3) == by_load
        assert book.least_loaded(1) == by_load[:1]
        assert LoadBook.from_state(book.state()).loads().tolist() == loads.tolist()
