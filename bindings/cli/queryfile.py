"""A query described in a TOML file: streams with their files, conditions, and where results go."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import windjoin as wj
from windjoin.cli.conditions import parse_expression
from windjoin.datasets import is_uri
from windjoin.errors import InputError, QueryError, hint
from windjoin.memory import OnFull
from windjoin.query import Query
from windjoin.row_windows import window_of
from windjoin.streams import Stream

_QUERY_KEYS = (
    "on", "select", "closed", "cross", "exclude_self", "nearest", "direction", "how", "keep",
    "exists", "missing", "ordered", "threads", "output", "memory", "spill", "on_full", "streams",
    "shed",
)  # fmt: skip
_SHED_KEYS = tuple(field.name for field in fields(wj.Shedding))
_MEMORY_KEYS = ("limit", "spill", "share", "idle", "choose", "groups", "disk_limit")
_STREAM_KEYS = ("path", "time", "window", "unit", "where", "idle")
_SHAPES: dict[type, str] = {str: "a text", bool: "true or false", int: "a whole number"}


@dataclass(frozen=True, slots=True)
class QueryFile:
    """What a query file says; its paths count from the folder it is in."""

    query: Query
    sources: dict[str, Any]
    output: Path | None
    threads: int | None
    ordered: bool
    memory: wj.Memory | None
    spill: Path | None
    on_full: OnFull
    shed: wj.Shedding | None = None


def read_query_file(path: Path) -> QueryFile:
    """Read and check ``path``; every complaint begins with it."""
    try:
        with path.open("rb") as file:
            described = tomllib.load(file)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise QueryError(f"{path}: is not TOML: {error}") from error
    try:
        return _described(described, path.parent)
    except QueryError as error:
        raise QueryError(f"{path}: {error}") from error


def _described(described: Mapping[str, Any], folder: Path) -> QueryFile:
    _check_keys(described, _QUERY_KEYS, "the file")
    streams, sources = _streams(described.get("streams"), folder)
    chosen = _texts(described, "select")
    query = wj.join(
        *streams.values(),
        on=[_expression(text, "on", streams) for text in _texts(described, "on") or []],
        select=None
        if chosen is None
        else [_expression(text, "select", streams) for text in chosen],
        closed=_value(described, "closed", str, "both"),
        cross=_value(described, "cross", bool, False),
        exclude_self=_exclude_self(described),
        nearest=_value(described, "nearest", int, None),
        direction=_value(described, "direction", str, None),
        how=_value(described, "how", str, "inner"),
        keep=_texts(described, "keep") or (),
        exists=_texts(described, "exists") or (),
        missing=_texts(described, "missing") or (),
    )
    output, spill = (_value(described, key, str, None) for key in ("output", "spill"))
    return QueryFile(
        query,
        sources,
        None if output is None else Path("-") if output == "-" else folder / output,
        _value(described, "threads", int, None),
        _value(described, "ordered", bool, False),
        _memory(described.get("memory"), folder),
        None if spill is None else folder / spill,
        _value(described, "on_full", str, "spill"),
        _shedding(described.get("shed"), streams),
    )


def _memory(given: Any, folder: Path) -> wj.Memory | None:
    """``memory = "2GB"``, or ``[memory]``: arguments of `Memory`, but for those of hosts."""
    if given is None:
        return None
    table = given if isinstance(given, dict) else {"limit": given}
    _check_keys(table, _MEMORY_KEYS, "[memory]")
    if "limit" not in table:
        raise QueryError("[memory]: limit is missing")
    spill = _value(table, "spill", str, None)
    try:
        return wj.Memory(**{**table, "spill": spill and folder / spill})
    except QueryError as error:
        raise QueryError(f"[memory]: {error}" if table is given else str(error)) from error


def _shedding(table: Any, streams: Mapping[str, Stream]) -> wj.Shedding | None:
    """``[shed]``: the arguments of `Shedding`; files have no clock but the times of their rows."""
    if table is None:
        return None
    if not isinstance(table, dict):
        raise QueryError(f"shed = {table!r}: describe it in a table, [shed]")
    _check_keys(table, _SHED_KEYS, "[shed]")
    options = {"clock": "event", **table}
    if "utility" in options:
        options["utility"] = _expression(_value(table, "utility", str, ""), "utility", streams)
    try:
        return wj.Shedding(**options)
    except QueryError as error:
        raise QueryError(f"[shed]: {error}") from error


def _streams(tables: Any, folder: Path) -> tuple[dict[str, Stream], dict[str, Any]]:
    if not isinstance(tables, dict) or not all(isinstance(one, dict) for one in tables.values()):
        raise QueryError("there are no streams; describe each in a table such as [streams.calls]")
    streams, sources = {}, {}
    for name, table in tables.items():
        place = f"[streams.{name}]"
        try:
            _check_keys(table, _STREAM_KEYS, place)
            for key in ("path", "time", "window"):
                if key not in table:
                    raise QueryError(f"{key} is missing")
            given = _value(table, "path", str, None)
            sources[name] = given if is_uri(given) else folder / given
            streams[name] = _stream(name, table)
        except QueryError as error:
            raise QueryError(f"{place}: {error}") from error
    return streams, sources


def _stream(name: str, table: Mapping[str, Any]) -> Stream:
    where = _value(table, "where", str, None)
    return wj.stream(
        name,
        time=_value(table, "time", str, None),
        window=window_of(table["window"]),
        unit=_value(table, "unit", str, None),
        idle=_value(table, "idle", str, None),
        where=where and (lambda stream: _expression(where, "where", {name: stream})),
    )


def _expression(text: str, place: str, streams: Mapping[str, Stream]) -> Any:
    try:
        return parse_expression(text, streams)
    except QueryError as error:
        raise QueryError(f"{place}: {error}") from error


def _exclude_self(described: Mapping[str, Any]) -> Any:
    given = described.get("exclude_self", False)
    if isinstance(given, (bool, list)):
        return given
    raise QueryError(f"exclude_self = {given!r}: give true, or a list of the streams' names")


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for key in table:
        if key not in known:
            raise QueryError(f"{place} has the unknown key {key!r}{hint(key, known)}")


def _value(table: Mapping[str, Any], key: str, shape: type, default: Any) -> Any:
    value = table.get(key, default)
    if key in table and type(value) is not shape:
        raise QueryError(f"{key} = {value!r}: expected {_SHAPES[shape]}")
    return value


def _texts(table: Mapping[str, Any], key: str) -> list[str] | None:
    value = table.get(key)
    if isinstance(value, str):
        return [value]
    if value is not None and not (
        isinstance(value, list) and all(isinstance(one, str) for one in value)
    ):
        raise QueryError(f"{key} = {value!r}: expected a list of texts")
    return value
