"""One column of a stream as the pipelines see it: an array, or a ring that row numbers wrap in."""


cdef class ColumnView:
    """Row r lies at slot ``r & mask``, or at ``r - first`` of a plain array.

    ``bind`` again when the array has moved.
    """

    def __init__(self, array=None, mask=-1, first=0):
        if array is not None:
            self.bind(array, mask, first)

    def bind(self, array, mask=-1, first=0):
        """Look at a contiguous int32, int64 or float64 array from now on."""
        cdef const unsigned char[::1] data = array.view("u1")
        self.array = array
        self.column.data = &data[0] - <int64_t>(first * array.itemsize) if data.shape[0] else NULL
        self.column.mask = mask
