"""What a run computes where: its bursts and parallel regions by their place in the program.

In go a structure and its trace, out come phases (`find`): `bursts` and regions with times of the
program's own, `counters`, teams, `imbalance` and why; `os_noise` tells bursts without a core.
"""

from popmodel.phases.find import phases
from popmodel.phases.phase import Phase, Phases, PhaseTeam

__all__ = ["Phase", "PhaseTeam", "Phases", "phases"]
