"""The event loop of the simulator, compiled: jobs at hosts in virtual time.

A *batch* is a few rows of one stream that arrive together; a *job* is one batch (or its partial
results) at one host.  Every host serves its jobs one after the other in order of arrival.  Events
are popped in order of time, so a job's start and end are known as soon as it arrives: one heap
entry per job is all there is.  All times are milliseconds; amounts are expected values, not whole
numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from windjoin.diffusion.arrays import I64

F64 = NDArray[np.float64]

# columns of an entry of a flow: what one host does at one stage with one incoming element
E_HOST, E_START, E_STOP, E_WORK, E_GAIN, E_BYTES, E_NEXT_FIRST, E_NEXT_STOP = range(8)
ENTRY_COLUMNS = 8
# columns of a job; a ring job has its wave where others have their entry
J_TIME, J_HOST, J_ENTRY, J_BATCH, J_AMOUNT, J_REMOTE, J_ROWS = range(7)
JOB_COLUMNS = 7
# figures
F_RESULTS, F_LATENCY, F_JOBS, F_SOJOURN, F_BYTES, F_RECEIVED, F_DONE_ROWS = range(7)
F_SHED, F_JOINING, F_ASIDE, F_EVER = range(7, 11)
FIGURES = 11
# counters
C_EVENTS, C_FREE, C_BATCH, C_UNDER_WAY, C_STARTED = range(5)
COUNTERS = 5
LATENCY_BINS = 800  # logarithmic: 100 for each factor of 10
MIN_LATENCY_MS = 1e-1
BINS_PER_DECADE = 100
SECOND = 1000.0


class Machine(NamedTuple):
    """All that changes while the simulation runs, as arrays."""

    jobs: F64  # (slots, JOB_COLUMNS)
    free: I64  # (slots,) stack of slots that are not in use
    event_time: F64  # (slots,) heap
    event_slot: I64  # (slots,) heap
    counters: I64  # (COUNTERS,)
    free_at: F64  # (hosts,) when a host will have served what it was given
    link_free_at: F64  # (hosts,) when what a host sends will have left it
    taken: F64  # (hosts, seconds) rows and partial results that were served
    sent: F64  # (hosts,) bytes so far
    busy: F64  # (hosts, bins) milliseconds of work
    throughput: F64  # (bins,) results
    delay: F64  # (bins,) latencies of these results, summed
    in_system: F64  # (bins,) milliseconds that jobs spent waiting or served
    latency: F64  # (LATENCY_BINS,) results by latency
    figures: F64  # (FIGURES,)


class Plant(NamedTuple):
    """What the simulated cluster and its input are like."""

    cpu: F64  # (hosts,) 1 is the reference host
    network: F64  # (hosts,)
    bandwidth: F64  # (hosts,) bytes per ms; infinite where nothing bounds it
    queue: float  # ms of work that a host lets wait; infinite where it does not shed
    warm: float  # ms before which nothing counts
    send: float  # ms per element
    receive: float
    link: float  # ms on the way
    width: float  # ms per bin
    batch_time: F64  # (batches,)
    batch_flow: I64  # (batches,) row of the flow table, or of the ring table
    batch_rows: F64  # (batches,)
    row_bytes: F64  # (streams,)


class RingTable(NamedTuple):
    """A ring: per flow, wave (partial results of that depth) and place in the ring.

    A flow is the rows of one stream between two borders: what they meet does not depend on when
    the ring comes to serve them.
    """

    order: I64  # (hosts,) empty where the strategy is no ring
    elements: F64  # (flows, waves) elements of the wave per new row
    made: F64  # (flows, waves, hosts) share of them made at the host
    work: F64  # (flows, waves, hosts) ms to probe with one element
    gain: F64  # (flows, waves, hosts) longer elements made of one element
    in_flight: int  # blocks


@njit(cache=True)
def heap_push(times: F64, slots: I64, size: int, time: float, slot: int) -> None:
    """Add an event; the heap is ordered by (time, slot)."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if times[parent] < time or (times[parent] == time and slots[parent] < slot):
            break
        times[at], slots[at] = times[parent], slots[parent]
        at = parent
    times[at], slots[at] = time, slot


@njit(cache=True)
def heap_pop(times: F64, slots: I64, size: int) -> None:
    """Take the first of ``size`` events away; the caller has read it at index 0."""
    size -= 1
    time, slot = times[size], slots[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            times[other] < times[child]
            or (times[other] == times[child] and slots[other] < slots[child])
        ):
            child = other
        if time < times[child] or (time == times[child] and slot < slots[child]):
            break
        times[at], slots[at] = times[child], slots[child]
        at = child
    times[at], slots[at] = time, slot


@njit(cache=True)
def spread(bins: F64, width: float, start: float, stop: float) -> None:
    """Add the stretch ``[start, stop)`` to the bins of that width it lies in."""
    index = int(start / width)
    while start < stop and index < bins.shape[0]:
        end = min(stop, (index + 1) * width)
        bins[index] += end - start
        start = end
        index += 1


@njit(cache=True)
def note_taken(taken: F64, amount: float, start: float, stop: float) -> None:
    """Book an amount that is served from ``start`` to ``stop`` by the seconds it is served in."""
    index = int(start / SECOND)
    if stop <= start:
        if index < taken.shape[0]:
            taken[index] += amount
        return
    per_ms = amount / (stop - start)
    while start < stop and index < taken.shape[0]:
        end = min(stop, (index + 1) * SECOND)
        taken[index] += (end - start) * per_ms
        start = end
        index += 1


@njit(cache=True)
def note_results(
    m: Machine, width: float, warm: float, born: float, done: float, results: float
) -> None:
    """Book results: when they were made, and how long after the row that completes them."""
    index = int(done / width)
    if index < m.throughput.shape[0]:
        m.throughput[index] += results
        m.delay[index] += results * (done - born)
    if warm <= done < width * m.throughput.shape[0]:
        m.figures[F_RESULTS] += results
        m.figures[F_LATENCY] += results * (done - born)
        decades = np.log10(max(done - born, MIN_LATENCY_MS) / MIN_LATENCY_MS)
        m.latency[min(int(decades * BINS_PER_DECADE), LATENCY_BINS - 1)] += results


@njit(cache=True)
def post(
    m: Machine,
    time: float,
    host: int,
    entry: int,
    batch: int,
    amount: float,
    remote: float,
    rows: float,
) -> None:
    """Put a job on the heap; ``rows`` input rows count as processed once it is done."""
    m.counters[C_FREE] -= 1
    slot = m.free[m.counters[C_FREE]]
    m.jobs[slot, J_TIME] = time
    m.jobs[slot, J_HOST] = host
    m.jobs[slot, J_ENTRY] = entry
    m.jobs[slot, J_BATCH] = batch
    m.jobs[slot, J_AMOUNT] = amount
    m.jobs[slot, J_REMOTE] = remote
    m.jobs[slot, J_ROWS] = rows
    heap_push(m.event_time, m.event_slot, m.counters[C_EVENTS], time, slot)
    m.counters[C_EVENTS] += 1


@njit(cache=True)
def serve(m: Machine, p: Plant, host: int, arrival: float, service: float) -> float:
    """Let a host work; return when it begins.  First come, first served."""
    begin = max(arrival, m.free_at[host])
    m.free_at[host] = begin + service
    spread(m.busy[host], p.width, begin, begin + service)
    spread(m.in_system, p.width, arrival, begin + service)
    m.figures[F_JOBS] += 1
    m.figures[F_SOJOURN] += begin + service - arrival
    return float(begin)


@njit(cache=True)
def shed(m: Machine, p: Plant, host: int, arrival: float, amount: float) -> float:
    """The share of what comes that a host still takes, by how much work waits there.

    All while less than half of what may wait does, then ever less, nothing when the queue is full:
    so it settles where a host has just as much to do as it can (Gedik, Wu, Yu, Liu 2005).
    """
    waiting = m.free_at[host] - arrival
    if waiting <= p.queue / 2:
        return 1.0
    share = max((p.queue - waiting) / (p.queue / 2), 0.0)
    m.figures[F_SHED] += amount * (1 - share)
    return float(share)


@njit(cache=True)
def leave(m: Machine, p: Plant, host: int, done: float, size: float) -> float:
    """When bytes that were made at ``done`` have left the host, over a link that others use too."""
    m.sent[host] += size
    if p.bandwidth[host] == np.inf:
        return done
    m.link_free_at[host] = max(m.link_free_at[host], done) + size / p.bandwidth[host]
    return float(m.link_free_at[host])


@njit(cache=True)
def flow_job(m: Machine, p: Plant, entries: F64, slot: int) -> None:
    """Serve a job of a routed strategy and send what it made to the next stage."""
    arrival, host = m.jobs[slot, J_TIME], int(m.jobs[slot, J_HOST])
    entry, batch = int(m.jobs[slot, J_ENTRY]), int(m.jobs[slot, J_BATCH])
    amount, remote = m.jobs[slot, J_AMOUNT], m.jobs[slot, J_REMOTE]
    first, stop = int(entries[entry, E_NEXT_FIRST]), int(entries[entry, E_NEXT_STOP])
    share = shed(m, p, host, arrival, amount)
    if share <= 0:
        return
    amount *= share
    out = amount * entries[entry, E_GAIN]
    copies = 1.0 if first == stop else 0.0
    for k in range(first, stop):
        copies += 1.0 if entries[k, E_HOST] != host else 0.0
    network = amount * p.receive * remote + out * p.send * copies
    joining = amount * entries[entry, E_WORK] / p.cpu[host]
    service = joining + network / p.network[host]
    m.figures[F_JOINING] += joining
    m.figures[F_ASIDE] += service - joining
    m.figures[F_EVER] += m.jobs[slot, J_ROWS]
    done = serve(m, p, host, arrival, service) + service
    note_taken(m.taken[host], amount, done - service, done)
    if p.warm <= done < p.width * m.throughput.shape[0]:
        m.figures[F_DONE_ROWS] += m.jobs[slot, J_ROWS]
        m.figures[F_BYTES] += out * copies * entries[entry, E_BYTES]
    if out <= 0:
        return
    gone = leave(m, p, host, done, out * copies * entries[entry, E_BYTES])
    if first == stop:
        note_results(m, p.width, p.warm, p.batch_time[batch], done, out)
    for k in range(first, stop):
        target = int(entries[k, E_HOST])
        remote = 1.0 if target != host else 0.0
        m.figures[F_RECEIVED] += out * remote
        post(m, gone + p.link if remote else done, target, k, batch, out, remote, 0.0)


@njit(cache=True)
def arrive(m: Machine, p: Plant, entries: F64, flows: I64, batch: int) -> None:
    """A batch comes in: a copy for every host that its time selects."""
    time, rows, flow = p.batch_time[batch], p.batch_rows[batch], p.batch_flow[batch]
    copies = 0
    for k in range(flows[flow, 0], flows[flow, 1]):
        copies += entries[k, E_START] <= time < entries[k, E_STOP]
    for k in range(flows[flow, 0], flows[flow, 1]):
        if entries[k, E_START] <= time < entries[k, E_STOP]:
            m.figures[F_RECEIVED] += rows
            if time >= p.warm:
                m.figures[F_BYTES] += rows * p.row_bytes[flows[flow, 2]]
            host = int(entries[k, E_HOST])
            post(m, time + p.link, host, k, batch, rows, 1.0, rows / copies)


@njit(cache=True)
def ring_job(m: Machine, p: Plant, ring: RingTable, slot: int) -> None:
    """Serve one wave of a block at one ring host: receive and send on, then probe.

    A wave is all elements of one depth; it is served when the last of them has come.  Build rows
    travel with the first wave: in the steady state one leaves every slice for each that enters.
    """
    arrival, at = m.jobs[slot, J_TIME], int(m.jobs[slot, J_HOST])
    wave, batch = int(m.jobs[slot, J_ENTRY]), int(m.jobs[slot, J_BATCH])
    hosts, waves = ring.order.shape[0], ring.elements.shape[1]
    if wave == waves:  # the last mark has come back to the head
        m.counters[C_UNDER_WAY] -= 1
        m.figures[F_EVER] += p.batch_rows[batch]
        if arrival >= p.warm:
            m.figures[F_DONE_ROWS] += p.batch_rows[batch]
        admit(m, p, ring, arrival)
        return
    host, flow = ring.order[at], p.batch_flow[batch]
    rows = p.batch_rows[batch]
    amount = rows * ring.elements[flow, wave]
    others = amount * (1.0 - ring.made[flow, wave, at])
    received = others + (rows if wave == 0 and at > 0 else 0.0)
    if wave == 0:
        sent = others + rows if at + 1 < hosts else 0.0
    else:  # the host before the maker drops it
        sent = others * (hosts - 2) / max(hosts - 1, 1)
    share = shed(m, p, host, arrival, amount)
    made = amount * ring.gain[flow, wave, at] * share
    is_result = wave == waves - 1
    forward = (received * p.receive + sent * p.send) / p.network[host]
    probe = share * amount * ring.work[flow, wave, at] / p.cpu[host]
    m.figures[F_JOINING] += probe
    m.figures[F_ASIDE] += forward
    probe += made * p.send / p.network[host] * (1.0 if is_result or hosts > 1 else 0.0)
    begin = serve(m, p, host, arrival, forward + probe)
    note_taken(m.taken[host], received, begin, begin + forward + probe)
    done = begin + forward + probe
    m.figures[F_RECEIVED] += received
    size = (sent * (wave + 1) + made * (wave + 2)) * p.row_bytes[flow % p.row_bytes.shape[0]]
    if done >= p.warm:
        m.figures[F_BYTES] += size
    late = leave(m, p, host, done, size) - done
    if is_result and made > 0:
        note_results(m, p.width, p.warm, p.batch_time[batch], done, made)
    if at + 1 < hosts:  # the next host begins with the first row while this one sends the others
        post(m, begin + forward / rows + p.link + late, at + 1, wave, batch, amount, 1.0, 0.0)
    else:
        post(m, done + (p.link + late if hosts > 1 else 0.0), 0, wave + 1, batch, amount, 1.0, 0.0)


@njit(cache=True)
def admit(m: Machine, p: Plant, ring: RingTable, now: float) -> None:
    """Let blocks that have come enter while the bound allows."""
    while m.counters[C_UNDER_WAY] < ring.in_flight and (
        m.counters[C_STARTED] < m.counters[C_BATCH]
    ):
        batch = m.counters[C_STARTED]
        m.counters[C_STARTED] += 1
        m.counters[C_UNDER_WAY] += 1
        post(m, max(now, p.batch_time[batch] + p.link), 0, 0, batch, p.batch_rows[batch], 1.0, 0.0)


@njit(cache=True)
def run(
    m: Machine, p: Plant, entries: F64, flows: I64, ring: RingTable, until: float, room: int
) -> bool:
    """Serve all events before ``until``; false when more slots for jobs are needed first."""
    is_ring = ring.order.shape[0] > 0
    while True:
        if m.counters[C_FREE] < room:
            return False
        batch = m.counters[C_BATCH]
        more = batch < p.batch_time.shape[0]
        next_batch = p.batch_time[batch] if more else np.inf
        next_event = m.event_time[0] if m.counters[C_EVENTS] else np.inf
        if min(next_batch, next_event) >= until:
            return True
        if next_batch <= next_event:
            m.counters[C_BATCH] += 1
            if is_ring:
                admit(m, p, ring, next_batch)
            else:
                arrive(m, p, entries, flows, batch)
            continue
        slot = m.event_slot[0]
        heap_pop(m.event_time, m.event_slot, m.counters[C_EVENTS])
        m.counters[C_EVENTS] -= 1
        if is_ring:
            ring_job(m, p, ring, slot)
        else:
            flow_job(m, p, entries, slot)
        m.free[m.counters[C_FREE]] = slot
        m.counters[C_FREE] += 1
