"""What would happen: a run's program replayed on a network."""

from popmodel.replay.engine import Execution, replay
from popmodel.replay.from_trace import from_trace
from popmodel.replay.program import Program

__all__ = ["Execution", "Program", "from_trace", "replay"]
