"""``windjoin explain QUERY.toml``: how a query would be run, or was, and why."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from windjoin.cli.queryfile import read_query_file
from windjoin.cli.run import add_run_options, read_tables
from windjoin.explain import as_data, as_text, order_as_data
from windjoin.kernels.order import best_order
from windjoin.kernels.sorting import in_time_order
from windjoin.kernels.spec import Rows
from windjoin.kernels.statistics import measure
from windjoin.query import Query


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser("explain", help="show how a query would be run, and why")
    parser.add_argument("query", type=Path, metavar="QUERY.toml")
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")
    parser.add_argument(
        "--run", action="store_true", dest="measured", help="run it too: measured rows per step"
    )
    add_run_options(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the plan for the files as they are now."""
    described = read_query_file(given.query)
    tables = read_tables(described)
    if given.measured:
        threads = given.threads or described.threads
        described.query.indices(tables, threads=threads, progress=given.progress)
        data = described.query.explain(format="json")
    else:
        data = planned(described.query, tables)
    print(json.dumps(data, indent=2) if given.json else as_text(data))
    return 0


def planned(query: Query, tables: dict[str, pa.Table]) -> dict[str, Any]:
    """What ``Query.explain`` would say of a run over ``tables``, without the run."""
    bound = query.bind({name: table.schema for name, table in tables.items()})
    prepared = [bound.prepare(number, tables[name]).rows for number, name in enumerate(query.names)]
    streams = [in_time_order(rows) for rows in prepared]
    shares = measure(bound.spec, [Rows(one.time, one.columns, one.keys) for one in streams])
    order = order_as_data(bound.spec, best_order(bound.spec, shares))
    return {**as_data(query, None), "time_unit": bound.time_unit, "order": order}
