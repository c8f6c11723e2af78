"""Programs and what they cost, as the compiled engine takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from popmodel.kernel import _kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.simulator.charges import Charges
    from popmodel.simulator.program import Program

_T = TypeVar("_T")

# Columns of charges that are times, in the order of the compiled walk's tables, from 1.
TABLES = (
    "send_overhead",
    "receive_before",
    "receive_after",
    "transfer",
    "collective_cost",
    "member_cost",
    "request_cost",
    "uneven_cost",
)


def filled(lanes: Sequence[_T]) -> list[_T]:
    """As many of what lanes have as the engine has lanes; the last one fills them."""
    return [*lanes, *[lanes[-1]] * (_kernel.LANES - len(lanes))]


def core(
    program: Program, message_class: NDArray[np.int32], collective_class: NDArray[np.int32]
) -> _kernel.Replay:
    """Hand a program to the compiled engine, which checks it once."""
    return _kernel.Replay(
        offsets=program.offsets,
        kind=program.kind,
        target=program.target,
        burst=program.burst,
        tail=program.tail,
        message_class=message_class,
        collective_class=collective_class,
        members=program.collectives.members,
        root=program.collectives.root,
        uneven_operation=program.uneven.operation,
    )


def costs(
    charges: Sequence[Charges],
    cpu: Sequence[NDArray[np.float64]],
    signs: Sequence[float] | None = None,
) -> _kernel.Costs:
    """Hand the charges of one or several networks to the compiled engine."""
    sign = np.ones((len(charges), 1)) if signs is None else np.array(signs)[:, None]
    rows: dict[str, Any] = {
        name: np.stack([getattr(one, name) for one in charges]) * sign for name in TABLES
    }
    first = charges[0]
    return _kernel.Costs(
        cpu=np.stack(cpu),
        rendezvous=first.rendezvous,
        collective_rule=first.collective_rule,
        sender_waits_for_transfer=first.sender_waits_for_transfer,
        **rows,
    )
