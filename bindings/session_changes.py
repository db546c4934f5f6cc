"""What changes while a session runs: its hosts, and the lengths of its windows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from windjoin.clustered import ClusterJoin
from windjoin.diffusion.errors import RoutingError
from windjoin.errors import ClusterError, SessionError
from windjoin.flags import check_flag
from windjoin.given import Length, Time
from windjoin.kernel_errors import AS_OWN_ERRORS
from windjoin.pyx.live.session_base import whole
from windjoin.resizing import Resizing, change_of
from windjoin.session_looking import LookingSession


class ChangingSession(LookingSession):
    """A session whose hosts come and go, and whose windows get other lengths."""

    @property
    def hosts(self) -> list[int]:
        """Numbers of the hosts that take work.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import pyarrow as pa
        >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
        >>> session = q.open(schemas={"a": schema, "b": schema}, hosts=2)
        >>> session.hosts
        [0, 1]
        """
        return self._cluster().open_hosts

    @whole
    def add_host(self, speed: float = 1.0) -> int:
        """One more host shares the work, of that speed against the first ones; its number.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import pyarrow as pa
        >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
        >>> session = q.open(schemas={"a": schema, "b": schema}, hosts=2)
        >>> session.add_host(), session.hosts
        (2, [0, 1, 2])
        """
        cluster = self._cluster()
        with self._refusing():
            return cluster.add_host(speed)

    @whole
    def remove_host(self, number: int, *, lost: bool = False) -> None:
        """A host leaves once others have what they need of it; or it is ``lost`` at once.

        What a lost host held is read again from the windows: no result is lost.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> q = wj.join(a, b, on=a["k"] == b["k"])
        >>> import pyarrow as pa
        >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
        >>> session = q.open(schemas={"a": schema, "b": schema}, hosts=2)
        >>> session.remove_host(1)
        >>> session.hosts
        [0]
        """
        check_flag("lost", lost)
        cluster = self._cluster()
        with self._refusing():
            cluster.remove_host(number, lost=lost)

    @whole
    def set_window(self, stream: str, length: Length, *, at: Time | None = None) -> None:
        """Let the window of a stream have another length, from a time on.

        ``length``: as in `windjoin.stream`.  ``at``: a time of that stream, as in `advance`, that
        no row has come to; right after the newest row of all streams if not given.  Results whose
        newest row is at that time or later are those of the new window, others those of the old
        one.  What has left a window by then does not come back when it becomes longer.

        >>> import windjoin as wj, pyarrow as pa
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> schema = pa.schema([("t", pa.int64()), ("k", pa.int64())])
        >>> with wj.join(a, b, on=a["k"] == b["k"]).open({"a": schema, "b": schema}) as s:
        ...     _ = s.push("a", {"t": [1, 2], "k": [7, 8]})
        ...     s.set_window("a", 3, at=6)
        ...     s.push("b", {"t": [5, 6], "k": [7, 8]}).num_rows
        1
        """
        number = self._number(stream)
        if self._memory is not None:
            raise SessionError("set_window is not for sessions with memory=")
        live, ticks, when = change_of(self._live, self._bound, self.query, number, length, at)
        if self._resizing is None:
            self._resizing = Resizing(live)
        self._resizing.check(self.query.names[number], number, at, when)
        self._session_lock.begin()
        with AS_OWN_ERRORS:
            self._resizing.add(number, when, ticks)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """What a router does not want is as if it had not been asked."""
        self._session_lock.begin()
        try:
            yield
        except ClusterError as error:
            if isinstance(error.__cause__, RoutingError):
                self._session_lock.refuse()
            raise

    def _cluster(self) -> ClusterJoin:
        self._must_be_open()
        if not isinstance(self._live, ClusterJoin):
            raise SessionError(
                "add_host and remove_host need a session that was opened with hosts= and schemas="
            )
        return self._live
