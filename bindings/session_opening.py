"""How a session begins, once the schemas of all streams are known: what takes its rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from windjoin.binding import BoundQuery
from windjoin.clustered import ClusterJoin
from windjoin.held import HeldRows
from windjoin.host_options import asked_hosts
from windjoin.ingesting import Ending, ingest
from windjoin.kernel_errors import AS_OWN_ERRORS
from windjoin.kernels.asof_live import AsofJoin
from windjoin.kernels.counted import CountedJoin
from windjoin.kernels.intake import Intake, LateSplit, Silencing
from windjoin.kernels.live import LiveJoin
from windjoin.kernels.spec import I64, Bools, JoinSpec
from windjoin.layout import empty_table
from windjoin.payload import Payload, gatherer_of_all
from windjoin.planned import orders_of
from windjoin.presence import SideJoins
from windjoin.pyx.live.session_base import StreamInput
from windjoin.rejected import Rejected
from windjoin.row_windows import check_session, counts_rows
from windjoin.session_counters import SessionCounters
from windjoin.session_state import numbered
from windjoin.strategies import with_groups
from windjoin.watermarks import length_ticks


class OpeningSession(SessionCounters):
    """What is made of a query, schemas and options before the first row is joined."""

    def _begin(self, schemas: Mapping[str, pa.Schema]) -> None:
        bound = self.query.bind(schemas)
        if self.rows_only:
            bound = bound.without_scores()
        asked = self._options
        lateness = length_ticks("lateness", bound.clock, asked.lateness, bound.integer_times)
        kept = self._wanted(bound)
        bound.require(kept)
        self._bound = bound
        self._payloads = [
            Payload(bound.schemas[name], columns)
            for name, columns in zip(self.query.names, kept, strict=True)
        ]
        lacking = not self.query.sides.plain
        self._gather = gatherer_of_all(bound.output, self.query.names, self._payloads, lacking)
        self._empty = empty_table(bound.schema)
        self._rejected = {
            name: Rejected(bound.schemas[name], asked.keep_rejected) for name in self.query.names
        }
        silence = None
        if any(self._idle):
            limits = [one.nanoseconds / 1e9 if one else math.inf for one in self._idle]
            silence = limits, asked.clock

        def join_of(bound: BoundQuery, spec: JoinSpec, silence: Any = None) -> Intake:
            return self._join(bound, spec, lateness, silence)

        with AS_OWN_ERRORS:
            if self.query.sides.combined(len(self.query.streams)):
                self._parts = SideJoins(bound, self._fetch_live)
                live: Intake = self._parts.join(lateness, silence, join_of)
            else:
                live = join_of(bound, bound.spec_with(self._fetch_live), silence)
        self._open_stream_inputs(bound, live, any(kept))
        windows, payloads = live.windows, self._payloads
        self._held = HeldRows(
            bound,
            live,
            self._stream_inputs,
            lambda number: windows[number].nbytes + payloads[number].nbytes,
        )
        live.on_maintain = self._check
        self._live = live
        if self._asked_memory is not None:
            from windjoin.state.keeper import Keeper

            self._memory = Keeper(self, self._asked_memory, asked.on_full, self._allowance)
        live.begin()

    def _check(self) -> None:
        """Now and then, after a push."""
        if self._held is not None:
            self._held.check()
        if self._resizing is not None:
            self._resizing.settle()

    def _wanted(self, bound: BoundQuery) -> list[list[str]]:
        """For every stream, the columns that are kept as long as its rows."""
        return bound.evaluated if self.rows_only else _united(bound.payload, bound.evaluated)

    def _join(
        self, bound: BoundQuery, spec: JoinSpec, lateness: int, silence: Silencing | None
    ) -> Intake:
        """What takes the rows."""
        hosts = asked_hosts(bound, self._options)
        if hosts is None and self.query.direction is not None:
            return AsofJoin(spec, lateness, silence=silence)
        if counts_rows(self.query):
            check_session(self.query, hosts is not None)
            return CountedJoin(spec, lateness, silence=silence)
        if hosts is None:
            asked = self._options
            orders = None if asked.plan is None else orders_of(asked.plan, bound, spec)
            return LiveJoin(spec, lateness, silence=silence, orders=orders, pinned=asked.pin)
        if self._asked_memory is not None:
            hosts = with_groups(hosts, spec, self._asked_memory, asked=self._options.adaptation)
        ordered = self._options.ordered
        return ClusterJoin(spec, hosts, lateness=lateness, ordered=ordered, silence=silence)

    def _open_stream_inputs(self, bound: BoundQuery, live: Intake, kept: bool) -> None:
        """A fast path for streams whose rows the kernels take as they lie in memory.

        kept: columns are, so rows have to come as tables
        """
        if not self._straight or not live.joiners:
            return
        names = self.query.names
        schema = bound.schema
        ending = Ending(
            names=names if self.rows_only else None,
            gatherer=self._gather,
            empty=self._empty,
            tabled=lambda batches, sequence: numbered(
                pa.Table.from_batches(batches, schema), sequence
            ),
            results=lambda found, sequence: numbered(
                self._with_owed(self._results(found)), sequence
            ),
            expire=self._expire,
            allowance=self._allowance,
        )
        for number, name in enumerate(names):
            self._stream_inputs[name] = StreamInput(
                live.joiners,
                number,
                self._session_lock,
                names,
                None if kept or not self.rows_only else bound.plain_columns(number),
                len(live.spec.streams[number].columns),
                ingest(
                    live,
                    number,
                    bound.stream_rows(number),
                    self._payloads,
                    ending,
                    self._told_of(number),
                    self._rejected[name].add,
                ),
                self._allowance,
            )

    def _told_of(self, number: int) -> Callable[[I64, Bools, int], None]:
        """What tells of late rows of a stream: given times, which are late, and the watermark."""

        def tell(times: I64, late: Bools, watermark: int) -> None:
            live, bound = self._live, self._bound
            assert live is not None
            assert bound is not None
            late_split = LateSplit(0, False, late, watermark)
            column = bound.time_column(number)
            self._late.tell(column, bound.clock, live.clocks[number], times, late_split)

        return tell


def _united(first: list[list[str]], second: list[list[str]]) -> list[list[str]]:
    return [list(dict.fromkeys([*a, *b])) for a, b in zip(first, second, strict=True)]
