"""Say what a query will do, or did, and why: the plan as text or as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from windjoin.asof import told
from windjoin.figures import length
from windjoin.kernels.order import Order, OrderHop
from windjoin.kernels.spec import Equal, JoinSpec, Predicate
from windjoin.pyx.base.cpu import isa

if TYPE_CHECKING:
    from windjoin.query import Query
    from windjoin.run import BatchRun


def as_data(query: Query, last: BatchRun | None) -> dict[str, Any]:
    """The plan as dictionaries, lists, texts and numbers."""
    data: dict[str, Any] = {
        "streams": [
            {
                "name": stream.name,
                "time": stream.time,
                "window": _window(stream.window),
                "where": [repr(condition) for condition in stream.conditions],
                "idle": None if stream.idle is None else str(stream.idle),
            }
            for stream in query.streams
        ],
        "closed": query.closed,
        "on": [repr(condition) for condition in query.on],
        "nearest": query.nearest,
        "direction": query.direction,
        "exclude_self": [[query.names[a], query.names[b]] for a, b in query.exclude_self],
        "how": query.sides.how,
        **{
            option: [query.names[stream] for stream in getattr(query.sides, option)]
            for option in ("keep", "exists", "missing")
        },
    }
    if last is None:
        data["order"] = None
        return data
    if last.parts:  # each with a plan of its own
        data |= {"order": None, "joins": [as_data(part.bound.query, part) for part in last.parts]}
        return data | {"metrics": last.metrics()}
    spec, run = last.bound.spec, last.run
    data["time_unit"] = last.bound.time_unit
    data["threads"] = run.threads
    data["parts"] = {"count": run.parts[0], "of": run.parts[1]}
    data["plan"] = "of the run before" if run.reused else "of these rows"
    data["start_rows"] = "key by key" if run.by_key else "in order of time"
    data["processor"] = isa()
    data["keys"] = keys_as_data(spec, run.close)
    for number, stream in enumerate(data["streams"]):
        stream["as_they_lie"] = last.bound.as_they_lie(number)
    data["kept_as"] = [names_of(run.structures)]
    data["order"] = order_as_data(spec, run.order, run.hops)
    data["cluster"] = last.cluster
    if last.cluster is not None:  # its hosts start from the latest row of a result, whatever it is
        data["order"] = None
    data["metrics"] = last.metrics()
    return data


def order_as_data(
    spec: JoinSpec, order: Order, measured: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """A probing order: what each step asks, through which index, and how many rows pass."""
    steps = []
    for number, step in enumerate(order.steps):
        one = _step(spec, step)
        if number < len(measured):
            hop = measured[number]
            one["measured"] = {key: hop[key] for key in ("asked", "proposed", "kept")}
            if hop.get("learned"):
                one["learned"] = hop["learned"]
        steps.append(one)
    return {"start": spec.streams[order.start].name, "steps": steps}


def names_of(structures: Sequence[set[str]]) -> list[list[str]]:
    """What the index of every step is kept as, which follows from the number of rows too."""
    return [sorted(names) for names in structures]


def keys_as_data(spec: JoinSpec, close: set[int]) -> list[dict[str, Any]]:
    """For every key that must be equal whether its integers lie so close that an array has them."""
    return [
        {"of": _text(p), "close_together": p.left.space in close}
        for p in spec.predicates
        if isinstance(p, Equal)
    ]


def _step(spec: JoinSpec, step: OrderHop) -> dict[str, Any]:
    filters = [_text(p) for p in step.filters]
    filters += [
        f"{spec.streams[a.stream].name} key {a.key} == {spec.streams[b.stream].name} key {b.key}"
        " (follows from the others)"
        for a, b in step.implied
    ]
    filters += [f"another row than that of {spec.streams[s].name}" for s in step.distinct]
    return {
        "stream": spec.streams[step.stream].name,
        "index": step.access.name,
        "serves": [_text(p) for p in step.access.serves],
        "why": step.access.why,
        "filters": filters,
        "expected": {
            "asked": round(step.partials),
            "proposed": round(step.partials * step.access.candidates),
            "kept": round(step.results),
        },
    }


def _text(predicate: Predicate) -> str:
    return predicate.text or type(predicate).__name__


def _window(window: Any) -> str | int:
    return window if isinstance(window, int) else str(window)


def as_text(data: Mapping[str, Any]) -> str:
    """The same for people."""
    lines = [f"windowed join of {len(data['streams'])} streams, closed={data['closed']!r}"]
    for stream in data["streams"]:
        where = f", where {' and '.join(stream['where'])}" if stream["where"] else ""
        silence = "" if stream["idle"] is None else f", idle after {stream['idle']}"
        silence += ", idle now" if stream.get("idle_now") else ""
        lines.append(
            f"  {stream['name']}: time {stream['time']}, window {stream['window']}{where}{silence}"
        )
        lines += _taken(stream)
    lines.append("on")
    lines += [f"  {condition}" for condition in data["on"]] or [_no_condition(data)]
    if data["direction"] is not None:
        names = [stream["name"] for stream in data["streams"]]
        lines.append(told(data["direction"], data["nearest"], names))
    elif data["nearest"] is not None:
        lines.append(f"of every row the {data['nearest']} nearest partners")
    lines += _what_comes_out(data)
    for join in data.get("joins", ()):
        lines += ["by this join:", *(f"  {line}" for line in as_text(join).splitlines())]
    if "joins" in data:
        lines.append(f"results: {data['metrics']['results']:,}")
        return "\n".join(lines)
    if data.get("memory"):
        lines += _memory_lines(data["memory"])
    if data.get("cluster"):
        lines += _cluster_lines(data["cluster"], data.get("time_unit"))
    elif data["order"] is None:
        lines.append("order: chosen when the query sees data; run it, or call session.explain()")
        return "\n".join(lines)
    elif data.get("orders"):
        if data["replanned"]:
            times = "once" if data["replanned"] == 1 else f"{data['replanned']} times"
            lines.append(f"orders chosen anew {times} from the rows seen")
        if "measured" in data:
            lines += _measured(data["measured"])
        for order, kept_as in zip(data["orders"], data["kept_as"], strict=True):
            lines += _order_lines(order, kept_as)
    else:
        lines += _order_lines(data["order"], *data.get("kept_as", [[]]))
    lines += [
        f"keys of {key['of']} lie close together: found in an array"
        for key in data.get("keys", ())
        if key["close_together"]
    ]
    if data.get("start_rows") == "key by key":
        lines.append("rows of the first stream are taken key by key")
    if data.get("plan") == "of the run before":
        lines.append("plan: of the run before, which had about as many rows")
    if "processor" in data:
        lines.append(f"processor: {data['processor']}")
    if "threads" in data:
        lines.append(f"threads: {data['threads']}{_parts(data['parts'])}")
    if "metrics" in data:
        lines.append(f"results: {data['metrics']['results']:,}")
    return "\n".join(lines)


def _no_condition(data: Mapping[str, Any]) -> str:
    return "  nothing: " + ("time alone decides" if data["direction"] else "a cross product")


def _measured(data: Mapping[str, Any]) -> list[str]:
    from windjoin.planned import as_lines

    return as_lines(data)


def _what_comes_out(data: Mapping[str, Any]) -> list[str]:
    """Which rows come out beside results, or instead of them.

    >>> _what_comes_out({"keep": ["a"], "exists": [], "missing": ["c"]})
    ['and rows of a that are in no result', 'combinations that no row of c fits']
    """
    lines = []
    if data["keep"]:
        lines.append(f"and rows of {', '.join(data['keep'])} that are in no result")
    if data["exists"]:
        lines.append(f"combinations that rows of {', '.join(data['exists'])} fit, each once")
    if data["missing"]:
        lines.append(f"combinations that no row of {', '.join(data['missing'])} fits")
    return lines


def _taken(stream: Mapping[str, Any]) -> list[str]:
    """How rows come in, where that is known.

    >>> _taken({"as_they_lie": True, "in_blocks": True})
    ['    rows are taken as they lie, in blocks']
    """
    if "as_they_lie" not in stream:
        return []
    if not stream["as_they_lie"]:
        return ["    columns are computed first"]
    return ["    rows are taken as they lie" + (", in blocks" if stream.get("in_blocks") else "")]


def _parts(parts: Mapping[str, Any]) -> str:
    """What a thread does one after the other.

    >>> _parts({"count": 26, "of": "keys"})
    ', in 26 groups of keys'
    """
    if parts["count"] == 1:
        return ""
    kind = "groups of keys" if parts["of"] == "keys" else "stretches of time"
    return f", in {parts['count']} {kind}"


def _memory_lines(memory: Mapping[str, Any]) -> list[str]:
    """What is done where memory does not suffice, and what was."""
    lines = [f"memory: {memory['limit']:,} bytes; {memory['when_full']}"]
    if memory["adaptation"] is not None:
        lines.append(f"  hosts: adaptation {memory['adaptation']}, {memory['adapts']}")
    lines.append(
        f"  so far {memory['spills']:,} spills, {memory['rows_on_disk']:,} rows on disk in"
        f" {memory['generations']:,} generations"
    )
    return lines


def _cluster_lines(cluster: Mapping[str, Any], unit: str | None) -> list[str]:
    """Strategy and why; what every host holds and did, and its share of the work."""
    loss = "" if cluster["exact"] else f"; not exact, expected loss {cluster['expected_loss']:.0%}"
    lines = [f"hosts: {len(cluster['hosts'])}, strategy {cluster['strategy']}{loss}"]
    lines += [f"  because {reason}" for reason in cluster["reasons"]]
    lines.append(
        f"  {cluster['epochs']:,} epochs of {length(cluster['segment'], unit)},"
        f" every row stored {cluster['replication']:.2f} times"
    )
    if cluster["ring"]:
        lengths = ", ".join(f"{name} on {n}" for name, n in cluster["ring"].items())
        lines.append(f"  hosts that share a window: {lengths}")
    lines += [
        f"  host {host['host']}: {host['load']:.0%} of the work,"
        f" {host['rows_stored']:,} rows stored, {host['rows_moved']:,} moved on,"
        f" {host['partials_received']:,} partial results in, {host['results']:,} results"
        for host in cluster["hosts"]
    ]
    for way in cluster["ways"]:
        lines.append(f"  hosts extend rows of {' and '.join(way['bound'])}")
        lines += [f"  {line}" for line in _order_lines(way, [])[1:]]
    return lines


def _order_lines(order: Mapping[str, Any], kept_as: Sequence[list[str]]) -> list[str]:
    lines = [f"order: from every row of {order['start']}"]
    for number, step in enumerate(order["steps"], 1):
        served = f" for {', '.join(step['serves'])}" if step["serves"] else ""
        lines.append(f"  {number}. {step['stream']} through {step['index']}{served}")
        if number <= len(kept_as):
            lines.append(f"     kept as {' or '.join(kept_as[number - 1])}")
        if step["why"]:
            lines.append(f"     because {step['why']}")
        if "learned" in step:
            lines.append(f"     learned: {step['learned']}")
        lines += [f"     then test {text}" for text in step["filters"]]
        lines.append(f"     expected {_flow(step['expected'])}")
        if "measured" in step:
            lines.append(f"     measured {_flow(step['measured'])}")
    return lines


def _flow(counts: Mapping[str, int]) -> str:
    return (
        f"{counts['asked']:,} partial results ask,"
        f" {counts['proposed']:,} rows proposed, {counts['kept']:,} kept"
    )
