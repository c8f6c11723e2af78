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


@dataclass(frozen=True)
class Dependence:
    """What a run depends on."""

    regions: tuple[Worth, ...]  # What faster regions are worth, those with the highest gain first
    other_regions: Rest  # Regions of which no replay was made
    scenarios: tuple[Scenario, ...]  # Ideal scenarios, the highest gain first
    critical_path: PathTables


def dependence(
    program: Program, network: Network, path: CriticalPath, trace: Trace | None = None
) -> Dependence:
    """Find what a run depends on."""
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
