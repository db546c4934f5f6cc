"""Values of users' own in JSON and back: options of a session, positions of sources."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from dataclasses import fields
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from windjoin.durations import Duration
from windjoin.errors import StateError
from windjoin.memory import Memory
from windjoin.tuning import Tuning

TAG = "$"  # of an object: what it stands for
SIMPLE = (type(None), bool, int, float, str)


def to_plain(value: Any, place: str) -> Any:
    """What ``json.dumps`` takes; ``place`` is for messages.

    >>> to_plain({"topic": {0: 17}}, "position")
    {'topic': {'$': 'dict', 'of': [[0, 17]]}}
    """
    if isinstance(value, SIMPLE) and type(value) in SIMPLE:
        return value
    if isinstance(value, list):
        return [to_plain(one, place) for one in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value) and TAG not in value:
            return {key: to_plain(one, place) for key, one in value.items()}
        pairs = [[to_plain(k, place), to_plain(v, place)] for k, v in value.items()]
        return {TAG: "dict", "of": pairs}
    for name, (kind, write, _) in KINDS.items():
        if isinstance(value, kind):
            return {TAG: name, "of": write(value, place)}
    raise StateError(
        f"{place}: {value!r} ({type(value).__name__}) cannot be saved; give numbers, texts, bytes,"
        " times, and lists, tuples and dictionaries of these"
    )


def from_plain(data: Any) -> Any:
    """What `to_plain` was given.

    >>> from_plain(to_plain({1: (b"x", 2.5)}, "position"))
    {1: (b'x', 2.5)}
    """
    if isinstance(data, list):
        return [from_plain(one) for one in data]
    if not isinstance(data, dict):
        return data
    if TAG not in data:
        return {key: from_plain(one) for key, one in data.items()}
    if data[TAG] == "dict":
        return {from_plain(key): from_plain(one) for key, one in data["of"]}
    return KINDS[data[TAG]][2](data["of"])


def _microseconds(value: timedelta, _: str) -> int:
    return value // timedelta(microseconds=1)


KINDS: dict[str, tuple[type, Callable[[Any, str], Any], Callable[[Any], Any]]] = {
    "tuple": (
        tuple,
        lambda value, place: [to_plain(one, place) for one in value],
        lambda data: tuple(map(from_plain, data)),
    ),
    "bytes": (bytes, lambda value, _: base64.b64encode(value).decode(), base64.b64decode),
    "datetime": (datetime, lambda value, _: value.isoformat(), datetime.fromisoformat),
    "date": (date, lambda value, _: value.isoformat(), date.fromisoformat),
    "timedelta": (timedelta, _microseconds, lambda data: timedelta(microseconds=data)),
    "duration": (Duration, lambda value, _: value.nanoseconds, Duration),
    "timedelta64": (
        np.timedelta64,
        lambda value, _: [int(value.astype(np.int64)), np.datetime_data(value.dtype)[0]],
        lambda data: np.timedelta64(*data),
    ),
    "tuning": (
        Tuning,
        lambda value, place: {
            f.name: to_plain(getattr(value, f.name), place) for f in fields(value)
        },
        lambda data: Tuning(**{name: from_plain(one) for name, one in data.items()}),
    ),
    "path": (os.PathLike, lambda value, _: os.fspath(value), Path),
    "memory": (
        Memory,
        lambda value, place: {
            one.name: to_plain(getattr(value, one.name), place) for one in fields(value)
        },
        lambda data: Memory(**{name: from_plain(one) for name, one in data.items()}),
    ),
    "int": (np.integer, lambda value, _: int(value), int),
    "float": (np.floating, lambda value, _: float(value), float),
}
