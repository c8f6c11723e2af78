"""What would happen: a run's program replayed on a network."""

from popmodel.simulator.engine import replay
from popmodel.simulator.execution import Execution
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.path import CriticalPath, PathPart
from popmodel.simulator.program import Program
from popmodel.simulator.replayer import Moments, Replayer

__all__ = [
    "CriticalPath",
    "Execution",
    "Moments",
    "PathPart",
    "Program",
    "Replayer",
    "from_trace",
    "replay",
]
