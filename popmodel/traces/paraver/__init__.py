"""Paraver traces: the only room that knows the numbers of their events."""
