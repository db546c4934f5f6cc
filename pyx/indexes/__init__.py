"""Indexes of one stream's rows by key or by value, each a struct, its `Serve` and an `Index`.

Who includes whom (right includes left)::

    lists.h <-+- ranks.h <-+- buckets.h <-- buckets       lists <-- lines <-- cells
              |            +- calls.h <---- calls         ranks <-- buckets
              +- lines.h <-- aims.h <-- cells.h <-- cells
    encoding/keys.h <-- grid.h <-- aims.h, buckets.h      grid <-- cells, buckets
    slices.h <-- slices, calls.h                          waiting.h <-- cells
    boxes.h <-- boxes
"""
