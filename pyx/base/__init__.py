"""What every other package builds on: columns, the contract of an index, results, threads.

Who includes whom (right includes left)::

    isa.h <-+- hop.h <-- times.h          hop.h <-- index <-- column, output
            +- compress.h                 memory.h, pages.h <-- output
    sort.h, times.h <-- column            clock.h, pulse.h <-- pulse <-- crew, pieces
    isa.h <-- cpu                         runs.h <-- pieces <-- column
    checksum.h <-- checksum
"""
