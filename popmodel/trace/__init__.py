"""Reading measured runs."""

from popmodel.trace.calls import Calls
from popmodel.trace.formats import read
from popmodel.trace.tables import Events, Messages, States, TraceWarning
from popmodel.trace.trace import Trace

__all__ = ["Calls", "Events", "Messages", "States", "Trace", "TraceWarning", "read"]
