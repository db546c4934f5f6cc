"""``windjoin doctor``: is everything here that windjoin needs, and does it work?"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import NamedTuple

import windjoin as wj
from windjoin.figures import figure
from windjoin.java import JavaError, find_java

SETTINGS = {
    "WINDJOIN_ISA": "plain, avx2 or avx512",
    "WINDJOIN_CACHE_DIR": "where compiled functions are kept",
    "WINDJOIN_DEBUG": "1 when building: with bounds checks",
    "WINDJOIN_BENCH_DATA": "where benchmarks keep their rows",
}
REQUIRED = ("numpy", "pyarrow", "numba", "rich")
OPTIONAL = ("pyspark", "pandas", "polars", "duckdb", "matplotlib")


class Finding(NamedTuple):
    """One line of all that there is to say; ``brief`` is what matters of it."""

    what: str
    found: str
    broken: bool = False
    brief: str = ""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser("doctor", help="check this installation and this machine")
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="measure what work costs on this machine, for plans; takes about half a minute",
    )
    parser.add_argument(
        "--all", action="store_true", help="say all that was looked at, not only what matters"
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print what was found, in five lines if all is well; 1 if something is broken."""
    if given.calibrate:
        return _calibrate()
    broken = 0
    for title, checks in CHECKS.items():
        findings = [finding for check in checks for finding in check()]
        shown = [finding for finding in findings if given.all or finding.broken]
        briefs = [finding.brief for finding in findings if finding.brief]
        broken += sum(finding.broken for finding in findings)
        if briefs and not given.all:
            well = "; all well" if title == "join" and not broken else ""
            print(f"{title:<12} {', '.join(briefs)}{well}", flush=True)
        for finding in shown:
            mark = "BROKEN " if finding.broken else ""
            print(f"{finding.what:<12} {mark}{finding.found}", flush=True)
    if broken or given.all:
        print(f"\n{broken} broken" if broken else "\nall well")
    return 1 if broken else 0


def _calibrate() -> int:
    """Measure, keep and tell what units of work cost."""
    from windjoin.calibrating import calibrated
    from windjoin.progress import progress_bar

    with progress_bar(sys.stderr.isatty(), "measuring", "joins") as report:
        costs = calibrated(report)
    path = costs.keep()
    print(f"{'nanoseconds':<44}{'pushed':>10}{'tables':>10}")
    for unit in sorted({*costs.live, *costs.batch}):
        pushed, tables = (of.get(unit) for of in (costs.live, costs.batch))
        print(f"{unit:<44}{_figure(pushed):>10}{_figure(tables):>10}")
    print(f"\nkept in {path}")
    return 0


def _figure(value: float | None) -> str:
    return "" if value is None else figure(value)


def _versions() -> Iterator[Finding]:
    yield Finding("windjoin", version("windjoin"), brief=version("windjoin"))
    python = f"{platform.python_version()}, {sys.executable}"
    yield Finding("python", python, brief=f"Python {python}")
    system = f"{platform.system()} {platform.machine()}, {_cores()} cores"
    yield Finding("system", system, brief=system)


def _packages() -> Iterator[Finding]:
    for name in REQUIRED:
        installed = _installed(name)
        if installed is None:
            yield Finding(name, f"missing: pip install {name}", broken=True)
        else:
            yield Finding(name, installed, brief=f"{name} {installed}")
    for name in OPTIONAL:
        installed = _installed(name)
        brief = "" if installed is None or name == "pyspark" else f"{name} {installed}"
        yield Finding(name, installed or "not installed", brief=brief)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cpu() -> Iterator[Finding]:
    try:
        cpu = import_module("windjoin.pyx.base.cpu")
        cpu.check()
    except (ImportError, ValueError) as error:
        yield Finding("cpu path", str(error), broken=True)
        return
    offers = f"{cpu.isa()}; this CPU offers {', '.join(cpu.supported())}"
    yield Finding("cpu path", offers, brief=cpu.isa())


def _java() -> Iterator[Finding]:
    needed = find_spec("pyspark") is not None
    try:
        java = find_java()
    except JavaError as error:
        found = str(error) if needed else "not found (only Spark needs it)"
        yield Finding("java", found, broken=needed)
        return
    found = f"{java.version}, {java.home}: {java.why}"
    yield Finding("java", found, brief=f"Java {java.version} by {java.why}" if needed else "")


def _spark() -> Iterator[Finding]:
    if find_spec("pyspark") is None:
        missing = "not installed (pip install 'windjoin[spark]')"
        yield Finding("spark", missing, brief=missing)
        return
    try:
        settings = import_module("windjoin.spark.settings")
    except ValueError as error:
        yield Finding("spark", f"not looked for: {error}", broken=True)
        return
    try:
        settings.check_version(version("pyspark"))
    except settings.SparkVersionError as error:
        yield Finding("spark", str(error), broken=True)
        return
    missing = settings.missing_defaults()
    slow = "; make sessions with windjoin.spark.configure: slower without its settings"
    release = version("pyspark")
    yield Finding("spark", release, brief=f"Spark {release}{slow if missing else ''}")
    for one in missing:
        remedy = "windjoin.spark.configure sets it for a session"
        what = f"{one.key}={one.value} is not in {settings.defaults_file()}"
        yield Finding("spark", f"{what}; without it {one.cost}; {remedy}")


def _cache() -> Iterator[Finding]:
    try:
        from windjoin.kernels.compiling import cache_folder
    except ValueError as error:
        yield Finding("cache", f"not looked for: {error}", broken=True)
        return
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        remedy = "; set WINDJOIN_CACHE_DIR to a folder that is"
        yield Finding("cache", f"{folder} is not writable ({error.strerror}){remedy}", broken=True)
        return
    yield Finding("cache", f"{folder}, writable", brief=f"compiled functions in {folder}")


def _costs() -> Iterator[Finding]:
    try:
        from windjoin.unit_costs import costs_file, kept_costs
    except ValueError as error:
        yield Finding("costs", f"not looked for: {error}", broken=True)
        return
    path, why = costs_file(), kept_costs()[1]
    if why:
        found = f"{path} is not used, {why}; --calibrate measures anew"
        yield Finding("costs", found, brief=f"costs: {found}")
    elif path.exists():
        yield Finding("costs", f"{path}, measured on this machine", brief="costs as measured here")
    else:
        shipped = "those that are shipped; --calibrate measures this machine's"
        yield Finding("costs", shipped, brief="costs as shipped (--calibrate measures)")


def _settings() -> Iterator[Finding]:
    given = sorted(name for name in os.environ if name.startswith("WINDJOIN_"))
    for name in given:
        known = SETTINGS.get(name, f"unknown; known are {', '.join(SETTINGS)}")
        found = f"{name}={os.environ[name]}"
        brief = f"{found} ({known})" if name not in SETTINGS else found
        yield Finding("setting", f"{found} ({known})", brief=brief)
    if not given:
        yield Finding("settings", "none of " + ", ".join(SETTINGS))


def _join() -> Iterator[Finding]:
    """A join whose answer is known; exact or broken."""
    a, b = (wj.stream(name, time="t", window=5) for name in ("a", "b"))
    tables = {
        "a": {"t": [0, 1, 2], "k": ["u", "v", "u"], "x": [1.0, 2.0, 9.0]},
        "b": {"t": [5, 6, 7], "k": ["u", "v", "u"], "x": [1.0, 2.0, 3.0]},
    }
    try:
        rows = wj.join(a, b, on=[a["k"] == b["k"], a["x"] <= b["x"]]).indices(tables)
    except Exception as error:  # whatever it is, it is what the user wants to be told
        yield Finding("join", f"{type(error).__name__}: {error}", broken=True)
        return
    found = sorted(zip(rows["a"].tolist(), rows["b"].tolist(), strict=True))
    right = found == [(0, 0), (1, 1)]
    if right:
        well = "a small join gives the right rows"
        yield Finding("join", well, brief=well)
    else:
        yield Finding("join", f"wrong rows {found}", broken=True)


# by the line that says what matters of them
CHECKS: dict[str, tuple[Callable[[], Iterator[Finding]], ...]] = {
    "windjoin": (_versions, _cpu),
    "packages": (_packages,),
    "spark": (_spark, _java),
    "kept": (_cache, _costs, _settings),
    "join": (_join,),
}
