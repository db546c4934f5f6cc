"""Build the compiled rooms.  Everything else about the package is in pyproject.toml.

``WINDJOIN_DEBUG=1`` at build time turns bounds checks and C assertions on,
``WINDJOIN_SANITIZE=address,undefined`` the sanitizers of the compiler and C assertions.
"""

import os
import re
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_py import build_py

DEBUG = os.environ.get("WINDJOIN_DEBUG") == "1"
SANITIZE = os.environ.get("WINDJOIN_SANITIZE", "")
# none takes objects of another for its own
BUILD = "build/sanitize" if SANITIZE else "build/debug" if DEBUG else "build"
SPEED = ["-O1", "-g"] if DEBUG else ["-O3", "-g0", "-fno-math-errno"]
# with sanitizers and -O1, GCC 12 makes wrong code of masks of AVX-512
SANITIZED = [f"-fsanitize={SANITIZE}", "-O2", "-g"] if SANITIZE else []

SHARED = "windjoin.pyx._shared"  # what Cython would compile into each of ours: views of memory
# the largest first, so that no processor waits for another in the end
SOURCES = sorted(Path("pyx").glob("*/*.pyx"), key=lambda path: (-path.stat().st_size, path))

# headers are included by name, wherever they lie
FOLDERS = sorted(path.parent for path in Path("pyx").glob("*/__init__.py"))
HEADERS = {path.name: path for folder in FOLDERS for path in folder.glob("*.[hi]*")}

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": True,
    "freethreading_compatible": False,
}


def headers(source: Path) -> set[str]:
    """Our own C headers that a source includes, directly or through another."""
    if not source.exists():  # Cython has yet to write it
        return set()
    included = set(re.findall(r'(?:include|from) "(\w+\.(?:h|inc))"', source.read_text()))
    for name in sorted(included):
        included |= headers(HEADERS[name])
    return included


def extension(source: Path) -> Extension:
    return Extension(
        ".".join(("windjoin", *source.with_suffix("").parts)),
        [str(source)],
        include_dirs=[numpy.get_include(), *map(str, FOLDERS)],
        depends=[str(HEADERS[name]) for name in sorted(headers(source))],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")]
        + ([] if DEBUG or SANITIZE else [("NDEBUG", "1")]),
        undef_macros=["NDEBUG"] if DEBUG or SANITIZE else [],  # Python's own flags define it
        # what is exact rounds after every operation, on any machine
        extra_compile_args=["-ffp-contract=off", *SPEED, *SANITIZED],
        extra_link_args=SANITIZED,
    )


def cimport_root() -> str:
    """A folder in which ``windjoin.pyx`` lies where its dotted name says, for ``cimport``."""
    package = Path("build/cimport/windjoin")
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.pxd").touch()
    link, here = package / "pyx", Path("pyx").resolve()
    if not link.is_symlink() or link.resolve() != here:  # as in a checkout that was copied or moved
        link.unlink(missing_ok=True)
        link.symlink_to(here, target_is_directory=True)
    return str(package.parent)


def lacks() -> str:
    """What a build needs that is not here, in one line; empty: nothing."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    wheel = "or take a wheel: pip install --only-binary windjoin windjoin"
    if shutil.which(compiler) is None:
        return (
            f"windjoin is built with a C compiler; there is no {compiler!r}: install one, {wheel}"
        )
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return f"windjoin is built with Python.h; it is not here: install python3-dev, {wheel}"
    return ""


class BuildPyWithoutSources(build_py):
    """Wheels carry compiled modules and stubs, never what they are made of."""

    def find_data_files(self, package: str, src_dir: str) -> list[str]:
        unwanted = {".pyx", ".pxd", ".c", ".h", ".inc", ".cpp"}
        files = super().find_data_files(package, src_dir)
        return [name for name in files if Path(name).suffix not in unwanted]


# metadata and source distributions need nothing compiled
EXTENSIONS = [extension(Path("pyx/_shared.c")), *map(extension, SOURCES)]
if not {"egg_info", "dist_info", "sdist"} & set(sys.argv[1:]):
    if lacks():
        sys.exit(lacks())
    EXTENSIONS = cythonize(
        EXTENSIONS,
        build_dir=f"{BUILD}/cython",
        compiler_directives=DIRECTIVES,
        include_path=[cimport_root()],
        shared_utility_qualified_name=SHARED,
        nthreads=os.cpu_count() or 1,
    )

setup(
    ext_modules=EXTENSIONS,
    options={"build": {"build_base": BUILD, "parallel": os.cpu_count() or 1}},
    cmdclass={"build_py": BuildPyWithoutSources},
)
