"""The streams of the published experiments: sets whose popular items change with time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import windjoin as wj
from numpy.typing import NDArray

I64 = NDArray[np.int64]
ITEMS = 100
VALUES = 5000  # of the equality join
HALF = 50  # items in one integer: a set is two of them
SIZE, SPREAD = 5.0, 1.0  # of sets
WINDOW = 20  # seconds
CAPACITY = 2_000_000.0  # comparisons a second of the published machine: r is 0.2 at 500 rows/s
EACH = 250  # milliseconds of a push
BURST = ((60, 100), (15, 500), (30, 300), (15, 100))  # seconds, rows a second


class Setting(NamedTuple):
    """One experiment."""

    skew: float = 0.8  # kappa
    window: int = WINDOW  # seconds
    shifted: bool = True
    threshold: int = 3
    phases: Sequence[tuple[int, int]] = BURST
    equality: bool = False  # of one value, instead of sets


def sets(random: np.random.Generator, time: I64, skew: float, cycle: float, shift: float) -> Any:
    """Two columns of bits; the most popular item is another with time."""
    n = len(time)
    share = np.arange(1, ITEMS + 1) ** -skew
    ranks = np.searchsorted(np.cumsum(share / share.sum()), random.random((n, 20)))
    offset = (ITEMS * (((time / 1000 - shift) % cycle) / cycle)).astype(np.int64)
    items = (ranks + offset[:, None]) % ITEMS
    size = np.clip(np.rint(random.normal(SIZE, SPREAD, n)), 1, 12)
    low, high, count = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n)
    for item in items.T:
        bit = np.int64(1) << (item % HALF)
        has = np.where(item < HALF, low, high) & bit != 0
        new = ~has & (count < size)
        low |= np.where(new & (item < HALF), bit, 0)
        high |= np.where(new & (item >= HALF), bit, 0)
        count += new
    return {"low": low, "high": high}


def single(
    random: np.random.Generator, time: I64, skew: float, cycle: float, shift: float
) -> dict[str, I64]:
    """A column of values; the most popular one is another with time."""
    share = np.arange(1, VALUES + 1) ** -skew
    ranks = np.searchsorted(np.cumsum(share / share.sum()), random.random(len(time)))
    offset = (VALUES * (((time / 1000 - shift) % cycle) / cycle)).astype(np.int64)
    return {"x": (ranks + offset) % VALUES}


def streams(seed: int, setting: Setting) -> dict[str, dict[str, I64]]:
    """Rows of both streams."""
    random = np.random.default_rng(seed)
    cycle = 2.0 * setting.window
    made = {}
    for name, shift in (("a", 0.0), ("b", 5 / 8 * cycle if setting.shifted else 0.0)):
        parts, begin = [], 0
        for seconds, rate in setting.phases:
            times = random.integers(begin * 1000, (begin + seconds) * 1000, seconds * rate)
            parts.append(np.sort(times))
            begin += seconds
        time = np.concatenate(parts)
        columns = single if setting.equality else sets
        made[name] = {"t": time, **columns(random, time, setting.skew, cycle, shift)}
    return made


def match_shares(skew: float, threshold: int, rows: int = 1500) -> dict[float, float]:
    """Share of pairs of sets that match, by seconds between the times of their popular items."""
    random = np.random.default_rng(1)
    cycle, found = 2.0 * WINDOW, {}
    one = _as_bits(sets(random, np.zeros(rows), skew, cycle, 0.0))
    for apart in np.arange(0, WINDOW + 0.5, 0.5):
        other = _as_bits(sets(random, np.full(rows, apart * 1000), skew, cycle, 0.0))
        found[float(apart)] = float((one @ other.T >= threshold).mean())
    return found


def _as_bits(made: Any) -> NDArray[np.float32]:
    columns = [made[half][:, None] >> np.arange(HALF) & 1 for half in ("low", "high")]
    return np.concatenate(columns, axis=1).astype(np.float32)


def gains_there_are(skew: float, fraction: float, threshold: int = 3) -> tuple[float, float]:
    """What the streams hold for who knows the worth of every basic window, by its part r of work.

    The gain of time correlation adaptation over the newest part of both windows, and that of join
    direction adaptation on top.
    """
    shares = match_shares(skew, threshold)
    cycle, ages = 2.0 * WINDOW, np.arange(0.5, WINDOW)  # basic windows of a second
    worth = []
    for peak in (cycle * 3 / 8, cycle * 5 / 8):  # ages of the best partners in either window
        apart = np.abs((ages - peak + WINDOW) % cycle - WINDOW)
        worth.append(np.interp(apart, list(shares), list(shares.values())))

    def best(values: NDArray[Any], many: float) -> float:
        return float(np.interp(many, range(len(values) + 1), [0, *np.cumsum(values)]))

    each = fraction * len(ages)
    newest = sum(best(of, each) for of in worth)
    timed = sum(best(np.sort(of)[::-1], each) for of in worth)
    both = best(np.sort(np.concatenate(worth))[::-1], 2 * each)
    return timed / newest - 1, both / timed - 1


def alike3(low: int, high: int, other_low: int, other_high: int) -> bool:
    """Whether two sets have three items in common."""
    x = low & other_low
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    y = high & other_high
    y = y - ((y >> 1) & 0x5555555555555555)
    y = (y & 0x3333333333333333) + ((y >> 2) & 0x3333333333333333)
    x = ((x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F) + ((y + (y >> 4)) & 0x0F0F0F0F0F0F0F0F)
    x = x + (x >> 8)
    x = x + (x >> 16)
    return (x + (x >> 32)) & 127 >= 3


def alike4(low: int, high: int, other_low: int, other_high: int) -> bool:
    """Whether they have four."""
    x = low & other_low
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    y = high & other_high
    y = y - ((y >> 1) & 0x5555555555555555)
    y = (y & 0x3333333333333333) + ((y >> 2) & 0x3333333333333333)
    x = ((x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F) + ((y + (y >> 4)) & 0x0F0F0F0F0F0F0F0F)
    x = x + (x >> 8)
    x = x + (x >> 16)
    return (x + (x >> 32)) & 127 >= 4


def same(value: int, other: int) -> bool:
    """Whether two values are the same; no index knows that this is an equality."""
    return value == other


def query(setting: Setting) -> wj.Query:
    """A join without an index: every row of the window is compared with."""
    a, b = (
        wj.stream(name, time="t", window=f"{setting.window}s", unit="ms") for name in ("a", "b")
    )
    if setting.equality:
        return wj.join(a, b, on=wj.udf(same, a["x"], b["x"]))
    alike = alike3 if setting.threshold == 3 else alike4
    return wj.join(a, b, on=wj.udf(alike, a["low"], a["high"], b["low"], b["high"]))


class Outcome(NamedTuple):
    """Per second: results, and the fractions r of both streams."""

    results: list[int]
    fractions: dict[str, list[float]]
    metrics: Mapping[str, Any]

    def rate(self, begin: int, end: int) -> float:
        """Results a second between two times."""
        return sum(self.results[begin:end]) / (end - begin)


def play(seed: int, setting: Setting, **shed: Any) -> Outcome:
    """Push the streams into a session that has the published machine's CAPACITY."""
    made = streams(seed, setting)
    seconds = sum(length for length, _ in setting.phases)
    options = {"comparisons_per_s": CAPACITY, "clock": "event", "basic_window": "1s", **shed}
    results = [0] * seconds
    fractions: dict[str, list[float]] = {"a": [], "b": []}
    with query(setting).open(rows_only=True, shed=wj.Shedding(seed=seed, **options)) as session:
        for begin in range(0, seconds * 1000, EACH):
            for name, columns in made.items():
                first, past = np.searchsorted(columns["t"], [begin, begin + EACH])
                if past == first:
                    continue
                rows = {key: values[first:past] for key, values in columns.items()}
                results[begin // 1000] += len(session.push(name, rows)["a"])
            if (begin + EACH) % 1000 == 0:
                for name, of in session.metrics["shedding"]["streams"].items():
                    fractions[name].append(of["fraction"])
        metrics = session.metrics["shedding"]
    return Outcome(results, fractions, metrics)
