"""A measured profile with something of everything, for tests of what reads profiles."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]


def measured(value: float, spread: float = 0.05) -> Document:
    """A quantity with an interval of `spread` of its value to either side."""
    low, high = value * (1 - spread), value * (1 + spread)
    return {"value": value, "low": low, "high": high, "origin": "measured", "n": 150}


def overhead(*seconds: float) -> Document:
    """Overheads of a construct for 1, 2, 4 ... threads."""
    return {
        "T": [1 << power for power in range(len(seconds))],
        "seconds": [measured(each) for each in seconds],
    }


def tier(alpha: float, beta: float) -> Document:
    return {
        "classes": [{"upto": None, "alpha": measured(alpha), "beta": measured(beta)}],
        "eager_threshold": measured(4096, 0.0),
        "os": measured(alpha / 3),
        "or": measured(alpha / 4),
        "g": measured(alpha / 2),
        "G": measured(beta),
    }


def document() -> Document:
    """A node of 4 cores, measured on 2026-11-01."""
    return {
        "schema": "popmodel/machine/1",
        "name": "box",
        "host": {"cpu": "Some CPU @ 2 GHz", "mpi": "Open MPI 5.0.11"},
        "topology": {
            "cores_per_node": 4,
            "caches": [
                {"level": "L1", "bytes": 32768, "shared_by": 1},
                {"level": "L3", "bytes": 8388608, "shared_by": 4},
            ],
            "memory_per_node": 8589934592,
        },
        "core": {
            "freq": {"1": measured(3e9), "4": measured(2.6e9)},
            "flop_per_cycle": measured(16),
            "instructions_per_cycle": measured(4),
            "load_per_cycle": measured(2),
            "store_per_cycle": measured(1),
            "loop_cycles": measured(1),
            "add_cycles": measured(4),
            "multiply_cycles": measured(4),
            "divide_cycles": measured(14),
            "branch_miss": measured(18),
            "predicted_trip": measured(60),
            "overlap": measured(0.7),
            "overlap_issue": {"L3": measured(0.9), "MEM": measured(0.6)},
            "smt_factor": measured(1.2),
        },
        "memory": {
            "b1": measured(1.2e10),
            "bsat": measured(2.4e10),
            "q": measured(4),
            "cache_bw": {"L1": measured(1e11), "L3": measured(4e10)},
            "copy_bw": measured(1e10),
            "line_transfer": {"near": measured(5e-8)},
            "line_takeover": {"near": measured(5e-9)},
            "kappa": measured(0.7),
            "inner_kappa": {"L1": measured(1.1), "L2": measured(1.2)},
            "write_back": {"L2": measured(2), "L3": measured(0.2)},
            "kappa_fs": measured(0.4),
            "line": 64,
        },
        "openmp": {
            "parallel_for": overhead(2e-7, 6e-7, 9e-7),
            "barrier": overhead(1e-8, 2e-7, 3e-7),
            "for": overhead(5e-8, 3e-7, 4e-7),
            "reduction": overhead(2e-7, 7e-7, 1e-6),
        },
        "net": {
            "intra": tier(2.5e-7, 5e-11),
            "shm_k": measured(2),
            "thread_factor": measured(0.1),
            "overlap": measured(0.6),
            "reduce_gamma": measured(1e-10),
        },
        "coll": {
            "barrier": [{"P": 4, "ppn": 4, "bytes": 0, "seconds": measured(6e-7)}],
            "allreduce": [
                {"P": ranks, "ppn": ranks, "bytes": size, "seconds": measured(time)}
                for ranks in (2, 4)
                for size, time in ((8, 1e-6), (1 << 20, 4e-4))
            ],
        },
        "noise": {"run_cv": 0.012},
        "quality": {
            "memory": {"launches": 3, "converged": 0.9, "noisy": True, "why": "others used a CPU"},
            "openmp": {"launches": 3, "converged": 1.0, "noisy": False, "why": ""},
        },
        "provenance": {"popmodel": "0.1.0", "time": "2026-11-01T12:00:00Z", "host": "box"},
    }
