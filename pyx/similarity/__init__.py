"""Rows that are sets, vectors or images: exact measures, and blocks of rows probed together.

Who includes whom (right includes left)::

    measures.h <-+- distances.h                  measures <-- scores, blocks
                 +- scores.h <-- scores          blocks <-- bitmaps, tiles, segments
                 +- means.h                      indexes/postings <-- items
                 +- quantized.h <-- tile.h (tile.inc)
    blocks.h, distances.h <-- match_sets.h <-- match_lists.h <-- probe_groups.h <-- undecided.h
    blocks.h <-- counting.h (count.inc) <-- hits.h
    probe_groups.h, hits.h <-- set_probes.h <-- bitmaps.h <-- bitmaps
    probe_groups.h, means.h <-- segments.h <-- segments
    quantized.h, undecided.h, tile.h <-- tiles.h <-- tiles
    probe_groups.h, indexes/postings.h <-- items.h <-- items
"""
