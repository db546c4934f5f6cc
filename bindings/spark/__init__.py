"""Windowed joins of Spark DataFrames, with the compiled kernels on every executor.

``import windjoin.spark as wjs``; ``docs/spark.md`` goes from an empty machine to a cluster.
"""

from windjoin.java import JavaError, find_java, use_java
from windjoin.spark.explaining import explain, measured
from windjoin.spark.joining import join
from windjoin.spark.reading import read_log
from windjoin.spark.running import Run, start
from windjoin.spark.settings import SETTINGS, SparkVersionError, configure, missing
from windjoin.spark.streaming import stream

__all__ = [
    "SETTINGS",
    "JavaError",
    "Run",
    "SparkVersionError",
    "configure",
    "explain",
    "find_java",
    "join",
    "measured",
    "missing",
    "read_log",
    "start",
    "stream",
    "use_java",
]
