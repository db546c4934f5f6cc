"""Scores of many results at once: those of one row together, and how they are handed out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import windjoin as wj

from tests.kernels.test_scores import expected_score, found_in, pushed, table
from tests.kernels.test_similarity import measure
from tests.similarity_paths import on_every_instruction_set

Draw = Callable[[np.random.Generator], Any]
ROWS = 18  # two packs of eight and a rest
MEASURES = {
    "sets": ("overlap", "jaccard", "containment", "cosine_sets"),
    "vectors": ("l2", "l1", "linf", "dot", "cosine"),
}


def a_set(most: int, least: int = 0) -> Draw:
    return lambda random: random.integers(least, 60 + least, random.integers(0, most)).tolist()


def a_vector(lengths: tuple[int, ...], special: float = 0.0) -> Draw:
    def draw(random: np.random.Generator) -> Any:
        values = random.normal(size=random.choice(lengths)).astype(np.float32)
        hit = random.random(len(values)) < special
        values[hit] = random.choice([np.inf, -np.inf, 0.0, -0.0, np.nan, 1e38], hit.sum())
        return values.tolist()

    return draw


SHAPES: dict[str, tuple[str, pa.DataType, Draw]] = {
    "few items": ("sets", pa.list_(pa.int64()), a_set(12)),
    "some items": ("sets", pa.list_(pa.int64()), a_set(31)),
    "many items": ("sets", pa.list_(pa.int64()), a_set(90)),
    "far codes": ("sets", pa.list_(pa.int64()), a_set(8, 1 << 40)),
    "floats": ("vectors", pa.list_(pa.float32()), a_vector((19,))),
    "short floats": ("vectors", pa.list_(pa.float32()), a_vector((3,))),
    "doubles": ("vectors", pa.list_(pa.float64()), a_vector((8,))),
    "no numbers": ("vectors", pa.list_(pa.float64()), a_vector((9,), 0.03)),
    "two lengths": ("vectors", pa.list_(pa.float32()), a_vector((8, 9))),
}


def rows(draw: Draw, seed: int) -> list[Any]:
    random = np.random.default_rng(seed)
    drawn = [draw(random) for _ in range(ROWS)]
    return [(t, value if random.random() < 0.97 else None) for t, value in enumerate(drawn)]


def joins(name: str) -> list[Any]:
    """Every row with all, with a run of those of the other side, and with some of them."""
    a, b = (wj.stream(stream, time="t", window=ROWS) for stream in "ab")
    score = measure(name, a["v"], b["v"]).alias("score")
    conditions = [a["i"] + b["i"] >= 0, a["i"] + 3 >= b["i"], (a["i"] * 7 + b["i"] * 5) % 4 != 0]
    return [wj.join(a, b, on=one, select=[a["i"], b["i"], score]) for one in conditions]


HOLDS: list[Callable[[int, int], bool]] = [
    lambda i, j: True,
    lambda i, j: i + 3 >= j,
    lambda i, j: (i * 7 + j * 5) % 4 != 0,
]


def check(shape: str) -> None:
    family, arrow, draw = SHAPES[shape]
    left, right = rows(draw, 1), rows(draw, 2)
    tables = {"a": table(left, arrow), "b": table(right, arrow)}
    for name in MEASURES[family]:
        told = [
            [expected_score(family, name, x, y) if x is not None and y is not None else "None"
             for _, y in right]
            for _, x in left
        ]  # fmt: skip
        for query, holds in zip(joins(name), HOLDS, strict=True):
            owed = sorted(
                (i, j, told[i][j]) for i in range(ROWS) for j in range(ROWS) if holds(i, j)
            )
            assert found_in(query.run(tables, threads=1)) == owed, (shape, name)
            assert found_in(pushed(query, tables, 13)) == owed, (shape, name)


@pytest.mark.parametrize("shape", SHAPES)
def test_scores_of_many_results_equal_the_oracle(shape: str) -> None:
    check(shape)


def test_items_whose_codes_differ_by_a_power_of_two_are_not_the_same() -> None:
    """Codes below 1 << 16 are compared by 16 bits; others that have these bits are other items."""
    random = np.random.default_rng(1)
    items = [item + (code << 16) for item in range(6) for code in range(3)]
    many = [list(range(3 << 16))]  # so that an item has a code of its size
    values = [
        *many,
        *(random.permutation(items)[: random.integers(0, 17)].tolist() for _ in many * 60),
    ]
    come = table(list(enumerate(values)), pa.list_(pa.int64()))
    a, b = (wj.stream(stream, time="t", window=len(values)) for stream in "ab")
    score = wj.overlap(a["v"], b["v"]).alias("score")
    found = wj.join(a, b, on=a["i"] + b["i"] > 0, select=[a["i"], b["i"], score]).run(
        {"a": come, "b": come}, threads=1
    )
    sets = [set(value) for value in values]
    assert found.num_rows == len(sets) ** 2 - 1
    for row in found.to_pylist():
        assert row["score"] == len(sets[row["a_i"]] & sets[row["b_i"]]), row


SCRIPT = """
from tests.kernels.test_score_blocks import check
for shape in ("few items", "some items", "floats", "no numbers"):
    check(shape)
print("the same")
"""


def test_every_instruction_set_gives_the_same_scores() -> None:
    on_every_instruction_set(SCRIPT)


@pytest.mark.parametrize("name", ["overlap", "jaccard"])
def test_pushes_hand_out_scores_with_what_is_missing(name: str) -> None:
    """A score that there is not is null, and columns of pages beside it stay as they are."""
    a, b = (wj.stream(stream, time="t", window=9) for stream in "ab")
    query = wj.join(
        a, b, on=a["i"] == b["i"], select=[a["v"], measure(name, a["v"], b["v"]).alias("s"), b["i"]]
    )
    values = [[1, 2], None, [], [3]]
    come = table(list(enumerate(values)), pa.list_(pa.int64()))
    with query.open(dict.fromkeys("ab", come.schema)) as session:
        session.push("a", come)
        found = session.push("b", come)
        assert session._gather is not None  # compiled, not column by column
    found.validate(full=True)
    scores = [2, None, 0, 1] if name == "overlap" else [1.0, None, None, 1.0]
    assert found.to_pydict() == {"a_v": values, "s": scores, "b_i": [0, 1, 2, 3]}
