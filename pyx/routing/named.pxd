"""Named tuples of numbers at the price of tuples: make one, put all its values in, `plain` it."""

from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM


cdef extern from *:
    object named "PyType_GenericAlloc"(type kind, Py_ssize_t values)
    void plain "PyObject_GC_UnTrack"(object made)  # no cycle goes through it: spare the collector


cdef inline void put(object made, Py_ssize_t at, object value):
    Py_INCREF(value)
    PyTuple_SET_ITEM(made, at, value)
