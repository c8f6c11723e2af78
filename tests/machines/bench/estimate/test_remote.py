"""Memory of another domain."""

from __future__ import annotations

import numpy as np
import pytest
from machines.bench.estimate.synthetic import Job, absent, launches, measured

from popmodel.machines.bench.estimate.measured_results import MeasuredResults
from popmodel.machines.bench.estimate.memory_estimates import _remote as remote

SIZE = 1 << 26


def triad(on: int, data: int, bandwidth: float, threads: int = 1) -> Job:
    params = {"on": on, "data": data, "threads": threads, "bytes": SIZE}
    return Job("remote_triad", params, 3 * SIZE / bandwidth, facts={"moved": 3 * SIZE})


def chase(on: int, data: int, seconds: float) -> Job:
    return Job("remote_chase", {"on": on, "data": data, "bytes": SIZE}, seconds)


def test_bandwidth_is_relative_to_that_of_local_data() -> None:
    reasons: dict[str, str] = {}
    section = remote(
        measured(
            [
                *(triad(on, on, 1e10) for on in (0, 1)),
                *(triad(on, on, 4e10, 8) for on in (0, 1)),
                *(triad(0, 1, 6e9), triad(1, 0, 5e9), triad(0, 1, 1e10, 8), triad(1, 0, 1.6e10, 8)),
                *(chase(0, 0, 9e-8), chase(1, 1, 9e-8), chase(0, 1, 1.5e-7), chase(1, 0, 1.4e-7)),
            ]
        ),
        reasons,
    )
    assert {
        pair: {key: quantity["value"] for key, quantity in entry.items()}
        for pair, entry in section.items()
    } == {
        "0-1": pytest.approx({"bandwidth": 0.6, "saturated": 0.25, "latency": 1.5e-7}),
        "1-0": pytest.approx({"bandwidth": 0.5, "saturated": 0.4, "latency": 1.4e-7}),
    }
    assert reasons == {}
    assert section["0-1"]["saturated"]["source"].startswith("triad of 8 cores, remote over local")


def test_a_domain_of_one_core_has_no_other_cores() -> None:
    section = remote(measured([triad(0, 0, 1e10), triad(0, 1, 1e10)]), {})
    assert section["0-1"].keys() == {"bandwidth"}


def test_one_domain_has_no_pairs() -> None:
    assert remote(measured([]), {}) == {}


def test_a_pair_that_could_not_be_measured_says_why() -> None:
    reasons: dict[str, str] = {}
    gone = absent("remote_chase", "no such domain", on=0, data=3)
    local = launches([triad(0, 0, 1e10)], 1, np.random.default_rng(0))
    assert remote(MeasuredResults([gone, *local]), reasons) == {}
    assert reasons == {"memory.remote.0-3": "no such domain"}
