"""What a run computes where: its bursts and parallel regions by their place in the program."""

from popmodel.phases.find import phases
from popmodel.phases.phase import Phase, Phases, Team

__all__ = ["Phase", "Phases", "Team", "phases"]
