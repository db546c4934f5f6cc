"""Blocks of partial results on their way through the hops of one order of probing.

Who includes whom (right includes left)::

    base/times.h <-- pipeline.h <-- filters <-- hop_chain <-- pipeline
                encoding/keys, base/output <-- hop_chain
                                       indexes/postings <-- pipeline
"""
