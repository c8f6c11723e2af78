"""The document as a whole."""

from __future__ import annotations

import numpy as np
import pytest
from machines.bench.estimate.synthetic import (
    Job,
    absent,
    launches,
    pingpong,
    triad,
)

from popmodel.machines import profile
from popmodel.machines.bench.estimate.launch_intervals import CalibrationError
from popmodel.machines.bench.estimate.profile_document import calibrate

FILES = {
    "affinity": "0-3",
    "/proc/meminfo": "MemTotal:       16000000 kB\n",
    "/sys/devices/system/cpu/online": "0-3",
    "/sys/devices/system/cpu/cpu0/cache/index0/level": "1",
    "/sys/devices/system/cpu/cpu0/cache/index0/type": "Data",
    "/sys/devices/system/cpu/cpu0/cache/index0/size": "32K",
    "/sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list": "0",
}


def test_the_document_is_a_profile() -> None:
    jobs = [
        Job("clock", {"threads": 1}, 1e-7, facts={"work": 300}),
        triad(1, 1e10),
        Job("construct", {"name": "parallel_for", "threads": 2}, 3e-7, 1e-7),
        pingpong(0, 1e-6),
        pingpong(8, 1e-6),
        pingpong(1024, 2e-6),
        Job("send_overhead", {"bytes": 8, "tier": "node"}, -1e-9),
        Job("collective", {"op": "barrier", "bytes": 0, "ranks": 2}, -1e-9, quantile=0.5),
    ]
    found = launches(
        jobs, 3, np.random.default_rng(0), header=lambda _: {"files": FILES, "started": 0.0}
    )
    document = calibrate(found, "lab")
    loaded = profile.from_document(document)
    assert loaded.name == "lab"
    assert loaded.origin == "measured"
    assert loaded.topology.cores_per_node == 4
    assert loaded.tiers() == ["intra"]
    assert document["host"]["measured"] == "1970-01-01T00:00:00Z"
    assert "openmp" in document
    for path, quantity in loaded.quantities.items():
        assert quantity.source, path
    assert document["quality"]["net"]["why"] == [
        "not distinguishable from 0, set to 0 with an interval of the measurement error: "
        "net.intra.os"
    ]
    assert document["quality"]["coll"]["why"] == [
        "not distinguishable from 0, set to 0 with an interval of the measurement error: "
        "barrier of 0 B on 2 processes"
    ]


def test_no_result_makes_no_profile() -> None:
    with pytest.raises(CalibrationError) as caught:
        calibrate([absent("smt", "no SMT", shared=1)])
    assert caught.value.message == "these samples contain no results"
    assert caught.value.hint == "measure again: popmodel machine measure"


def test_hardware_that_nobody_described_makes_no_profile() -> None:
    found = launches([pingpong(0, 1e-6)], 1, np.random.default_rng(0))
    with pytest.raises(CalibrationError, match="do not describe the hardware") as caught:
        calibrate(found)
    assert caught.value.hint == (
        "measure a part of the node as well, for example popmodel machine measure --only core"
    )
