"""Call a user's function from compiled code so that an exception is a value, not a jump.

Compiled functions return whether they raised.  A caller that asks for it, as here, goes on with the
next pair; LLVM sees through it, so a loop of calls that cannot raise is the loop it would be
without, and one of calls that can still uses vectors.
"""

from __future__ import annotations

from typing import Any

import numba
import numba.core.cgutils
from numba.core.callconv import ALLOC_FLAG_IDX, HASH_BUF_IDX
from numba.extending import intrinsic

types: Any = numba.types
cgutils: Any = numba.core.cgutils


@intrinsic
def attempt(typing: Any, function: Any, arguments: Any) -> Any:
    """(raised, known, value) of ``function(*arguments)``; not known: it returned None.

    The value of a call that raised, or returned None, is arbitrary.
    """
    called = function.get_call_type(typing, tuple(arguments), {})
    returned = called.return_type
    if isinstance(returned, types.Optional):
        returned = returned.type

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        compiled = function.dispatcher.get_compile_result(called)
        context.add_linking_libs([compiled.library])
        items = cgutils.unpack_tuple(builder, values[1])
        status, value = context.call_internal_no_propagate(builder, compiled.fndesc, called, items)
        _free_exception(context, builder, status)
        known = builder.not_(status.is_none)
        made = (status.is_error, known, value)
        return context.make_tuple(builder, signature.return_type, made)

    outcome = types.Tuple((types.boolean, types.boolean, returned))
    return outcome(function, arguments), generate


def _free_exception(context: Any, builder: Any, status: Any) -> None:
    """Let an exception go whose arguments were computed: only such a one was allocated."""
    with builder.if_then(status.is_user_exc, likely=False):
        described = builder.load(status.excinfoptr)
        allocated = builder.extract_value(described, ALLOC_FLAG_IDX)
        with builder.if_then(builder.icmp_signed(">", allocated, allocated.type(0)), likely=False):
            context.nrt.free(builder, builder.extract_value(described, HASH_BUF_IDX))
            whole = builder.bitcast(status.excinfoptr, cgutils.voidptr_t)
            context.nrt.free(builder, whole)
