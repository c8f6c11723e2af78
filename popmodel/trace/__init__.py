"""Reading measured runs."""

from popmodel.trace.calls import CallTable
from popmodel.trace.formats import read
from popmodel.trace.tables import EventTable, MessageTable, States, TraceWarning
from popmodel.trace.trace import Trace

__all__ = ["CallTable", "EventTable", "MessageTable", "States", "Trace", "TraceWarning", "read"]
