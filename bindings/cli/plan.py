"""``windjoin plan QUERY.toml``: what a continuous query will give and cost, on one site or many."""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

from windjoin.cli.queryfile import QueryFile, read_query_file
from windjoin.cli.run import read_tables
from windjoin.errors import InputError, QueryError
from windjoin.fragments import Site
from windjoin.inputs import as_table
from windjoin.planner import plan


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser("plan", help="say what a continuous query will give and cost")
    parser.add_argument("query", type=Path, metavar="QUERY.toml")
    parser.add_argument(
        "--rates",
        help="rows per second of every stream, as calls=2000,trades=50;"
        " by default those of the files",
    )
    parser.add_argument("--cpu", type=float, default=1.0, help="how much of a core there is")
    parser.add_argument("--hosts", type=int, default=1, help="how many there may be")
    parser.add_argument(
        "--threads", type=int, default=1, help="how many there may be for whole tables"
    )
    parser.add_argument("--sites", type=Path, metavar="SITES.toml", help="where it may run")
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")
    parser.add_argument("--draw", type=Path, metavar="FILE", help="a picture: SVG, PNG or PDF")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Plan for the files of a query file as samples of its streams."""
    described = read_query_file(given.query)
    tables = read_tables(described)
    rates = _rates(given.rates) if given.rates else _rates_of(described, tables)
    sites, links, weights = _sites(given.sites) if given.sites else (None, None, (0.5, 0.5))
    found = plan(
        described.query,
        rates=rates,
        statistics=tables,
        cpu=given.cpu,
        sites=sites,
        links=links,
        weights=weights,
        hosts=given.hosts,
        threads=given.threads,
    )
    print(json.dumps(found.as_data(), indent=2) if given.json else found)
    if given.draw is not None:
        found.draw(str(given.draw))
    return 0


def _rates(text: str) -> dict[str, float]:
    rates = {}
    for one in text.split(","):
        name, equals, rate = one.partition("=")
        try:
            rates[name.strip()] = float(rate)
        except ValueError:
            equals = ""
        if not equals:
            raise QueryError(f"--rates: {one!r} is not a stream and its rate, such as calls=2000")
    return rates


def _rates_of(described: QueryFile, tables: dict[str, Any]) -> dict[str, float]:
    """Rows over the time that they span."""
    bound = described.query.bind(
        {name: as_table(table, name).schema for name, table in tables.items()}
    )
    ticks = 1.0 if bound.clock.step is None else float(1 / bound.clock.step)
    rates = {}
    for number, name in enumerate(described.query.names):
        time = bound.prepare(number, tables[name]).rows.time
        span = int(time.max()) - int(time.min()) if len(time) else 0
        rates[name] = len(time) / max(span, 1) * ticks
    return rates


def _sites(path: Path) -> tuple[dict[str, Site], dict[tuple[str, str], Any] | None, Any]:
    """``[sites.NAME]`` with load, bandwidth and streams; ``links`` and ``weights`` at the top."""
    try:
        data = tomllib.loads(path.read_text())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise QueryError(f"{path}: is not TOML: {error}") from error
    try:
        sites = {name: Site(**one) for name, one in data["sites"].items()}
        links = {(one, other): length for one, other, length in data.get("links", [])}
        weights = tuple(data.get("weights", (0.5, 0.5)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise QueryError(
            f"{path}: describe each site in a table such as [sites.east] with load, bandwidth and"
            f' streams; links = [["east", "west", 1.0]] and weights = [0.5, 0.5] may stand at the'
            f" top ({error})"
        ) from error
    return sites, links or None, weights
