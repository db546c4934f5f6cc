"""Blocks of partial results on their way through the hops of one order of probing.

Who includes whom (right includes left)::

    base/times.h <-- pipeline.h <-- filters <-- pipeline
                                    indexes/lists, encoding/keys, base/output <-- pipeline
"""
