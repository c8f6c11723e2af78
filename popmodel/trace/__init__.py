"""Reading measured runs."""

from popmodel.trace.paraver import read
from popmodel.trace.trace import Events, Messages, States, Trace, TraceWarning

__all__ = ["Events", "Messages", "States", "Trace", "TraceWarning", "read"]
