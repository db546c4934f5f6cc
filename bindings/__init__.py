"""Exact windowed joins of any number of streams on any predicate, on Arrow data."""

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
    StateError,
    WindjoinError,
)
from windjoin.expressions import udf
from windjoin.fragments import Fragment, Site
from windjoin.methods import coalesce, greatest, least
from windjoin.planner import Plan, plan
from windjoin.query import Query, join
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

__version__ = "0.1.0"

__all__ = [
    "ClusterError",
    "DataError",
    "Fragment",
    "FunctionError",
    "HeldBackWarning",
    "InputError",
    "LateRowError",
    "LateRowWarning",
    "LogError",
    "Plan",
    "Query",
    "QueryError",
    "SchemaError",
    "SessionError",
    "Site",
    "StateError",
    "Stream",
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
    "stream",
    "udf",
]
