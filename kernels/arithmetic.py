"""What arithmetic means inside a function of the user's, and in those that it calls.

* Floats follow IEEE: a division by zero gives an infinity or NaN.
* ``//``, ``%`` and ``divmod`` of integers by zero, and 0 to a negative power, raise
  ZeroDivisionError.
* Sums, differences and products of integers wrap around at 64 bits.  Numba says to LLVM that they
  never do, which lets it take ``x + 1 > x`` for true.
"""

from __future__ import annotations

from types import CellType, FunctionType
from typing import Any

import numba
from numba.core.callconv import ErrorModel, error_models
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from windjoin.kernels.fingerprint import names_in

NEVER_WRAPS = "nsw"  # LLVM's flag of an operation


class Divisions(ErrorModel):
    """Integers divided by zero raise; floats do not."""

    raise_on_fp_zero_division = True

    def fp_zero_division(self, builder: Any, exc_args: Any = None, loc: Any = None) -> bool:
        """Whether code that raises was made."""
        if exc_args is None or not exc_args[0].startswith("integer"):
            return False
        return bool(super().fp_zero_division(builder, exc_args, loc))  # type: ignore[no-untyped-call]


class Wrapping(Lower):
    """Makes code in which what a function calculates with integers wraps around."""

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """One operation, without the promise."""
        block = self.builder.block
        before = len(block.instructions)
        value = super().lower_binop(resty, expr, op)  # type: ignore[no-untyped-call]
        for instruction in block.instructions[before:]:
            flags = getattr(instruction, "flags", ())
            if NEVER_WRAPS in flags:
                instruction.flags = [flag for flag in flags if flag != NEVER_WRAPS]
        return value


@register_pass(mutates_CFG=True, analysis_only=False)  # type: ignore[no-untyped-call]
class WrappingLowering(NativeLowering):
    """Numba's own step with another maker of code."""

    _name = "windjoin_lowering"

    @property
    def lowering_class(self) -> Any:
        return Wrapping


class Compiler(CompilerBase):
    """Numba's own compiler with that step."""

    def define_pipelines(self) -> list[Any]:
        """All steps, in order."""
        steps: Any = DefaultPassBuilder
        steps = steps.define_nopython_pipeline(self.state)
        steps.passes = [
            (WrappingLowering if step is NativeLowering else step, text)
            for step, text in steps.passes
        ]
        steps.finalize()
        return [steps]


error_models["windjoin"] = Divisions
OPTIONS: dict[str, Any] = {
    "nopython": True,
    "error_model": "windjoin",
    "pipeline_class": Compiler,
}


def ruled(function: Any) -> Any:
    """A function to be compiled under these rules; what Numba knows already stays as it is.

    So do those it calls which the user had Numba compile, but for options given there: otherwise it
    would matter whether they were called before.
    """
    return _ruled(function, {})


def _ruled(function: Any, made: dict[int, Any]) -> Any:
    own = getattr(function, "py_func", function)
    if not isinstance(own, FunctionType):
        return function
    if id(own) in made:
        return made[id(own)]
    names = dict(own.__globals__)
    cells = tuple(CellType() for _ in own.__closure__ or ())
    copy = FunctionType(own.__code__, names, own.__name__, own.__defaults__, cells)
    copy.__kwdefaults__ = own.__kwdefaults__
    copy.__module__ = __name__  # who loads the code from disk imports this, not the user's module
    options = OPTIONS | getattr(function, "targetoptions", {})
    made[id(own)] = compiler = numba.jit(**options)(copy)
    for name in names_in(own.__code__):  # afterwards: functions may call themselves
        if hasattr(names.get(name), "py_func"):
            names[name] = _ruled(names[name], made)
    for cell, old in zip(cells, own.__closure__ or (), strict=True):
        value = old.cell_contents
        cell.cell_contents = _ruled(value, made) if hasattr(value, "py_func") else value
    return compiler
