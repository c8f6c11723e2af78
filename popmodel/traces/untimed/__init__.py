"""Formats without measured times: what processes compute and call, in order.

Time-independent traces of SimGrid SMPI, programs of Dimemas, and schedules in GOAL. Computing takes
time in them, MPI calls take none: what these take is for a replay to say.
"""
