"""What would happen: a run's program replayed on a network."""

from popmodel.simulator.execution import CriticalPath, Execution, Moments, PathPart
from popmodel.simulator.program import Program
from popmodel.simulator.replayer import Replayer, replay

__all__ = [
    "CriticalPath",
    "Execution",
    "Moments",
    "PathPart",
    "Program",
    "Replayer",
    "replay",
]
