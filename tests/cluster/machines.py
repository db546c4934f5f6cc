"""A standalone Spark cluster on this machine: a master and workers with an executor each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyspark
import windjoin.spark as wjs
from pyspark.sql import SparkSession

SECONDS = 120  # for anything to happen, on a machine that is busy with other things
HOME = Path(pyspark.__file__).parent
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
}
EXECUTORS = {  # two, with a core each
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
}


class Cluster:
    """The processes of a cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, workers: int) -> None:
        """Start a master, and workers whose addresses differ: for Spark they are machines."""
        self._start("master", "127.0.0.1", MASTER, "--port", "0")
        self.url = self._said("master", r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            options = ["--cores", "1", "--memory", "1g", self.url]
            self._start(f"worker{number}", f"127.0.0.{number + 1}", WORKER, *options)
        for number in range(workers):
            self._said(f"worker{number}", r"Successfully registered with master (\S+)")

    def _start(self, name: str, address: str, main: str, *options: str) -> None:
        environment = os.environ | {
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": address,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": QUICK,
            "SPARK_WORKER_DIR": str(self.folder / name),
        }
        with open(self.folder / f"{name}.log", "wb") as log:
            common = ["--host", address, "--webui-port", "0"]
            command = [HOME / "bin" / "spark-class", main, *common, *options]
            self.processes.append(
                subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            )

    def _said(self, name: str, pattern: str) -> str:
        """Wait for a line in a log."""
        log, until = self.folder / f"{name}.log", time.monotonic() + SECONDS
        while time.monotonic() < until:
            found = re.search(pattern, log.read_text(errors="replace"))
            if found:
                return found[1]
            time.sleep(0.1)
        raise TimeoutError(f"{name} never said {pattern}: {log.read_text(errors='replace')}")

    def stop(self) -> None:
        """End all processes of the cluster, also those that workers have started."""
        own = [psutil.Process(one.pid) for one in self.processes if one.poll() is None]
        every = [*own, *(child for one in own for child in one.children(recursive=True))]
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(SECONDS)
        _, alive = psutil.wait_procs(every, timeout=10)
        for child in alive:
            child.kill()
        psutil.wait_procs(alive, timeout=10)


@contextmanager
def session(master: str, **conf: str) -> Iterator[Any]:
    """A session, and no JVM behind it when it ends."""
    builder: Any = SparkSession.builder
    builder = builder.master(master).appName("windjoin cluster tests")
    for key, value in (CONF | conf).items():
        builder = builder.config(key, value)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = wjs.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        gateway = spark.sparkContext._gateway
        spark.stop()
        _end(gateway)


def _end(gateway: Any) -> None:
    """Stop the JVM that PySpark keeps for the next session of this process."""
    from pyspark import SparkContext

    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(SECONDS)
    SparkContext._gateway = SparkContext._jvm = None
