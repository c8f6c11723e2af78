"""What the runtime of a traced run depends on: exact, from one trace.

A replay without shared resources adds durations to clocks and takes the later of two clocks. Every
duration is affine in latency, 1/bandwidth, overheads and the time of computation, so the runtime is
a maximum of affine functions: convex and piecewise linear in all of them at once.
"""
