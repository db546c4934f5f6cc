"""Compile loops around users' functions, and keep them on disk.

Compiled code is kept under a name made from the content of the function: it is compiled once per
machine, not once per process.  So is what a function returns, which queries ask before any data.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray
from windjoin.kernels.fingerprint import fingerprint
from windjoin.kernels.spec import Dtype

UserFunction = Callable[..., Any]
Returned = Literal["bool", "int64", "float64"]

_compiled: dict[tuple[str, tuple[Dtype, ...], str], Any] = {}  # keeps the machine code alive
_called: dict[tuple[str, tuple[Dtype, ...]], Any] = {}
_returned: dict[tuple[str, tuple[Dtype, ...]], Returned] = {}
_one_at_a_time = Lock()  # threads of one run ask for the same function


class CompileError(Exception):
    """Numba cannot compile a user's function, or it returns what is no value of a query."""


def returned(function: UserFunction, dtypes: tuple[Dtype, ...]) -> Returned:
    """What a function returns for arguments of these types; it may return None besides."""
    key = (fingerprint(function), dtypes)
    with _one_at_a_time:
        if key not in _returned:
            name = f"returned_{_hashed(key[0], *dtypes)}.txt"
            known = _found(name)
            if known is None or known not in get_args(Returned):
                known = _return_type(function, dtypes, key)
                _kept(name, known)
            _returned[key] = cast(Returned, known)
        return _returned[key]


def compiled(function: UserFunction, dtypes: tuple[Dtype, ...], source: str, takes: str) -> Any:
    """The `numba.cfunc` that ``source``, a module with a function ``loop``, makes of a function.

    takes: letter by letter n a number, i integers, r reals, b bytes; it returns an int64
    """
    key = (fingerprint(function), dtypes, source)
    with _one_at_a_time:
        if key not in _compiled:
            _compiled[key] = _compile(function, key, takes)
        return _compiled[key]


def exception_of(
    function: UserFunction, dtypes: tuple[Dtype, ...], values: Sequence[Any]
) -> BaseException | None:
    """What the compiled function raises for these arguments."""
    with _one_at_a_time:
        call = _call(function, dtypes, (fingerprint(function), dtypes))
    try:
        call(*(np.dtype(dtype).type(v) for dtype, v in zip(dtypes, values, strict=True)))
    except Exception as error:
        error.__context__ = None  # what is being handled here is nothing that the function did
        return error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
    return None


def run(loop: Any, *arguments: int | NDArray[Any]) -> int:
    """Call a compiled loop on numbers and contiguous arrays, without the GIL."""
    kinds = [ctypes.c_int64 if isinstance(a, int) else ctypes.c_void_p for a in arguments]
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(loop.address)
    return int(call(*(a if isinstance(a, int) else a.ctypes.data for a in arguments)))


def cache_folder() -> Path:
    """Where compiled functions are kept: $WINDJOIN_CACHE_DIR, or the user's cache folder."""
    given = os.environ.get("WINDJOIN_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "windjoin"


def _compile(function: UserFunction, key: tuple[str, tuple[Dtype, ...], str], takes: str) -> Any:
    import numba
    from numba import types

    name, dtypes, source = key
    pointer: Any = types.CPointer
    known = {"n": types.int64, "i": pointer(types.int64), "r": pointer(types.float64)}
    known["b"] = pointer(types.uint8)
    signature = types.int64(*(known[letter] for letter in takes))
    full_name = f"loop_{_hashed(name, *dtypes, source)}"
    path = _kept(f"{full_name}.py", source)
    loop = _loaded(full_name, path, _call(function, dtypes, (name, dtypes)))
    with _told(function, dtypes):
        try:
            return numba.cfunc(signature, cache=True)(loop)
        except ImportError:  # kept by a process that had modules which are not here
            return numba.cfunc(signature)(loop)


def _call(
    function: UserFunction, dtypes: tuple[Dtype, ...], key: tuple[str, tuple[Dtype, ...]]
) -> Any:
    """The function behind one that takes as many arguments as there are, ready to be compiled."""
    import numba
    from windjoin.kernels.arithmetic import OPTIONS, ruled

    if getattr(numba.config, "DISABLE_JIT", 0):
        raise CompileError(f"NUMBA_DISABLE_JIT is set; unset it to use functions{_place(function)}")
    if key not in _called:
        names = ", ".join(f"a{number}" for number in range(len(dtypes)))
        scope: dict[str, Any] = {"function": ruled(function), "__name__": __name__}
        exec(f"def call({names}):\n    return function({names})", scope)
        _called[key] = numba.jit(**OPTIONS)(scope["call"])
    return _called[key]


def _return_type(
    function: UserFunction, dtypes: tuple[Dtype, ...], key: tuple[str, tuple[Dtype, ...]]
) -> Returned:
    import numba

    types: Any = numba.types
    arguments = tuple(getattr(types, dtype) for dtype in dtypes)
    call = _call(function, dtypes, key)
    with _told(function, dtypes):
        call.compile(arguments)
    found = call.overloads[arguments].signature.return_type
    if isinstance(found, types.Optional):
        found = found.type
    found = types.unliteral(found)
    if isinstance(found, types.Boolean):
        return "bool"
    if isinstance(found, types.Float):
        return "float64"
    if isinstance(found, types.Integer) and (found.signed or found.bitwidth < 64):
        return "int64"
    what = "nothing" if found is types.none else found
    raise CompileError(
        f"this function{_place(function)} returns {what}; return True or False,"
        " or a number that is compared"
    )


class _told:
    """What Numba refuses, as an error that names the function."""

    def __init__(self, function: UserFunction, dtypes: tuple[Dtype, ...]) -> None:
        self.function, self.dtypes = function, dtypes

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        from numba.core.errors import NumbaError

        if isinstance(error, (NumbaError, TypeError)):
            raise CompileError(
                f"Numba cannot compile this function{_place(self.function)} for arguments of type"
                f" {', '.join(self.dtypes)}: {str(error).strip()}"
            ) from error


def _place(function: UserFunction) -> str:
    code = getattr(getattr(function, "py_func", function), "__code__", None)
    return f' (File "{code.co_filename}", line {code.co_firstlineno})' if code else ""


# -- on disk ----------------------------------------------------------------------------------


def _hashed(*parts: str) -> str:
    """A name that changes with what makes the code, too."""
    import numba

    whole = "\0".join((*parts, numba.__version__, _makers()))
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


@cache
def _makers() -> str:
    """The modules that decide what code is made, by their content."""
    digest = hashlib.sha256()
    for name in ("arithmetic", "attempt", "widest"):
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return digest.hexdigest()


def _folders() -> list[Path]:
    """Where files are kept: the first that can be written."""
    spare = Path(tempfile.gettempdir()) / f"windjoin-{os.getuid()}"
    return [cache_folder() / "functions", spare]


def _found(name: str) -> str | None:
    """The content of a file that was kept; None: there is none."""
    for folder in _folders():
        try:
            return (folder / name).read_text()
        except OSError:
            continue
    return None


def _kept(name: str, content: str) -> Path:
    """A file on disk: of a module around a function, so that Numba's cache can find it again."""
    for folder in _folders():
        path = folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                handle, draft = tempfile.mkstemp(dir=folder, suffix=".tmp")
                with os.fdopen(handle, "w") as file:
                    file.write(content)
                os.replace(draft, path)  # whole or not at all, also when many start at once
            return path
        except OSError:
            continue  # a read-only home: the next folder
    raise CompileError(
        f"no folder to keep compiled functions in: neither {cache_folder()} nor "
        f"{tempfile.gettempdir()} can be written; set WINDJOIN_CACHE_DIR"
    )


def _loaded(name: str, path: Path, call: Any) -> Any:
    from windjoin.kernels.attempt import attempt
    from windjoin.kernels.widest import use_widest

    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where Numba looks for it when it reads its cache
    spec.loader.exec_module(module)
    vars(module).update(call=call, attempt=attempt, use_widest=use_widest)
    return module.loop
