"""A session draws itself: as text, as a page, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import windjoin as wj
from windjoin.diffusion.history import MOST_SAMPLES, History, Latencies
from windjoin.diffusion.registry import make
from windjoin.diffusion.segments import StreamProfile

from tests.command import QUERY

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64()})


def played(strategy: str) -> Any:
    a, b = (wj.stream(name, time="t", window=40) for name in "ab")
    query = wj.join(a, b, on=a["k"] == b["k"])
    session = query.open({"a": SCHEMA, "b": SCHEMA}, hosts=3, strategy=strategy, segment=5)
    rng = np.random.default_rng(1)
    for step in range(60):
        for name in "ab":
            times = np.sort(rng.integers(step * 10, step * 10 + 10, 40))
            session.push(name, {"t": times, "k": rng.integers(0, 9, 40)})
    return session


@pytest.mark.parametrize("strategy", ["atr", "ctr", "psp"])
def test_a_report_shows_hosts_over_time(strategy: str, tmp_path: Path) -> None:
    with played(strategy) as session:
        report = session.report()
        text = str(report)
        for wanted in (
            "load by host",
            "host 2",
            "segment length",
            "results so far",
            "latency: p50",
        ):
            assert wanted in text
        assert ("master" in text, "ring borders" in text) == (strategy == "atr", strategy == "psp")
        page = session.report(tmp_path / "run.html").html()
        assert (tmp_path / "run.html").read_text("utf-8") == page
        ElementTree.fromstring(
            page.replace("<!doctype html>", "").replace('<meta charset="utf-8">', "")
        )
        assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
        latency = session.metrics["cluster"]["latency"]
        assert 0 < latency["p50"] <= latency["p95"] <= latency["p99"] < 60
    assert "load by host" in str(session.report(tmp_path / "run.txt"))  # also when it has ended


def test_a_picture_is_a_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with played("psp") as session:
        session.report(tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_other_files_are_refused() -> None:
    with played("atr") as session, pytest.raises(wj.QueryError, match=r"is no .txt, .html or .png"):
        session.report("run.pdf")


def test_latency_is_from_the_last_member_to_the_result() -> None:
    latencies = Latencies(2)
    latencies.pushed(0, 0, 10.0)
    latencies.pushed(1, 0, 11.0)
    latencies.pushed(0, 5, 12.0)
    latencies.left([np.array([0, 4, 5]), np.array([0, 0, 0])], 12.5)
    assert latencies.percentile(0.5) == pytest.approx(1.5, rel=0.1)
    assert latencies.percentile(0.01) == pytest.approx(0.5, rel=0.1)


def test_samples_stay_few_and_even_however_long_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    router = make("atr", [StreamProfile("a", 10), StreamProfile("b", 10)], 2, segment_length=5)
    history = History(began=0.0)
    for step in range(20 * MOST_SAMPLES):
        monkeypatch.setattr("windjoin.diffusion.history.perf_counter", lambda now=step: float(now))
        history.add(router, 0, {0: step, 1: 2 * step}, step, Latencies(2))
    taken = [sample.seconds for sample in history.samples]
    assert MOST_SAMPLES / 4 < len(taken) <= MOST_SAMPLES
    assert max(np.diff(taken)) <= 64


def test_run_watch_draws_the_hosts_and_gives_the_same_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from windjoin.cli.main import main

    rng = np.random.default_rng(2)
    for name in "ab":
        rows = {"t": rng.integers(0, 900, 500), "k": rng.integers(0, 9, 500)}
        pa.csv.write_csv(pa.table(rows), tmp_path / f"{name}.csv")
    (tmp_path / "query.toml").write_text(QUERY)
    plain, watched = tmp_path / "plain.parquet", tmp_path / "watched.parquet"
    assert main(["run", str(tmp_path / "query.toml"), "--output", str(plain)]) == 0
    options = ["--watch", "--hosts", "3", "--strategy", "atr", "--output", str(watched)]
    assert main(["run", str(tmp_path / "query.toml"), *options]) == 0
    told = capsys.readouterr().out
    assert "strategy: atr, 3 hosts" in told
    one, other = (pa.parquet.read_table(path).to_pylist() for path in (plain, watched))
    assert sorted(map(repr, one)) == sorted(map(repr, other)) != []
