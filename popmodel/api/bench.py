"""Documents of ``popmodel bench`` and ``popmodel doctor``: what measures, and whether it can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from popmodel.base.plain import document

if TYPE_CHECKING:
    from popmodel.machines.bench.bench_plan import Tools


def built(tools: Tools) -> dict[str, Any]:
    """Return the programs that measure, ``popmodel/build/1``."""
    return document(
        "popmodel/build/1",
        programs=tools.programs,
        compiler=tools.compiler.version,
        mpi=None if tools.mpi is None else tools.mpi.name,
    )


def doctor(launcher: str | None = None) -> dict[str, Any]:
    """Check whether this machine can be measured, ``popmodel/doctor/1``."""
    from popmodel.machines.bench.doctor_checks import examine, measurable
    from popmodel.machines.host import hardware

    machine = hardware.here()
    checks = examine(machine, launcher)
    return document(
        "popmodel/doctor/1",
        measurable=measurable(checks),
        machine={**machine.host(), **machine.topology()},
        checks=checks,
    )
