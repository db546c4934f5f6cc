"""Inner loops that are the same for every query.  Unchecked: enter through ``windjoin.kernels``.

Packages by what they serve; each cimports and includes only what is drawn below it::

    live           pushed rows: read, stored, probed, inserted, expired; on `arrow` too
      |
    probing        blocks of partial results through the hops of one order
      |
      |   similarity     sets, vectors, images
      |     |
    indexes        rows by key or by value
      |
    encoding       values to dense codes       arrow     pages of payload, Arrow's C interfaces
      |                                          |
    base           columns, results, threads, vector paths, the contract of an index

    routing        which host gets what: stands alone

C headers are included by name, whichever of these folders they lie in (``setup.py``): no two files
share one.
"""
