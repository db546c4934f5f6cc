"""Where the live segments of every stream are.  Unchecked.

Per stream the segments sit in a ring of slots, oldest first; ``held`` says which slots a host
holds, ``holders`` which hosts hold a slot.  Both are bitsets, so a cover is a few popcounts.
"""

import numpy as np

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset


cdef class SegmentTable:
    """Segments by stream and time, and the hosts that hold each."""

    def __init__(self, windows, int hosts):
        self.windows = np.array(windows, dtype=np.int64)
        self.streams = len(windows)
        self.head = np.zeros(self.streams, np.int64)
        self.tail = np.zeros(self.streams, np.int64)
        self.slots, self.words, self.hosts, self.host_words = 64, 1, 0, 0
        self.start = np.zeros((self.streams, self.slots), np.int64)
        self.stop = np.zeros((self.streams, self.slots), np.int64)
        self.held = np.zeros((self.streams, 0, self.words), np.uint64)
        self.holders = np.zeros((self.streams, self.slots, 0), np.uint64)
        self.grow_hosts(hosts)

    def grow_hosts(self, int hosts):
        """Make room for host numbers below ``hosts``."""
        if hosts <= self.hosts:
            return
        words = (hosts + 63) // 64
        held = np.zeros((self.streams, hosts, self.words), np.uint64)
        held[:, :self.hosts] = self.held
        holders = np.zeros((self.streams, self.slots, words), np.uint64)
        holders[:, :, :self.host_words] = self.holders
        self.held, self.holders = held, holders
        self.hosts, self.host_words = hosts, words
        self.base = np.zeros(words, np.uint64)

    def add(self, int stream, int64_t start, int64_t stop, hosts):
        """Put a segment of known hosts at the end of its stream."""
        cdef int host
        memset(&self.base[0], 0, self.host_words * sizeof(uint64_t))
        for host in hosts:
            set_bit(&self.base[0], host)
        self._append(stream, start, stop, &self.base[0])

    def last_start(self, int stream):
        """Start of the newest segment of a stream; None if there is none."""
        if self.tail[stream] == self.head[stream]:
            return None
        return self.start[stream, (self.tail[stream] - 1) & (self.slots - 1)]

    def hosts_of(self, int stream, int64_t start):
        """The hosts of a segment; None if it is not in the table."""
        cdef int64_t at = self._find(stream, start)
        return None if at < 0 else members(&self.holders[stream, at, 0], self.host_words)

    def expire(self, int64_t watermark):
        """Delete the segments that no row at or after the watermark reaches."""
        cdef int stream
        cdef int64_t slot
        for stream in range(self.streams):
            while self.head[stream] < self.tail[stream]:
                slot = self.head[stream] & (self.slots - 1)
                if self.stop[stream, slot] + self.windows[stream] > watermark:
                    break
                self._clear(stream, slot)
                self.head[stream] += 1

    def drop_host(self, int host):
        """Take a host out of every segment; returns the (stream, start, stop) left with none."""
        cdef int stream, word
        cdef int64_t sequence, slot
        cdef uint64_t rest
        orphans = []
        for stream in range(self.streams):
            for sequence in range(self.head[stream], self.tail[stream]):
                slot = sequence & (self.slots - 1)
                if not has_bit(&self.holders[stream, slot, 0], host):
                    continue
                self.holders[stream, slot, host >> 6] &= ~(<uint64_t>1 << (host & 63))
                rest = 0
                for word in range(self.host_words):
                    rest |= self.holders[stream, slot, word]
                if not rest:
                    orphans.append((stream, self.start[stream, slot], self.stop[stream, slot]))
            memset(&self.held[stream, host, 0], 0, self.words * sizeof(uint64_t))
        return orphans

    def give(self, int stream, int64_t start, int host):
        """A segment of the table is held by one host more."""
        cdef int64_t slot = self._find(stream, start)
        set_bit(&self.holders[stream, slot, 0], host)
        set_bit(&self.held[stream, host, 0], slot)

    def holds(self, int host):
        """Whether the host holds anything."""
        return bool(np.asarray(self.held)[:, host].any())

    def entries(self):
        """Number of live segments."""
        return int((np.asarray(self.tail) - np.asarray(self.head)).sum())

    def nbytes(self):
        """Bytes of the table."""
        cells = self.held.size + self.holders.size + self.start.size + self.stop.size
        return 8 * int(cells)

    def dump(self):
        """Per stream, oldest first: [start, stop, [hosts]]."""
        return [
            [
                [
                    self.start[stream, sequence & (self.slots - 1)],
                    self.stop[stream, sequence & (self.slots - 1)],
                    list(members(
                        &self.holders[stream, sequence & (self.slots - 1), 0], self.host_words
                    )),
                ]
                for sequence in range(self.head[stream], self.tail[stream])
            ]
            for stream in range(self.streams)
        ]

    # -- slots --------------------------------------------------------------------------------

    cdef int64_t _first(self, int k, int64_t oldest) noexcept:
        """Sequence number of the first segment of stream k that ends after ``oldest``."""
        cdef int64_t low = self.head[k], high = self.tail[k], middle
        while low < high:
            middle = (low + high) >> 1
            if self.stop[k, middle & (self.slots - 1)] <= oldest:
                low = middle + 1
            else:
                high = middle
        return low

    cdef int64_t _behind(self, int k, int64_t until) noexcept:
        """Sequence number behind the last segment of stream k that starts before ``until``."""
        cdef int64_t low = self.head[k], high = self.tail[k], middle
        while low < high:
            middle = (low + high) >> 1
            if self.start[k, middle & (self.slots - 1)] < until:
                low = middle + 1
            else:
                high = middle
        return low

    cdef int64_t _find(self, int stream, int64_t start) noexcept:
        """The slot of the segment that starts there, or -1."""
        cdef int64_t slot, sequence = self._behind(stream, start + 1) - 1
        if sequence < self.head[stream]:
            return -1
        slot = sequence & (self.slots - 1)
        return slot if self.start[stream, slot] == start else -1

    cdef int _append(self, int stream, int64_t start, int64_t stop, uint64_t *hosts) except -1:
        cdef int word, host
        cdef int64_t slot
        cdef uint64_t bits
        if self.tail[stream] - self.head[stream] == self.slots:
            self._grow_slots()
        slot = self.tail[stream] & (self.slots - 1)
        self.tail[stream] += 1
        self.start[stream, slot], self.stop[stream, slot] = start, stop
        for word in range(self.host_words):
            self.holders[stream, slot, word] = bits = hosts[word]
            while bits:
                host = word * 64 + low_bit(bits)
                bits &= bits - 1
                set_bit(&self.held[stream, host, 0], slot)
        return 0

    cdef int _clear(self, int stream, int64_t slot) except -1:
        cdef int word, host
        cdef uint64_t bits
        for word in range(self.host_words):
            bits = self.holders[stream, slot, word]
            self.holders[stream, slot, word] = 0
            while bits:
                host = word * 64 + low_bit(bits)
                bits &= bits - 1
                self.held[stream, host, slot >> 6] &= ~(<uint64_t>1 << (slot & 63))
        return 0

    def _grow_slots(self):
        """Twice the slots; everything is put in anew."""
        segments, bases = self.dump(), np.asarray(self.base).copy()
        self.slots *= 2
        self.words = self.slots // 64
        self.start = np.zeros((self.streams, self.slots), np.int64)
        self.stop = np.zeros((self.streams, self.slots), np.int64)
        self.held = np.zeros((self.streams, self.hosts, self.words), np.uint64)
        self.holders = np.zeros((self.streams, self.slots, self.host_words), np.uint64)
        self.head[:] = 0
        self.tail[:] = 0
        for stream, live in enumerate(segments):
            for start, stop, hosts in live:
                self.add(stream, start, stop, hosts)
        np.asarray(self.base)[:] = bases


cdef tuple members(const uint64_t *bits, int words):
    """The numbers in a bitset, ascending."""
    cdef int word
    cdef uint64_t rest
    cdef list numbers = []
    for word in range(words):
        rest = bits[word]
        while rest:
            numbers.append(word * 64 + low_bit(rest))
            rest &= rest - 1
    return tuple(numbers)
