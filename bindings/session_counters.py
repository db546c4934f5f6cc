"""What a session counts, in all and per stream."""

from __future__ import annotations

from typing import Any

from windjoin.held import NOTHING
from windjoin.session_state import SessionState

COUNTED = (
    *("results", "rejected", "late", "null_time", "unmatchable", "expired", "comparisons"),
    *("state_rows", "state_bytes"),
)


class SessionCounters(SessionState):
    """Counters since a session was opened."""

    def _is_idle(self, number: int) -> bool:
        silence = None if self._live is None else self._live.silence
        return silence is not None and silence.silent(number)

    def _metrics(self) -> dict[str, Any]:
        streams = {name: self._stream_metrics(name) for name in self.query.names}
        total = {
            name: sum(stream[name] for stream in streams.values())
            for name in next(iter(streams.values()))
            if name not in ("state_rows", "state_bytes", "idle", *NOTHING)
        }
        total["results"] = self._live.results if self._live is not None else 0
        if self._resizing is not None:
            total["results"] -= self._resizing.dropped
        if self._memory is not None:
            total["results"] += self._memory.owing.cleaned
            total["memory"] = self._memory.metrics()
        if self._sink is not None:
            total["sink"] = self._sink.metrics()
        hosts = self._live.report() if self._live is not None else None
        cluster: dict[str, Any] = {}
        if self._live is not None and hosts is not None:
            cluster = {"cluster": hosts, "hosts": self._live.hosts()}
        return {**total, "state_bytes": self.state_bytes, **cluster, "streams": streams}

    def _stream_metrics(self, name: str) -> dict[str, Any]:
        number = self._numbers[name]
        if self._live is None:
            nothing = dict.fromkeys(COUNTED, 0) | {"idle": False, **NOTHING}
            return {"rows_in": self._waiting.rows(number)} | nothing
        counts, window = self._live.counts[number], self._live.windows[number]
        null_time = self._rejected[name].null_time
        results, comparisons = self._live.done_by(number)
        assert self._held is not None
        return {
            "rows_in": counts.rows_in,
            "results": results,  # that its rows completed
            "rejected": counts.late + null_time,
            "late": counts.late,
            "null_time": null_time,
            "unmatchable": counts.unusable - counts.late - null_time,
            "expired": counts.expired,
            "comparisons": comparisons,
            "state_rows": len(window),
            "state_bytes": window.nbytes + self._payloads[number].nbytes,
            "idle": self._is_idle(number),
            **self._held.gauge(number),
        }
