"""The one small interface behind which every index stands."""
from libc.stdint cimport INT64_MAX, INT64_MIN


cdef int out_of_memory(const char *what, int64_t n) except -1 nogil:
    """Raise a MemoryError that says for what, from code that holds no GIL."""
    with gil:
        raise MemoryError(f"no memory for {n} {what.decode()}")


cdef class Index:
    """Rows of one stream, found by time and, if the index has one, by a value.

    A subclass sets ``serve`` and ``state`` (see ``Serve`` in hop.h) when it is made; ``state``
    stays where it is for the life of the index.  It may set ``aim``; ``binds``, if it knows how to
    fill ``Pairs.bound``; ``puts``, if it has ``put`` and ``forget``, short ways of ``insert`` and
    ``expire``.  ``fetch`` is told what will be put soon.

    One that ``waits`` need not take rows before they are asked for: who asks it sets
    ``asked_until``, the latest time ever asked for, and calls ``reach`` if that is not before
    ``waiting_from``, the earliest of those that wait.
    """

    def __cinit__(self):
        self.asked_until = INT64_MIN
        self.waiting_from = INT64_MAX

    @property
    def nbytes(self):
        """Bytes allocated."""
        raise NotImplementedError(f"{type(self).__name__} does not say how large it is")

    def insert(self, values, times, rows):
        """Add rows: ``values`` as the index wants them, times and row numbers."""
        raise NotImplementedError(f"{type(self).__name__} takes no rows")

    def expire(self, horizon):
        """Forget, now or later, rows with time < ``horizon``."""
        raise NotImplementedError(f"{type(self).__name__} does not forget")

    def sweep(self):
        """Drop expired rows for good.

        An index of key codes returns one byte per code: whether it is still there.
        """
        raise NotImplementedError(f"{type(self).__name__} does not sweep")

    cdef int put(
        self, int64_t n, const int32_t *code, const int64_t *value, const int64_t *time,
        const int64_t *row,
    ) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} takes rows by insert only")

    cdef void fetch(self, int64_t n, const int32_t *code) noexcept nogil:
        pass

    cdef void forget(self, int64_t horizon) noexcept:
        pass

    cdef int reach(self, int64_t time) except -1 nogil:
        """Take all rows that wait with times up to ``time``."""
        return 0

    @property
    def learned_text(self):
        """For explain(): what it has learned from the rows, if anything."""
        return ""

    @property
    def misfit(self):
        """Whether the rows that come lately are not what it is good for."""
        return False

    @property
    def n_keys(self):
        """Keys of its own that only a sweep makes free again."""
        return 0


cdef class Asker:
    """What an index must know of one hop that asks it, and its room to work in, at ``asker``."""

    @property
    def nbytes(self):
        """Bytes allocated."""
        raise NotImplementedError(f"{type(self).__name__} does not say how large it is")


cdef class PairFilter:
    """A test of candidate pairs: calls ``keep`` with ``filter``, which stays where it is."""
