"""Paraver traces: with the numbers of their events, which only they and archives know."""
