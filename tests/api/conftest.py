"""Results that several tests look at: each is computed once."""

from __future__ import annotations

from pathlib import Path

import pytest

import popmodel
from popmodel.cli.metrics import Metrics
from popmodel.cli.predict import Prediction
from popmodel.cli.validate import Validation
from popmodel.cli.whatif import WhatIf
from popmodel.reports.result import Result

ROOT = Path(__file__).parent.parent.parent
COMD = ROOT / "tests" / "data" / "comd.4.prv.gz"
CG = ROOT / "tests" / "data" / "cg.S.2.prv.gz"
HYBRID = ROOT / "tests" / "data" / "bt-mz.S.2x2.prv.gz"
RUNS = ROOT / "examples" / "stencil3d" / "two-core-vm.csv"
VM = ROOT / "examples" / "profiles" / "two-core-vm.json"


@pytest.fixture(scope="session")
def measured() -> Metrics:
    return popmodel.metrics([CG, HYBRID])


@pytest.fixture(scope="session")
def replayed() -> WhatIf:
    return popmodel.whatif(CG, latency=["1us", 20e-6])


@pytest.fixture(scope="session")
def predicted() -> Prediction:
    return popmodel.predict(procs=16, threads=4)


@pytest.fixture(scope="session")
def swept() -> Prediction:
    return popmodel.predict(cores=[32, 64])


@pytest.fixture(scope="session")
def validated() -> Validation:
    return popmodel.validate("stencil3d", RUNS, machine=VM, settings={"N": 256})


@pytest.fixture(params=["measured", "replayed", "predicted", "swept", "validated"])
def result(request: pytest.FixtureRequest) -> Result:
    """Each of the results in turn."""
    found: Result = request.getfixturevalue(request.param)
    return found
