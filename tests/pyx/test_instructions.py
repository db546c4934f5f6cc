"""Instruction counts of the main kernels stay near the recorded ones."""

from __future__ import annotations

import re

import pytest

from benchmarks import callgrind


@pytest.mark.slow
@pytest.mark.parametrize("name", list(callgrind.KERNELS))
def test_kernel_needs_no_more_instructions_than_recorded(name: str) -> None:
    found, before = callgrind.per_row(name), callgrind.recorded()[name]
    assert found <= before * callgrind.BOUND, f"{name}: {found:.1f} per row, recorded {before}"


def test_total_reads_the_profile_of_a_whole_process() -> None:
    assert callgrind.total("events: Ir\n\nfn=(1)\n1 7\ntotals: 98765\n") == 98_765


def test_total_says_that_a_profile_was_cut_short() -> None:
    message = "the profile has no line 'totals:'; was the program stopped?"
    with pytest.raises(ValueError, match=re.escape(message)):
        callgrind.total("events: Ir\n")


def test_counting_without_valgrind_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.callgrind.shutil.which", lambda _: None)
    with pytest.raises(RuntimeError, match="valgrind is needed to count instructions"):
        callgrind.counted("equality", 1)


@pytest.mark.slow
def test_failing_kernel_is_reported_with_its_error() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)kernel 'nonsense' failed.*KeyError: 'nonsense'"):
        callgrind.counted("nonsense", 1)
