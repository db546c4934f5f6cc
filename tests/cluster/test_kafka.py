"""Two topics of a real broker, joined while drivers are killed: what a batch join of them finds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import MARKS
from tests.cluster.machines import SECONDS, session
from tests.cluster.test_stream_kills import committed

pytestmark = MARKS
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def kafka() -> Iterator[Any]:
    from examples import kafka_broker

    try:
        with kafka_broker.Broker() as broker:
            kafka_broker.connector()
            yield broker
    except kafka_broker.NoKafka as missing:
        pytest.skip(str(missing))


def begin(address: str, folder: Path, slots: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.cluster.kafka_driver", address, str(folder), str(slots)]
    with open(folder / "driver.log", "ab") as log:
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)


def test_topics_are_joined_though_drivers_are_killed(kafka: Any, tmp_path: Path) -> None:
    from examples.kafka_broker import connector
    from examples.spark_kafka_fraud import as_rows, expected, produce, run, some, the_end

    tables = some(5, 0, 120)
    with session("local[2]", **{"spark.jars": connector()}) as spark:
        produce(spark, kafka.address, tables)
        driver = begin(kafka.address, tmp_path, 2)
        try:
            for kills, slots in enumerate([3, 1]):
                until = time.monotonic() + 4 * SECONDS
                while committed(tmp_path) < 2 * (kills + 1):
                    assert driver.poll() is None, (tmp_path / "driver.log").read_text()[-3000:]
                    assert time.monotonic() < until
                    time.sleep(0.05)
                os.killpg(driver.pid, signal.SIGKILL)
                driver.wait()
                driver = begin(kafka.address, tmp_path, slots)
            assert driver.wait(4 * SECONDS) == 0, (tmp_path / "driver.log").read_text()[-3000:]
        finally:
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)
        for later in (3_600, 3_601):
            produce(spark, kafka.address, the_end(later))
            run(spark, kafka.address, tmp_path, 2)
        found = as_rows(spark.read.parquet(str(tmp_path / "found")).toArrow())
    assert not (tmp_path / "rejected").exists()
    right = expected([tables])
    assert sum(trade is None for _, trade in right) > 1000
    assert found == right
