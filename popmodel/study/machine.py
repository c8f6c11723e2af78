"""The machines of a study: the one that the runs are made on, and the one that splits are for."""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from popmodel import provenance
from popmodel.bench import collect, measurement, run_directory, suite
from popmodel.bench.measurement import MeasurementRequest
from popmodel.files import write_text
from popmodel.host import hardware
from popmodel.machine import profile as profiles
from popmodel.machine.parameter import PARTS
from popmodel.machine.profile import Profile
from popmodel.plain import plain
from popmodel.study.manifest import unwritable
from popmodel.values import dataclass

PROFILE, TARGET, UNKNOWN = "machine.json", "target.json", "unknown.json"
_NETWORK = ("inter", "nic_G")
"""What of a profile tells of messages between nodes."""


@dataclass(frozen=True)
class TargetMachine:
    """The machine that the splits are for."""

    # What is known of it. Its path is that of the profile that a measurement would improve.
    profile: Profile
    file: str  # The profile as a word of a command: a file, or the name of a preset
    # What of it was not measured but taken from elsewhere, in words; None if nothing was.
    assumed: str | None = None


def word(profile: Profile) -> str:
    """A profile as a word of a command."""
    return profile.name if profile.is_preset else profile.path


def command(path: Path) -> list[str]:
    """The command that measures this machine by itself."""
    return ["popmodel", "bench", "-o", str(path), "--force"]


def unknown(path: Path) -> Profile:
    """Write a profile of this machine that knows its shape only: all else is assumed, and wide."""
    name = f"{os.uname().nodename}, not measured"
    topology = hardware.here().topology()
    _write(path, {"schema": "popmodel/machine/1", "name": name, "topology": topology})
    return profiles.load(path)


def measure(
    path: Path, progress: Callable[[suite.Progress], None] = lambda _: None
) -> tuple[str, ...]:
    """Measure this machine in the quick mode, or go on with that, and write its profile."""
    request = MeasurementRequest("quick", PARTS)
    machine = hardware.here()
    made = measurement.make_plan(request, machine)
    using = measurement.tools(request, machine.usable_cores)
    folder = run_directory.beside(path)
    with run_directory.held(folder):
        run = measurement.open_run(folder, made, using.identity, force=True, keep=True)
        failures: Sequence[suite.Failure] = ()
        if not run.is_completed:
            failures = suite.measure(run, suite.starter(using.programs, using.mpi), progress)
        done = any(run_directory.done_in(one)[0] for one in run_directory.all_samples(folder))
        if failures and not done:
            raise suite.nothing_measured(failures)
        of_samples(path, failures)
        run_directory.complete(run)
    return tuple(failure.text for failure in failures)


def of_samples(path: Path, failures: Sequence[suite.Failure] = ()) -> None:
    """Write the profile that the samples beside it make."""
    document, samples = collect.collect([run_directory.beside(path)], failures)
    if not collect.has_any(document, PARTS):
        raise collect.nothing_of(PARTS, document, failures)
    stamp = plain(provenance.collect(command(path)[1:], samples))
    document["provenance"] = {**document.get("provenance", {}), **stamp}
    profiles.from_document(document, str(path))
    _write(path, document)


def target(here: Profile, cores: Sequence[int], path: Path) -> TargetMachine:
    """Return a machine of nodes like this one, as many as some cores need.

    A single node tells nothing of a network between nodes, which is then that of the default
    preset; its values keep their origin and their intervals.
    """
    topology = here.topology
    nodes = math.ceil(max(cores) / topology.cores_per_node)
    if nodes <= topology.nodes:
        return TargetMachine(here, word(here))
    document: dict[str, Any] = copy.deepcopy(dict(here.document))
    document["name"] = f"{nodes} nodes like {here.name}"
    document["topology"]["nodes"] = nodes
    assumed = None
    net = document.setdefault("net", {})
    if "inter" not in net:
        other = profiles.load(profiles.DEFAULT_PRESET)
        net |= {key: other.document["net"][key] for key in _NETWORK if key in other.document["net"]}
        # what a few processes of one node take for a collective says nothing of many nodes
        document.pop("coll", None)
        absent = document.get("absent", {})
        for key in [key for key in absent if key.split(".")[:2] == ["net", "inter"]]:
            del absent[key]
        assumed = (
            f"the network between nodes is that of the preset {other.name}, and collectives "
            "follow from it: one node cannot measure it"
        )
    found = profiles.from_document(document, here.path)
    _write(path, document)
    return TargetMachine(found, str(path), assumed)


def _write(path: Path, document: Any) -> None:
    try:
        text = json.dumps(document, indent=1, allow_nan=False)
        write_text(path, f"{text}\n", read=profiles.load)
    except OSError as error:
        raise unwritable(path, error) from error
