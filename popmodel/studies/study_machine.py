"""The machines of a study: how busy the one of the runs is, its profile, and the target."""

from __future__ import annotations

import copy
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from popmodel.base import provenance
from popmodel.base.files import write_text
from popmodel.base.units import format_time, plural
from popmodel.base.values import plain
from popmodel.machines import profile as profiles
from popmodel.machines.bench import collect, run_directory, suite
from popmodel.machines.bench.bench_plan import MeasurementRequest
from popmodel.machines.host import conditions, hardware
from popmodel.machines.profile import Profile
from popmodel.machines.register import PARTS
from popmodel.studies.manifest import unwritable

PROFILE, TARGET, UNKNOWN = "machine.json", "target.json", "unknown.json"
_NETWORK = ("inter", "nic_G")
"""What of a profile tells of messages between nodes."""


QUIET = 0.05
"""Share of the CPUs that other processes may use on a machine that counts as quiet."""
_LOOK = 1.5  # seconds
_PAUSE = 5.0  # seconds between looks


class MachineLoad(NamedTuple):
    """What others took of the CPUs while nothing was run."""

    cpus: int  # CPUs that runs may use
    foreign: float  # CPUs that other processes used
    stolen: float  # CPUs that other virtual machines used
    limit: float | None  # CPUs' worth of time that the control group grants

    @property
    def is_quiet(self) -> bool:
        """Whether runs have the machine for themselves."""
        return self.foreign + self.stolen <= QUIET * self.cpus

    def __str__(self) -> str:
        used = self.foreign + self.stolen
        text = f"others use {used:.1f} of {plural(self.cpus, 'CPU')}"
        if self.limit is not None and self.limit < self.cpus:
            text += f"; the control group grants {self.limit:.3g}"
        return text


def load(seconds: float = _LOOK) -> MachineLoad:
    """Watch what others take of the CPUs that this process may use."""
    cpus = os.sched_getaffinity(0)

    def usage() -> conditions.Usage:
        return conditions.usage(conditions.STAT.read_text(), cpus)

    begin, own, before = time.monotonic(), time.process_time(), usage()
    time.sleep(seconds)
    after, wall = usage(), time.monotonic() - begin
    own = time.process_time() - own
    return MachineLoad(
        len(cpus),
        max(0.0, (after.busy - before.busy - own) / wall),
        (after.stolen - before.stolen) / wall,
        hardware.here().cpu_limit,
    )


def look(patience: float | None, tell: Callable[[str], None]) -> MachineLoad:
    """Say how busy the machine is; with patience, s, wait until it is quiet, or so long."""
    found = load()
    begin = time.monotonic()
    if patience is not None and not found.is_quiet:
        tell(f"{found}: waiting until they stop, {format_time(patience, trim=True)} at most")
        while not found.is_quiet and time.monotonic() - begin < patience:
            time.sleep(_PAUSE)
            found = load()
    if found.is_quiet:
        tell(f"the machine is quiet: {found}")
    else:
        hint = "" if patience is not None else "; --wait 10min waits until it is quiet"
        tell(f"warning: {found}: runs take longer than on a quiet machine{hint}")
    return found


class TargetMachine(NamedTuple):
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
    return ["popmodel", "machine", "measure", "-o", str(path), "--force"]


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
    request, folder = MeasurementRequest("quick", PARTS), run_directory.beside(path)
    document, samples, failures = collect.measure(
        request, folder, force=True, keep=True, progress=progress
    )
    _write_measured(path, document, samples)
    return tuple(failure.text for failure in failures)


def of_samples(path: Path) -> None:
    """Write the profile that the samples beside it make."""
    document, samples = collect.collect([run_directory.beside(path)])
    if not collect.has_any(document, PARTS):
        raise collect.nothing_of(PARTS, document, ())
    _write_measured(path, document, samples)


def _write_measured(path: Path, document: dict[str, Any], samples: Sequence[Path]) -> None:
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
