"""Let LLVM use the widest vectors there are for a function that Numba compiles.

On processors with AVX-512 LLVM uses halves of its registers by default, as the first of them slowed
down when they used all; a loop over a window of rows is a third quicker with whole ones.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

WHOLE = '"prefer-vector-width"="512"'


@intrinsic
def use_widest(typing: Any) -> Any:
    """Call this anywhere in a function."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = builder.function
        # not inline: within its caller the caller's attributes would count
        function.attributes = _with(function.attributes, "noinline", WHOLE)
        return context.get_dummy_value()

    return types.void(), generate


def _with(attributes: Any, *more: str) -> Any:
    """Attributes of a function, among them one that llvmlite does not know but LLVM does."""
    kind = type(attributes)
    known = getattr(kind, "_known", None)
    # another llvmlite or Numba than those of today: then with the usual width
    if not isinstance(known, frozenset) or "alwaysinline" in attributes:
        return attributes
    wider = type(kind.__name__, (kind,), {"_known": known | {WHOLE}})
    return wider([*attributes, *more])
