"""``windjoin run QUERY.toml``: join the files that a query file names."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
from windjoin.cli.files import check_output, write_table
from windjoin.cli.queryfile import QueryFile, read_query_file
from windjoin.cli.replay import replay
from windjoin.cli.text import first_rows, pace
from windjoin.cli.watch import watched
from windjoin.datasets import is_uri
from windjoin.errors import QueryError
from windjoin.memory import CHOICES, ON_FULL, Memory, OnFull, size_text
from windjoin.query import Query
from windjoin.shedding import Shedding

ROWS_SHOWN = 10
LARGE = 256 << 20  # bytes of files
MEMORY_OPTIONS = ("share", "choose", "groups", "idle", "disk_limit")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser("run", help="run a query that a TOML file describes")
    parser.add_argument("query", type=Path, metavar="QUERY.toml")
    parser.add_argument("--output", type=Path, help="where results go; instead of the file's own")
    add_bounds(parser)
    parser.add_argument("--rows", type=whole, default=ROWS_SHOWN, help="result rows to show")
    parser.add_argument(
        "--watch", action="store_true", help="join row by row on hosts, and draw how it goes"
    )
    parser.add_argument("--hosts", type=whole, default=2, help="of --watch; 2 if not given")
    parser.add_argument("--strategy", default="auto", help="of --watch; auto if not given")
    add_run_options(parser)
    parser.set_defaults(run=run)


def add_bounds(parser: argparse.ArgumentParser) -> None:
    """How much memory there is, and what becomes of what does not fit: as in a query file."""
    parser.add_argument("--memory", help='join within so much memory, such as "2GB"')
    parser.add_argument("--spill", type=Path, help="the folder for what does not fit into it")
    parser.add_argument("--on-full", choices=ON_FULL, help="what is done then; spill, if not given")
    parser.add_argument("--share", type=float, help="how much goes to files then; 0.3")
    parser.add_argument("--choose", choices=CHOICES, help="which groups do; throughput")
    parser.add_argument("--groups", type=whole, help="how many groups there are; 300")
    parser.add_argument(
        "--idle", type=length, help="groups that no row has come to for that long go first"
    )
    parser.add_argument("--disk-limit", help="bytes of all files together; no limit")


@dataclass(frozen=True, slots=True)
class Bound:
    """What `Query.run` is told of memory."""

    memory: Memory | None
    spill: Path | None
    on_full: OnFull

    def __bool__(self) -> bool:
        return self.memory is not None or self.spill is not None or self.on_full != "spill"


def bound_of(described: QueryFile, given: argparse.Namespace) -> Bound:
    """What the query file says of memory, and the command line, which comes first."""
    told = {name: getattr(given, name) for name in MEMORY_OPTIONS}
    told = {name: value for name, value in told.items() if value is not None}
    memory = described.memory
    if given.memory is not None:
        told["limit"] = given.memory
    if told and memory is None and given.memory is None:
        option = next(iter(told)).replace("_", "-")
        raise QueryError(f"--{option} needs --memory, or memory in the query file")
    if told:
        memory = Memory(**told) if memory is None else replace(memory, **told)
    return Bound(memory, given.spill or described.spill, given.on_full or described.on_full)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Options of every command that runs a join."""
    parser.add_argument("--threads", type=whole, help="threads; what pays, if not given")
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=sys.stderr.isatty(),
        help="a progress bar; on a terminal there is one",
    )


def whole(text: str) -> int:
    """A number of rows or threads.

    >>> whole("1_000")
    1000
    """
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def length(text: str) -> int | str:
    """A length of time, ``"10m"``, or a number of units of integer times.

    >>> length("10m"), length("250")
    ('10m', 250)
    """
    return int(text) if text.isdecimal() else text


def run(given: argparse.Namespace) -> int:
    """Run the query; results to its output file, or the first ones to the terminal."""
    described = read_query_file(given.query)
    output = given.output or described.output
    if output is not None:
        check_output(output)
    bound = bound_of(described, given)
    plain = not (given.watch or described.shed or described.ordered)
    if bound or (plain and _is_large(described, output)):
        return run_within(described, output, bound, given)
    tables = read_tables(described)
    threads = given.threads or described.threads
    told = _told(output)
    if described.shed is not None:
        results = timed_replay(described.query, tables, described.shed, told)
    elif given.watch:
        by_time = {
            stream.name: tables[stream.name].sort_by(stream.time)
            for stream in described.query.streams
        }
        results = watched(described.query, by_time, given.hosts, given.strategy, told)
    else:
        results = timed_run(
            described.query, tables, threads, given.progress, described.ordered, told
        )
    if output is not None:
        write_table(results, output)
        print(_written(output), file=told)
    else:
        print(first_rows(results, given.rows))
    return 0


def _told(output: Path | None) -> TextIO:
    """Where it is said what a run did: not between results on standard output."""
    return sys.stderr if str(output) == "-" else sys.stdout


def _written(output: Path) -> str:
    return "written to " + ("standard output" if str(output) == "-" else str(output))


def run_within(
    described: QueryFile, output: Path | None, bound: Bound, given: argparse.Namespace
) -> int:
    """The same in stretches of time, read as they are needed, within so much memory."""
    began = time.perf_counter()
    results = described.query.run(
        described.sources, memory=bound.memory, spill=bound.spill, on_full=bound.on_full,
        output=output, progress=given.progress,
    )  # fmt: skip
    seconds, told = time.perf_counter() - began, _told(output)
    within = "in stretches of time"
    if bound.memory is not None:
        within = f"within {size_text(bound.memory.limit)}"
    metrics = described.query.metrics
    print(f"joined {within}: {pace(metrics['rows_in'], metrics['results'], seconds)}", file=told)
    print(metrics, file=told, flush=True)
    if output is not None:
        print(_written(output), file=told)
    else:
        print(first_rows(results, given.rows))
    return 0


def _is_large(described: QueryFile, output: Any) -> bool:
    """Whether files are joined as they are read, as they are large or results go to a pipe."""
    if output is None:
        return False
    paths = [Path(source) for source in described.sources.values() if not is_uri(source)]
    sizes = [path.stat().st_size for path in paths if path.is_file()]
    return str(output) == "-" or len(sizes) < len(described.sources) or sum(sizes) > LARGE


def read_tables(described: QueryFile) -> dict[str, pa.Table]:
    """The tables that a query file names, with the columns that it asks for."""
    from windjoin.reading import read_tables as read_needed  # brings the kernels with it

    return read_needed(described.query, described.sources)


def timed_run(
    query: Query,
    tables: dict[str, pa.Table],
    threads: int | None,
    progress: bool,
    ordered: bool = False,
    told: TextIO | None = None,
) -> pa.Table:
    """Run a query and tell how fast it was and what it met."""
    began = time.perf_counter()
    results = query.run(tables, threads=threads, progress=progress, ordered=ordered)
    seconds = time.perf_counter() - began
    rows = sum(table.num_rows for table in tables.values())
    print(pace(rows, results.num_rows, seconds), file=told)
    print(query.metrics, file=told, flush=True)
    return results


def timed_replay(
    query: Query, tables: dict[str, pa.Table], shed: Shedding, told: TextIO
) -> pa.Table:
    """Play files into a session that sheds load, and tell what that left out."""
    began = time.perf_counter()
    results, metrics = replay(query, tables, shed)
    rows = sum(table.num_rows for table in tables.values())
    print(pace(rows, results.num_rows, time.perf_counter() - began), file=told)
    from windjoin.shed_report import lines  # brings the kernels with it

    print("\n".join(lines(metrics["shedding"])), file=told, flush=True)
    return results
