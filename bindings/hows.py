"""Which rows come out: ``how=``, ``keep=``, ``exists=`` and ``missing=`` of a join."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from windjoin.errors import QueryError, hint, quoted
from windjoin.expressions import Expression
from windjoin.streams import Stream

if TYPE_CHECKING:
    from windjoin.kernels.spec import Kept

How = Literal["inner", "left", "right", "full", "semi", "anti"]


@dataclass(frozen=True, slots=True)
class Sides:
    """What is asked of the streams of a join, by their numbers.

    keep: rows in no result come out once, with nulls for all other streams
    exists: only whether they have rows that fit matters
    missing: what comes out is what no rows of these fit
    """

    how: How = "inner"
    keep: tuple[int, ...] = ()
    exists: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether results are all that comes out, each with a row of every stream."""
        return not (self.keep or self.exists or self.missing)

    def given(self, count: int) -> tuple[int, ...]:
        """The streams whose rows come out, of so many."""
        asked = {*self.exists, *self.missing}
        return tuple(s for s in range(count) if s not in asked)

    def kept(self, count: int) -> Kept | None:
        """The same for the kernels, where one stream is asked about; None: an inner join."""
        from windjoin.kernels.spec import Kept

        given = self.given(count)
        if self.keep:
            return Kept(self.keep)
        if len(given) > 1 or (self.exists and self.missing) or self.plain:
            return None
        return Kept(given, "matched" if self.exists else "unmatched")

    def combined(self, count: int) -> bool:
        """Whether what comes out is combinations of several streams, of so many in all."""
        return not self.plain and self.kept(count) is None

    def may_lack(self, stream: int) -> bool:
        """Whether what comes out can be without a row of a stream."""
        return any(other != stream for other in self.keep)


INNER = Sides()


def sides(
    names: Sequence[str],
    how: How,
    keep: Iterable[Any],
    exists: Iterable[Any],
    missing: Iterable[Any],
) -> Sides:
    """What `join` was asked for."""
    if how not in get_args(How):
        raise QueryError(f"how={how!r}: it is one of {', '.join(map(repr, get_args(How)))}")
    kept = _numbers("keep", keep, names)
    present = _numbers("exists", exists, names)
    absent = _numbers("missing", missing, names)
    if how != "inner":
        if kept or present or absent:
            option = "keep=" if kept else "exists=" if present else "missing="
            raise QueryError(f"how={how!r} and {option} both say which rows come out; give one")
        return _of_how(how, len(names))
    if kept and (present or absent):
        raise QueryError(
            "keep= is for streams whose rows are in results; streams of exists= and missing= are"
            " in none, so give one or the other"
        )
    twice = [names[s] for s in present if s in absent]
    if twice:
        raise QueryError(f"stream {quoted(twice)} is in exists= and in missing=; give one of them")
    if len(present) + len(absent) == len(names):
        raise QueryError("exists= and missing= have all streams, so no row could come out")
    return Sides("inner", kept, present, absent)


def _of_how(how: How, count: int) -> Sides:
    everyone = tuple(range(count))
    if how == "semi":
        return Sides(how, exists=everyone[1:])
    if how == "anti":
        return Sides(how, missing=everyone[1:])
    keep = {"left": everyone[:1], "right": everyone[-1:], "full": everyone}[how]
    return Sides(how, keep=keep)


def _numbers(option: str, given: Any, names: Sequence[str]) -> tuple[int, ...]:
    if isinstance(given, (str, Stream)) or not isinstance(given, Iterable):
        raise QueryError(f"{option}={given!r}: give a list of streams, or of their names")
    numbers = set()
    for member in given:
        name = member.name if isinstance(member, Stream) else member
        if not isinstance(name, str) or name not in names:
            known = hint(str(name), names)
            raise QueryError(f"{option}: {name!r} is not a stream of this join{known}")
        numbers.add(names.index(name))
    return tuple(sorted(numbers))


def check_conditions(asked: Sides, conditions: Iterable[Expression], names: Sequence[str]) -> None:
    """Streams that must be there and streams that must not know nothing of each other."""
    present, absent = ({names[s] for s in some} for some in (asked.exists, asked.missing))
    for condition in conditions:
        of = set(condition.streams)
        if of & present and of & absent:
            raise QueryError(
                f"on: `{condition!r}` compares a stream of exists= with one of missing=; these are"
                " asked for one by one"
            )


def check_selected(
    asked: Sides, selected: Iterable[Expression] | None, names: Sequence[str]
) -> None:
    """What is selected is of streams whose rows come out."""
    given = {names[s] for s in asked.given(len(names))}
    for expression in selected or ():
        others = [name for name in expression.streams if name not in given]
        if others:
            raise QueryError(
                f"select: `{expression!r}` uses stream {quoted(others[:1])}, of which this join"
                f" only asks whether rows fit; select columns of {quoted(sorted(given))}"
            )
