"""From the samples of several launches to the document of a machine profile."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from popmodel.bench.calibration import (
    collectives,
    core,
    loops,
    memory,
    noise,
    openmp,
    point_to_point,
    threads,
)
from popmodel.bench.calibration.intervals import CalibrationError
from popmodel.bench.calibration.measured import MeasuredResults
from popmodel.bench.samples import Launch
from popmodel.host import hardware
from popmodel.machine import schema


def calibrate(launches: Sequence[Launch], name: str | None = None) -> dict[str, Any]:
    """Make the document of a machine profile, schema ``popmodel/machine/1``.

    What was not measured is not in it. What was tried and cannot be told is in ``absent``, with the
    reason.
    """
    measured = MeasuredResults(launches)
    if not any(result.absent is None for result in measured):
        raise CalibrationError("these samples contain no results", "measure again: popmodel bench")
    described = [launch for launch in launches if launch.header.get("files")]
    if not described:
        raise CalibrationError(
            "these samples do not describe the hardware: none is from popmodel-node",
            "measure a part of the node as well, for example popmodel bench --only core",
        )
    files = described[-1].header["files"]
    machine = hardware.read(files)
    nodes = len({host for launch in launches for host in launch.hosts})
    topology = machine.topology(nodes)
    document: dict[str, Any] = {
        "schema": schema.KIND.schema,
        "name": name or str(described[-1].header.get("host", "machine")),
        "host": machine.host() | _software(launches),
        "topology": topology,
    }
    absent: dict[str, str] = dict(machine.absent)
    remarks: dict[str, list[str]] = {}
    document["core"], missing = core.calibrate(measured)
    absent |= missing
    overlap, fit, remarks["core"] = loops.calibrate(measured, topology, document["core"], absent)
    document["core"] |= overlap
    document["memory"], missing, remarks["memory"] = memory.calibrate(measured, topology)
    absent |= missing
    document["openmp"], missing, remarks["openmp"] = openmp.calibrate(measured, topology)
    absent |= missing
    net, missing = point_to_point.calibrate(measured)
    remarks["net"] = point_to_point.misfits(net) + point_to_point.nothing_left(net)
    absent |= missing
    more, missing = threads.calibrate(measured)
    absent |= missing
    document["net"] = net | more
    document["coll"], missing = collectives.calibrate(measured, net)
    remarks["coll"] = collectives.nothing_left(document["coll"])
    absent |= missing
    document["noise"] = noise.calibrate(measured)
    document["absent"] = absent
    document["quality"] = noise.quality(measured, remarks)
    if fit:
        document["quality"]["core"]["overlap"] = fit
    if line := machine.line:
        document["memory"] |= {"line": line} if document["memory"] else {}
    return {key: value for key, value in document.items() if value not in ({}, None)}


def _software(launches: Sequence[Launch]) -> dict[str, Any]:
    """What ran, when, under which load: informative."""
    first = min(launches, key=lambda launch: float(launch.header.get("started", 0.0)))
    mpi = next((launch.header["mpi"] for launch in launches if "mpi" in launch.header), None)
    openmp = next(
        (launch.header["openmp"] for launch in launches if "openmp" in launch.header), None
    )
    facts: dict[str, Any] = {
        "nodes": sorted({host for launch in launches for host in launch.hosts}),
        "kernel": first.header.get("kernel"),
        "compiler": first.header.get("compiler"),
        "mpi": None if mpi is None else mpi.get("library"),
        "openmp": None if openmp is None else _openmp(openmp),
        "measured": _moment(first.header.get("started")),
        "load": max(float(launch.header.get("load") or 0.0) for launch in launches),
    }
    return {key: value for key, value in facts.items() if value is not None}


def _openmp(facts: Mapping[str, Any]) -> str:
    return f"{facts.get('runtime', 'unknown runtime')} (OpenMP {facts.get('version', '?')})"


def _moment(seconds: Any) -> str | None:
    if not isinstance(seconds, int | float):
        return None
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
