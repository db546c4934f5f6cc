"""The named workloads: their rows, windows, thresholds, and the results every engine must find.

    python -m benchmarks.workloads W1 W2     # write them to the cache and check them by the oracle

Rows are cached as Arrow files in ``$WINDJOIN_BENCH_DATA`` or ``~/.cache/windjoin/bench``.
Times are int64 microseconds, windows closed, row numbers in time order.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from benchmarks import generators as g
from benchmarks import shapes
from benchmarks.generators import SECOND, generator

FORMAT = 1  # raise when the meaning of the cached files changes


@dataclass(frozen=True, slots=True)
class Workload:
    """One input with its query and the answer, found by an independent algorithm."""

    name: str
    about: str
    kind: shapes.Kind
    streams: int
    window: int
    results: int
    checksum: int
    generate: Callable[[], list[pa.Table]]
    limit: float = 0.0  # eps, least overlap, squared radius, greatest sum of differences

    def tables(self) -> list[pa.Table]:
        """Give the rows, from the cache when they are there."""
        paths = [cache_folder() / f"{self.name}-{FORMAT}-{n}.arrow" for n in range(self.streams)]
        if not all(path.exists() for path in paths):
            for rows, path in zip(self.generate(), paths, strict=True):
                _write(rows, path)
        return [_read(path) for path in paths]


def cache_folder() -> Path:
    """Give the folder for generated rows, made when missing."""
    default = Path.home() / ".cache" / "windjoin" / "bench"
    folder = Path(os.environ.get("WINDJOIN_BENCH_DATA", default))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write(rows: pa.Table, path: Path) -> None:
    # a name of its own first: another run may be reading or writing the same file
    unfinished = path.with_suffix(f".{os.getpid()}")
    rows = rows.combine_chunks()
    with pa.OSFile(str(unfinished), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
    unfinished.replace(path)


def _read(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source:  # into memory, not mapped: no page faults later
        return pa.ipc.open_file(source).read_all().combine_chunks()


def _w1() -> list[pa.Table]:
    return g.equality(generator("W1"), 2, 2_000_000, 10_000)


def _w3() -> list[pa.Table]:
    return g.sets(generator("W3"), rows=60_000, seconds=120, domain=100, mean=5.0, deviation=1.0)


def _w3l() -> list[pa.Table]:
    return g.sets(
        generator("W3L"), rows=300_000, seconds=60, domain=100_000, mean=10.0, deviation=2.0
    )


def _w3_slice() -> list[pa.Table]:
    return [rows.slice(0, 1_000) for rows in _w3()]


def _w3l_drift() -> list[pa.Table]:
    return g.drifting(generator("W3L_drift"), _w3l(), each_second=50)


def _shape(name: str, results: int, checksum: int) -> Workload:
    shape = shapes.SHAPES[name]
    # the windows of these shapes do not depend on the rows; one row is enough to ask
    window = shape.generate(1)[1]
    return Workload(
        name, shape.about, shape.kind, shape.streams, window, results, checksum,
        lambda: shape.generate(shape.rows)[0],
    )  # fmt: skip


W1 = (7_962_128, 8_549_580_360_002_326)
W2 = (1_593_133, 1_711_017_922_924_446)

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("W1", "2 x 2 M rows, a.k = b.k, 10,000 keys", "equality", 2, 10 * SECOND, *W1,
                 _w1),
        Workload("W1_sparse", "W1 with keys all over int64", "equality", 2, 10 * SECOND, *W1,
                 lambda: g.spread_keys(_w1())),
        Workload("W1_text", "W1 with text keys of 12 bytes", "equality", 2, 10 * SECOND, *W1,
                 lambda: g.text_keys(_w1())),
        Workload("W1_payload", "W1 giving 4 numbers and a text per side", "equality", 2,
                 10 * SECOND, *W1, lambda: g.with_payload(generator("payload"), _w1())),
        Workload("W1_ns", "W1 with times in nanoseconds", "equality", 2, 10_000 * SECOND, *W1,
                 lambda: g.in_nanoseconds(_w1())),
        Workload("W1s", "2 x 500 k rows, a.k = b.k, Zipf(1.1) keys", "equality", 2,
                 1_500_000, 20_333_158, 21_834_809_430_408_553,
                 lambda: g.skewed(generator("W1s"))),
        Workload("W2", "2 x 200 k rows, |a.x - b.x| <= 0.001", "band", 2, 10 * SECOND, *W2,
                 lambda: g.band(generator("W2")), 0.00100005),
        Workload("W2_ns", "W2 with times in nanoseconds", "band", 2, 10_000 * SECOND, *W2,
                 lambda: g.in_nanoseconds(g.band(generator("W2"))), 0.00100005),
        Workload("W3", "2 x 60 k sets of 5 of 100 items, overlap >= 3", "overlap", 2,
                 20 * SECOND, 14_853_046, 15_943_397_374_702_099, _w3, 3),
        Workload("W3L", "2 x 300 k sets of 10 of 100,000 items, overlap >= 4", "overlap", 2,
                 10 * SECOND, 19_028, 20_495_242_410_856, _w3l, 4),
        Workload("W3_slice", "W3, the first 1,000 rows of each stream", "overlap", 2, 20 * SECOND,
                 14_535, 15_502_618_803_371, _w3_slice, 3),
        Workload("W3L_drift", "W3L, items numbered at random; 50 popular ones change each second",
                 "overlap", 2, 10 * SECOND, 1_074, 1_160_851_290_604, _w3l_drift, 4),
        Workload("W4", "3 x 12 k vectors of 40 numbers, all distances <= r", "vectors", 3,
                 60 * SECOND, 3_190_755, 3_425_088_821_354_133,
                 lambda: g.clustered_vectors(generator("W4")), 4148.5),
        Workload("W5", "3 x 500 k rows, a.k = b.k = c.k, 20,000 keys", "equality", 3,
                 10 * SECOND, 92_734, 99_743_506_058_650,
                 lambda: g.equality(generator("W5"), 3, 500_000, 20_000)),
        Workload("W6", "2 x 1,000 images of 15,000 bytes, mean difference <= 76.4", "images", 2,
                 10 * SECOND, 38_741, 41_472_125_676_889, lambda: g.images(generator("W6")),
                 1_146_423),
        Workload("W7", "3 x 20 k rows, a.x < b.x, b.y < c.y, |a.x - c.x| <= 0.002", "plane", 3,
                 10 * SECOND, 2_428_458, 2_606_116_674_065_611,
                 lambda: g.plane(generator("W7")), 0.0020005),
        Workload("intervals", "2 x 100 k intervals that overlap, no window", "intervals", 2,
                 1000 * SECOND, 2_001_825, 2_150_926_717_720_226,
                 lambda: g.intervals(generator("intervals"))),
        Workload("intervals_window", "2 x 100 k intervals that overlap within 100 s",
                 "intervals", 2, 100 * SECOND, 380_209, 408_659_721_029_642,
                 lambda: g.intervals(generator("intervals"))),
        _shape("keys_once", 19_803, 21_180_874_020_797),
        _shape("key_one", 3_998_972, 4_292_748_333_955_309),
        _shape("keys_hot", 8_019_518, 8_610_188_503_205_967),
        _shape("times_equal", 4_001_699, 4_298_172_737_473_450),
    )
}  # fmt: skip


def main() -> int:
    """Write workloads to the cache and compare the oracle's answer with the recorded one."""
    from benchmarks.oracle import oracle

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(WORKLOADS)}")
    names = parser.parse_args().names or list(WORKLOADS)
    if unknown := [name for name in names if name not in WORKLOADS]:
        parser.error(f"unknown workloads {unknown}; there are {', '.join(WORKLOADS)}")
    wrong = 0
    for name in names:
        workload = WORKLOADS[name]
        start = time.perf_counter()
        tables = workload.tables()
        loaded = time.perf_counter()
        found = oracle(workload.kind, tables, workload.window, workload.limit)
        same = found == (workload.results, workload.checksum)
        wrong += not same
        print(
            f"{name}: {'agrees' if same else 'DIFFERS'}, results {found[0]}, checksum {found[1]},"
            f" rows in {loaded - start:.1f} s, oracle in {time.perf_counter() - loaded:.1f} s",
            flush=True,
        )
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
