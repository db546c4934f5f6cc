"""A Kafka broker on this machine for as long as a program needs it: Java and Maven, no containers.

    with Broker() as broker:
        spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.address)

Jars come from Maven Central once and stay in ``~/.cache/windjoin-kafka`` (or the folder that
``WINDJOIN_KAFKA`` names).  `connector` gives those that Spark needs: ``spark.jars`` takes them.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

SECONDS = 120  # to fetch jars, or to start
KAFKA = ("org.apache.kafka:kafka_2.13:3.9.1", "org.slf4j:slf4j-simple:1.7.36")
CONNECTOR = (  # each without what it depends on: Spark has the rest
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.0",
)
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>jars</artifactId><version>1</version><dependencies>{}
</dependencies></project>
"""
JAR = """<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}
</dependency>"""
ALONE = """<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>
</exclusions>"""
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
num.partitions=2
log.cleaner.dedupe.buffer.size=2097152
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


class NoKafka(RuntimeError):
    """What there has to be for a broker is not there."""


def jars(name: str, coordinates: tuple[str, ...], *, alone: bool) -> Path:
    """A folder with jars; fetched if it is not there."""
    home = Path(os.environ.get("WINDJOIN_KAFKA", Path.home() / ".cache" / "windjoin-kafka"))
    folder = home / name
    if folder.exists():
        return folder
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise NoKafka(f"there is no {program} on this machine, and Kafka needs it")
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as place:
        asked = [JAR.format(*one.split(":"), ALONE if alone else "") for one in coordinates]
        (Path(place) / "pom.xml").write_text(POM.format("".join(asked)))
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
        done = subprocess.run(
            command, cwd=place, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if done.returncode:
            raise NoKafka(f"Maven does not give Kafka's jars: {done.stdout.strip()[:300]}")
        (Path(place) / "jars").rename(folder)
    return folder


def connector() -> str:
    """What ``spark.jars`` takes for Spark to read and write topics."""
    found = jars("connector", CONNECTOR, alone=True)
    return ",".join(str(jar) for jar in sorted(found.glob("*.jar")))


class Broker:
    """A broker; ``address`` is where it listens."""

    def __init__(self) -> None:
        self.libs = jars("broker", KAFKA, alone=False)
        self.folder = Path(tempfile.mkdtemp(prefix="kafka-"))
        self.port, self.controller = _free_ports(2)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """For ``kafka.bootstrap.servers``."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Broker:
        told = {"port": self.port, "controller": self.controller, "data": self.folder / "data"}
        properties = self.folder / "server.properties"
        properties.write_text(PROPERTIES.format(**told))
        tool = self._java("kafka.tools.StorageTool")
        name = subprocess.run([*tool, "random-uuid"], capture_output=True, text=True, check=True)
        own = ["format", "-t", name.stdout.strip().splitlines()[-1], "-c", str(properties)]
        subprocess.run([*tool, *own], capture_output=True, check=True)
        with open(self.folder / "broker.log", "wb") as log:
            command = [*self._java("kafka.Kafka"), str(properties)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + SECONDS
        while not _listens(self.port):
            if self.process.poll() is not None or time.monotonic() > until:
                said = (self.folder / "broker.log").read_text(errors="replace")
                self.__exit__(None, None, None)
                raise NoKafka(f"the broker did not start: {said[-2000:]}")
            time.sleep(0.1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _java(self, main: str) -> list[str]:
        small = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return ["java", *small, "-cp", f"{self.libs}/*", main]


def _free_ports(count: int) -> list[int]:
    taken = [socket.socket() for _ in range(count)]
    for one in taken:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


def _listens(port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0
