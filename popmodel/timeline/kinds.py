"""What a thread can do at a time, as a timeline shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from popmodel.trace.calls import CallGroup
from popmodel.values import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from popmodel.trace.calls import Calls


@dataclass(frozen=True)
class Kind:
    """A colour of a timeline."""

    # For programs and for people.
    id: str
    label: str
    group: str  # ``useful``, ``mpi``, ``openmp``, ``other``, or empty where nothing is recorded


KINDS = (
    Kind("none", "nothing recorded", ""),
    Kind("computing", "computing", "useful"),
    Kind("parallel", "computing in a parallel region", "useful"),
    Kind("point-to-point", "MPI point to point", "mpi"),
    Kind("wait", "MPI wait or test", "mpi"),
    Kind("collective", "MPI collective", "mpi"),
    Kind("other-mpi", "other MPI", "mpi"),
    Kind("openmp", "OpenMP runtime, or idle in a region", "openmp"),
    Kind("idle", "idle outside regions, I/O, other", "other"),
)
"""Every kind; its number is its place here. Where several take equally long, the first counts."""

NONE, COMPUTING, PARALLEL, POINT_TO_POINT, WAIT, COLLECTIVE, OTHER_MPI, OPENMP, IDLE = range(9)
MPI = (POINT_TO_POINT, WAIT, COLLECTIVE, OTHER_MPI)

_WAITS = ("MPI_Wait", "MPI_Test", "MPI_Probe", "MPI_Iprobe", "MPI_Mprobe", "MPI_Improbe")
_GROUPS = {CallGroup.POINT_TO_POINT: POINT_TO_POINT, CallGroup.COLLECTIVE: COLLECTIVE}


def kind_of_call(calls: Calls) -> NDArray[np.int64]:
    """Kind of the calls of each name: int64[names]."""
    kinds = [
        WAIT if name.startswith(_WAITS) else _GROUPS.get(group, OTHER_MPI)
        for name, group in zip(calls.names, calls.group, strict=True)
    ]
    return np.array(kinds, np.int64)
