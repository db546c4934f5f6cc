"""Inner loops of `windjoin.diffusion`: which host gets which segment.

Who includes whom (right includes left)::

    cover.h <-- cover <-------- routes
    segment_table <-- tasks, routes
    named <-- aging, tasks      work
"""
