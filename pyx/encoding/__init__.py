"""Values to dense codes that equal values share, and rows divided by them.

Who includes whom (right includes left)::

    base/memory.h <-- keys.h <-+- keys <---- varlen
                               +- integers   varlen.h <-- varlen
                               +- divide     texts.h <-- texts
"""
