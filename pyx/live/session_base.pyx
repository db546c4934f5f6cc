"""Where rows come in to a session, and what decides whether they may take the fast path.

Rows in dictionaries of NumPy arrays and in tables are read as they lie in memory; whatever else
comes goes the general path.
"""
cimport cython
from cpython.dict cimport PyDict_GetItemWithError, PyDict_Next
from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t

cimport numpy as cnp

from functools import wraps
from sys import intern

from windjoin.pyx.base.crew import surely
from windjoin.pyx.live.store_step cimport StoreStep
from windjoin.pyx.base.index cimport RELEASE_ABOVE
from windjoin.pyx.live.ingest cimport Ingest
from windjoin.pyx.live.store cimport Allowance, Arrived

cnp.import_array()

cdef enum:
    MOST_COLUMNS = 16  # operands of a stream whose rows are looked for in dictionaries


@cython.final
cdef class SessionLock:
    """Whose turn it is in a session, one caller's at a time, and whether it changed anything."""

    cdef bint take(self) noexcept:
        """Whether it was free, and is now the caller's."""
        if self.taken:
            return False
        self.taken = True
        self.begun = False
        return True

    def begin(self):
        """From here on the session is neither before nor after what is done to it."""
        self.begun = True

    def refuse(self):
        """All is as it was before `begin`."""
        self.begun = False


@cython.final
cdef class StreamInput:
    """Takes rows to the feed of one stream, if they are plain enough.

    They may be dictionaries of NumPy arrays, if results are arrival numbers, or tables for which
    there is an `Ingest`.
    """

    cdef list joiners  # of all streams, empty if none takes the fast path
    cdef int number
    cdef SessionLock session_lock
    cdef tuple names  # of the streams, for results
    cdef str time
    cdef list columns  # names of the operands
    cdef list keys
    cdef list vectors  # (name, number of the dtype, width)
    cdef int types[MOST_COLUMNS]
    cdef int n_columns, n_keys
    cdef int wanted  # columns that a dictionary must have; -1: none would do
    cdef Ingest ingest  # None: no tables
    cdef Allowance allowance  # None: rows may come without end

    def __init__(
        self,
        list joiners,
        int number,
        SessionLock session_lock not None,
        names,
        columns,
        int n_operands,
        Ingest ingest,
        Allowance allowance=None,
    ):
        """``columns``: (name, dtype) of the time column, the operands and the keys, and (name,
        dtype, width) of vectors; or None.
        """
        self.joiners = joiners
        self.number = number
        self.session_lock = session_lock
        self.names = tuple([intern(str(name)) for name in names])
        self.ingest, self.allowance = ingest, allowance
        self.wanted = -1
        self.vectors = []
        if columns is not None and n_operands <= MOST_COLUMNS:
            self._expect(columns, n_operands)

    cdef int _expect(self, wanted, int n_operands) except -1:
        cdef int k
        columns, vectors = wanted
        self.vectors = [(intern(str(name)), dtype.num, width) for name, dtype, width in vectors]
        self.time = intern(str(columns[0][0]))
        self.columns = [intern(str(name)) for name, _ in columns[1:1 + n_operands]]
        self.keys = [intern(str(name)) for name, _ in columns[1 + n_operands:]]
        self.n_columns, self.n_keys = len(self.columns), len(self.keys)
        for k in range(self.n_columns):
            self.types[k] = columns[1 + k][1].num
        self.wanted = len({one[0] for one in (*columns, *vectors)})
        return 0

    cpdef object push(self, rows, int64_t sequence=0):
        """Results of push number ``sequence``; None if these rows must go the general path."""
        if not self.joiners or not self.session_lock.take():
            return None
        try:
            if type(rows) is dict:
                return self._push_dict(<dict>rows)
            return self.through(rows, sequence)
        finally:
            self.session_lock.taken = False

    cpdef object through(self, rows, int64_t sequence, bint told=False):
        """The same for a table, once it is the caller's turn; results of push 0 have no number.

        told: what is to be said of late rows has been said
        """
        if self.ingest is None:
            return None
        return self.ingest.push(rows, self.session_lock, sequence, told)

    cdef dict _push_dict(self, dict rows):
        cdef Arrived arrived
        cdef StoreStep joiner = <StoreStep>self.joiners[self.number]
        cdef list varlen = [] if self.vectors else self.vectors  # none, and no list made for that
        cdef list _held = varlen
        if self.wanted < 0 or joiner.give is not None:
            return None
        joiner.begin(&arrived)
        if not self._look_at(rows, &arrived, varlen):
            return None
        if len(rows) > self.wanted and not _are_numbers(rows, arrived.n):
            return None
        if self.allowance is not None and not self.allowance.takes(arrived.n):
            return None
        if arrived.n > RELEASE_ABOVE:  # another thread may put other columns there meanwhile
            _held = list(rows.values())
        self.session_lock.begun = True
        return joiner.out.finish_named(self.names) if joiner.take(&arrived, varlen) else None

    cdef bint _look_at(self, dict rows, Arrived *arrived, list varlen) except -1:
        """Whether all columns can be read as they lie in memory; where they lie, vectors in
        ``varlen``.
        """
        cdef PyObject *array = PyDict_GetItemWithError(rows, self.time)
        cdef int k
        if array == NULL or not _is_plain(<object>array, cnp.NPY_INT64, -1):
            return False
        arrived.n = cnp.PyArray_DIM(<cnp.ndarray>array, 0)
        arrived.time = <const int64_t *>cnp.PyArray_DATA(<cnp.ndarray>array)
        for k in range(self.n_columns):
            array = PyDict_GetItemWithError(rows, self.columns[k])
            if array == NULL or not _is_plain(<object>array, self.types[k], arrived.n):
                return False
            arrived.column[k] = <const int64_t *>cnp.PyArray_DATA(<cnp.ndarray>array)
            if self.types[k] == cnp.NPY_FLOAT64:
                if _has_nan(arrived.n, <const double *>arrived.column[k]):
                    return False
        for k in range(self.n_keys):
            array = PyDict_GetItemWithError(rows, self.keys[k])
            if array == NULL or not _is_plain(<object>array, cnp.NPY_INT64, arrived.n):
                return False
            arrived.key[k] = <const int64_t *>cnp.PyArray_DATA(<cnp.ndarray>array)
        for name, dtype, width in self.vectors:
            array = PyDict_GetItemWithError(rows, name)
            if array == NULL or not _is_matrix(<object>array, dtype, arrived.n, width):
                return False
            varlen.append((None, <object>array))
        return True


cdef class SessionBase:
    """Where rows come in to a session: by a fast path, or `_push_slowly`.

    What is done to a session is done whole, or refused, or ends it.  An interrupt is heard between
    any two steps of a Python function, so whoever decides which of the three it was must not be
    one: no step of it lies between here and the caller.  A method that is ``whole`` says by
    ``_session_lock.begin()`` from when on it cannot be refused any more.

    `_let_go` of all state is what follows the end; it may be interrupted, and is then called again.
    `_own_error` makes of what kernels raise what users know.
    """

    def __cinit__(self, *args, **options):
        self._stream_inputs = {}
        self._ended = ""
        self._session_lock = SessionLock()
        self.sequence = 0

    def push(self, stream, rows):
        """Join new rows of a stream with all that is here; the results that they complete.

        ``rows``: whatever `Query.run` takes as a table.  Until every stream has been seen (if
        ``schemas`` were not given) nothing can be complete, and an empty table comes back.

        >>> import windjoin as wj
        >>> a, b = (wj.stream(name, time="t", window=10) for name in ("a", "b"))
        >>> session = wj.join(a, b, on=a["k"] == b["k"]).open()
        >>> session.push("a", {"t": [1, 2], "k": ["x", "y"]}).num_rows
        0
        >>> session.push("b", [{"t": 3, "k": "y"}]).to_pylist()
        [{'a_t': 2, 'a_k': 'y', 'b_t': 3, 'b_k': 'y'}]
        """
        return self.push_rows(stream, rows)

    cdef object push_rows(self, stream, rows):
        cdef PyObject *stream_input = PyDict_GetItemWithError(self._stream_inputs, stream)
        if stream_input != NULL:
            try:
                found = (<StreamInput>stream_input).push(rows, self.sequence + 1)
                if found is not None:
                    self.sequence += 1
                    PyErr_CheckSignals()  # else it would be heard once the caller has the results
                    return found
            except BaseException as error:
                self._break_off()
                raise self._own_error(error)
        return self._do(self._push_slowly, (stream, rows), {})

    cdef object _do(self, call, tuple arguments, dict options):
        if not self._session_lock.take():
            self._refuse_two()
        try:
            done = call(*arguments, **options)
            if self._session_lock.begun:
                PyErr_CheckSignals()
            return done
        except BaseException:
            self._break_off()
            raise
        finally:
            self._session_lock.taken = False

    cdef int _break_off(self) except -1:
        """The end, unless nothing was begun; interrupts wait until all is done."""
        if not self._session_lock.begun:
            return 0
        self._session_lock.taken = True
        self._ended = self._broken_off
        self._stream_inputs = {}
        try:
            surely(self._let_go)
        finally:
            self._session_lock.taken = False
        return 0


def whole(method):
    """A method of a `SessionBase` that is done whole, or refused, or ends the session."""
    @wraps(method)
    def guarded(self, *arguments, **options):
        return (<SessionBase?>self)._do(method, (self, *arguments), options)
    return guarded


cdef bint _are_numbers(dict rows, int64_t length) noexcept:
    """Whether columns that nobody asks for could be read too: numbers, or vectors of them."""
    cdef PyObject *name
    cdef PyObject *column
    cdef Py_ssize_t at = 0
    cdef int dimensions
    while PyDict_Next(rows, &at, &name, &column):
        if not cnp.PyArray_CheckExact(<object>column):
            return False
        array = <cnp.ndarray>column
        dimensions = cnp.PyArray_NDIM(array)
        if not cnp.PyArray_ISNUMBER(array) or not 1 <= dimensions <= 2:
            return False
        if cnp.PyArray_DIM(array, 0) != length:
            return False
        if dimensions == 2 and cnp.PyArray_DIM(array, 1) == 0:
            return False
    return True


cdef bint _has_nan(int64_t n, const cython.floating *values) noexcept nogil:
    cdef int64_t i
    cdef bint found = False
    for i in range(n):
        found = found | (values[i] != values[i])
    return found


cdef bint _is_matrix(array, int dtype, int64_t rows, int64_t width) except -1:
    """A C-contiguous native matrix of this dtype and shape, without NaN."""
    if (
        not cnp.PyArray_CheckExact(array)
        or cnp.PyArray_NDIM(array) != 2
        or cnp.PyArray_TYPE(array) != dtype
        or not cnp.PyArray_ISCARRAY_RO(array)
        or cnp.PyArray_DIM(array, 0) != rows
        or cnp.PyArray_DIM(array, 1) != width
    ):
        return False
    if dtype == cnp.NPY_FLOAT64:
        return not _has_nan(rows * width, <const double *>cnp.PyArray_DATA(array))
    if dtype == cnp.NPY_FLOAT32:
        return not _has_nan(rows * width, <const float *>cnp.PyArray_DATA(array))
    return True


cdef bint _is_plain(array, int dtype, int64_t length) noexcept:
    """A contiguous native vector of this dtype and, unless -1, length."""
    return (
        cnp.PyArray_CheckExact(array)
        and cnp.PyArray_NDIM(<cnp.ndarray>array) == 1
        and cnp.PyArray_TYPE(<cnp.ndarray>array) == dtype
        and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>array)
        and (length < 0 or cnp.PyArray_DIM(<cnp.ndarray>array, 0) == length)
    )
