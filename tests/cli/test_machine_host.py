"""``popmodel machine check``."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from popmodel.machines.bench import doctor_checks as doctor
from popmodel.machines.bench.doctor_checks import DoctorCheck
from popmodel.machines.host import hardware

from .conftest import Call

XEON = {
    "/proc/cpuinfo": "model name\t: Intel(R) Xeon(R) CPU E5-2680 0 @ 2.70GHz\nflags\t: fpu\n",
    "affinity": "0-15\n",
    **{
        f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id": f"{cpu // 8}\n"
        for cpu in range(16)
    },
}
GOOD = (
    DoctorCheck("compiler", "ok", "gcc (GCC) 12.2.0", facts={"command": ["gcc"]}),
    DoctorCheck("MPI", "ok", "Open MPI 4.1.6, ranks by mpirun, bound to cores"),
    DoctorCheck(
        "counters",
        "absent",
        "not available (ENOENT), as in most virtual machines and containers",
        "traces recorded here will have none; popmodel machine measure does not need them",
    ),
)
NO_MPI = DoctorCheck("MPI", "fail", "no MPI found", "python -m pip install 'popmodel-hpc[mpi]'")


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the checks find what a test says."""

    def let(*checks: DoctorCheck) -> None:
        machine = hardware.read(XEON)
        monkeypatch.setattr(hardware, "here", lambda: machine)
        monkeypatch.setattr(doctor, "examine", lambda *_: list(checks))

    return let


def test_what_is_missing_is_told_with_the_next_step(
    found: Callable[..., None], popmodel: Call
) -> None:
    found(GOOD[0], NO_MPI)
    status, out, err = popmodel("machine", "check")
    assert status == 1
    assert out.splitlines()[:-2] == [
        "machine   Intel(R) Xeon(R) CPU E5-2680 0 @ 2.70GHz,",
        "          16 cores, 2 sockets",
        "compiler  ok: gcc (GCC) 12.2.0",
        "MPI       fail: no MPI found",
        "          -> python -m pip install 'popmodel-hpc[mpi]'",
    ]
    assert err == (
        "popmodel: error: only a part can be measured without MPI\n"
        "hint: popmodel machine measure --only core,memory,loops,openmp,noise\n"
    )


def test_a_machine_that_cannot_be_measured(found: Callable[..., None], popmodel: Call) -> None:
    found(DoctorCheck("compiler", "fail", "none", "install gcc"), NO_MPI)
    status, _, err = popmodel("machine", "check")
    assert status == 1
    assert err.startswith(
        "popmodel: error: this machine cannot be measured yet, failed: compiler, MPI\n"
    )


def test_json(found: Callable[..., None], popmodel: Call) -> None:
    found(*GOOD)
    document = json.loads(popmodel("machine", "check", "--format", "json")[1])
    assert document["schema"] == "popmodel/host-check/1"
    assert document["measurable"] is True
    assert document["machine"]["cores_per_node"] == 16
    assert document["machine"]["sockets"] == 2
    assert document["checks"][0] == {
        "name": "compiler",
        "status": "ok",
        "found": "gcc (GCC) 12.2.0",
        "todo": None,
        "facts": {"command": ["gcc"]},
    }
    assert document["provenance"]["command"] == "popmodel machine check --format json"


def test_this_machine(popmodel: Call) -> None:
    status, out, _ = popmodel("machine", "check", "--format", "json")
    document = json.loads(out)
    assert status == (0 if document["measurable"] else 1)
    assert {check["status"] for check in document["checks"]} <= {"ok", "warn", "fail", "absent"}
    assert all(check["todo"] for check in document["checks"] if check["status"] != "ok")
    assert next(c for c in document["checks"] if c["name"] == "OpenMP")["status"] == "ok"
