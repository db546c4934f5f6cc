"""How a query is made: `join`, which checks what it is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from windjoin.asof import Direction, check_direction
from windjoin.errors import QueryError
from windjoin.expressions import Expression
from windjoin.flags import check_flag
from windjoin.hows import How, check_conditions, check_selected, sides
from windjoin.processor import check_isa
from windjoin.query import Closed, Query
from windjoin.query_checks import (
    check_base_connected,
    check_connected,
    check_nearest,
    check_streams,
    checked_conditions,
    checked_selection,
    checked_self_pairs,
)
from windjoin.row_windows import check_row_windows
from windjoin.streams import Stream


def join(
    *streams: Stream,
    on: Expression | Sequence[Expression] = (),
    select: Expression | Sequence[Expression] | None = None,
    closed: Closed = "both",
    cross: bool = False,
    exclude_self: bool | Iterable[object] = False,
    nearest: int | None = None,
    direction: Direction | None = None,
    how: How = "inner",
    keep: Iterable[str | Stream] = (),
    exists: Iterable[str | Stream] = (),
    missing: Iterable[str | Stream] = (),
) -> Query:
    """Join 2 to 16 streams on conditions that must all hold, inside their windows.

    ``on``: one condition or several; ``&`` between conditions is the same as a list.
    ``select``: the columns (or expressions with ``.alias``) of the result; all if not given.
    ``closed``: whether a row exactly one window older than the newest still joins ("both") or not
    ("right").
    ``cross``: allow streams that no condition connects.
    ``exclude_self``: a row never pairs with itself when several streams are one and the same table.
    True says that all streams are that table; otherwise give the streams (or their names) that
    are, or a list of such groups.  Rows are told apart by their row number, not by their values.
    ``nearest``: of every row that completes results, only those with so many best partners: least
    by the distance in ``on``, or greatest by the similarity; ties go to the earlier time, then to
    the earlier arrival.  For two streams, and one measure that is compared with a number.
    ``direction``: with ``nearest``, an as-of join: of every row of the first stream only so many
    partners nearest in time stay, before it ("backward"), after it ("forward") or either way
    ("nearest"); no farther than the windows reach.
    ``how``: "left", "right" and "full" also give the rows of the first, the last, or any stream
    that are in no result, once, with nulls for all others; "semi" gives the rows of the first
    stream that are in a result, each once, and "anti" those that are in none.
    ``keep``: the streams (or their names) of which rows in no result come out, too.
    ``exists``, ``missing``: combinations of the other streams, each once, for which these have rows
    that fit, or have none.

    >>> import windjoin as wj
    >>> a, b = (wj.stream(name, time="ts", window="10s") for name in ("a", "b"))
    >>> q = wj.join(a, b, on=[a["k"] == b["k"], a["x"] < b["x"]], exclude_self=True)
    >>> q.on, q.exclude_self
    ((a["k"] == b["k"], a["x"] < b["x"]), ((0, 1),))
    >>> tables = {"a": {"ts": [1, 2], "k": [5, 6]}, "b": {"ts": [3], "k": [5]}}
    >>> a, b = (wj.stream(name, time="ts", window=10) for name in ("a", "b"))
    >>> wj.join(a, b, on=a["k"] == b["k"], how="left").indices(tables)
    {'a': array([0, 1]), 'b': array([ 0, -1])}
    >>> wj.join(a, b, on=a["k"] == b["k"], how="anti").run(tables).to_pylist()
    [{'a_ts': 2, 'a_k': 6}]
    """
    check_isa()
    check_streams(streams)
    names = [stream.name for stream in streams]
    if closed not in ("both", "right"):
        raise QueryError(f'closed={closed!r}: a window is closed="both" or closed="right"')
    conditions = checked_conditions(on, names)
    asked = sides(names, how, keep, exists, missing)
    check_conditions(asked, conditions, names)
    check_flag("cross", cross)
    if not cross and direction is None:
        check_connected(conditions, names)
        check_base_connected(asked, conditions, names)
    chosen = None if select is None else checked_selection(select, names)
    check_selected(asked, chosen, names)
    check_direction(direction, nearest, names)
    check_row_windows(streams, nearest)
    if nearest is not None and direction is None:
        check_nearest(nearest, conditions, names)
    apart = checked_self_pairs(exclude_self, names)
    return Query(streams, conditions, chosen, closed, apart, nearest, asked, direction)
