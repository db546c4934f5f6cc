"""How long segments should be: what lengths are tried, and by what they are judged."""

from __future__ import annotations

from time import thread_time

import pytest
from windjoin.diffusion.segment_length import HillClimber
from windjoin.diffusion.worked import LEAST_SECONDS, Worked


def climb(climber: HillClimber, peak: float, readings: int = 400) -> list[int]:
    """The lengths in turn, where what is replicated and what is idle cost as equation 2 says."""
    tried, border = [climber.length], 0
    for _ in range(readings):
        border += 3 * climber.length
        length = climber.length
        throughput = 1000.0 / (1 + 0.2 * (peak / length + length / peak))
        if climber.observe(throughput, border) != length:
            climber.wait_until(border)
            tried.append(climber.length)
    return tried


@pytest.mark.parametrize("peak", [30, 100, 250, 1000])
@pytest.mark.parametrize("start", [20, 250, 1500])
def test_it_settles_near_the_best_after_few_lengths(start: int, peak: int) -> None:
    climber = HillClimber.around(start, 16 * start)
    tried = climb(climber, peak)
    assert climber.settled
    nearest = min(max(peak, climber.shortest), climber.longest)
    assert nearest / 2 <= tried[-1] <= nearest * 2
    assert len(set(tried)) <= 9
    # it goes back to what was best, but looks at nothing twice
    assert len(tried) <= len(set(tried)) + 1


def test_it_stays_within_the_longest_length_even_if_more_would_be_better() -> None:
    climber = HillClimber.around(50, 100)
    assert max(climb(climber, 1000)) == 100
    assert climber.settled
    assert climber.length == 100


def test_a_stretch_takes_as_long_as_its_busiest_host_or_all_on_the_processors_there_are() -> None:
    def rate(processors: int, *hosts: float) -> float:
        worked = Worked(processors)
        worked.begin(dict.fromkeys(range(len(hosts)), 7.0), aside=0.0)
        worked.end({n: 7.0 + spent for n, spent in enumerate(hosts)}, aside=0.0, rows=600)
        found = worked.rate()
        assert found is not None
        return found

    assert rate(4, 2.0, 1.0, 1.0) == pytest.approx(300, rel=0.02)
    assert rate(2, 2.0, 2.0, 2.0) == pytest.approx(200, rel=0.02)
    assert rate(1, 2.0, 1.0, 1.0) == pytest.approx(150, rel=0.02)


def test_what_the_calling_thread_did_for_hosts_counts_once() -> None:
    worked = Worked(1)
    worked.begin({0: 0.0}, aside=0.0)
    began = thread_time()
    while (spent := thread_time() - began) < 10 * LEAST_SECONDS:
        pass
    worked.end({0: spent}, aside=spent, rows=100)
    found = worked.rate()
    assert found is not None
    assert 100 / found == pytest.approx(spent, rel=0.3)
    assert worked.rate() is None
