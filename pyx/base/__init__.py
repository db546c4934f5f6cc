"""What every other package builds on: columns, the contract of an index, results, threads.

Who includes whom (right includes left)::

    isa.h <-+- hop.h <-- times.h          hop.h <-- index <-- column, output
            +- compress.h                 memory.h, pages.h <-- output
    sort.h, times.h <-- column            runs.h <-- pieces <-- column
    isa.h <-- cpu                         checksum.h <-- checksum
    clock.h, cancellation.h <-- cancellation <-- crew, pieces
"""
