"""Exact windowed joins of any number of streams on any predicate, on Arrow data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windjoin.errors import (
    ClusterError,
    DataError,
    FunctionError,
    HeldBackWarning,
    InputError,
    LateRowError,
    LateRowWarning,
    LogError,
    QueryError,
    SchemaError,
    SessionError,
    SheddingWarning,
    StateError,
    WindjoinError,
)
from windjoin.expressions import Expression
from windjoin.fragments import Fragment, Site
from windjoin.function_nodes import udf
from windjoin.memory import Memory
from windjoin.methods import coalesce, greatest, least
from windjoin.planner import Plan, plan
from windjoin.query import Query
from windjoin.query_making import join
from windjoin.row_windows import RowWindow, rows
from windjoin.shedding import Shedding
from windjoin.similarity import (
    containment,
    cosine,
    cosine_sets,
    dot,
    hamming,
    inner_product,
    jaccard,
    l1,
    l2,
    linf,
    mean_abs_diff,
    overlap,
)
from windjoin.state import restore
from windjoin.streams import Stream, stream
from windjoin.tuning import Tuning

__version__ = "0.1.0"

if TYPE_CHECKING:
    from windjoin.session import Session
    from windjoin.sinks import ParquetSink

__all__ = [
    "ClusterError",
    "DataError",
    "Expression",
    "Fragment",
    "FunctionError",
    "HeldBackWarning",
    "InputError",
    "LateRowError",
    "LateRowWarning",
    "LogError",
    "Memory",
    "ParquetSink",
    "Plan",
    "Query",
    "QueryError",
    "RowWindow",
    "SchemaError",
    "Session",
    "SessionError",
    "Shedding",
    "SheddingWarning",
    "Site",
    "StateError",
    "Stream",
    "Tuning",
    "WindjoinError",
    "coalesce",
    "containment",
    "cosine",
    "cosine_sets",
    "dot",
    "greatest",
    "hamming",
    "inner_product",
    "jaccard",
    "join",
    "l1",
    "l2",
    "least",
    "linf",
    "mean_abs_diff",
    "overlap",
    "plan",
    "restore",
    "rows",
    "stream",
    "udf",
]


def __getattr__(name: str) -> Any:
    if name == "Session":  # brings the kernels with it, which many programs need only later
        from windjoin.session import Session

        return Session
    if name == "ParquetSink":
        from windjoin.sinks import ParquetSink

        return ParquetSink
    raise AttributeError(f"module 'windjoin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
