"""``popmodel doctor``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence

import pytest

from popmodel.machines.bench import doctor_checks as doctor
from popmodel.machines.bench.doctor_checks import DoctorCheck
from popmodel.machines.host import hardware

Answer = tuple[int, str, str]
Call = Callable[..., Answer]

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
        "traces recorded here will have none; popmodel bench does not need them",
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


def body(out: str) -> Sequence[str]:
    """The screen without its footer."""
    return out.splitlines()[:-3]


def test_the_screen_of_a_good_machine(found: Callable[..., None], popmodel: Call) -> None:
    found(*GOOD)
    status, out, err = popmodel("doctor")
    assert (status, err) == (0, "")
    assert body(out) == [
        "machine   Intel(R) Xeon(R) CPU E5-2680 0 @ 2.70GHz,",
        "          16 cores, 2 sockets",
        "",
        "compiler  ok      gcc (GCC) 12.2.0",
        "MPI       ok      Open MPI 4.1.6, ranks by mpirun, bound to",
        "                  cores",
        "counters  absent  not available (ENOENT), as in most virtual",
        "                  machines and containers",
        "                  -> traces recorded here will have none;",
        "                     popmodel bench does not need them",
        "",
        "ready to measure: popmodel bench -o machine.json",
    ]


def test_what_is_missing_is_told_with_the_next_step(
    found: Callable[..., None], popmodel: Call
) -> None:
    found(GOOD[0], NO_MPI)
    status, out, err = popmodel("doctor")
    assert (status, err) == (1, "")
    assert body(out)[3:] == [
        "compiler  ok    gcc (GCC) 12.2.0",
        "MPI       fail  no MPI found",
        "                -> python -m pip install 'popmodel-hpc[mpi]'",
        "",
        "only a part can be measured without MPI: popmodel bench",
        "--only core,memory,loops,openmp,noise",
    ]


def test_a_machine_that_cannot_be_measured(found: Callable[..., None], popmodel: Call) -> None:
    found(DoctorCheck("compiler", "fail", "none", "install gcc"), NO_MPI)
    status, out, _ = popmodel("doctor")
    assert status == 1
    assert body(out)[-1] == "this machine cannot be measured yet, failed: compiler, MPI"


def test_json(found: Callable[..., None], popmodel: Call) -> None:
    found(*GOOD)
    document = json.loads(popmodel("doctor", "--format", "json")[1])
    assert document["schema"] == "popmodel/doctor/1"
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
    assert document["provenance"]["command"] == "popmodel doctor --format json"


def test_csv(found: Callable[..., None], popmodel: Call) -> None:
    found(*GOOD)
    rows = list(csv.DictReader(io.StringIO(popmodel("doctor", "--format", "csv")[1])))
    assert [(row["name"], row["status"]) for row in rows] == [
        ("compiler", "ok"),
        ("MPI", "ok"),
        ("counters", "absent"),
    ]
    assert rows[0]["todo"] == ""


def test_markdown(found: Callable[..., None], popmodel: Call) -> None:
    found(GOOD[0], NO_MPI)
    out = popmodel("doctor", "--format", "markdown")[1]
    assert "| check | status | result | what to do |\n|:--|:--|:--|:--|\n" in out
    assert "| MPI | fail | no MPI found | python -m pip install 'popmodel-hpc[mpi]' |\n" in out


def test_a_launcher_that_is_none(popmodel: Call) -> None:
    status, out, err = popmodel("doctor", "--launcher", "no-such-launcher")
    assert (status, out) == (2, "")
    assert err == (
        "popmodel: error: --launcher no-such-launcher: program no-such-launcher not found\n"
        'hint: try --launcher "mpirun --bind-to core"\n'
    )


def test_this_machine(popmodel: Call) -> None:
    status, out, err = popmodel("doctor", "--format", "json")
    document = json.loads(out)
    assert err == ""
    assert status == (0 if document["measurable"] else 1)
    assert {check["status"] for check in document["checks"]} <= {"ok", "warn", "fail", "absent"}
    assert all(check["todo"] for check in document["checks"] if check["status"] != "ok")
    assert next(c for c in document["checks"] if c["name"] == "OpenMP")["status"] == "ok"
