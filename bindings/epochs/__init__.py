"""A continuous join cut into epochs: what a slot does with an epoch's rows, and its log.

The state of a slot is a log of files that are written once; results of an epoch are a function of
its rows and the log.  Nothing here knows who runs it: `windjoin.spark` does on a cluster.
``docs/spark_streaming.md`` tells how it is used.
"""
