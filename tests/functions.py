"""The users' functions that random queries call: few, so that each is compiled once."""

from __future__ import annotations


def product_at_least_one(x: float, y: float) -> bool:
    return x * y >= 1.0


def even_sum(x: int, y: int) -> bool:
    return (x + y) % 2 == 0


def gap(x: float, y: float) -> float:
    return abs(x - y)


def larger(x: int, y: int) -> int:
    return max(x, y)


def between_the_others(x: float, y: float, z: float) -> bool:
    if x <= z:
        return x <= y and y <= z
    return z <= y and y <= x


def picky(x: int, y: int) -> bool:
    """Raises for some pairs, with and without values in the message."""
    if x == 3:
        raise ValueError("three is too many")
    if x + y == 5:
        raise KeyError(x)
    return x <= y


def share(x: int, y: int) -> int:
    """Raises ZeroDivisionError of its own accord."""
    return x // y


def picky_of_three(x: int, y: int, z: int) -> bool:
    assert x + y + z != 4, "four"
    return x + z >= y
