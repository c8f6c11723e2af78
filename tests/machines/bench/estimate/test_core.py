"""Rates of a core, per cycle."""

from __future__ import annotations

import numpy as np
import pytest
from machines.bench.estimate.synthetic import Job, absent, core, launches, measured

from popmodel.machines.bench.estimate.measured_results import MeasuredResults


def test_rates_are_per_cycle_of_the_measured_clock() -> None:
    section, _ = core(
        measured(
            [
                Job("clock", {"threads": 1}, 1e-7, facts={"work": 300}),
                Job("clock", {"threads": 4}, 1e-7, facts={"work": 250}),
                Job("fma", {"threads": 1}, 1e-7, facts={"work": 4800}),
                Job("loads", {}, 1e-7, facts={"work": 600}),
                Job("stores", {}, 1e-7, facts={"work": 300}),
                Job("loop", {}, 1 / 3e9),
                Job("instructions", {}, 1e-7, facts={"work": 1200}, quantile=0.5),
                Job("dependent", {"operation": "add"}, 1e-7, facts={"work": 75}),
                Job("dependent", {"operation": "multiply"}, 1e-7, facts={"work": 60}),
                Job("dependent", {"operation": "divide"}, 1e-7, facts={"work": 20}),
                Job("in_flight", {}, 1e-8, 5e-8, quantile=0.5, facts={"work": 30}),
                Job("smt", {"threads": 2, "shared": 0}, 1e-7, facts={"work": 100}),
                Job("smt", {"threads": 2, "shared": 1}, 1e-7, facts={"work": 60}),
            ]
        )
    )
    assert {key: q["value"] for key, q in section.pop("freq").items()} == {"1": 3e9, "4": 2.5e9}
    assert {key: q["value"] for key, q in section.items()} == pytest.approx(
        {
            "flop_per_cycle": 16,
            "load_per_cycle": 2,
            "store_per_cycle": 1,
            "loop_cycles": 1,
            "instructions_per_cycle": 4,
            "add_cycles": 4,
            "multiply_cycles": 5,
            "divide_cycles": 15,
            "window": 150,
            "smt_factor": 1.2,
        }
    )


def test_no_smt_is_a_reason() -> None:
    launch = absent("smt", "no SMT", shared=1)
    clock = launches(
        [Job("clock", {"threads": 1}, 1.0, facts={"work": 1})], 1, np.random.default_rng(0)
    )
    assert core(MeasuredResults([launch, *clock]))[1] == {"core.smt_factor": "no SMT"}
