"""What a session tells of itself: rejected rows, counters, its plan, and a report."""

from __future__ import annotations

import os
from typing import Any, Literal, cast, overload

import pyarrow as pa
from windjoin.errors import QueryError
from windjoin.explain import as_data, as_text, keys_as_data, names_of, order_as_data
from windjoin.given import FilePath, SessionMetrics
from windjoin.kernels.live import LiveJoin
from windjoin.notebook import Counters, Explanation, metrics_html, query_html
from windjoin.planned import measured
from windjoin.pyx.base.cpu import isa
from windjoin.reporting import Report, report_of
from windjoin.session_pushing import PushingSession


class LookingSession(PushingSession):
    """A session that tells what it does."""

    @property
    def rejected(self) -> dict[str, pa.Table]:
        """Rows that could not be joined, per stream, the newest ``keep_rejected`` of each.

        The last column, ``windjoin_reason``, says why: "null time" or "late".

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> with q.open(on_late="keep") as session:
        ...     for t in (20, 3):
        ...         _ = session.push("a", {"t": [t], "k": [5]})
        ...     _ = session.push("b", {"t": [20], "k": [5]})
        >>> session.rejected["a"].to_pylist()
        [{'t': 3, 'k': 5, 'windjoin_reason': 'late'}]
        """
        return {name: rejected.table() for name, rejected in self._rejected.items()}

    def report(self, path: FilePath | None = None) -> Report:
        """What the session has done so far, drawn: text by ``print``, a page in a notebook.

        With ``hosts``: loads and shares of the hosts, segment length, master, borders of the ring,
        results and latency over time.  ``path``: also written there, as .txt, .html or .png.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> with wj.join(a, b, on=a["k"] == b["k"]).open() as s:
        ...     _ = s.push("a", {"t": [1], "k": [5]}), s.push("b", {"t": [2], "k": [5]})
        ...     print(s.report())  # doctest: +ELLIPSIS
        windjoin: a x b
          rows: 2
          results: 1
          state: ... MB
        """
        history = getattr(self._live, "cluster", None)
        samples = self._samples if history is None else list(history.history.samples)
        drawn = report_of(cast(dict[str, Any], self.metrics), samples, self.query.names)
        if path is not None:
            drawn.save(os.fspath(path))
        return drawn

    @property
    def metrics(self) -> SessionMetrics:
        """Counters since the session was opened, in all and per stream.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> with wj.join(a, b, on=a["k"] == b["k"]).open() as s:
        ...     _ = s.push("a", {"t": [1, 2], "k": [7, 8]})
        >>> s.metrics["rows_in"], s.metrics["streams"]["b"]["rows_in"]
        (2, 0)
        """
        counts = self._metrics() if self._final is None else self._final
        return cast(SessionMetrics, Counters(counts))

    @overload
    def explain(self, format: Literal["text"] = "text") -> Explanation: ...

    @overload
    def explain(self, format: Literal["json"]) -> dict[str, object]: ...

    def explain(self, format: Literal["text", "json"] = "text") -> Explanation | dict[str, object]:
        """The plan: for rows of every stream, the order in which they probe the other windows.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> session = q.open()
        >>> _ = session.push("a", {"t": [1, 2], "k": [5, 6]})
        >>> print(session.explain().splitlines()[0])
        windowed join of 2 streams, closed='both'
        """
        data = as_data(self.query, None)
        if self._live is not None:
            live = self._live
            data["orders"] = [
                order_as_data(live.spec, order, one.measured()) for order, one in live.plans()
            ]
            data["kept_as"] = [names_of(live.structures(order)) for order, _ in live.plans()]
            data["keys"] = keys_as_data(live.spec, live.close_spaces)
            data["processor"] = isa()
            data["time_unit"] = None if self._bound is None else self._bound.time_unit
            data["cluster"] = live.report()
            data["memory"] = None if self._memory is None else self._memory.explained()
            data["order"] = data["orders"][0] if data["orders"] else None
            data["replanned"] = live.replanned
            if isinstance(live, LiveJoin) and self._bound is not None and self._parts is None:
                data["measured"] = measured(live, self._bound, self.sequence, self._options.plan)
        for number, stream in enumerate(data["streams"]):
            idle = self._idle[number]
            stream["idle"] = None if idle is None else str(idle)
            stream["idle_now"] = self._is_idle(number)
            if self._live is not None and self._bound is not None:
                stream["as_they_lie"] = self._bound.as_they_lie(number)
                stream["in_blocks"] = self._live.in_blocks(number)
        if format not in ("text", "json"):
            raise QueryError(f'format={format!r}: explain gives format="text" or format="json"')
        return data if format == "json" else Explanation(as_text(data), data)

    def __repr__(self) -> str:
        counts = self.metrics
        state = "open" if self._final is None else "ended"
        return (
            f"<Session of {', '.join(self.query.names)}: {state}, {counts['rows_in']:,} rows in,"
            f" {counts['results']:,} results>"
        )

    def _repr_html_(self) -> str:
        return query_html(self.query) + metrics_html(self.metrics)
