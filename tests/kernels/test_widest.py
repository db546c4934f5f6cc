"""How wide the vectors are that a user's function is compiled for."""

from __future__ import annotations

from typing import Any

import numba
import pytest
from numba import types
from windjoin.kernels.widest import WHOLE, _with, use_widest


def compiled(wide: bool) -> Any:
    def mask(n: int, x: Any, out: Any) -> None:
        if wide:
            use_widest()
        for i in range(n):
            out[i] = 1 if abs(x[i] - 0.5) < 0.25 else 0

    takes = types.void(types.int64, types.CPointer(types.float64), types.CPointer(types.uint8))
    return numba.cfunc(takes)(mask)


@pytest.mark.parametrize("wide", [True, False])
def test_llvm_is_asked_for_whole_registers(wide: bool) -> None:
    assert (WHOLE in compiled(wide).inspect_llvm()) is wide


class Inlined(set[str]):
    _known = frozenset({"alwaysinline"})


@pytest.mark.parametrize("attributes", [{"nounwind"}, Inlined({"alwaysinline"})])
def test_other_attributes_than_todays_stay_as_they_are(attributes: Any) -> None:
    assert _with(attributes, WHOLE) is attributes
