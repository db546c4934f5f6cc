"""Equation 1, with work in flight."""

from __future__ import annotations

import json

import numpy as np
import pytest
from windjoin.diffusion.load import Host, LoadBook, Usage, Weights


def test_load_is_equation_1() -> None:
    weights = Weights(cpu=0.5, memory=0.3, network=0.2)
    book = LoadBook([Host(1, cpu=4.0, memory=10.0, network=20.0)], span=5, weights=weights)
    book.report({1: Usage(cpu=2.0, memory=5.0, network=5.0)}, now=0)
    assert book.loads()[1] == pytest.approx(0.5 * 0.5 + 0.3 * 0.5 + 0.2 * 0.25)
    assert np.isinf(book.loads()[0])


def test_work_in_flight_counts_until_it_is_reported() -> None:
    book = LoadBook([Host(0), Host(1)], span=10)
    chosen = []
    for due in range(6):
        host = book.least_loaded(1)[0]
        chosen.append(host)
        book.assign([host], rows=10, bytes=1000, due=due)
    assert chosen == [0, 1, 0, 1, 0, 1]
    book.report({0: Usage()}, now=4)  # all of host 0 is part of its usage, which is nothing
    assert book.least_loaded(2) == [0, 1]
    assert book.loads()[0] == 0.0


def test_a_report_leaves_work_that_is_not_due() -> None:
    book = LoadBook([Host(0)], span=10)
    book.assign([0], rows=10, bytes=0, due=7)
    before = book.loads()[0]
    book.report({0: Usage()}, now=6)
    assert book.loads()[0] == before > 0
    book.settle(7)  # nobody reported: it counts on
    assert book.loads()[0] == before
    book.report({0: Usage()}, now=7)
    assert book.loads()[0] == 0


def test_a_host_of_twice_the_capacity_gets_twice_the_work() -> None:
    book = LoadBook([Host(0, cpu=1.0), Host(1, cpu=2.0)], span=10)
    chosen = []
    for _ in range(300):
        host = book.least_loaded(1)[0]
        chosen.append(host)
        book.assign([host], rows=7, bytes=0, due=99)
    assert chosen.count(1) == 2 * chosen.count(0)


def test_ties_go_to_the_lowest_number_and_leaving_hosts_get_nothing() -> None:
    book = LoadBook([Host(5), Host(3), Host(4)], span=1)
    assert book.least_loaded(3) == [3, 4, 5]
    book.close(3)
    assert book.least_loaded(3) == book.open_hosts == [4, 5]


def test_a_number_that_comes_back_starts_without_work() -> None:
    book = LoadBook([Host(0), Host(1)], span=1)
    book.assign([0, 1], rows=5, bytes=5, due=10)
    book.remove(0)
    book.add(Host(0))
    book.settle(10)
    book.report({0: Usage(), 1: Usage()}, now=10)
    assert book.loads().tolist() == [0.0, 0.0]


def test_who_joins_does_not_have_to_make_up_for_all_that_was_done() -> None:
    book = LoadBook([Host(0), Host(1)], span=1)
    for due in range(100):
        book.assign(book.least_loaded(1), rows=10, bytes=10, due=due)
        book.settle(due)
    book.add(Host(2))
    assert book.loads()[2] == book.loads()[0] > 0
    chosen = []
    for due in range(30):
        chosen.append(book.least_loaded(1)[0])
        book.assign(chosen[-1:], rows=10, bytes=10, due=100 + due)
    assert sorted(chosen) == [0] * 10 + [1] * 10 + [2] * 10


def test_a_restored_book_has_the_same_loads_to_the_bit() -> None:
    rng = np.random.default_rng(3)
    book = LoadBook([Host(n, cpu=rng.random() + 0.1) for n in (0, 2, 7)], span=3)
    for due in range(50):
        book.assign(rng.choice([0, 2, 7], 2, replace=False).tolist(), rows=due, bytes=9, due=due)
    book.report({2: Usage(cpu=rng.random(), memory=rng.random())}, now=20)
    book.settle(30)
    book.close(7)
    saved = json.loads(json.dumps(book.state()))
    again = LoadBook.from_state(saved)
    assert again.loads().tobytes() == book.loads().tobytes()
    assert again.state() == book.state()
    assert again.open_hosts == [0, 2]


def test_work_in_flight_counts_by_the_length_that_segments_have_now() -> None:
    book = LoadBook([Host(0, cpu=2.0), Host(1, cpu=2.0)], span=10, weights=Weights(1.0, 0.0, 0.0))
    book.assign([0], rows=10, bytes=0, due=5)
    assert book.loads().tolist() == [0.5, 0.0]
    book.spread(40)
    assert book.loads().tolist() == [0.125, 0.0]
    assert LoadBook.from_state(book.state()).loads().tolist() == [0.125, 0.0]
