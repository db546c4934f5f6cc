"""The routing table of coordinated routing and the search for paths in it.  Unchecked.

Per stream the live segments sit in a ring of slots; ``held`` says which slots a host holds,
``holders`` which hosts hold a slot.  Both are bitsets, so a cover is a few popcounts.
"""

from collections.abc import Mapping

import numpy as np

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from windjoin.pyx.cover cimport wj_cover, wj_cover_greedy


cdef extern from *:
    """
    static inline int wj_low_bit(uint64_t x) { return __builtin_ctzll(x); }
    static inline int wj_bits(uint64_t x) { return __builtin_popcountll(x); }
    """
    int wj_low_bit(uint64_t) noexcept nogil
    int wj_bits(uint64_t) noexcept nogil


cdef class Voids:
    """Read-only mapping from host to the time ranges that are void there; unpacked when read."""

    cdef bytes packed  # (host, start, stop) as int64, ranges of a host in ascending order

    def __getitem__(self, host):
        ranges = self.get(host)
        if not ranges:
            raise KeyError(host)
        return ranges

    def get(self, host, default=()):
        """The void ranges of a host."""
        return tuple([(start, stop) for at, start, stop in self.triples() if at == host]) or default

    def triples(self):
        """All (host, start, stop), in no order of hosts."""
        return np.frombuffer(self.packed, np.int64).reshape(-1, 3).tolist()

    def __iter__(self):
        return iter(sorted({host for host, _, _ in self.triples()}))

    def __len__(self):
        return len({host for host, _, _ in self.triples()})

    def __contains__(self, host):
        return any(at == host for at, _, _ in self.triples())

    def keys(self):
        """The hosts where anything is void, ascending."""
        return list(self)

    def items(self):
        """(host, ranges), by host."""
        return [(host, self.get(host)) for host in self]

    def values(self):
        """The ranges, by host."""
        return [self.get(host) for host in self]

    def __eq__(self, other):
        return isinstance(other, Mapping) and dict(self.items()) == dict(other.items())

    def __repr__(self):
        return repr(dict(self.items()))


Mapping.register(Voids)


cdef class RouteTable:
    """Where the live segments are, and the cheapest way through them."""

    cdef readonly int streams, hosts, slots
    cdef int host_words, words
    cdef int64_t[::1] windows, head, tail, key
    cdef int64_t[:, ::1] start, stop
    cdef uint64_t[:, :, ::1] held, holders
    cdef double[::1] weight
    cdef int32_t[::1] spread, order_count, count, chosen
    cdef uint64_t[::1] open_bits, left, everything, base
    cdef uint64_t[:, ::1] sets, best_sets
    cdef int32_t[:, :, ::1] orders
    cdef double[:, :, ::1] factors
    cdef int64_t[::1] run  # per host: its last entry in `found`
    cdef int64_t[:, ::1] found  # void ranges of a hop: host, start, stop
    cdef readonly double cost
    cdef public uint64_t random

    def __init__(self, windows, int hosts, uint64_t random=0):
        self.windows = np.array(windows, dtype=np.int64)
        self.streams = len(windows)
        self.head = np.zeros(self.streams, np.int64)
        self.tail = np.zeros(self.streams, np.int64)
        self.random = random
        self.slots = 64
        self.words = 1
        self.start = np.zeros((self.streams, self.slots), np.int64)
        self.stop = np.zeros((self.streams, self.slots), np.int64)
        self.hosts = 0
        self.host_words = 0
        self.held = np.zeros((self.streams, 0, self.words), np.uint64)
        self.holders = np.zeros((self.streams, self.slots, 0), np.uint64)
        self.spread = np.zeros(0, np.int32)
        self.sets = np.zeros((self.streams, 0), np.uint64)
        self.found = np.zeros((64, 3), np.int64)
        self.grow_hosts(hosts)
        self._new_slot_scratch()

    # -- set up, and once per border ----------------------------------------------------------

    def set_orders(self, orders, factors):
        """``orders[i, c]``: candidate c of stream i; ``factors``: what a host costs at each hop."""
        self.orders = np.ascontiguousarray(orders, np.int32)
        self.factors = np.ascontiguousarray(factors, np.float64)
        self.order_count = np.array(
            [sum(row[0] >= 0 for row in rows) for rows in np.asarray(orders)], np.int32
        )

    def begin(self, const double[::1] loads, list open_hosts, double crowded, int most):
        """A border: the weights of its covers, who may store, and who is topped up with.

        An open host stores unless its load is above ``crowded`` times their mean.  The ``most``
        least loaded open hosts are what placements are topped up with.
        """
        cdef int host
        cdef double top = 0, total = 0
        for host in range(self.hosts):
            if loads[host] < INFINITY:
                top = max(top, loads[host])
        for host in range(self.hosts):
            self.weight[host] = 1
            if top > 0 and loads[host] < INFINITY:
                self.weight[host] = 1 + <int>(loads[host] / top * 1023)
        for host in open_hosts:
            total += loads[host]
        memset(&self.open_bits[0], 0, self.host_words * sizeof(uint64_t))
        for host in open_hosts:
            if loads[host] <= crowded * total / len(open_hosts):
                _set(&self.open_bits[0], host)
        self._rank(loads, open_hosts, most)

    cdef int _rank(self, const double[::1] loads, list open_hosts, int most) except -1:
        """The least loaded hosts, ties to the lowest number: insertion into a short list."""
        cdef int host, at, n = 0
        most = min(most, <int>len(open_hosts))
        if self.spread.shape[0] != most:
            self.spread = np.zeros(most, np.int32)
        for host in open_hosts:
            if n == most and loads[host] >= loads[self.spread[n - 1]]:
                continue
            at = n = min(n + 1, most)
            while at > 1 and loads[host] < loads[self.spread[at - 2]]:
                at -= 1
                self.spread[at] = self.spread[at - 1]
            self.spread[at - 1] = host
        return 0

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
        self.weight = np.ones(hosts)
        self.open_bits = np.zeros(words, np.uint64)
        self.base = np.zeros(words, np.uint64)
        self.sets = np.zeros((self.streams, words), np.uint64)
        self.best_sets = np.zeros((self.streams, words), np.uint64)
        self.count = np.zeros(hosts, np.int32)
        self.chosen = np.zeros(hosts, np.int32)
        self.key = np.zeros(hosts, np.int64)
        self.run = np.zeros(hosts, np.int64)

    # -- routing ------------------------------------------------------------------------------

    def place(self, int stream, int64_t start, int64_t stop, int copies):
        """Hosts of a new segment: the first hop of its cheapest path through older segments.

        Hosts that take no new work are left out; the least loaded fill up to ``copies``.
        """
        cdef int word, position, n = 0
        cdef uint64_t *base = &self.base[0]
        memset(base, 0, self.host_words * sizeof(uint64_t))
        self._search(stream, start, start, base)
        for word in range(self.host_words):
            base[word] = self.best_sets[0, word] & self.open_bits[word]
            n += wj_bits(base[word])
        for position in range(self.spread.shape[0]):
            if n >= copies:
                break
            n += not _has(base, self.spread[position])
            _set(base, self.spread[position])
        hosts = _members(base, self.host_words)
        self._append(stream, start, stop, base)
        return hosts

    def path(self, int stream, int64_t start, int64_t stop):
        """Hops of a placed segment: (stream, hosts, voids) each."""
        cdef int hop
        cdef int64_t at = self._find(stream, start)
        if at < 0:
            raise KeyError(f"stream {stream} has no segment that starts at {start}")
        memcpy(&self.base[0], &self.holders[stream, at, 0], self.host_words * sizeof(uint64_t))
        best = self._search(stream, start, stop, &self.base[0])
        return [
            self._hop(self.orders[stream, best, hop], start, stop, &self.best_sets[hop, 0])
            for hop in range(self.streams - 1)
        ]

    # -- the table ----------------------------------------------------------------------------

    def add(self, int stream, int64_t start, int64_t stop, hosts):
        """Put a segment of known hosts at the end of its stream."""
        cdef int host
        memset(&self.base[0], 0, self.host_words * sizeof(uint64_t))
        for host in hosts:
            _set(&self.base[0], host)
        self._append(stream, start, stop, &self.base[0])

    def last_start(self, int stream):
        """Start of the newest segment of a stream; None if there is none."""
        if self.tail[stream] == self.head[stream]:
            return None
        return self.start[stream, (self.tail[stream] - 1) & (self.slots - 1)]

    def hosts_of(self, int stream, int64_t start):
        """The hosts of a segment; None if it is not in the table."""
        cdef int64_t at = self._find(stream, start)
        return None if at < 0 else _members(&self.holders[stream, at, 0], self.host_words)

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
                if not _has(&self.holders[stream, slot, 0], host):
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
        _set(&self.holders[stream, slot, 0], host)
        _set(&self.held[stream, host, 0], slot)

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
                    list(_members(
                        &self.holders[stream, sequence & (self.slots - 1), 0], self.host_words
                    )),
                ]
                for sequence in range(self.head[stream], self.tail[stream])
            ]
            for stream in range(self.streams)
        ]

    # -- search -------------------------------------------------------------------------------

    cdef int _search(self, int stream, int64_t start, int64_t until, const uint64_t *base) except -1:
        """Try all candidate orders on segments that start before ``until``; keep the cheapest.

        Equation 3 with the rows of the segment as unit: a host that is new at a hop costs one
        message per partial result that travels there.
        """
        cdef int order, best = -1
        cdef double cost, least = 0
        for order in range(self.order_count[stream]):
            cost = self._evaluate(stream, order, start, until, base, least if best >= 0 else -1)
            if cost == -2:
                raise RuntimeError("a segment in the routing table is held by no host")
            if best < 0 or (cost >= 0 and cost < least):
                best, least = order, cost
                self.sets, self.best_sets = self.best_sets, self.sets
        self.cost = least
        return best

    cdef double _evaluate(
        self, int stream, int order, int64_t start, int64_t until, const uint64_t *base,
        double limit,
    ):
        """Fill ``sets`` for one order; -1 as soon as the cost reaches ``limit``, -2 on failure."""
        cdef int hop, k, word
        cdef int64_t low, high
        cdef double cost = 0
        cdef const uint64_t *before = base
        cdef uint64_t *now
        cdef int added
        for hop in range(self.streams - 1):
            k = self.orders[stream, order, hop]
            low = self._first(k, start - self.windows[k])
            high = self._behind(k, until)
            now = &self.sets[hop, 0]
            if self._cover(k, low, high, before, now) < 0:
                return -2
            added = 0
            for word in range(self.host_words):
                added += wj_bits(now[word] & ~before[word])
            cost += self.factors[stream, order, hop] * added
            if limit >= 0 and cost >= limit:
                return -1
            before = now
        return cost

    cdef int _cover(
        self, int k, int64_t low, int64_t high, const uint64_t *before, uint64_t *now
    ) noexcept:
        """Hosts for the segments ``low .. high`` of stream k, those of the hop before for free."""
        cdef int word, host, w, n, mask = self.slots - 1
        cdef uint64_t bits, useful
        cdef wj_cover problem
        cdef int first, last
        memset(now, 0, self.host_words * sizeof(uint64_t))
        if low >= high:
            return 0
        first, last = (low & mask) >> 6, ((high - 1) & mask) >> 6
        if (low & mask) > ((high - 1) & mask):
            first, last = 0, self.words - 1
        memset(&self.left[first], 0, (last - first + 1) * sizeof(uint64_t))
        _fill(&self.left[0], low, high, mask)
        memcpy(&self.everything[first], &self.left[first], (last - first + 1) * sizeof(uint64_t))
        for word in range(self.host_words):
            bits = before[word]
            while bits:
                host = word * 64 + wj_low_bit(bits)
                bits &= bits - 1
                useful = 0
                for w in range(first, last + 1):
                    useful |= self.held[k, host, w] & self.everything[w]
                    self.left[w] &= ~self.held[k, host, w]
                if useful:
                    _set(now, host)
        problem = wj_cover(
            hosts=self.hosts, host_words=self.host_words, first_word=first, last_word=last,
            words=self.words, held=&self.held[k, 0, 0], holders=&self.holders[k, 0, 0],
            weight=&self.weight[0], count=&self.count[0], key=&self.key[0],
            random=&self.random,
        )
        n = wj_cover_greedy(&problem, &self.left[0], &self.chosen[0])
        for host in range(n):
            _set(now, self.chosen[host])
        return n

    cdef tuple _hop(self, int k, int64_t start, int64_t stop, uint64_t *hosts):
        """Each segment is computed by the least loaded of its hosts and void at the others."""
        cdef int word, host, best
        cdef int64_t low = self._first(k, start - self.windows[k]), high = self._behind(k, stop)
        cdef int64_t sequence, slot, opened, closed
        cdef uint64_t bits
        cdef int64_t n = 0
        memset(&self.base[0], 0, self.host_words * sizeof(uint64_t))
        memset(&self.run[0], 255, self.hosts * sizeof(int64_t))
        for sequence in range(low, high):
            slot = sequence & (self.slots - 1)
            best = self._least_loaded_holder(k, slot, hosts)
            _set(&self.base[0], best)
            opened, closed = self.start[k, slot], self.stop[k, slot]
            for word in range(self.host_words):
                bits = self.holders[k, slot, word] & hosts[word]
                while bits:
                    host = word * 64 + wj_low_bit(bits)
                    bits &= bits - 1
                    if host != best:
                        n = self._void(n, host, opened, closed)
        return k, _members(&self.base[0], self.host_words), self._voids(n)

    cdef int64_t _void(self, int64_t n, int host, int64_t opened, int64_t closed) except -1:
        """One more void segment of a host; neighbours become one range.  Returns their number."""
        cdef int64_t run = self.run[host]
        if run >= 0 and self.found[run, 2] == opened:
            self.found[run, 2] = closed
            return n
        if n == self.found.shape[0]:
            self.found = np.concatenate([self.found, np.zeros_like(self.found)])
        self.found[n, 0], self.found[n, 1], self.found[n, 2] = host, opened, closed
        self.run[host] = n
        return n + 1

    cdef Voids _voids(self, int64_t n):
        """Those of hosts that compute something; the others are not visited at all."""
        cdef int64_t i, kept = 0
        for i in range(n):
            if _has(&self.base[0], self.found[i, 0]):
                self.found[kept, 0] = self.found[i, 0]
                self.found[kept, 1] = self.found[i, 1]
                self.found[kept, 2] = self.found[i, 2]
                kept += 1
        voids = Voids()
        voids.packed = PyBytes_FromStringAndSize(<char *>&self.found[0, 0], 24 * kept)
        return voids

    cdef int _least_loaded_holder(self, int k, int64_t slot, const uint64_t *hosts) noexcept:
        cdef int word, host, best = -1
        cdef uint64_t bits
        for word in range(self.host_words):
            bits = self.holders[k, slot, word] & hosts[word]
            while bits:
                host = word * 64 + wj_low_bit(bits)
                bits &= bits - 1
                if best < 0 or self.weight[host] < self.weight[best]:
                    best = host
        return best

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
                host = word * 64 + wj_low_bit(bits)
                bits &= bits - 1
                _set(&self.held[stream, host, 0], slot)
        return 0

    cdef int _clear(self, int stream, int64_t slot) except -1:
        cdef int word, host
        cdef uint64_t bits
        for word in range(self.host_words):
            bits = self.holders[stream, slot, word]
            self.holders[stream, slot, word] = 0
            while bits:
                host = word * 64 + wj_low_bit(bits)
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
        self._new_slot_scratch()
        for stream, live in enumerate(segments):
            for start, stop, hosts in live:
                self.add(stream, start, stop, hosts)
        np.asarray(self.base)[:] = bases

    def _new_slot_scratch(self):
        self.left = np.zeros(self.words, np.uint64)
        self.everything = np.zeros(self.words, np.uint64)


cdef inline bint _has(const uint64_t *bits, int64_t number) noexcept nogil:
    return (bits[number >> 6] >> (number & 63)) & 1


cdef inline void _set(uint64_t *bits, int64_t number) noexcept nogil:
    bits[number >> 6] |= <uint64_t>1 << (number & 63)


cdef inline void _fill(uint64_t *bits, int64_t low, int64_t high, int64_t mask) noexcept nogil:
    """Set the slots of sequence numbers ``low .. high``, word by word."""
    cdef int64_t slot, room
    cdef uint64_t run
    while low < high:
        slot = low & mask
        room = min(64 - (slot & 63), high - low)
        run = ~<uint64_t>0 if room == 64 else (<uint64_t>1 << room) - 1
        bits[slot >> 6] |= run << (slot & 63)
        low += room


cdef tuple _members(const uint64_t *bits, int words):
    """The numbers in a bitset, ascending."""
    cdef int word
    cdef uint64_t rest
    cdef list numbers = []
    for word in range(words):
        rest = bits[word]
        while rest:
            numbers.append(word * 64 + wj_low_bit(rest))
            rest &= rest - 1
    return tuple(numbers)
