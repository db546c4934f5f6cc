"""What becomes of rows that are pushed into a session, by the way that any table can go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from windjoin.errors import WindjoinError
from windjoin.inputs import as_table
from windjoin.kernel_errors import AS_OWN_ERRORS
from windjoin.kernels.live import LiveJoin
from windjoin.kinds import INT64_MAX
from windjoin.own_times import END
from windjoin.push_many import STRETCH, Batch, by_time, joined, stretches, whole_batches
from windjoin.session_opening import OpeningSession
from windjoin.session_state import Results
from windjoin.stream_rows import in_schema

if TYPE_CHECKING:
    from windjoin.state.keeper import Keeper


class PushingSession(OpeningSession):
    """Rows of one stream or of several, waiting, joined, rejected, or promised not to come."""

    def _push_slowly(self, stream: str, rows: Any) -> Results:
        number = self._number(stream)
        if self._sink is not None:
            self._sink.write_due()
        if self._held is not None and self._held.due:
            self._held.tell()
        table = as_table(rows, stream, self._schema(stream))
        if self._memory is not None:
            self._memory.check()
        if self._live is None:
            return self._taken(self._learn([(number, table)]))
        return self._taken(self._push(number, table))

    def _learn(self, given: list[tuple[int, pa.Table]]) -> Results:
        """Keep the first rows until the schemas of all streams are known, then join them all."""
        waiting, seen = self._waiting, []
        for number, table in given:
            times = waiting.times_of(number, table.schema)
            seen.append((times, *times.split_late(table)))
        waiting.tell()
        for times, ticks, late_split in seen:
            self._late.tell(times.column, times.clock, times.marks, ticks, late_split)
        self._session_lock.begin()
        before = waiting.mark()
        for (number, table), (times, _, late_split) in zip(given, seen, strict=True):
            waiting.add(number, table, times, late_split.newest)
        if not waiting.complete:
            return self._nothing()
        try:
            self._begin(waiting.schemas)
        except Exception:
            waiting.take_back(before)
            self._session_lock.refuse()
            raise
        for number, what in waiting.leave(before):  # nothing of that can be complete
            if not isinstance(what, pa.Table):
                self._promise(number, what)
                continue
            early = self._push(number, what, told=True)
            if not self.query.sides.plain:  # but rows that nothing can match
                self._owed.append(early)
        return self._push_together(given, told=True)

    def _promise(self, number: int, time: Any) -> None:
        if self._live is None or self._bound is None:
            self._session_lock.begin()
            try:
                self._waiting.promise(number, time)
            except WindjoinError:
                self._session_lock.refuse()
                raise
            return
        ticks = INT64_MAX if time is END else self._bound.promise(number, time)
        self._session_lock.begin()
        with AS_OWN_ERRORS:
            self._live.advance(number, ticks)
            found = self._numbered(self._live.catch_up())
            if len(found[0]) or (self._live.outer is not None and self._live.outer.any_left):
                self._owed.append(self._results(found))
            self._expire()

    def _ready(self, number: int, table: pa.Table, told: bool) -> Batch:
        """Rows as they are joined; ``told``: what is to be said of late ones has been said."""
        assert self._live is not None
        assert self._bound is not None
        live, bound = self._live, self._bound
        first = live.windows[number].tail
        prepare = bound.prepare if self._parts is None else self._parts.prepare
        prepared = prepare(number, table, first)
        times = prepared.rows.time
        late_split = live.split_late(number, times, prepared.null_time)
        bound.time_column(number).refuse_least(prepared.rows, late_split.late, first)
        if late_split.late is not None and not told:
            marks = live.clocks[number]
            self._late.tell(bound.time_column(number), bound.clock, marks, times, late_split)
        return Batch(number, table, prepared, late_split, first)

    def _push(self, number: int, table: pa.Table, told: bool = False) -> Results:
        """Join rows of one stream; ``told``: what is to be said of late ones has been said."""
        assert self._live is not None
        assert self._bound is not None
        if self._memory is not None and not self._memory.allows(table.num_rows):
            return self._push_within(self._memory, [(number, table)], told)
        stream_input = self._stream_inputs.get(self.query.names[number])
        if stream_input is not None:
            table = in_schema(table, self._bound.schemas[self.query.names[number]])
            with AS_OWN_ERRORS:
                found = stream_input.through(table, 0, told)
            if found is not None:
                return self._with_owed(found)
        batch = self._ready(number, table, told)
        self._session_lock.begin()
        if self._memory is not None:
            self._memory.came(table.num_rows)
        with AS_OWN_ERRORS:
            self._payloads[number].append(table)
            found = self._live.push(number, batch.prepared.rows, batch.late_split)
            self._reject(batch)
            results = self._with_owed(self._results(found))
            self._expire()
        return results

    def _reject(self, batch: Batch) -> None:
        late, null_time = batch.late_split.late, batch.prepared.null_time
        if late is not None or null_time is not None:
            self._rejected[self.query.names[batch.stream]].add(batch.table, null_time, late)

    def _push_together(self, given: list[tuple[int, pa.Table]], told: bool = False) -> Results:
        """Join rows of several streams in order of time."""
        if len(given) == 1:
            return self._push(*given[0], told)
        live = self._live
        assert live is not None
        if self._memory is not None:
            return self._push_within(self._memory, given, told)
        batches = [self._ready(number, table, told) for number, table in given]
        newest = [live.clocks[batch.stream].newest for batch in batches]
        self._session_lock.begin()
        with AS_OWN_ERRORS:
            for batch in batches:
                self._payloads[batch.stream].append(batch.table)
            alone = isinstance(live, LiveJoin)  # hosts join what has come to the end of a segment
            parts = stretches(batches, newest) if alone else whole_batches(batches)
            found = [live.push(*part.rows()) for part in parts]
            for batch in batches:
                self._reject(batch)
            if not found:
                return self._with_owed(self._nothing())
            together = joined(found)
            if len(found) > 1 and alone and self.query.nearest is None:
                together = by_time(together, batches)
            results = self._with_owed(self._results(together))
            self._expire()
        return results

    def _push_within(
        self, memory: Keeper, given: list[tuple[int, pa.Table]], told: bool
    ) -> Results:
        """Join rows of streams in order of time, within the memory there is."""
        live = self._live
        assert live is not None
        batches = [self._ready(number, table, told) for number, table in given]
        newest = [live.clocks[batch.stream].newest for batch in batches]
        self._session_lock.begin()
        with AS_OWN_ERRORS:
            for batch in batches:
                self._payloads[batch.stream].append(batch.table)
            short = len(batches) == 1 and 0 < len(batches[0].table) <= STRETCH
            cut = isinstance(live, LiveJoin) and not short
            parts = stretches(batches, newest) if cut else whole_batches(batches)
            for part in parts:
                memory.make_room(part.stop - part.start)
                found = live.push(*part.rows())
                memory.count(found)
                if len(found[0]):
                    self._owed.append(self._results(memory.results(found)))
                self._expire()
            for batch in batches:
                self._reject(batch)
            for found in memory.after_push(sum(len(batch.table) for batch in batches)):
                self._owed.append(self._results(found))
            self._expire()
        return self._with_owed(self._nothing())
