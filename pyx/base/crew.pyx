"""Threads that work together and end together, whatever interrupts come.

Interrupts are heard by the main thread alone, between any two steps of a Python function of its
own: also of `threading`, whose locks may be left taken then, and whose threads be left behind.  So
what starts threads, waits for them and ends them is compiled, and Python is called where an
interrupt does no harm.
"""
cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t

from _thread import allocate_lock, start_new_thread
from threading import Thread

from windjoin.pyx.base.cancellation cimport hear, obey

cdef double POLL_SECONDS = 0.05  # how often a waiting thread looks for Ctrl-C


def surely(call):
    """Call until the call comes to its end; an interrupt on the way is raised afterwards."""
    late = None
    while True:
        try:
            call()
            break
        except KeyboardInterrupt as error:
            late = error
    if late is not None:
        raise late


cdef class Orders:
    """What the threads of a crew are told: to end."""

    cdef readonly int stopped


cdef class _Member:
    """A thread, from before it runs until it has left."""

    cdef object thread
    cdef Orders orders
    cdef object work
    cdef object wake
    cdef object begun, left  # locks that are free when it has
    cdef object error  # why it did not begin

    def __init__(self, str name, Orders orders, work, wake):
        self.orders = orders
        self.work = work
        self.wake = wake
        self.begun, self.left = allocate_lock(), allocate_lock()
        self.begun.acquire()
        self.left.acquire()
        # a daemon: what nobody ended must not keep the process
        self.thread = Thread(target=self.live, name=name, daemon=True)

    cdef int has_begun(self) except -1:
        """Wait until it has begun, or say why it cannot."""
        self.begun.acquire()
        self.begun.release()
        if self.error is not None:
            raise self.error
        return 0

    def live(self):
        """What the thread does."""
        obey(&self.orders.stopped)
        try:
            self.work()
        finally:
            obey(NULL)
            self.work = None
            self.left.release()

    cdef bint is_there(self) except -1:
        """Whether it has not left yet."""
        return self.left.locked()

    cdef int wait(self) except -1:
        """Until it has left.

        An interrupt lets `Thread.join` take any thread for one that has ended, so it is not asked
        before.
        """
        while not self.left.acquire(True, POLL_SECONDS):
            hear()
        self.left.release()
        self.begun.acquire()
        self.begun.release()
        if self.error is None:
            self.thread.join()
        return 0


def _begin(list members):
    """Run their threads; in a thread of its own, where nothing is interrupted."""
    cdef _Member member
    for member in members:
        try:
            member.thread.start()
        except BaseException as error:
            member.error = error
            member.left.release()
        finally:
            member.begun.release()


cdef class Crew:
    """Threads that hear together that they are to end; at the latest when nobody has the crew."""

    cdef readonly Orders orders
    cdef list members

    def __cinit__(self):
        self.orders = Orders()
        self.members = []

    def __del__(self):
        self.stop()

    def start(self, str name, work, wake=None):
        """One more thread, which calls ``work()``; ``wake()`` when it is to end, if it may wait.

        ``wake`` must not be a function of Python.
        """
        cdef _Member member = _Member(name, self.orders, work, wake)
        self.members = [one for one in self.members if (<_Member>one).is_there()]
        self.begin([member])
        member.has_begun()

    cdef int begin(self, list members) except -1:
        """Run all of them; they need not have begun."""
        start_new_thread(_begin, (members,))
        self.members += members
        return 0

    def stop(self):
        """Let all end as soon as they hear of it."""
        cdef _Member member
        self.orders.stopped = 1
        for member in self.members:
            if member.wake is not None:
                member.wake()

    def end(self):
        """Wait until all have left; an interrupt meanwhile stops them, and is raised then."""
        late = None
        while self.members:
            try:
                (<_Member>self.members[len(self.members) - 1]).wait()
                self.members.pop()
            except BaseException as error:  # from the handler of a signal
                late = error
                self.stop()
        if late is not None:
            raise late


@cython.final
cdef class _Shared:
    """Work that threads take piece by piece."""

    cdef Crew crew
    cdef object work
    cdef list items
    cdef list made
    cdef Py_ssize_t next
    cdef object error  # the first

    def take(self):
        """One piece after the other, until all are done or one has failed."""
        cdef Py_ssize_t at
        while self.next < len(self.items) and not self.crew.orders.stopped:
            at = self.next
            self.next += 1
            try:
                self.made[at] = self.work(*self.items[at])
            except BaseException as error:
                if self.error is None:
                    self.error = error
                self.crew.stop()


def share_out(int threads, work, items):
    """``work(*item)`` of every item, in their order, by so many threads.

    The first error, and an interrupt, end all of them: at the next moment that they look up.
    """
    cdef _Shared shared = _Shared()
    cdef _Member member
    cdef int number
    shared.crew = Crew()
    shared.work = work
    shared.items = list(items)
    shared.made = [None] * len(shared.items)
    cdef list members = [
        _Member(f"windjoin-{number}", shared.crew.orders, shared.take, None)
        for number in range(min(threads, <int>len(shared.items)))
    ]
    try:
        shared.crew.begin(members)
    finally:
        shared.crew.end()
    for member in members:
        member.has_begun()
    if shared.error is not None:
        raise shared.error
    return shared.made


cdef class Countdown:
    """How much is still to be done; a thread can wait until that is nothing."""

    cdef int64_t open
    cdef object bell  # free once it was nothing

    def __cinit__(self):
        self.bell = allocate_lock()
        self.bell.acquire()

    def add(self, int64_t more):
        """So much more is to be done."""
        self.open += more

    def finish(self):
        """One less."""
        self.open -= 1
        if self.open == 0 and self.bell.locked():
            self.bell.release()

    def wait(self):
        """Until nothing is left to be done."""
        while self.open:
            self.bell.acquire(True, POLL_SECONDS)
            PyErr_CheckSignals()
