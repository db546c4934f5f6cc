"""Tables for a join at once: of what can be read in parts only the columns that are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from windjoin.datasets import Scan, scan_of
from windjoin.inputs import as_table
from windjoin.pruning import needed_columns
from windjoin.query import Query


def read_tables(query: Query, given: Mapping[str, Any]) -> dict[str, pa.Table]:
    """The tables of a query; the same object given twice is read once."""
    scans: dict[int, Scan] = {}
    read: dict[int, pa.Table] = {}
    for name, source in given.items():
        if id(source) in scans or id(source) in read:
            continue
        scan = scan_of(source, name)
        if scan is None:
            read[id(source)] = as_table(source, name)
        else:
            scans[id(source)] = scan
    wanted = _wanted(query, given, scans, read) if scans else {}
    for key, scan in scans.items():
        columns = [name for name in scan.schema.names if name in wanted[key]]
        batches = list(scan.batches(columns))
        schema = pa.schema([scan.schema.field(name) for name in columns])
        read[key] = pa.concat_tables(batches) if batches else schema.empty_table()
    return {name: read[id(source)] for name, source in given.items()}


def _wanted(
    query: Query, given: Mapping[str, Any], scans: Mapping[int, Scan], read: Mapping[int, pa.Table]
) -> dict[int, set[str]]:
    """For each scan the columns that any stream that it is asks for; all if streams are amiss."""
    if set(given) != set(query.names):
        return {key: set(scan.schema.names) for key, scan in scans.items()}
    schemas = {
        name: scans[id(source)].schema if id(source) in scans else read[id(source)].schema
        for name, source in given.items()
    }
    wanted: dict[int, set[str]] = {key: set() for key in scans}
    needed = needed_columns(query.bind(schemas))
    for name, columns in zip(query.names, needed, strict=True):
        if id(given[name]) in wanted:
            wanted[id(given[name])] |= columns
    return wanted
