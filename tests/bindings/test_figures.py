"""Numbers in texts have few digits and no powers of ten, all from one place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import windjoin as wj
from hypothesis import given
from hypothesis import strategies as st
from windjoin.durations import NANOSECONDS, parse_duration
from windjoin.figures import figure, length, percent, size
from windjoin.pyx.base.figures import LETTERS

ROOT = Path(__file__).parents[2]
SIZES = {letter: size for size, letter in LETTERS}
OWN = re.compile(r":,?\.[0-7]g\}")  # a format with a choice of digits


@given(st.floats(1e-4, 9.9e14), st.sampled_from([1.0, -1.0]), st.integers(2, 5))
def test_figures_have_their_digits_and_say_the_number(value: float, sign: float, digits: int):
    text = figure(sign * value, digits)
    number = text.rstrip("".join(SIZES))
    assert "e" not in text
    assert len(number.lstrip("-").replace(".", "").lstrip("0")) <= max(digits, 3), text
    read = float(number) * SIZES.get(text[len(number) :], 1)
    assert read == pytest.approx(sign * value, rel=0.51 * 10 ** (1 - digits))


def test_figures_of_nothing_and_of_no_number():
    assert [figure(value) for value in (0, float("inf"), float("nan"), 3.888e21)] == [
        "0", "inf", "nan", "3.89e+21",
    ]  # fmt: skip
    assert (percent(0.5), size(0), size(999_999)) == ("50 %", "0 B", "1 MB")


@given(st.integers(0, 10**15), st.sampled_from(["s", "ms", "us", "ns"]))
def test_lengths_say_the_time(ticks: int, unit: str):
    nanoseconds = ticks * NANOSECONDS[unit]
    exactly = parse_duration(length(ticks, unit, exact=True)).nanoseconds
    assert exactly == nanoseconds
    text = length(ticks, unit)
    assert len(re.findall(r"[a-z]+", text)) <= 2, text
    assert parse_duration(text).nanoseconds == pytest.approx(nanoseconds, rel=0.03)


def test_lengths_without_a_unit_are_ticks():
    assert length(225_116_000, None) == "225M ticks"
    assert length(225_116_000, None, exact=True) == "225,116,000 ticks"


def test_plans_of_great_rates_have_no_powers_of_ten():
    a, b, c = (wj.stream(name, time="ts", window="1s", unit="us") for name in "abc")
    query = wj.join(a, b, c, on=[abs(a["x"] - b["x"]) <= 1.0, b["k"] == c["k"]])
    plan = wj.plan(query, rates={"a": 2e6, "b": 1e6, "c": 3e5})
    assert plan.cost > 1e3
    for text in (str(plan), plan._repr_html_()):
        assert re.search(r"\de[+]\d", text) is None, text


def test_hosts_tell_how_long_segments_are():
    a, b = (wj.stream(name, time="ts", window="225116ms", unit="us") for name in "ab")
    query = wj.join(a, b, on=abs(a["x"] - b["x"]) <= 1)
    with query.open(hosts=2, strategy="atr") as session:
        for name in "ab":
            session.push(name, {"ts": [1, 2], "x": [1, 2]})
        segment = session.metrics["cluster"]["segment"]
        assert f"epochs of {length(segment, 'us')}," in session.explain()


def test_no_other_place_chooses_digits():
    kept = {"bindings/cli/simulate_costs.py", "pyx/base/figures.py"}  # a file of costs; the place
    found = {
        str(path.relative_to(ROOT))
        for folder in ("bindings", "diffusion", "kernels", "pyx")
        for path in (ROOT / folder).rglob("*.py*")
        if path.suffix in (".py", ".pyx") and OWN.search(path.read_text())
    }
    assert found <= kept, found - kept
