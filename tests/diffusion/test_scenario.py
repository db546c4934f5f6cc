"""Scenarios are read as written, and refused in one line that says where and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from windjoin.diffusion.scenario import Scenario, ScenarioError, load_scenario, scenario_from

EXAMPLES = Path(__file__).parents[2] / "examples" / "scenarios"
TWO = [{"name": "a", "rate": 1, "window_s": 5}, {"name": "b", "rate": 1, "window_s": 5}]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_examples_are_valid(path: Path) -> None:
    scenario = load_scenario(path)
    assert scenario.name == path.stem
    assert scenario.host_count >= 1


def test_values_are_taken_over() -> None:
    scenario = scenario_from({
        "streams": TWO, "hosts": [{"count": 2}, {"cpu": 2.0}], "costs": {"probe_ms": 3},
        "strategies": "atr", "changes": [{"at_s": 3, "remove_hosts": [0]}],
    })  # fmt: skip
    assert isinstance(scenario, Scenario)
    assert (scenario.host_count, scenario.costs.probe_ms) == (3, 3)
    assert scenario.strategies == ("atr",)
    assert scenario.changes[0].remove_hosts == (0,)


def with_stream(**changes: object) -> list[dict[str, object]]:
    return [{**TWO[0], **changes}, dict(TWO[1])]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({}, r"there are no \[\[streams\]\]; a join needs at least 2"),
        ({"streams": TWO[:1]}, "at least 2 streams, got 1"),
        ({"streams": [TWO[0], TWO[0]]}, "streams must have different names, got a, a"),
        ({"streams": with_stream(rate=-3)}, r"streams\[0\]\.rate is -3; it must be > 0"),
        ({"streams": with_stream(rate="x")}, r"streams\[0\]\.rate is 'x'; it must be float"),
        ({"streams": with_stream(rate=True)}, r"streams\[0\]\.rate is True; it must be float"),
        ({"streams": with_stream(burst=2)}, r"streams\[0\]\.burst is 2; it must be in 0\.\.1"),
        ({"streams": with_stream(colour=1)}, r"streams\[0\] has no key 'colour'; it may have"),
        ({"streams": [{"name": "a"}]}, r"streams\[0\] lacks 'rate' and 'window_s'"),
        ({"streams": {"a": 1}}, "streams must be a list of tables, got dict"),
        ({"streams": [1, 2]}, r"streams\[0\] must be a table, got int"),
        ({"streams": TWO, "hosts": []}, "there are no hosts; at least 1 is needed"),
        ({"streams": TWO, "hosts": 0}, r"hosts\[0\]\.count is 0; it must be > 0"),
        ({"streams": TWO, "seconds": 0}, r"the scenario\.seconds is 0; it must be > 0"),
        ({"streams": TWO, "in_flight": -1}, "in_flight and rows_per_batch must be >= 0"),
        ({"streams": TWO, "costs": {"send_ms": -1}}, r"costs\.send_ms is negative"),
        ({"streams": TWO, "strategies": ["hash"]}, "there is no strategy 'hash'; there are atr"),
        ({"streams": TWO, "hot_key": 1.5}, r"hot_key is 1\.5; it must be in 0\.\.1"),
        ({"streams": TWO, "strategies": ["groups"]}, "strategy 'groups' needs hot_key, the share"),
        ({"streams": TWO, "relocation": "slow"}, "relocation is 'slow'; it must be 'aggressive'"),
        ({"streams": TWO, "matches": 1.0, "selectivity": 0.1}, "selectivity or matches, not both"),
        ({"streams": TWO, "selectivity": 2.0}, r"selectivity is 2\.0; it must be in 0\.\.1"),
        ({"streams": TWO, "matches": -1.0}, r"matches is -1\.0; it must be >= 0"),
        (
            {"streams": TWO, "changes": [{"at_s": 1, "stream": "c", "rate": 1}]},
            r"changes\[0\]\.stream is 'c'; there are a, b",
        ),
        (
            {"streams": TWO, "changes": [{"at_s": 1, "stream": "a"}]},
            r"changes\[0\] needs both stream and rate, or neither",
        ),
        (
            {"streams": TWO, "changes": [{"at_s": 1, "stream": "a", "rate": -1}]},
            r"changes\[0\]\.rate is -1; it must be >= 0",
        ),
    ],
)
def test_what_cannot_be_is_refused(data: dict[str, object], text: str) -> None:
    with pytest.raises(ScenarioError, match=text) as refusal:
        scenario_from(data)
    assert "\n" not in str(refusal.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"none\.toml: there is no such file"):
        load_scenario(tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("streams = [")
    with pytest.raises(ScenarioError, match=r"broken\.toml: "):
        load_scenario(broken)
    broken.write_text("hosts = 3")
    with pytest.raises(ScenarioError, match=r"broken\.toml: there are no \[\[streams\]\]"):
        load_scenario(broken)
