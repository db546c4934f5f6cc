"""What the tasks of a join counted, on the driver: an accumulator, no second job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windjoin.spark.bootstrap import Latest


@dataclass
class Meter:
    """The accumulator of one join."""

    accumulator: Any

    @property
    def counts(self) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """By step and partition."""
        return sorted(self.accumulator.value.items(), key=lambda item: tuple(map(str, item[0])))

    @property
    def packed(self) -> dict[str, dict[str, int]]:
        """Sums over partitions, by stream."""
        found: dict[str, dict[str, int]] = {}
        for _, counts in self.counts:
            if counts["step"] == "pack":
                own = found.setdefault(counts["stream"], {})
                for name, value in counts.items():
                    if isinstance(value, int):
                        own[name] = own.get(name, 0) + value
        return found

    def hosts(self, stage: int) -> dict[int, dict[str, Any]]:
        """What every host of a stage did; hosts that got nothing are missing."""
        return {
            counts["host"]: counts
            for _, counts in self.counts
            if counts["step"] == "probe" and counts["stage"] == stage and counts["host"] is not None
        }


def is_classic(spark: Any) -> bool:
    """Whether the session is not one of Spark Connect."""
    return hasattr(spark, "_jsparkSession")


def new_meter(spark: Any) -> Meter | None:
    """A meter; None under Spark Connect, which has no accumulators."""
    if not is_classic(spark):
        return None
    param: Any = Latest()
    return Meter(spark.sparkContext.accumulator({}, param))
