"""What is told of the memory of a session: by `Session.explain` and in its metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from windjoin.payload import Payload

if TYPE_CHECKING:
    from windjoin.state.keeper import Keeper


def explained(keeper: Keeper) -> dict[str, Any]:
    """What becomes of rows that do not fit, and what did: plain data."""
    asked, keyed = keeper.asked, keeper.residence.key is not None
    order = {
        "throughput": "those with fewest results for their size first",
        "productive": "those with most results for their size first",
    }.get(asked.choose, f"{asked.choose} ones first")
    if keeper.sheds:
        full = f"when it is full the oldest {asked.share:.0%} of the rows are dropped"
    elif keeper.files.folder is None:
        full = "pushes are refused when it is full"
    elif keeper.keeps_keys:
        full = "when it is full payload goes to disk, and then pushes are refused"
    elif keyed:
        full = (
            f"when it is full {asked.share:.0%} of the rows go to disk, of {asked.groups}"
            f" partition groups {order}; all, where next to none of them had results"
        )
    else:
        full = f"when it is full {asked.share:.0%} of the rows go to disk, the oldest first"
    adapts = keeper.hosts is not None and keeper.hosts.groups
    return {
        "limit": keeper.limit,
        "when_full": full,
        "adaptation": asked.adaptation if adapts else None,
        "adapts": None if keeper.hosts is None else keeper.hosts.explained(),
        "spills": keeper.done.spills,
        "rows_on_disk": keeper.owing.rows,
        "generations": len(keeper.owing.generations),
    }


def counted(keeper: Keeper, results: int, payloads: Sequence[Payload]) -> dict[str, Any]:
    """Bytes in memory and on disk, and what was done; ``results``: found when rows came."""
    resident = keeper.rows_of(None)
    spilled = keeper.owing.rows
    share = spilled / max(resident + spilled, 1)
    owed = results * share / max(1 - share, 0.01) if spilled else 0.0
    return {
        "limit": keeper.limit,
        "bytes_in_memory": keeper.recount_now(),
        "bytes_on_disk": keeper.bytes_on_disk,
        "generations": len(keeper.owing.generations),
        "rows_on_disk": spilled,
        "spills": keeper.done.spills,
        "rows_shed": keeper.done.shed,
        "spill_failures": keeper.files.failures,
        "results_owed": round(max(owed - keeper.owing.cleaned, 0.0)),
        "results_cleaned_up": keeper.owing.cleaned,
        "clean_up_seconds": keeper.owing.seconds,
    }
