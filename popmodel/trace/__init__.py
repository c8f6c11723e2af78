"""Reading measured runs."""

from popmodel.trace.calls import Calls
from popmodel.trace.paraver import read
from popmodel.trace.trace import Events, Messages, States, Trace, TraceWarning

__all__ = ["Calls", "Events", "Messages", "States", "Trace", "TraceWarning", "read"]
