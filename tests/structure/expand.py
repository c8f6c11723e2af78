"""Carry out a list of calls by its words alone: what each rank does, operation by operation."""

from popmodel.base.expressions import parse


def carried_out(calls, processes, times=1):
    """Operations of each rank: (what, partner, bytes), waits as sets of what they complete."""
    found = [[] for _ in range(processes)]
    opened = [[] for _ in range(processes)]
    for _ in range(times):
        _carry_out(calls, processes, found, opened)
    assert not any(opened)
    return found


def _carry_out(calls, processes, found, opened):
    for call in calls:
        for rank in _ranks(call.get("on"), processes):
            _do(call, rank, processes, found[rank], opened[rank])


def _ranks(on, processes):
    if on is None:
        return range(processes)
    if isinstance(on, list):
        return on
    holds = parse(on)
    return [
        rank
        for rank in range(processes)
        if holds.evaluate({"rank": float(rank), "P": float(processes)})
    ]


def _of_rank(value, rank):
    return value[rank] if isinstance(value, list) else value


def _do(call, rank, processes, done, opened):
    def partner(key):
        value = call[key]
        if isinstance(value, list):
            value = value[rank]
        else:
            value = parse(value).evaluate({"rank": float(rank), "P": float(processes)})
        assert value == int(value)
        return int(value) if 0 <= value < processes else None

    to = partner("to") if "to" in call else None
    source = partner("from") if "from" in call else None
    tag = _of_rank(call.get("tag", 0), rank)
    size = _of_rank(call.get("bytes", 0), rank)
    match call["do"]:
        case "compute":
            done.append(("compute", call["seconds"][rank]))
        case "wait":
            done.append(("wait", [opened.pop(call.get("request", 0))]))
        case "waitall":
            if opened:
                done.append(("wait", sorted(opened)))
                opened.clear()
        case "send" if to is not None:
            done.append(("send", to, size, tag))
        case "recv" if source is not None:
            done.append(("recv", source, tag))
        case "isend" if to is not None:
            done.append(("isend", to, size, tag))
            opened.append(("sent", to, tag))
        case "irecv" if source is not None:
            done.append(("irecv", source, tag))
            opened.append(("received", source, tag))
        case "sendrecv":
            if to is not None and source is not None:
                done.append(("sendrecv", to, source, size, tag))
            elif to is not None:
                done.append(("send", to, size, tag))
            elif source is not None:
                done.append(("recv", source, tag))
        case "send" | "recv" | "isend" | "irecv":
            pass
        case other:
            raise AssertionError(other)
