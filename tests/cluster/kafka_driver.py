"""A program that joins what two topics have, to be killed while it does."""

from __future__ import annotations

import sys
from pathlib import Path

from examples.spark_kafka_fraud import run, session


def main(address: str, folder: str, slots: str) -> None:
    """Join until nothing is left."""
    spark = session()
    run(spark, address, Path(folder), int(slots), most=2_000)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
