"""As-of joins: ``nearest=`` with a direction in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from windjoin.errors import QueryError, hint

if TYPE_CHECKING:
    from windjoin.query import Query

Direction = Literal["backward", "forward", "nearest"]


def check_direction(direction: object, nearest: object, names: Sequence[str]) -> None:
    """Refuse a direction that says nothing, and numbers of partners that are none."""
    if direction is None:
        return
    if direction not in get_args(Direction):
        raise QueryError(
            f"direction={direction!r} is not one of {', '.join(get_args(Direction))}"
            + (hint(direction, get_args(Direction)) if isinstance(direction, str) else "")
        )
    if nearest is None:
        raise QueryError(
            f"direction={direction!r} says where nearest= looks in time; add nearest=1, or how many"
            " partners a row keeps"
        )
    if not isinstance(nearest, int) or isinstance(nearest, bool) or nearest < 1:
        raise QueryError(f"nearest={nearest!r}: give how many partners a row keeps, 1 or more")
    if len(names) != 2:
        raise QueryError(f"nearest= is for joins of two streams, not of {len(names)}")


def looks_away(query: Query, stream: int) -> bool:
    """Whether partners of one stream are on one side of the other's rows, so that it needs no
    window: rows of the first are the newest where it looks backward, the second's forward.
    """
    return query.direction == ("backward", "forward")[stream] if stream < 2 else False


def told(direction: Direction, nearest: int, names: Sequence[str]) -> str:
    """For `Query.explain`.

    >>> told("backward", 1, ["trades", "quotes"])
    'of every row of trades the 1 row of quotes nearest in time, at or before it'
    """
    where = {"backward": "at or before it", "forward": "at or after it", "nearest": "either way"}
    rows = "row" if nearest == 1 else "rows"
    first, second = names
    return (
        f"of every row of {first} the {nearest} {rows} of {second} nearest in time, "
        + (where[direction])
    )
