"""Rows that are sets, vectors or images: exact measures, and blocks of rows that answer together.

Who includes whom (right includes left)::

    measures.h <-+- quick.h                      measures <-- scores, blocks
                 +- scores.h <-- scores          blocks <-- bitmaps, tiles, segments
                 +- means.h                      indexes/lists <-- items
                 +- coarse.h <-- tile.h (tile.inc)
    blocks.h, quick.h <-- answers.h <-- few.h <-- groups.h <-- open.h
    blocks.h <-- counting.h (count.inc) <-- hits.h
    groups.h, hits.h <-- asking.h <-- bitmaps.h <-- bitmaps
    groups.h, means.h <-- segments.h <-- segments
    coarse.h, open.h, tile.h <-- tiles.h <-- tiles
    groups.h, indexes/lists.h <-- items.h <-- items
"""
