"""The users' functions that random queries call: few, so that each is compiled once."""

from __future__ import annotations


def product_at_least_one(x: float, y: float) -> bool:
    return x * y >= 1.0


def even_sum(x: int, y: int) -> bool:
    return (x + y) % 2 == 0


def between_the_others(x: float, y: float, z: float) -> bool:
    if x <= z:
        return x <= y and y <= z
    return z <= y and y <= x
