"""Values to dense codes that equal values share, and rows divided by them.

Who includes whom (right includes left)::

    base/memory.h <-- keys.h <-+- keys <-+-- varlen     varlen.h <-- varlen
                               +- integers  +-- string_keys
                               +- divide
    words.h <-+- string_keys.h <-- string_keys
              +- texts.h <-- texts
"""
