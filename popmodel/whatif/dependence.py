"""What a run depends on besides its network: regions, ideals, the critical path of its replay."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from popmodel.simulator.replayer import Replayer
from popmodel.values import dataclass
from popmodel.whatif.ideal import scenarios, speeds
from popmodel.whatif.path_tables import critical_times, path_tables
from popmodel.whatif.regions import regions_of
from popmodel.whatif.worth import worth_of

if TYPE_CHECKING:
    from popmodel.network.network import Network
    from popmodel.simulator.path import CriticalPath
    from popmodel.simulator.program import Program
    from popmodel.trace import Trace
    from popmodel.whatif.ideal import Scenario
    from popmodel.whatif.path_tables import PathTables
    from popmodel.whatif.worth import Rest, Worth

__all__ = ["Dependence", "dependence"]


@dataclass(frozen=True)
class Dependence:
    """What a run depends on.

    Attributes
    ----------
    regions : tuple of Worth
        What faster regions are worth, those with the highest gain first.
    other_regions : Rest
        Regions of which no replay was made.
    scenarios : tuple of Scenario
        Ideal scenarios, the highest gain first.
    critical_path : PathTables
    """

    regions: tuple[Worth, ...]
    other_regions: Rest
    scenarios: tuple[Scenario, ...]
    critical_path: PathTables


def dependence(
    program: Program, network: Network, path: CriticalPath, trace: Trace | None = None
) -> Dependence:
    """Find what a run depends on.

    Parameters
    ----------
    program : Program
        What every process does.
    network : Network
        On which it is replayed, without contention.
    path : CriticalPath
        Of that replay.
    trace : Trace, optional
        What the program was made of, for the names of regions and callers.

    Raises
    ------
    ReplayError
        On a deadlock or an unmatched message.
    """
    regions = regions_of(program, trace)
    critical = critical_times(path, program, regions)
    worth, rest = worth_of(
        program,
        regions,
        critical,
        partial(_runtime, network=network),
        cpu=1 / speeds(program, network),
    )
    return Dependence(
        worth,
        rest,
        scenarios(program, network, _runtime),
        path_tables(path, program, regions, trace),
    )


def _runtime(program: Program, network: Network) -> float:
    return Replayer(program).run(network).runtime
