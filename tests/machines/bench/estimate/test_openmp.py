"""Overheads of constructs and the law behind them."""

from __future__ import annotations

import numpy as np
import pytest
from machines.bench.estimate.synthetic import Job, measured, openmp

from popmodel.machines.bench.estimate import openmp_estimates


def test_an_overhead_is_what_the_construct_adds() -> None:
    jobs = [
        Job("construct", {"name": "barrier", "threads": 2}, 3e-7, 1e-7),
        Job("construct", {"name": "critical", "threads": 2}, 1e-7, 8e-8, quantile=0.5),
        Job("construct", {"name": "master", "threads": 2}, 1e-7, 1.001e-7),
        Job("construct", {"name": "schedule_static", "threads": 2}, 3e-7, 1e-7),
        Job("construct", {"name": "schedule_dynamic", "threads": 2, "chunk": 1}, 1.5e-7, 1e-7),
        Job("construct", {"name": "copyin", "threads": 2, "bytes": 8}, 4e-7, 1e-7),
    ]
    section, reasons, remarks = openmp(measured(jobs), {"cores_per_node": 2})
    values = {name: entry["seconds"][0]["value"] for name, entry in section.items()}
    assert values == pytest.approx(
        {
            "barrier": 2e-7,
            "critical": 2e-8,
            "master": 0.0,
            "static": 2e-7,
            "dynamic_chunk": 5e-8,
            "copyin": 3e-7,
        }
    )
    assert remarks == ["no measurable overhead (set to 0): master"]
    assert reasons["openmp.*.fit.a"] == (
        "the scaling law needs 4 thread counts above 1; 1 was measured"
    )


def test_the_step_across_sockets_is_a_term_of_the_law() -> None:
    counts = (2, 4, 6, 8, 12, 16, 24, 32)
    seconds = np.array([2e-7 + 1e-7 * np.log2(t) + 5e-7 * (t > 16) for t in counts])
    terms = openmp_estimates.choose_terms(counts, seconds, 16)
    assert terms == "abs"
    fitted = openmp_estimates.fit_law(counts, 16, terms, seconds)
    assert fitted == pytest.approx([2e-7, 1e-7, 0, 5e-7], rel=1e-6)
