"""Platforms and time-independent traces of the references of SimGrid SMPI."""

import gzip
from pathlib import Path

FLOPS = 1e9  # of a host of the reference platforms, per second
# Latency, s, and bandwidth, B/s, between the hosts of the platforms without contention.
NETWORKS = {
    "net1us_10G_flat": (1e-6, 10e9),
    "net10us_1G_flat": (10e-6, 1e9),
    "netideal": (0.0, 1e18),
}
HEADER = 16  # bytes that SMPI adds to every message
EAGER = 65536  # bytes from which a send waits for its receiver


def lines_of(path: Path) -> list[list[str]]:
    """Words of every line of a trace: rank, action, what belongs to it."""
    return [line.split() for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
