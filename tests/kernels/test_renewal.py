"""Memory is given back when rows have gone, and results do not tell."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.kernels import intake, renewal
from windjoin.kernels.live import LiveJoin
from windjoin.kernels.renewal import Renewal
from windjoin.kernels.spec import BytesColumn
from windjoin.pyx.base.column import Ring
from windjoin.pyx.encoding.keys import KeySpace
from windjoin.pyx.encoding.string_keys import BytesSpace

from tests.api import open_session, run_session
from tests.cases import SessionCase
from tests.compare import assert_same_results
from tests.oracle import replay
from tests.strategies import sessions

# -- when -----------------------------------------------------------------------------------------


def test_few_rows_for_half_a_window_are_a_reason():
    one = Renewal(100)
    assert not one.due(20_000, 20_000, [1000, 990])
    assert not one.due(5_000, 20_000, [1100, 990])
    assert one.patience(4_000) == 500
    assert not one.due(4_000, 24_000, [1149, 990])
    assert one.due(4_000, 24_010, [1149, 1040])
    assert one.patience(4_000) == 0
    assert not one.due(10, 25_000, [9000, 9000])  # of 4,000: not worth it


def test_rows_that_come_again_at_once_are_none():
    one = Renewal(100)
    assert not one.due(20_000, 20_000, [0])
    assert not one.due(10, 20_000, [10])
    assert not one.due(20_000, 40_000, [50])
    assert not one.due(10, 40_000, [60])
    assert one.due(10, 40_000, [110])


def test_what_was_in_vain_is_done_more_and_more_rarely():
    one, come, now, done = Renewal(100), 0, 0, 0
    for _ in range(50):
        come += 20_000
        assert not one.due(20_000, come, [now])
        for _ in range(10):  # few rows for ten windows, then many again
            now += 100
            done += one.due(100, come, [now])
    assert done == 3
    one.due(20_000, come, [now])
    assert not one.due(100, come, [now])
    assert not one.due(100, come, [now + 3100])
    assert one.due(100, come, [now + 3200])
    come += 16 * 20_000  # this time they stayed away for long
    one.due(20_000, come, [now + 5000])
    one.due(100, come, [now + 5000])
    assert one.due(100, come, [now + 5050])


# -- that nothing is changed ----------------------------------------------------------------------


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Look after every push, and begin anew whenever there are fewer rows than before."""
    monkeypatch.setattr(renewal, "LEAST_PEAK", 1)
    monkeypatch.setattr(renewal, "SHARE", 1)
    monkeypatch.setattr(intake, "MAINTAIN_EVERY", 1)
    follow, due, times = LiveJoin._follow, Renewal.due, [0]

    def following(join: LiveJoin, orders: Any) -> None:
        follow(join, orders)
        for feed in join.joiners:
            feed.patience = 1

    def counted(one: Renewal, *seen: Any) -> bool:
        is_due = due(one, *seen)
        times[0] += is_due
        return is_due

    monkeypatch.setattr(LiveJoin, "_follow", following)
    monkeypatch.setattr(Renewal, "due", counted)
    monkeypatch.setattr(Renewal, "patience", lambda one, rows: 1)
    yield times
    assert times[0] > 0


def test_results_are_those_of_sessions_that_never_begin_anew(often: list[int]):
    @given(sessions())
    def check(session_case: SessionCase) -> None:
        outcome = replay(session_case.case.query, session_case.events(), session_case.lateness)
        results, rejected, _ = run_session(session_case, open_session(session_case))
        for number, (got, owed) in enumerate(zip(results, outcome.results, strict=True)):
            assert_same_results(got.elements(), owed, f"step {number}")
        assert rejected == [[row for row, _ in rows] for rows in outcome.rejected]

    check()


def columns(random: Any, n: int) -> dict[str, Any]:
    return {
        "k": random.integers(0, 40, n), "j": random.integers(0, 3, n), "x": random.random(n),
        "s": [f"text {key}" for key in random.integers(0, 40, n)],
        "i": [sorted(set(random.integers(0, 30, 6).tolist())) for _ in range(n)],
        "v": list(random.random((n, 4)).astype("f4")),
    }  # fmt: skip


def queries() -> dict[str, tuple[wj.Query, str]]:
    a, b, c = (wj.stream(name, time="t", window=40) for name in "abc")
    weighted = wj.inner_product((a["i"], a["w"]), (b["i"], b["w"]))
    return {
        "equality": (wj.join(a, b, on=a["k"] == b["k"]), "k"),
        "text": (wj.join(a, b, on=a["s"] == b["s"]), "s"),
        "composite": (wj.join(a, b, on=[a["k"] == b["k"], a["j"] == b["j"]]), "kj"),
        "band": (wj.join(a, b, on=abs(a["x"] - b["x"]) <= 0.01), "x"),
        "inequality": (wj.join(a, b, on=a["x"] + 0.9 < b["x"]), "x"),
        "sets": (wj.join(a, b, on=wj.overlap(a["i"], b["i"]) >= 4), "i"),
        "weighted": (wj.join(a, b, on=weighted >= 9), "iw"),
        "vectors": (wj.join(a, b, on=wj.l2(a["v"], b["v"]) <= 0.2), "v"),
        "nearest": (wj.join(a, b, on=wj.l2(a["v"], b["v"]) <= 0.5, nearest=1), "v"),
        "three": (wj.join(a, b, c, on=[a["k"] == b["k"], b["s"] == c["s"]]), "ks"),
    }


KINDS = tuple(queries())


ON_HOSTS = [
    *[(kind, way) for kind in ("equality", "band", "sets", "three") for way in ("atr", "ctr")],
    *[("equality", "groups"), ("text", "groups"), ("text", "psp")],
]


@pytest.mark.parametrize(("kind", "strategy"), ON_HOSTS)
def test_so_does_one_on_hosts(kind: str, strategy: str, often: list[int]):
    bursts_give_what_run_gives(kind, 0, hosts=3, strategy=strategy)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_session_with_bursts_gives_what_run_gives(kind: str, seed: int, often: list[int]):
    bursts_give_what_run_gives(kind, seed)


def bursts_give_what_run_gives(kind: str, seed: int, **options: Any) -> None:
    query, used = queries()[kind]
    random, now = np.random.default_rng(seed), 0
    come: dict[str, list[Any]] = {name: [] for name in query.names}
    found = []
    with query.open(rows_only=True, **options) as session:
        for part in range(12):
            n = 120 if part % 5 == 2 else 4
            for name in query.names:
                rows = columns(random, n)
                rows["w"] = [[float(item % 3 + 1) for item in items] for items in rows["i"]]
                times = np.sort(random.integers(now, now + 30, n))
                batch = {"t": times, **{name: rows[name] for name in used}}
                come[name].append(batch)
                found.append(session.push(name, batch))
            now += 30
        found.append(session.close())
    tables = {
        name: {c: [value for one in parts for value in one[c]] for c in ("t", *used)}
        for name, parts in come.items()
    }
    whole = query.indices(tables)
    assert sum(len(one["a"]) for one in found) > 20
    assert multiset(found, query.names) == multiset([whole], query.names)


def multiset(found: list[dict[str, Any]], names: tuple[str, ...]) -> Counter[tuple[int, ...]]:
    return Counter(
        row
        for one in found
        for row in zip(*(one[name].tolist() for name in names), strict=True)
    )  # fmt: skip


KEYS = st.lists(st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1), max_size=60)


@given(KEYS, st.integers(1, 5), st.randoms(use_true_random=False))
def test_keys_keep_their_remainders_under_new_codes(keys: list[int], classes: int, random: Any):
    space = KeySpace()
    codes = space.encode(np.array(keys, np.int64))
    live = np.array([random.random() < 0.4 for _ in range(space.n_codes)], np.uint8)
    new = space.renumber(live, classes)
    kept = np.flatnonzero(live)
    assert np.array_equal(new[kept] % classes, kept % classes)
    for remainder in range(classes):
        of_class = sorted(new[kept][kept % classes == remainder].tolist())
        assert of_class == list(range(remainder, remainder + classes * len(of_class), classes))
    again = space.encode(np.array(keys, np.int64))
    stayed = live[codes] == 1
    assert np.array_equal(again[stayed], new[codes[stayed]])
    assert len(set(zip(again.tolist(), keys, strict=True))) == len(set(keys)) == space.used
    assert sorted({*again.tolist()} - set(range(space.n_codes))) == []


@given(KEYS, st.randoms(use_true_random=False))
def test_keys_keep_their_order_under_new_codes(keys: list[int], random: Any):
    space = KeySpace()
    codes = space.encode(np.array(keys, np.int64))
    live = np.array([random.random() < 0.5 for _ in range(space.n_codes)], np.uint8)
    new = space.renumber(live)
    assert new[live == 1].tolist() == list(range(int(live.sum())))
    assert set(new[live == 0].tolist()) <= {-1}
    assert space.used == space.n_codes == int(live.sum())
    again = space.encode(np.array(keys, np.int64))
    stayed = live[codes] == 1
    assert np.array_equal(again[stayed], new[codes[stayed]])
    assert len(set(zip(again.tolist(), keys, strict=True))) == len(set(keys))


TEXTS = st.lists(st.binary(max_size=3) | st.binary(min_size=20, max_size=40), max_size=40)


@given(TEXTS, st.randoms(use_true_random=False))
def test_texts_keep_their_order_under_new_codes(texts: list[bytes], random: Any):
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    column = BytesColumn(offsets, np.frombuffer(b"".join(texts), np.uint8))
    space = BytesSpace()
    codes = space.encode(column)
    live = np.array([random.random() < 0.5 for _ in range(space.n_codes)], np.uint8)
    new = space.renumber(live)
    again = space.encode(column)
    stayed = live[codes] == 1
    assert np.array_equal(again[stayed], new[codes[stayed]])
    assert len(set(zip(again.tolist(), texts, strict=True))) == len(set(texts))


def test_a_ring_takes_new_codes():
    ring = Ring(np.int32, 4)
    ring.put(3, np.array([2, -1, 0], np.int32))
    ring.renumber(3, 6, np.array([7, -1, 5], np.int32))
    assert ring.get(3, 3).tolist() == [5, -1, 7]


def test_many_keys_take_no_more_than_few_when_they_are_gone():
    space = KeySpace()
    space.encode(np.arange(100_000))
    space.renumber(np.zeros(space.n_codes, np.uint8))
    assert space.nbytes < 2000
    texts = BytesSpace()
    offsets = np.arange(0, 800_001, 8)
    texts.encode(BytesColumn(offsets, np.arange(100_000).view(np.uint8)))
    live = np.zeros(texts.n_codes, np.uint8)
    live[50_000] = 1
    texts.renumber(live)
    assert texts.nbytes < 2000
    one = BytesColumn(np.array([0, 8]), np.array([50_000]).view(np.uint8))
    assert texts.encode(one).tolist() == [0]


# -- that it is given back ------------------------------------------------------------------------

PROGRAM = """
import gc, json, os, sys
import numpy as np, pyarrow as pa, pyarrow.compute as pc, windjoin as wj

MANY, BATCH, WINDOW = 120_000, 2_000, 300
random = np.random.default_rng(0)

def batch(first, n):
    keys = random.integers(0, 2**40, n)
    return pa.table({
        "t": np.arange(first, first + n), "k": keys, "j": random.integers(0, 2**40, n),
        "x": random.random(n), "y": random.random(n),
        "s": pc.binary_join_element_wise("key", pa.array(keys).cast(pa.string()), "-"),
        "i": pa.FixedSizeListArray.from_arrays(random.integers(0, 4000, 5 * n), 5),
        "v": pa.FixedSizeListArray.from_arrays(random.random(16 * n).astype("f4"), 16),
        "m": pa.Array.from_buffers(pa.binary(64), n, [None, pa.py_buffer(random.bytes(64 * n))]),
    })

a, b, c = (wj.stream(name, time="t", window=WINDOW) for name in "abc")
queries = {
    "equality": wj.join(a, b, on=a["k"] == b["k"]),
    "text": wj.join(a, b, on=a["s"] == b["s"]),
    "composite key": wj.join(a, b, on=[a["k"] == b["k"], a["j"] == b["j"]]),
    "band": wj.join(a, b, on=abs(a["x"] - b["x"]) <= 1e-9),
    "inequality": wj.join(a, b, on=a["x"] + 10 < b["x"]),
    "box": wj.join(a, b, on=[a["x"] + 10 < b["x"], a["y"] + 10 < b["y"]]),
    "udf": wj.join(a, b, on=wj.udf(lambda x, y: x * y > 1e9, a["x"], b["x"])),
    "pairs": wj.join(a, b, on=(a["x"] > b["x"] + 10) | (a["x"] * b["x"] > 1e9)),
    "sets": wj.join(a, b, on=wj.overlap(a["i"], b["i"]) >= 5),
    "vectors": wj.join(a, b, on=wj.l2(a["v"], b["v"]) <= 0.01),
    "images": wj.join(a, b, on=wj.mean_abs_diff(a["m"], b["m"]) <= 1),
    "three streams": wj.join(a, b, c, on=[a["k"] == b["k"], b["j"] == c["j"]]),
}

def resident():
    gc.collect()
    pa.default_memory_pool().release_unused()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

def one_by_one(session, first):
    few = {name: batch(first, WINDOW) for name in query.names}
    for at in range(WINDOW):
        for name, rows in few.items():
            session.push(name, rows.slice(at, 1))

def measured(query, rows_only, rows):
    "Held by few rows of all streams, then with many of the first, then a window after they went."
    seen = []
    schemas = {name: batch(0, 1).schema for name in query.names}
    with query.open(schemas, rows_only=rows_only, hosts=hosts) as session:
        for name in query.names:
            session.push(name, batch(0, 1))
        one_by_one(session, 1)
        seen.append((session.state_bytes, resident()))
        time, most = 1 + WINDOW, 0
        while time < rows:
            session.push(query.names[0], batch(time, BATCH))
            time += BATCH
        seen.append((session.state_bytes, resident()))
        for name in query.names[1:]:
            session.advance(name, time)
        one_by_one(session, time)
        seen.append((session.state_bytes, resident()))
        assert session.metrics["streams"][query.names[0]]["state_rows"] < 2 * WINDOW
    return seen

query, hosts = queries[sys.argv[1]], int(sys.argv[2]) or None
outcome = []
for rows_only in (True, False):
    measured(query, rows_only, 1)  # loads and compiles all there is to load
    outcome.append(measured(query, rows_only, MANY))
print(json.dumps(outcome))
"""
HELD = (
    *("equality", "text", "composite key", "band", "inequality", "box", "udf", "pairs"),
    *("sets", "vectors", "images", "three streams"),
)


@pytest.mark.parametrize(
    ("kind", "hosts"), [*((kind, 0) for kind in HELD), ("equality", 2), ("band", 2), ("sets", 2)]
)
def test_memory_is_given_back_within_a_window(kind: str, hosts: int):
    arguments = [sys.executable, "-c", PROGRAM, kind, str(hosts)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for few, many, after in json.loads(done.stdout):
        assert many[0] > few[0] + 2_000_000
        assert after[0] < 1.3 * few[0] + (2_000_000 if hosts else 200_000)
        assert after[1] < few[1] + 0.2 * (many[1] - few[1]) + 2_000_000


def test_rows_that_came_too_late_for_all_others_are_not_held():
    a, b = (wj.stream(name, time="t", window=10) for name in "ab")
    for rows_only in (True, False):
        with wj.join(a, b, on=a["k"] == b["k"]).open(rows_only=rows_only) as session:
            keys = np.zeros(100, np.int64)
            session.push("a", {"t": np.arange(100), "k": keys})
            session.push("b", {"t": np.array([5000]), "k": keys[:1]})
            for first in range(100, 1000, 100):  # nothing of b that is to come will meet these
                session.push("a", {"t": np.arange(first, first + 100), "k": keys})
                assert session.metrics["streams"]["a"]["state_rows"] == 0
            session.push("a", {"t": np.array([4990, 4991]), "k": keys[:2]})
            assert session.metrics["streams"]["a"]["state_rows"] == 2
            assert session.metrics["results"] == 2


@given(
    pushes=st.lists(st.lists(st.integers(-40, 40), max_size=60), min_size=1, max_size=6),
    spread=st.sampled_from([1, 7, 2**40]),
    reserved=st.sampled_from([None, 3, 200]),
    data=st.data(),
)
def test_forgotten_keys_give_back_their_codes(
    pushes: list[list[int]], spread: int, reserved: int | None, data: st.DataObject
) -> None:
    space, known = KeySpace(), {}
    if reserved is not None:
        space.reserve(reserved, data.draw(st.sampled_from([None, 0, 2**64 - 64])))
    for keys in pushes:
        column = np.array(keys, np.int64) * spread
        for key, code in zip(column.tolist(), space.encode(column).tolist(), strict=True):
            assert known.setdefault(key, code) == code
        assert len(set(known.values())) == len(known) == space.used
        live = np.array([data.draw(st.booleans()) for _ in range(space.n_codes)], np.uint8)
        gone = [key for key, code in known.items() if not live[code]]
        codes = {known.pop(key) for key in gone}
        assert {k for k, went in enumerate(space.forget(live)) if went} == codes
        assert space.used == len(known)
        held = np.array(list(known), np.int64)
        assert space.encode(held).tolist() == list(known.values())
        assert space.n_codes <= 121


def test_a_space_with_room_for_its_keys_is_as_one_that_grew() -> None:
    keys = np.random.default_rng(0).permutation(5000) + 2**40
    grown, spacious = KeySpace(), KeySpace()
    codes = grown.encode(keys)
    spacious.reserve(len(keys), grown.close_from)
    before = spacious.nbytes
    assert spacious.encode(keys).tolist() == codes.tolist()
    assert spacious.nbytes == before <= grown.nbytes
    assert spacious.close_together
    assert grown.close_together
