"""What a session that sheds says of it: in metrics, in its plan, and when it begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from windjoin.figures import figure
from windjoin.kernels.shedding.control import Controller
from windjoin.kernels.shedding.live import SheddingJoin
from windjoin.kernels.shedding.recall import Missed, interval

if TYPE_CHECKING:
    from windjoin.binding import BoundQuery
    from windjoin.clustered import ClusterJoin
    from windjoin.kernels.intake import Intake
    from windjoin.shedding import Shedding


def report(
    shed: Shedding, names: Sequence[str], bound: BoundQuery | None, live: Intake | None
) -> dict[str, Any]:
    """``metrics["shedding"]``: in all, per stream, and per direction of it."""
    data: dict[str, Any] = {"policy": shed.policy, "budget": shed.budget}
    data["comparisons_per_s"] = shed.comparisons_per_s
    if not isinstance(live, SheddingJoin) or bound is None:
        return {**data, **_nothing(), "streams": {name: _nothing() for name in names}}
    control = live.control
    parts = [_stream(number, names, bound, live) for number in range(len(names))]
    missed, left_out = _missed_by(live)
    return {
        **data,
        "shedding": control.fraction < 1,
        "fraction": control.fraction,
        "rate_fraction": control.rate.fraction,
        "load": control.load,
        "adaptations": control.adapted,
        **_missed(live.results, missed, live.comparisons, left_out),
        "dropped": sum(control.admission.dropped),
        "streams": dict(zip(names, parts, strict=True)),
    }


def _missed_by(live: SheddingJoin) -> tuple[Missed, Missed]:
    """Results and comparisons that a session has left out so far."""
    missed, left_out = _all_missed([live.control])
    dropped = live.control.admission
    missed.add(dropped.missed)
    left_out.add(dropped.left_out)
    return missed, left_out


def over_sessions(
    now: Mapping[str, Any], live: Intake | None, before: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What a session tells of itself, and in sums with the sessions before it, which told this."""
    missed, results = Missed(), now["results"]
    if isinstance(live, SheddingJoin):  # else no row has come
        missed, _ = _missed_by(live)
    left_out, dropped = now["left_out"], now["dropped"]
    if before is not None:
        missed.add(Missed(*before.get("sums", ())))  # logs of before have none
        results += before["results"]
        left_out += before["left_out"]
        dropped += before["dropped"]
    recall, least, most = interval(float(results), missed)
    return {
        "fraction": now["fraction"],
        "load": now["load"],
        "recall": recall,
        "recall_low": least,
        "recall_high": most,
        "results": results,
        "missed": missed.count,
        "left_out": left_out,
        "dropped": dropped,
        "sums": [missed.count, missed.variance, missed.unknown, missed.doubt],
    }


def _nothing() -> dict[str, Any]:
    nothing = _missed(0, Missed(), 0, Missed())
    return {"shedding": False, "fraction": 1.0, "load": 0.0, **nothing, "dropped": 0}


def _missed(results: int, missed: Missed, compared: int, left_out: Missed) -> dict[str, Any]:
    recall, least, most = interval(float(results), missed)
    return {
        "results": results,
        "missed": missed.count,
        "missed_error": missed.error,
        "recall": recall,
        "recall_low": least,
        "recall_high": most,
        "comparisons": compared,
        "left_out": left_out.count,
        "left_out_error": left_out.error,
    }


def report_hosts(
    shed: Shedding,
    names: Sequence[str],
    bound: BoundQuery | None,
    live: ClusterJoin,
    controls: Mapping[int, Controller],
) -> dict[str, Any]:
    """The same of hosts that shed each by its own load: in all, per stream, per host."""
    assert bound is not None
    every = list(controls.values())
    streams = {}
    for number, name in enumerate(names):
        results, compared = live.done_by(number)
        missed, left_out = _all_missed(every, number)
        streams[name] = {
            "shedding": any(not one.everything for one in every),
            "fraction": _mean_fraction(every, number),
            **_missed(results, missed, compared, left_out),
            "rows": sum(w.shedder.rows for c in every for w in c.watched if w.start == number),
            "dropped": 0,
        }
    missed, left_out = _all_missed(every)
    return {
        "policy": shed.policy,
        "budget": shed.budget,
        "comparisons_per_s": shed.comparisons_per_s,
        "shedding": any(one.fraction < 1 for one in every),
        "fraction": _mean_fraction(every),
        "load": max((one.load for one in every), default=0.0),
        "adaptations": sum(one.adapted for one in every),
        **_missed(live.results, missed, live.comparisons, left_out),
        "dropped": 0,
        "streams": streams,
        "hosts": {number: _host(names, one, bound) for number, one in sorted(controls.items())},
    }


def _all_missed(controls: Sequence[Controller], number: int | None = None) -> tuple[Missed, Missed]:
    """Results and comparisons that hosts left out, of one starting stream or of all."""
    missed, left_out = Missed(), Missed()
    for control in controls:
        for stream, recall in enumerate(control.recall):
            if number in (None, stream):
                now = recall.now
                missed.add(now.results)
                left_out.add(now.comparisons)
    return missed, left_out


def _mean_fraction(controls: Sequence[Controller], number: int | None = None) -> float:
    """Of the work of hosts, by what each of them would have to do."""
    loads = [max(one.load, 1e-9) for one in controls]
    parts = [one.fraction if number is None else one.fraction_of(number) for one in controls]
    return sum(p * w for p, w in zip(parts, loads, strict=True)) / max(sum(loads), 1e-300)


def _host(names: Sequence[str], control: Controller, bound: BoundQuery) -> dict[str, Any]:
    missed, left_out = _all_missed([control])
    return {
        "shedding": control.fraction < 1,
        "fraction": control.fraction,
        "load": control.load,
        "adaptations": control.adapted,
        "missed": missed.count,
        "missed_error": missed.error,
        "left_out": left_out.count,
        "streams": {
            names[watched.start]: {
                "fraction": control.fraction_of(watched.start),
                "rows": watched.shedder.rows,
                "rows_joined_fully": watched.shedder.full,
                "directions": {
                    names[hop.target]: _direction(control, place, hop_place, bound)
                    for hop_place, hop in enumerate(watched.shedder.hops)
                },
            }
            for place, watched in enumerate(control.watched)
        },
    }


def _stream(
    number: int, names: Sequence[str], bound: BoundQuery, live: SheddingJoin
) -> dict[str, Any]:
    control, watched = live.control, live.control.watched[number]
    recall = control.recall[number].now
    results, compared = live.done_by(number)
    return {
        "shedding": not control.everything or control.admission.share < 1,
        "fraction": control.fraction_of(number),
        **_missed(results, recall.results, compared, recall.comparisons),
        "rows": watched.shedder.rows,
        "rows_joined_fully": watched.shedder.full,
        "dropped": control.admission.dropped[number],
        "directions": {
            names[hop.target]: _direction(control, number, place, bound)
            for place, hop in enumerate(watched.shedder.hops)
        },
    }


def _direction(control: Controller, number: int, place: int, bound: BoundQuery) -> dict[str, Any]:
    """One hop: how much of its work is done, and its basic windows, the worthiest first."""
    watched = control.watched[number]
    hop, share = watched.direction.hops[place], watched.share
    step = 1 if bound.clock.step is None else float(bound.clock.step)
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.where(hop.proposed > 0, hop.found / hop.proposed, 0.0)
    order = np.argsort(-each, kind="stable")
    chosen = np.ones(hop.windows.count) if share is None else share.windows[place]
    whole = float(hop.proposed.sum())
    fraction = float((chosen * hop.proposed).sum()) / whole if whole else 1.0
    asks = 1.0 if share is None else share.asks
    return {
        "fraction": fraction * asks,
        "comparisons": watched.shedder.hops[place].given,
        "basic_window": control.settings.width * step,
        "worth": [
            {
                "from": hop.windows.ages(window)[0] * step,
                "to": (hop.windows.ages(window)[1] + 1) * step,
                "worth": float(each[window]),
                "asked": float(chosen[window]) * asks,
            }
            for window in order.tolist()
            if hop.proposed[window] > 0
        ],
    }


def told(shed: Shedding, control: Controller) -> str:
    """The warning of a session that sheds for the first time."""
    if shed.budget is None:
        budget = f"{shed.comparisons_per_s:,.10g} comparisons a second"
    else:
        budget = f"{shed.budget:.10g} CPU seconds a second"
    what = {
        "selective": "compares rows with the worthiest parts of the windows only",
        "partial": "compares rows with the newest part of the windows only",
        "drop": "drops rows at random",
    }[shed.policy]
    return (
        f"rows come faster than a budget of {budget} can join them: the session {what},"
        f" {control.fraction:.0%} of the work; results are true, but some are missing:"
        ' metrics["shedding"] says how many, give more budget to get them'
    )


def lines(data: dict[str, Any]) -> list[str]:
    """What `explain` says of it."""
    if data["budget"] is None:
        budget = f"{data['comparisons_per_s']:,.10g} comparisons a second"
    else:
        budget = f"{data['budget']:.10g} CPU seconds a second"
    found = [f"shedding: {data['policy']}, budget {budget}"]
    if not data["shedding"]:
        found.append("  nothing is shed now: all work is done")
    else:
        found.append(
            f"  {data['fraction']:.0%} of the work is done, as it would take"
            f" {data['load']:.2f} of the budget"
        )
    found.append(
        f"  recall {data['recall']:.1%} ({data['recall_low']:.1%} to {data['recall_high']:.1%})"
        f" so far, {data['left_out']:,.0f} comparisons left out, {data['dropped']:,} rows dropped"
    )
    for name, stream in data["streams"].items():
        for target, direction in stream.get("directions", {}).items():
            asked = [one for one in direction["worth"] if one["asked"] > 0]
            if not data["shedding"] or not asked:
                continue
            ages = ", ".join(f"{figure(one['from'])} to {figure(one['to'])}" for one in asked[:3])
            found.append(
                f"  rows of {name} ask for {direction['fraction']:.0%} of {target}:"
                f" worth most are ages {ages}"
            )
    return found
