"""What would happen: a run's program replayed on a network."""

from popmodel.simulator.engine import Execution, replay
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import Program

__all__ = ["Execution", "Program", "from_trace", "replay"]
