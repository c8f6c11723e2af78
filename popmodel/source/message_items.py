"""From calls of MPI to the items of a signature that communicate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy

from popmodel.signatures.document import TomlItem
from popmodel.source.formula_text import span_of
from popmodel.source.mpi_arguments import ANYBODY
from popmodel.source.source_events import MessageCall, RepeatedEvents, all_events
from popmodel.source.symbolic_memory import PROCESSES, RANK

if TYPE_CHECKING:
    from popmodel.source.draft import Draft

_ALIKE = "barrier bcast reduce allreduce scan reduce_scatter gather scatter allgather alltoall"
COLLECTIVES = {
    **{name: name for name in _ALIKE.split()},
    **{f"i{name}": name for name in ("barrier", "bcast", "allreduce")},
    **{f"{name}v": name for name in ("gather", "scatter", "allgather", "alltoall")},
    **{"exscan": "scan", "reduce_scatter_block": "reduce_scatter"},
}
"""Collective calls, with what they are in a signature."""
SENDS = ("send", "ssend", "bsend", "rsend", "isend", "issend", "irsend")
RECEIVES = ("recv", "irecv")
WAITS = ("wait", "waitall", "waitany", "waitsome")
_IN_LISTS = {
    **dict.fromkeys(("ssend", "bsend", "rsend"), "send"),
    **dict.fromkeys(("issend", "irsend"), "isend"),
    "sendrecv_replace": "sendrecv",
    "waitany": "wait",
    "waitsome": "waitall",
}
"""What calls are in lists of them, where they are not called so."""


def collective_item(draft: Draft, call: MessageCall) -> TomlItem:
    op = COLLECTIVES[call.name]
    entries: dict[str, Any] = {"name": draft.called(call.name, call.place), "op": op}
    if op != "barrier":
        entries["bytes"] = "?" if call.bytes is None else draft.quantity(call.bytes, call.place)
    if call.communicator not in ("world",) and not call.communicator.startswith("grid"):
        if call.communicator == "node":
            entries["comm"] = "node"
        elif call.communicator.startswith("dims"):
            entries["comm"] = [f"dim{dim}" for dim in call.communicator.split()[1:]]
        else:
            draft.note(f"{call.place}: a communicator of its own, taken as all processes")
    if call.root is not None and call.root.is_Integer and call.root != 0:
        entries["root"] = int(call.root)
    return TomlItem("collective", entries)


def message_items(
    draft: Draft, calls: Sequence[tuple[MessageCall, Sequence[sympy.Basic]]]
) -> Iterator[TomlItem]:
    refined = [_refined(call, draft.nameable(call.place, on)) for call, on in calls]
    calls = _without_master(draft, refined)
    sends = [call for call, _ in calls if call.name in SENDS or call.name.startswith("sendrecv")]
    if not sends:
        if any(call.name in RECEIVES for call, _ in calls):
            draft.note(
                f"{calls[0][0].place}: what is received here counts where it is sent; that "
                "the work behind it waits for it is left out"
            )
        return
    if all(call.name in SENDS and _is_by_all_others(call, on) for call, on in calls):
        yield from (_by_hand(draft, call, "gather") for call in sends)
        return
    steps = [_step(draft, call, on) for call, on in calls if call in sends]
    if all(step is not None for step in steps):
        if draft.implicit and _sends_first(calls):
            yield from _blocking(draft, sends)
            return
        yield from _along_grid(draft, sends, [step for step in steps if step is not None])
        return
    if all(call.partner is not None and not call.partner.free_symbols for call in sends):
        yield from _one_by_one(draft, calls)
        return
    if all(draft.plain(call.partner) in draft.interpreter.unknown for call in sends):
        yield from _to_unknown(draft, calls)
        return
    if any(ANYBODY in (call.partner, call.source) for call, _ in calls):
        yield from _one_by_one(draft, calls)
        return
    yield _list(draft, calls)


def _to_unknown(
    draft: Draft, calls: Sequence[tuple[MessageCall, Sequence[sympy.Basic]]]
) -> Iterator[TomlItem]:
    """Messages whose partners are data of the run: each process exchanges them with the next."""
    for call, conditions in calls:
        if call.partner is None or call.name in RECEIVES:
            continue
        partner, _ = draft.interpreter.unknown[draft.plain(call.partner)]
        draft.note(f"{call.place}: partner {partner} is not known, taken as the next process")
        on = sympy.And(*(draft.plain(one) for one in conditions if not one.has(RANK)))
        where = "" if on == sympy.true else f" and {draft.quantity(on)}"
        entries = {
            "name": draft.called("exchange", call.place),
            "to": f"(rank + 1) % P if P > 1{where} else -1",
            "bytes": draft.quantity(call.bytes, call.place),
            "mode": "sendrecv",
        }
        yield TomlItem("p2p", entries)


def _one_process(conditions: Sequence[sympy.Basic]) -> sympy.Expr | None:
    """The rank for which alone conditions hold; None of those that hold for several."""
    of_ranks = sympy.And(*(condition for condition in conditions if condition.has(RANK)))
    span = span_of(of_ranks, RANK, PROCESSES)
    return span[0] if span is not None and sympy.expand(span[1] - span[0]) == 1 else None


def _is_by_all_others(call: MessageCall, conditions: Sequence[sympy.Basic]) -> bool:
    """Whether all processes but the first, or the last one, send that one something."""
    of_ranks = sympy.And(*(condition for condition in conditions if condition.has(RANK)))
    return call.partner in (0, PROCESSES - 1) and all(
        of_ranks.xreplace({PROCESSES: sympy.Integer(processes), RANK: sympy.Integer(rank)})
        == sympy.true
        for processes in (2, 5, 8)
        for rank in range(processes)
        if rank != call.partner.xreplace({PROCESSES: sympy.Integer(processes)})
    )


def _without_master(
    draft: Draft, calls: Sequence[tuple[MessageCall, Sequence[sympy.Basic]]]
) -> Sequence[tuple[MessageCall, Sequence[sympy.Basic]]]:
    """Calls without those of a process that answers whoever sends: it hands out tasks."""
    by_master = {
        master: call.place
        for call, conditions in calls
        if call.partner == ANYBODY and (master := _one_process(conditions)) is not None
    }
    others = [(call, on) for call, on in calls if _one_process(on) not in by_master]
    if not any(call.name in SENDS for call, on in calls if _one_process(on) in by_master):
        return others
    draft.note(
        f"{next(iter(by_master.values()))}: a master with workers: one process answers whoever "
        "sends (MPI_ANY_SOURCE); its answers, and that workers wait for them, are left out"
    )
    return others


def _one_by_one(
    draft: Draft, calls: Sequence[tuple[MessageCall, Sequence[sympy.Basic]]]
) -> Iterator[TomlItem]:
    """Messages whose receives stand elsewhere, or take what comes: each by its send."""
    for call, conditions in calls:
        if call.name not in RECEIVES and call.partner is not None:
            of_ranks = [condition for condition in conditions if condition.has(RANK)]
            draft.note_conditions(call.place, [one for one in conditions if one not in of_ranks])
            who = sympy.And(*map(draft.plain, of_ranks), sympy.Ne(RANK, call.partner))
            to = sympy.Piecewise((call.partner, who), (-1, True))
            entries = {
                "name": draft.called("send", call.place),
                "to": draft.quantity(to, call.place, is_by_rank=True),
                "bytes": draft.quantity(call.bytes, call.place),
                "mode": "send",
            }
            yield TomlItem("p2p", entries)


def loop_of_one_process(
    draft: Draft, loop: RepeatedEvents, conditions: Sequence[sympy.Basic]
) -> list[TomlItem] | None:
    """A loop of one process over all others: what it sends them is a scatter; None of others."""
    calls = [event for event in all_events(loop.body) if isinstance(event, MessageCall)]
    is_over_all = draft.plain(loop.count) in (PROCESSES, PROCESSES - 1)
    if not calls or not is_over_all or _one_process(conditions) is None:
        return None
    return [_by_hand(draft, call, "scatter") for call in calls if call.name in SENDS]


def _by_hand(draft: Draft, call: MessageCall, op: str) -> TomlItem:
    draft.note(f"{call.place}: messages of one process with all others, taken as a {op}")
    size = draft.quantity(call.bytes, call.place)
    entries = {"name": draft.called(op, call.place), "op": op, "bytes": size}
    return TomlItem("collective", entries)


def _refined(
    call: MessageCall, conditions: Sequence[sympy.Basic]
) -> tuple[MessageCall, Sequence[sympy.Basic]]:
    """A call with partners as they are where it is made, without conditions that others imply."""
    parts = dict.fromkeys(part for one in conditions for part in sympy.And.make_args(one))
    known: dict[sympy.Basic, sympy.Basic] = {}
    for part in parts:
        if isinstance(part, (sympy.Eq, sympy.Ne)):
            known |= {part: sympy.true, sympy.Not(part): sympy.false}
    needed = tuple(part for part in parts if part in known or part.xreplace(known) != sympy.true)
    if not known or call.partner is None:
        return call, needed
    partner, source = (
        one if one is None else one.xreplace(known) for one in (call.partner, call.source)
    )
    return replace(call, partner=partner, source=source), needed


def _step(draft: Draft, call: MessageCall, on: Sequence[sympy.Basic]) -> tuple[int, int] | None:
    """Dimension and steps along it to the partner of a call; None if it is no neighbour.

    Without a grid of MPI, by trying all ranks of six: those that carry out the call have to be
    those that have such a neighbour.
    """
    partner = call.partner
    if partner in draft.interpreter.mpi.neighbours:
        _, dim, by = draft.interpreter.mpi.neighbours[partner]
        return (dim, int(by)) if all(map(draft.neighbour, on)) else None
    if partner is None or not partner.has(RANK):
        return None
    if (partner.free_symbols | sympy.And(*on).free_symbols) - {RANK, PROCESSES}:
        return None
    processes, partners = 6, []
    try:
        for rank in range(processes):
            here = {PROCESSES: processes, RANK: rank}
            acts = sympy.And(*on).subs(here) == sympy.true
            to = int(partner.subs(here)) if acts else -1
            partners.append(to if 0 <= to < processes else None)
    except TypeError:
        return None
    for by in (-2, -1, 1, 2):
        line = [rank + by if 0 <= rank + by < processes else None for rank in range(processes)]
        ring = [(rank + by) % processes for rank in range(processes)]
        if partners in (line, ring):
            draft.implicit = True
            draft.is_periodic |= partners == ring
            return 0, by
    return None


def _sends_first(calls: Sequence[tuple[MessageCall, Sequence[sympy.Basic]]]) -> bool:
    """Whether all processes send, and wait until that is received, before any receives."""
    names = [call.name for call, _ in calls]
    is_blocking = all(name in ("send", "ssend", "rsend", "recv") for name in names)
    return is_blocking and "recv" in names and names[0] != "recv"


def _blocking(draft: Draft, sends: Sequence[MessageCall]) -> Iterator[TomlItem]:
    """Sends along the line of processes, of which each waits for the next one."""
    for call in sends:
        draft.advice.append(
            f"{call.place}: MPI_Send before MPI_Recv on all processes: each waits for the one it "
            "sends to; predict says what MPI_Sendrecv brings"
        )
        yield TomlItem(
            "p2p",
            {
                "name": draft.called("send", call.place),
                "to": draft.quantity(call.partner, call.place, is_by_rank=True),
                "bytes": draft.quantity(call.bytes, call.place),
                "mode": "send",
            },
        )


def _along_grid(
    draft: Draft, sends: Sequence[MessageCall], steps: Sequence[tuple[int, int]]
) -> Iterator[TomlItem]:
    sizes = [draft.plain(call.bytes) for call in sends]
    known = dict(zip(steps, sizes, strict=True))
    dims = sorted({dim for dim, _ in steps})
    per_cell = set()
    for (dim, by), size in known.items():
        face = sympy.Integer(1)
        for other in draft.blocks:
            if other != dim:
                face *= sympy.Symbol(f"n{other}", positive=True, integer=True)
        per_cell.add(sympy.cancel(size / face) if abs(by) == 1 else None)
    both = all({(dim, 1), (dim, -1)} <= known.keys() for dim in dims)
    if (
        both
        and draft.blocks
        and dims == sorted(draft.blocks)
        and len(per_cell) == 1
        and None not in per_cell
    ):
        (cell,) = per_cell
        mode = (
            "blocking"
            if all(call.name in ("send", "ssend", "recv", "sendrecv") for call in sends)
            else "nonblocking"
        )
        yield TomlItem(
            "halo",
            {
                "name": draft.called("halo", sends[0].place),
                "width": 1,
                "bytes_per_cell": draft.quantity(cell, sends[0].place),
                "mode": mode,
                "pack": "none",
            },
        )
        return
    for call, (dim, by), size in zip(sends, steps, sizes, strict=True):
        yield TomlItem(
            "shift",
            {
                "name": draft.called("shift", call.place),
                "dim": dim,
                "by": by,
                "bytes": draft.quantity(size, call.place),
            },
        )


def _list(draft: Draft, calls: Sequence[tuple[MessageCall, Sequence[sympy.Basic]]]) -> TomlItem:
    """Calls as they stand, with partners as formulas of rank."""
    rows: list[dict[str, Any]] = []
    for call, conditions in calls:
        row: dict[str, Any] = {}
        on = [draft.plain(condition) for condition in conditions]
        if on:
            row["on"] = draft.quantity(sympy.And(*on))
        row["do"] = _IN_LISTS.get(call.name, call.name)
        if call.name in SENDS or call.name.startswith("sendrecv"):
            row["to"] = draft.quantity(call.partner, is_by_rank=True)
            row["bytes"] = draft.quantity(call.bytes, is_by_rank=True)
        if call.name in RECEIVES:
            row["from"] = draft.quantity(call.partner, is_by_rank=True)
        if call.name.startswith("sendrecv"):
            row["from"] = draft.quantity(call.source, is_by_rank=True)
        rows.append(row)
    return TomlItem(
        "messages", {"name": draft.called("messages", calls[0][0].place), "calls": rows}
    )
