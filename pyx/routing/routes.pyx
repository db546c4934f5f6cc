"""The search for paths in a routing table.  Unchecked: `windjoin.diffusion.ctr` is the door."""

from collections.abc import Mapping

import numpy as np

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from windjoin.pyx.routing.cover cimport wj_cover, wj_cover_greedy
from windjoin.pyx.routing.segment_table cimport (
    SegmentTable,
    count_bits,
    has_bit,
    low_bit,
    members,
    set_bit,
)


cdef class Voids:
    """Read-only mapping from host to the time ranges that are void there; unpacked when read."""

    cdef bytes packed  # (host, start, stop) as int64, ranges of a host in ascending order

    def __getitem__(self, host, /):
        ranges = self.get(host)
        if not ranges:
            raise KeyError(host)
        return ranges

    def get(self, key, default=None, /):
        """The void ranges of a host."""
        ranges = tuple([(start, stop) for at, start, stop in self.triples() if at == key])
        return ranges or default

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


cdef class RouteTable(SegmentTable):
    """Where the live segments are, and the cheapest way through them."""

    cdef double[::1] weight
    cdef int32_t[::1] spread, order_count, count, chosen
    cdef uint64_t[::1] open_bits, left, everything
    cdef uint64_t[:, ::1] sets, best_sets
    cdef int32_t[:, :, ::1] orders
    cdef double[:, :, ::1] factors
    cdef int64_t[::1] key
    cdef int64_t[::1] run  # per host: its last entry in `found`
    cdef int64_t[:, ::1] found  # void ranges of a hop: host, start, stop
    cdef readonly double cost
    cdef readonly int order
    cdef public uint64_t random

    def __init__(self, windows, int hosts, uint64_t random=0):
        super().__init__(windows, hosts)
        self.random = random
        self.spread = np.zeros(0, np.int32)
        self.found = np.zeros((64, 3), np.int64)
        self.left = np.zeros(self.words, np.uint64)
        self.everything = np.zeros(self.words, np.uint64)

    def grow_hosts(self, int hosts):
        """Make room for host numbers below ``hosts``; `begin` has to be called again."""
        super().grow_hosts(hosts)
        self.weight = np.ones(self.hosts)
        self.open_bits = np.zeros(self.host_words, np.uint64)
        self.sets = np.zeros((self.streams, self.host_words), np.uint64)
        self.best_sets = np.zeros((self.streams, self.host_words), np.uint64)
        self.count = np.zeros(self.hosts, np.int32)
        self.chosen = np.zeros(self.hosts, np.int32)
        self.key = np.zeros(self.hosts, np.int64)
        self.run = np.zeros(self.hosts, np.int64)

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
                set_bit(&self.open_bits[0], host)
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
            n += count_bits(base[word])
        for position in range(self.spread.shape[0]):
            if n >= copies:
                break
            n += not has_bit(base, self.spread[position])
            set_bit(base, self.spread[position])
        hosts = members(base, self.host_words)
        self._append(stream, start, stop, base)
        return hosts

    def path(self, int stream, int64_t start, int64_t stop):
        """Hops of a placed segment: (stream, hosts, voids) each."""
        cdef int hop
        cdef int64_t at = self._find(stream, start)
        if at < 0:
            raise KeyError(f"stream {stream} has no segment that starts at {start}")
        memcpy(&self.base[0], &self.holders[stream, at, 0], self.host_words * sizeof(uint64_t))
        self.order = best = self._search(stream, start, stop, &self.base[0])
        return [
            self._hop(self.orders[stream, best, hop], start, stop, &self.best_sets[hop, 0])
            for hop in range(self.streams - 1)
        ]

    # -- search -------------------------------------------------------------------------------

    cdef int _search(
        self, int stream, int64_t start, int64_t until, const uint64_t *base
    ) except -1:
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
                added += count_bits(now[word] & ~before[word])
            cost += self.factors[stream, order, hop] * added
            if limit >= 0 and cost >= limit:
                return -1
            before = now
        return cost

    cdef int _cover(
        self, int k, int64_t low, int64_t high, const uint64_t *before, uint64_t *now
    ) except -2:
        """Hosts for the segments ``low .. high`` of stream k, those of the hop before for free."""
        cdef int word, host, w, n, mask = self.slots - 1
        cdef uint64_t bits, useful
        cdef wj_cover problem
        cdef int first, last
        memset(now, 0, self.host_words * sizeof(uint64_t))
        if low >= high:
            return 0
        if self.left.shape[0] < self.words:
            self.left = np.zeros(self.words, np.uint64)
            self.everything = np.zeros(self.words, np.uint64)
        first, last = (low & mask) >> 6, ((high - 1) & mask) >> 6
        if (low & mask) > ((high - 1) & mask):
            first, last = 0, self.words - 1
        memset(&self.left[first], 0, (last - first + 1) * sizeof(uint64_t))
        _fill(&self.left[0], low, high, mask)
        memcpy(&self.everything[first], &self.left[first], (last - first + 1) * sizeof(uint64_t))
        for word in range(self.host_words):
            bits = before[word]
            while bits:
                host = word * 64 + low_bit(bits)
                bits &= bits - 1
                useful = 0
                for w in range(first, last + 1):
                    useful |= self.held[k, host, w] & self.everything[w]
                    self.left[w] &= ~self.held[k, host, w]
                if useful:
                    set_bit(now, host)
        problem = wj_cover(
            hosts=self.hosts, host_words=self.host_words, first_word=first, last_word=last,
            words=self.words, held=&self.held[k, 0, 0], holders=&self.holders[k, 0, 0],
            weight=&self.weight[0], count=&self.count[0], key=&self.key[0],
            random=&self.random,
        )
        n = wj_cover_greedy(&problem, &self.left[0], &self.chosen[0])
        for host in range(n):
            set_bit(now, self.chosen[host])
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
            set_bit(&self.base[0], best)
            opened, closed = self.start[k, slot], self.stop[k, slot]
            for word in range(self.host_words):
                bits = self.holders[k, slot, word] & hosts[word]
                while bits:
                    host = word * 64 + low_bit(bits)
                    bits &= bits - 1
                    if host != best:
                        n = self._void(n, host, opened, closed)
        return k, members(&self.base[0], self.host_words), self._voids(n)

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
            if has_bit(&self.base[0], self.found[i, 0]):
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
                host = word * 64 + low_bit(bits)
                bits &= bits - 1
                if best < 0 or self.weight[host] < self.weight[best]:
                    best = host
        return best


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
