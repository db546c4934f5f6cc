"""Indexes of one stream's rows by key or by value, each a struct, its `Serve` and an `Index`.

Who includes whom (right includes left)::

    postings.h <-+- csr_postings.h <-+- static_grid.h <-- static_grid
                 |                   +- udf_scan.h <----- udf_scan
                 +- cache_lines.h <-- grid_probes.h <-- live_grid.h <-- live_grid
    encoding/keys.h <-- grid.h <-- grid_probes.h, static_grid.h
    basic_windows.h <-- basic_windows, udf_scan.h
    deferred.h, cache_lines, grid <-- live_grid
    postings <-- cache_lines          csr_postings, grid <-- static_grid
    boxes.h <-- boxes
"""
