"""The one small interface behind which every index stands."""
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t


cdef int out_of_memory(const char *what, int64_t n) except -1 nogil:
    """Raise a MemoryError that says for what, from code that holds no GIL."""
    with gil:
        raise MemoryError(f"no memory for {n} {what.decode()}")


cdef class Index:
    """Rows of one stream, found by time and, if the index has one, by a value.

    A subclass sets ``serve`` and ``state`` (see ``Serve`` in hop.h) when it is made; ``state``
    stays where it is for the life of the index.  It may set ``locate``, ``fills_bound`` if it
    knows how to fill ``Pairs.bound``, and ``exists`` if it is quicker to stop at the first row.

    The life of a row is drawn in lifecycle.h: ``fetch`` is told that it will be inserted soon;
    ``insert`` takes it; once ``expire`` has been told a later horizon it is not proposed for
    anything that probes from there on; ``compact`` drops it for good.  ``insert_arrays`` and
    ``expire_before`` are the same for callers in Python.

    One that ``defers`` need not insert rows before they are probed for: who probes it sets
    ``probed_until``, the latest time ever probed, and calls ``catch_up`` if that is not before
    ``deferred_from``, the earliest of those deferred.

    One that calls a function of the user's sets ``raised``, where it notes that this raised; it
    proposes such rows, as nobody knows yet whether they are asked for.
    """

    def __cinit__(self):
        self.probed_until = INT64_MIN
        self.deferred_from = INT64_MAX
        life_begins(&self.life)

    @property
    def nbytes(self):
        """Bytes allocated."""
        raise NotImplementedError(f"{type(self).__name__} does not say how large it is")

    def insert_arrays(self, values, const int64_t[::1] times, const int64_t[::1] rows):
        """Add rows; ``values``: codes, or lengths, or None; and columns of int64."""
        cdef const int32_t[::1] code
        cdef const int32_t *codes = NULL
        cdef const int64_t[::1] column
        cdef const int64_t *value[MOST_VALUES]
        cdef int64_t n = times.shape[0]
        cdef int k
        if n == 0:
            return
        if values[0] is not None:
            code = values[0]
            codes = &code[0]
        for k in range(len(values[1])):
            column = values[1][k]
            value[k] = &column[0]
        life_inserts(&self.life, n, &times[0])
        with nogil:
            self.insert(n, codes, value, &times[0], &rows[0])

    def expire_before(self, int64_t horizon):
        """Forget, now or later, rows with time < ``horizon``."""
        life_expires(&self.life, horizon)
        self.expire(horizon)

    def compact(self):
        """Drop expired rows for good.

        An index of key codes returns one byte per code: whether it is still there.
        """
        raise NotImplementedError(f"{type(self).__name__} does not compact")

    @property
    def forgets(self):
        """Whether it can let rows of some codes go, or all rows, and keep its room."""
        return False

    def forget(self, gone):
        """Drop all rows of some codes, which others will have: one byte per code."""
        raise NotImplementedError(f"{type(self).__name__} forgets no codes")

    def clear(self):
        """Drop all rows; there is room for as many again."""
        raise NotImplementedError(f"{type(self).__name__} forgets no codes")

    cdef int insert(
        self, int64_t n, const int32_t *code, const int64_t *const *value, const int64_t *time,
        const int64_t *row,
    ) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} takes no rows")

    cdef void expire(self, int64_t horizon) noexcept:
        pass

    cdef int catch_up(self, int64_t time) except -1 nogil:
        """Take all rows that wait with times up to ``time``."""
        return 0

    cdef Index waiter(self):
        """The one that waits, if this one asks another for its rows."""
        return self

    @property
    def learned_text(self):
        """For explain(): what it has learned from the rows, if anything."""
        return ""

    @property
    def unsuited(self):
        """Whether the rows that come lately are not what it is good for."""
        return False

    @property
    def n_keys(self):
        """Keys of its own that only `compact` makes free again."""
        return 0


cdef class Prober:
    """What an index must know of one hop that probes it, and its room to work in, at ``prober``."""

    @property
    def nbytes(self):
        """Bytes allocated."""
        raise NotImplementedError(f"{type(self).__name__} does not say how large it is")

    @property
    def compared(self):
        """Pairs that bounds left open, so that they were compared; -1: it does not count them."""
        return -1


cdef class PairFilter:
    """A test of candidate pairs: calls ``keep`` with ``filter``, which stays where it is."""
