"""A session that sheds load: what it tells of that, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from windjoin.binding import BoundQuery
from windjoin.checking import Typed, check
from windjoin.clustered import ClusterJoin
from windjoin.columns import Values
from windjoin.errors import QueryError, SchemaError, SheddingWarning, hint, warn
from windjoin.evaluate import doubles, evaluate
from windjoin.explain import as_text
from windjoin.host_options import asked_hosts
from windjoin.kernels.intake import Intake, Silencing
from windjoin.kernels.shedding.live import SheddingJoin
from windjoin.kernels.spec import F64, I64, JoinSpec
from windjoin.pyx.live.metered import MeteredInput
from windjoin.pyx.live.shedder import Beat
from windjoin.query import Query
from windjoin.row_windows import refuse_row_windows
from windjoin.session import Session
from windjoin.session_state import Results, SessionOptions
from windjoin.shed_report import lines, report, report_hosts, told
from windjoin.shedding import Shedding
from windjoin.shedding_hosts import SheddingHosts, one_hop


class SheddingSession(MeteredInput, Session):
    """A `Session` with ``shed=``; made by `Query.open`."""

    def __init__(
        self,
        query: Query,
        schemas: Mapping[str, pa.Schema] | None,
        options: SessionOptions,
        shed: Shedding,
    ) -> None:
        if not isinstance(shed, Shedding):
            raise QueryError(
                f"shed={shed!r}: give a windjoin.Shedding, such as wj.Shedding(budget=0.8)"
            )
        if shed.policy == "drop" and (options.hosts is not None or options.memory is not None):
            other = "hosts=" if options.hosts is not None else "memory="
            raise QueryError(
                f'policy="drop" with {other}: rows are dropped at random in sessions without it'
                ' only; take policy="selective"'
            )
        if not query.sides.plain:
            raise QueryError(
                "shed= is not for how=, keep=, exists= and missing=: partners that are not looked"
                " at would make rows come out that have some; leave it out"
            )
        refuse_row_windows(query, "shed=")
        if query.nearest is not None:
            raise QueryError(
                "nearest= with shed=: partners that are not looked at would make others the"
                " nearest ones, and results must be true; leave one of them out"
            )
        if shed.utility is not None and shed.utility.streams[0] not in query.names:
            name = shed.utility.streams[0]
            raise QueryError(
                f"utility=`{shed.utility!r}` uses stream {name!r}, which is not joined here"
                + hint(name, query.names)
            )
        self.shed = shed
        self._utility: Typed | None = None
        self._hosts: SheddingHosts | None = None
        if options.hosts is not None:
            options = replace(options, strategy=one_hop(query, options.strategy))
        super().__init__(query, schemas, options)

    @property
    def _straight(self) -> bool:
        """Whether all that becomes of a push is its results: no rows are dropped before.

        What hosts begin to shed is told before the next push.
        """
        plain = self._hosts is None and self.shed.utility is None
        return super()._straight and plain and self.shed.policy != "drop"

    def _wanted(self, bound: BoundQuery) -> list[list[str]]:
        kept = super()._wanted(bound)
        if self.shed.utility is None:
            return kept
        self._utility = check(self.shed.utility, bound.schemas)
        if self._utility.kind.family not in ("integer", "float", "decimal", "bool"):
            raise SchemaError(
                f"utility=`{self.shed.utility!r}` is {self._utility.kind.family};"
                " give a number, which says what a result is worth"
            )
        for column in self.shed.utility.columns():
            number = self.query.names.index(column.stream)
            kept[number] = list(dict.fromkeys([*kept[number], column.name]))
        return kept

    def _join(
        self, bound: BoundQuery, spec: JoinSpec, lateness: int, silence: Silencing | None
    ) -> Intake:
        shed = self.shed
        settings = shed.settings(bound)
        longest = max(stream.window for stream in spec.streams) + lateness
        tick_s = 1.0 if bound.clock.step is None else float(bound.clock.step)
        kind = shed.clock if isinstance(shed.clock, str) else "called"
        value = None if self._utility is None else self._value

        def new_beat() -> Beat:
            return Beat(kind, shed.seconds, tick_s, longest, settings.by_time)

        hosts = asked_hosts(bound, self._options)
        if hosts is not None:
            self._hosts = SheddingHosts(settings, new_beat, value)
            ordered, maker = self._options.ordered, self._hosts.operator
            return ClusterJoin(
                spec, hosts, lateness=lateness, ordered=ordered, silence=silence, operator=maker
            )
        beat = new_beat()
        live = SheddingJoin(spec, settings, beat, lateness, silence, value)
        self.beat = beat
        return live

    def _value(self, rows: list[I64]) -> F64:
        """What results are worth, by their rows of every stream."""
        assert self._utility is not None
        columns = {column.key: column for column in self._utility.node.columns()}
        number = self.query.names.index(self._utility.streams[0])
        names = [column.name for column in columns.values()]
        arrays = dict(zip(names, self._fetch_live(number, names, rows[number]), strict=True))
        values: Values = evaluate(self._utility, lambda node: arrays[node.name])
        worth = np.broadcast_to(np.asarray(doubles(values), np.float64), rows[0].shape)
        if values.valid is not None:
            worth = np.where(values.valid, worth, 0.0)
        return np.maximum(np.nan_to_num(worth), 0.0)

    # -- what is told --------------------------------------------------------------------------

    def attend(self) -> None:
        """After a push in which it was decided to shed, or how."""
        if isinstance(self._live, SheddingJoin):
            self._live.attend()

    def tell(self) -> None:
        """Say once that load is being shed, before anything of the next push is taken."""
        assert isinstance(self._live, SheddingJoin)
        self.beat.to_tell = False
        warn(told(self.shed, self._live.control), SheddingWarning)

    def _push_slowly(self, stream: str, rows: Any) -> Results:
        self._tell_of_hosts()
        return super()._push_slowly(stream, rows)

    def _push_together(self, given: list[tuple[int, pa.Table]], told: bool = False) -> Results:
        beat: Beat | None = getattr(self, "beat", None)
        if beat is None:
            self._tell_of_hosts()
            return super()._push_together(given, told)
        if beat.to_tell:
            self.tell()
        beat.begin()
        try:
            return super()._push_together(given, told)
        finally:
            beat.end()
            if beat.to_attend:
                beat.to_attend = False
                self.attend()

    def _tell_of_hosts(self) -> None:
        control = None if self._hosts is None else self._hosts.begun
        if control is not None:
            warn(told(self.shed, control), SheddingWarning)

    def _metrics(self) -> dict[str, Any]:
        metrics = super()._metrics()
        metrics["shedding"] = self._shedding()
        return metrics

    def explain(self, format: Literal["text", "json"] = "text") -> Any:
        """The plan, and what is shed of it and why."""
        data = super().explain("json" if format == "text" else format)
        data["shedding"] = shedding = self._shedding()
        if format == "json":
            return data
        return "\n".join([as_text(data), *lines(shedding)])

    def _shedding(self) -> dict[str, Any]:
        if self._final is not None:
            final: dict[str, Any] = self._final["shedding"]
            return final
        if self._hosts is not None and isinstance(self._live, ClusterJoin):
            return report_hosts(
                self.shed, self.query.names, self._bound, self._live, self._hosts.controls
            )
        return report(self.shed, self.query.names, self._bound, self._live)
