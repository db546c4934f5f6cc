"""What a session that sheds allots at every beat: the worthiest basic windows that a budget pays.

The rules are told in ``kernels/shedding/allotment.py`` and ``kernels/shedding/ages.py``, which are
the doors to this module.
"""
from libc.math cimport INFINITY, fabs, log
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

import numpy as np

from windjoin.pyx.base.index cimport out_of_memory

cdef enum:
    MOST_HOPS = 16
    RUN = 8  # basic windows that are put in order one by one
    ARRAYS = 11  # doubles kept for each basic window

cdef double NOTHING = 1e-300
cdef double LEAST = 1e-3  # of a hop's partial results goes on, whatever is chosen


cdef struct Curve:
    # one hop: what was learned of it, by basic window, and these in order of worth
    int64_t count
    int64_t first
    double probe
    double spread
    double candidate
    int64_t reach
    double prior  # results, for which all of the hop count in each basic window
    const double *found
    const double *proposed
    const double *arrived  # NULL: a result goes nowhere
    double even  # candidates taken for granted in each basic window
    double arrivals  # sum of `arrived`
    double ask  # what asking costs, however few are asked for
    double *work
    double *gain
    double *passes  # partial results that go on
    double *takes
    double *worth  # of `order`, never rising
    double *works  # of the first 0, 1, ... of `order`
    double *on
    double *finds
    double *share  # of each basic window that is asked
    double *room
    int32_t *order
    int32_t *spare
    int64_t chosen
    int64_t more


cdef struct Spending:
    # one starting stream
    int n
    double known
    double asks
    Curve hop[MOST_HOPS]


cdef inline double _sum(const double *values, int64_t n) noexcept nogil:
    cdef double total = 0
    cdef int64_t k
    for k in range(n):
        total += values[k]
    return total


# -- learned --------------------------------------------------------------------------------------


cdef void _sums_before(const double *values, int64_t n, double *sums) noexcept nogil:
    cdef int64_t k
    sums[0] = 0
    for k in range(n):
        sums[k + 1] = sums[k] + values[k]


cdef inline double _near(const double *sums, int64_t n, int64_t k, int64_t reach) noexcept nogil:
    """The sum over basic window k and ``reach`` ones on either side."""
    return sums[min(k + reach + 1, n)] - sums[max(k - reach, <int64_t>0)]


cdef void _smooth(
    const double *found, const double *proposed, int64_t n, int64_t reach, double share,
    double *room, double *gain,
) noexcept nogil:
    """Worth of results by basic window, by what candidates near it are worth.

    Where little is known of a basic window it counts as the others of its hop do, by the weight of
    a ``share`` of a result: so what seems to find nothing is still told from hops that do find
    nothing.
    """
    cdef double *finds = room
    cdef double *candidates = room + n + 1
    cdef double total = 0, all = 0, one = 1, prior
    cdef int64_t k, there = 0
    for k in range(n):
        total += found[k]
        all += proposed[k]
        there += found[k] > 0
    if total <= 0 or all <= 0:
        memcpy(gain, found, n * sizeof(double))
        return
    if total < there:
        one = total / there
    one *= share
    prior = one * all / total
    finds[0] = candidates[0] = 0
    for k in range(n):
        finds[k + 1] = finds[k] + found[k]
        candidates[k + 1] = candidates[k] + proposed[k]
    for k in range(n):
        gain[k] = proposed[k] * (_near(finds, n, k, reach) + one) / (
            _near(candidates, n, k, reach) + prior
        )


def smoothed(
    const double[::1] found, const double[::1] proposed, int64_t reach, double prior
):
    """See `windjoin.kernels.shedding.learned.smoothed`."""
    cdef int64_t n = len(found)
    cdef double[::1] room = np.empty(2 * n + 2), gain = np.empty(n)
    if n:
        _smooth(&found[0], &proposed[0], n, reach, prior, &room[0], &gain[0])
    return np.asarray(gain)


def best_smoothing(
    const double[::1] found, const double[::1] proposed, tuple reaches, tuple priors
):
    """See `windjoin.kernels.shedding.learned.best_smoothing`."""
    cdef int64_t n = len(found), k, reach
    cdef double total = 0, all = 0, one = 1, most = -INFINITY, score, near, prior
    cdef int64_t there = 0
    cdef double[::1] finds = np.empty(n + 1), candidates = np.empty(n + 1)
    for k in range(n):
        total += found[k]
        all += proposed[k]
        there += found[k] > 0
    best = reaches[0], priors[0]
    if total <= 0 or all <= 0:
        return best
    if total < there:
        one = total / there
    _sums_before(&found[0], n, &finds[0])
    candidates[0] = 0
    for k in range(n):
        candidates[k + 1] = candidates[k] + proposed[k] + 1e-9
    for reach in reaches:
        if 4 * reach > n:
            break
        for prior in priors:
            score = 0
            for k in range(n):
                if found[k] > 0:
                    near = max(_near(&finds[0], n, k, reach) - one, 0.0) + prior * one
                    score += found[k] * log(
                        near / (_near(&candidates[0], n, k, reach) + prior * one * all / total)
                    )
            if score > most:
                best, most = (reach, prior), score
    return best


# -- an order of basic windows --------------------------------------------------------------------


cdef void _sort(Curve *c, const double *worth) noexcept nogil:
    """Basic windows, the worthiest first, equals as they lie: runs put in order, then merged."""
    cdef int64_t n = c.count, begin, end, k, at, width, middle, i, j
    cdef int32_t *order = c.order
    cdef int32_t *other = c.spare
    cdef int32_t one
    begin = 0
    while begin < n:
        end = min(begin + RUN, n)
        for k in range(begin, end):
            one = <int32_t>k
            at = k
            while at > begin and worth[order[at - 1]] < worth[one]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = one
        begin = end
    width = RUN
    while width < n:
        begin = 0
        while begin < n:
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            i, j = begin, middle
            for k in range(begin, end):
                if j >= end or (i < middle and worth[order[i]] >= worth[order[j]]):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
            begin = end
        order, other = other, order
        width *= 2
    c.order, c.spare = order, other


cdef void _draw(
    Curve *c, double after, double gains, double up, bint partial
) noexcept nogil:
    """The curve of a hop.

    after: what a partial result that goes on makes the later hops do
    gains: share of the results that the other hops let through; up: of what comes here
    """
    cdef int64_t n = c.count, k, one, most = 0
    cdef double top = 0, rank, together, best = -INFINITY, taken = 0, on
    cdef double *plain = c.room
    for k in range(n):
        on = 0.0 if c.arrived == NULL else c.passes[k]
        c.takes[k] = up * (c.work[k] + on * after)
        if c.takes[k] > 0:
            plain[k] = gains * c.gain[k] / c.takes[k]
            top = max(top, plain[k])
    for k in range(n):
        rank = fabs(<double>(k - c.first)) / n
        if partial:
            plain[k] = 1.0 - rank
        else:
            if c.takes[k] <= 0:  # they cost nothing
                plain[k] = 2 * top + 1
            plain[k] -= 1e-9 * max(top, 1e-9) * rank  # of equals the newest
    _sort(c, plain)
    c.works[0] = c.on[0] = c.finds[0] = 0
    for k in range(n):
        one = c.order[k]
        c.worth[k] = plain[one]
        c.works[k + 1] = c.works[k] + c.work[one]
        c.on[k + 1] = c.on[k] + (0.0 if c.arrived == NULL else c.passes[one])
        c.finds[k + 1] = c.finds[k] + c.gain[one]
    if c.ask <= 0 or partial:
        return
    for k in range(n):
        taken += c.takes[c.order[k]]
        together = gains * c.finds[k + 1] / (c.ask + taken)
        if together > best:
            best, most = together, k
    for k in range(n):  # asking at all pays by the first ones together
        c.worth[k] = best if k <= most else min(c.worth[k], best)


cdef inline int64_t _worth_it(const Curve *c, double worth) noexcept nogil:
    """How many basic windows are worth that much."""
    cdef int64_t low = 0, high = c.count, middle
    while low < high:
        middle = (low + high) >> 1
        if c.worth[middle] >= worth:
            low = middle + 1
        else:
            high = middle
    return low


# -- what a choice takes --------------------------------------------------------------------------


cdef double _total(const Spending *plan) noexcept nogil:
    """What all of it takes."""
    cdef double asked = plan.known, work = 0
    cdef const Curve *c
    cdef int h
    for h in range(plan.n):
        c = &plan.hop[h]
        work += asked * (c.probe + c.spread) + c.candidate * (
            _sum(c.proposed, c.count) + c.even * c.count
        )
        asked = c.arrivals
    return work


cdef double _work(const Spending *plan, bint more) noexcept nogil:
    """What was chosen takes; nothing if some hop has none: then its rows do not ask."""
    cdef double through = 1, asked = plan.known, work = 0
    cdef const Curve *c
    cdef int64_t m
    cdef int h
    for h in range(plan.n):
        c = &plan.hop[h]
        m = c.more if more else c.chosen
        if m == 0:
            return 0
        work += through * (asked * c.probe + c.works[m])
        asked = c.on[c.count]
        if asked > 0:
            through *= c.on[m] / asked
    return work


cdef double _work_at(Spending *plans, int n, double worth, bint more) noexcept nogil:
    """Choose what is worth that much; the work of it."""
    cdef double work = 0
    cdef Curve *c
    cdef int d, h
    for d in range(n):
        for h in range(plans[d].n):
            c = &plans[d].hop[h]
            if more:
                c.more = _worth_it(c, worth)
            else:
                c.chosen = _worth_it(c, worth)
        work += _work(&plans[d], more)
    return work


cdef union Bits:
    double value
    int64_t bits


cdef inline double _value_of(int64_t rank) noexcept nogil:
    """Doubles in order: the int64 of a smaller one is smaller."""
    cdef Bits both
    both.bits = rank if rank >= 0 else (<int64_t>0x7fffffffffffffff) ^ rank
    return both.value


cdef inline int64_t _rank_of(double value) noexcept nogil:
    cdef Bits both
    both.value = value
    return both.bits if both.bits >= 0 else (<int64_t>0x7fffffffffffffff) ^ both.bits


cdef double _choose(Spending *plans, int n, double work) noexcept nogil:
    """The least worth of which all can be done; what is worth that much is chosen."""
    cdef int64_t fits = _rank_of(INFINITY), too_much = _rank_of(-INFINITY), middle
    if _work_at(plans, n, -INFINITY, False) <= work:
        return -INFINITY
    while True:
        middle = (fits >> 1) + (too_much >> 1) + (fits & too_much & 1)
        if middle == too_much or middle == fits:
            break
        if _work_at(plans, n, _value_of(middle), False) <= work:
            fits = middle
        else:
            too_much = middle
    _work_at(plans, n, _value_of(fits), False)
    return _value_of(fits)


# -- the allotment --------------------------------------------------------------------------------


cdef void _draw_all(Spending *plan, bint partial, bint again) noexcept nogil:
    """Curves of all hops; ``again``: by what was chosen on the curves before."""
    cdef double after[MOST_HOPS]
    cdef double gains[MOST_HOPS]
    cdef double up[MOST_HOPS]
    cdef double kept[MOST_HOPS]
    cdef Curve *c
    cdef double all_kept = 1
    cdef int h
    _follow(plan, again, after)
    for h in range(plan.n):
        c = &plan.hop[h]
        kept[h] = up[h] = 1
        if again:
            if c.finds[c.count] > 0:
                kept[h] = max(c.finds[c.chosen] / c.finds[c.count], LEAST)
            if h and plan.hop[h - 1].on[plan.hop[h - 1].count] > 0:
                up[h] = max(
                    plan.hop[h - 1].on[plan.hop[h - 1].chosen]
                    / plan.hop[h - 1].on[plan.hop[h - 1].count],
                    LEAST,
                )
            if h:
                up[h] *= up[h - 1]
        all_kept *= kept[h]
    for h in range(plan.n):
        gains[h] = all_kept / kept[h]
        _draw(&plan.hop[h], after[h], gains[h], up[h], partial)


cdef void _follow(const Spending *plan, bint again, double *after) noexcept nogil:
    """What one partial result that a hop lets through makes the later hops do."""
    cdef double each = 0, asked, work, on
    cdef const Curve *c
    cdef int h
    for h in range(plan.n):
        after[h] = 0
    for h in range(plan.n - 1, 0, -1):
        c = &plan.hop[h]
        asked = plan.hop[h - 1].arrivals
        work, on = _sum(c.work, c.count), c.arrivals
        if again:
            work = c.works[c.chosen]
            on *= c.on[c.chosen] / max(c.on[c.count], NOTHING)
        each = c.probe + (work + on * each) / max(asked, NOTHING)
        after[h - 1] = each if asked > 0 else 0.0


cdef void _take(Spending *plans, int n, double level, double work) noexcept nogil:
    """Shares of what is chosen; what is left is for a part of the next basic window, or for some
    rows of a stream.
    """
    cdef double before = 0, part = 0, following = -INFINITY
    cdef bint begins, had, has, whole = True
    cdef Spending *plan
    cdef Curve *c
    cdef int d, h
    cdef int64_t k
    for d in range(n):
        plans[d].asks = 1.0
        for h in range(plans[d].n):
            c = &plans[d].hop[h]
            if c.chosen == 0:
                plans[d].asks = 0.0
            for k in range(c.chosen):
                c.share[c.order[k]] = 1.0
            if c.chosen < c.count:
                whole = False
                following = max(following, c.worth[c.chosen])
        before += _work(&plans[d], False)
    if whole:
        return
    part = (work - before) / max(_work_at(plans, n, following, True) - before, NOTHING)
    for d in range(n):
        plan, had, has = &plans[d], True, True
        for h in range(plan.n):
            had = had and plan.hop[h].chosen > 0
            has = has and plan.hop[h].more > 0
        begins = has and not had
        for h in range(plan.n):
            c = &plan.hop[h]
            whole = begins and (plan.n > 1 or c.more > 1 or c.ask > 0)
            for k in range(c.chosen, c.more):
                c.share[c.order[k]] = 1.0 if whole else part
        if begins:
            c = &plan.hop[0]
            plan.asks = 1.0 if plan.n == 1 and c.more == 1 and c.ask == 0 else part


cdef double _fraction(const Spending *plan) noexcept nogil:
    """Of the work of a starting stream."""
    cdef double whole = _total(plan), through = 1, asked = plan.known, work = 0, own, on
    cdef const Curve *c
    cdef int64_t k
    cdef int h
    if whole <= 0:
        return plan.asks
    for h in range(plan.n):
        c = &plan.hop[h]
        own = on = 0
        for k in range(c.count):
            own += c.work[k] * c.share[k]
            if c.arrived != NULL:
                on += c.passes[k] * c.share[k]
        work += through * (asked * c.probe + own)
        asked = c.arrivals
        if asked > 0:
            through *= on / asked
    return plan.asks * work / whole


cdef int _read(Spending *plan, direction) except -1:
    """What was learned of the rows of a starting stream."""
    cdef const double[::1] view
    cdef Curve *c
    cdef list hops = direction.hops
    cdef double granted = direction.granted
    cdef int h
    if len(hops) > MOST_HOPS:
        raise ValueError(f"{len(hops)} hops; there are {MOST_HOPS} at most")
    plan.n = len(hops)
    plan.known = direction.known
    for h, hop in enumerate(hops):
        c = &plan.hop[h]
        view = hop.found
        c.count = len(view)
        c.found = &view[0]
        view = hop.proposed
        c.proposed = &view[0]
        if hop.arrived is not None:
            view = hop.arrived
            c.arrived = &view[0]
            c.arrivals = _sum(c.arrived, c.count)
        c.first = hop.windows.first
        c.probe, c.spread, c.candidate = hop.probe, hop.spread, hop.candidate
        c.reach, c.prior = hop.reach, hop.prior
        c.even = granted / c.count
    plan.hop[0].ask = plan.known * plan.hop[0].probe
    return 0


cdef int64_t _windows_of(const Spending *plans, int n) noexcept nogil:
    cdef int64_t windows = 0
    cdef int d, h
    for d in range(n):
        for h in range(plans[d].n):
            windows += plans[d].hop[h].count
    return windows


cdef void _set_up(Spending *plans, int n, double *room, int32_t *places) noexcept nogil:
    """Room of every hop, and what does not change with the choice."""
    cdef Curve *c
    cdef double asked
    cdef int64_t k
    cdef int d, h
    for d in range(n):
        asked = plans[d].known
        for h in range(plans[d].n):
            c = &plans[d].hop[h]
            c.work, c.gain, c.takes, c.worth = (
                room, room + c.count, room + 2 * c.count, room + 3 * c.count
            )
            c.share, c.passes = room + 4 * c.count, room + 5 * c.count
            room += 6 * c.count
            c.works, c.on, c.finds = room, room + c.count + 1, room + 2 * c.count + 2
            c.room = room + 3 * c.count + 3
            room += 5 * (c.count + 1)
            c.order, c.spare = places, places + c.count
            places += 2 * c.count
            for k in range(c.count):
                c.work[k] = (
                    c.candidate * (c.proposed[k] + c.even) + c.spread * asked / c.count
                )
            _smooth(c.found, c.proposed, c.count, c.reach, c.prior, c.room, c.gain)
            if c.arrived != NULL:
                _smooth(c.arrived, c.proposed, c.count, c.reach, c.prior, c.room, c.passes)
                c.arrivals = _sum(c.passes, c.count)
            asked = c.arrivals


cdef object _array(const double *values, int64_t n):
    cdef double[::1] view = np.empty(n)
    memcpy(&view[0], values, n * sizeof(double))
    return view.base


cdef tuple _told(const Spending *plan):
    """asks, shares by hop, worth by hop, fraction."""
    cdef const Curve *c
    cdef double[::1] view
    cdef list shares = [], worth = []
    cdef int64_t k
    cdef int h
    for h in range(plan.n):
        c = &plan.hop[h]
        shares.append(_array(c.share, c.count))
        view = np.empty(c.count)
        for k in range(c.count):
            view[c.order[k]] = c.worth[k]
        worth.append(view.base)
    return plan.asks, shares, worth, _fraction(plan)


def totals(list directions):
    """What all work of each direction takes."""
    cdef Spending *plan = <Spending *>calloc(1, sizeof(Spending))
    cdef list found = []
    if plan == NULL:
        out_of_memory(b"allotments", 1)
    try:
        for direction in directions:
            plan.hop[0].arrived = NULL
            found.append(_total_of(plan, direction))
    finally:
        free(plan)
    return found


cdef double _total_of(Spending *plan, direction) except? -1:
    cdef int h
    for h in range(MOST_HOPS):
        plan.hop[h].arrived = NULL
        plan.hop[h].arrivals = 0
    _read(plan, direction)
    return _total(plan)


def allot_together(list directions, double work, bint partial):
    """By direction: what rows ask, shares and worth of basic windows by hop, the fraction."""
    cdef int n = len(directions), d, passes = 1
    cdef Spending *plans = <Spending *>calloc(max(n, 1), sizeof(Spending))
    cdef double *room = NULL
    cdef int32_t *places = NULL
    cdef int64_t windows
    cdef double level
    if plans == NULL:
        out_of_memory(b"allotments", n)
    try:
        for d in range(n):
            _read(&plans[d], directions[d])
            if plans[d].n > 1 and not partial:
                passes = 2
        windows = _windows_of(plans, n)
        room = <double *>calloc(ARRAYS * (windows + MOST_HOPS * n), sizeof(double))
        places = <int32_t *>calloc(2 * windows + 1, sizeof(int32_t))
        if room == NULL or places == NULL:
            out_of_memory(b"basic windows", windows)
        _set_up(plans, n, room, places)
        with nogil:
            for d in range(n):
                _draw_all(&plans[d], partial, False)
            level = _choose(plans, n, work)
            if passes == 2:
                for d in range(n):
                    _draw_all(&plans[d], partial, True)
                level = _choose(plans, n, work)
            _take(plans, n, level, work)
        return [_told(&plans[d]) for d in range(n)]
    finally:
        free(plans)
        free(room)
        free(places)


# -- ranges of ages -------------------------------------------------------------------------------


cdef inline void _ages(
    int64_t number, int64_t width, int64_t first, int64_t ahead, int64_t behind,
    int64_t *least, int64_t *most,
) noexcept nogil:
    cdef int64_t begin = (number - first) * width
    least[0] = max(begin, -ahead)
    most[0] = min(begin + width - 1, behind)


cdef inline int64_t _number(int64_t age, int64_t width, int64_t first) noexcept nogil:
    """Of the basic window of an age."""
    return first + (age // width if age >= 0 else -((-age + width - 1) // width))


def ranges(
    windows, const double[::1] share, const double[::1] worth, int64_t most_ranges
):
    """See `windjoin.kernels.shedding.ages.ranges`."""
    cdef int64_t width = windows.width, first = windows.first
    cdef int64_t ahead = windows.ahead, behind = windows.behind
    cdef int64_t n = len(share), k, least, most, ticks, last = 0
    cdef int64_t begin, end
    cdef bint newer, older
    cdef list found = [], merged
    for k in range(n):
        if not share[k] > 0:
            continue
        _ages(k, width, first, ahead, behind, &least, &most)
        if share[k] < 1:
            # the part that lies beside one that is asked too, else the newest part
            ticks = <int64_t>(share[k] * (most - least + 1) + 0.5)
            newer = k > 0 and share[k - 1] >= 1
            older = k + 1 < n and share[k + 1] >= 1
            if older and not newer:
                least = most - ticks + 1
            else:
                most = least + ticks - 1
            if ticks <= 0:
                continue
        if found and last == least - 1:
            least = found.pop()[0]
        found.append((least, most))
        last = most
    if len(found) <= most_ranges:
        return found
    merged = []
    for pair in found:
        begin = _number(pair[0], width, first)
        end = _number(pair[1], width, first)
        level = 0.0
        for k in range(begin, end + 1):
            level += share[k] * worth[k]
        merged.append((-level, pair))
    merged.sort()
    return sorted([pair for _, pair in merged[:most_ranges]])
