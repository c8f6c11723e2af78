"""What a user asks of a study, and what follows from it before the first run.

The command has placeholders for what differs from run to run: ``{P}`` stands for the number of
processes, ``{T}`` for that of threads, and ``{NAME}`` for a parameter whose values the user gives.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from popmodel import shell
from popmodel.errors import UsageError, did_you_mean
from popmodel.host import hardware
from popmodel.machine import profile
from popmodel.model import signatures
from popmodel.model.run.placement import ImpossibleSplit
from popmodel.model.signature.names import check_requirements, names
from popmodel.model.signature.program import Signature
from popmodel.shell import PLACEHOLDER, filled, plain
from popmodel.study.plan import LEAST, PROCESSES, THREADS, PlannedRun, named_runs, plan
from popmodel.tracer.commands import TracedCommand, refuse_as_rank, refuse_untraceable, understand
from popmodel.units import plural
from popmodel.values import dataclass

DEFAULT_BUDGET = 300.0
"""Seconds that the runs may take."""
CHANGEABLE = ("runs", "budget", "cores", "target", "machine", "target-machine")
"""What may be asked for anew of a study that has begun: all that changes no run that was made."""
EXAMPLE = "popmodel study --cores 64 -- mpirun -n {P} ./app"
_IN_A_JOB = ("srun", "-n", "{P}", "-c", "{T}")


@dataclass(frozen=True)
class StudyRequest:
    """What is asked for."""

    command: tuple[str, ...]  # Words with placeholders
    cores: tuple[int, ...]  # Numbers of cores to find the best split of
    settings: Mapping[str, tuple[float, ...]]  # Values of each parameter in the small runs
    at: Mapping[str, float]  # Values for the splits; the last one of the small runs by default
    runs: str | None = None  # The runs, ``1x1,2x1``; planned by default
    budget: float = DEFAULT_BUDGET  # Seconds for all runs
    # Cores that a run may use; by default those of this machine that its profile knows.
    max_cores: int | None = None
    # Files that replace what the study would make.
    machine: str | None = None
    target_machine: str | None = None
    signature: str | None = None
    script: bool = False  # Whether runs are made by jobs of Slurm

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON types."""
        return {
            "command": self.command,
            "cores": self.cores,
            "set": self.settings,
            "target": self.at,
            "runs": self.runs,
            "budget": self.budget,
            "max-cores": self.max_cores,
            "machine": self.machine,
            "target-machine": self.target_machine,
            "signature": self.signature,
        }

    @property
    def target(self) -> dict[str, float]:
        """Values of the parameters for the splits."""
        return {**{name: values[-1] for name, values in self.settings.items()}, **self.at}


@dataclass(frozen=True)
class Prepared:
    """What follows from a request."""

    words: tuple[str, ...]  # The command with placeholders, with what starts ranks in a job
    command: TracedCommand  # What it starts
    program: Path  # The file of the program
    cores: int  # Cores that a run may use
    # Configurations, as long as nothing is known of the program, and repeats that the user names.
    runs: tuple[PlannedRun, ...]

    @property
    def name(self) -> str:
        """Name of the program."""
        return self.program.name

    @property
    def own_words(self) -> tuple[str, ...]:
        """The program and its arguments, with placeholders."""
        found = (
            number
            for number, word in enumerate(self.command.words)
            if number >= self.command.start and Path(shutil.which(word) or "") == self.program
        )
        return self.words[next(found) :]


def prepared(request: StudyRequest) -> Prepared:
    """Check a request, and plan its runs."""
    refuse_as_rank()
    if not request.command:
        raise UsageError("study: no command given", f"try {EXAMPLE}")
    words = request.command
    command = understand(filled(words, _any(words, request)), os.environ)
    if not command.is_launcher and request.script:
        words = (*_IN_A_JOB, *words)
        command = understand(filled(words, _any(words, request)), os.environ)
    check_command(words, tuple(request.settings))
    for name in request.at:
        if name not in request.settings:
            raise UsageError(
                f"--target {name}: the command has no such parameter",
                f"give its values in the small runs: --set {name}=100,200",
            )
    if command.program is None:
        raise UsageError(
            f"{shell.join(command.words)}: no program found that it could start",
            f"check its path; {EXAMPLE}",
        )
    refuse_untraceable(command.program)
    cores = request.max_cores or _cores(request.machine)
    signature = None if request.signature is None else signatures.load(request.signature)
    if request.runs is not None:
        runs = named_runs(request.runs, request.settings)
        for run in runs:
            if why := refusal(signature, run):
                raise UsageError(f"--runs {request.runs}: {why}", "name runs that it takes")
    else:
        runs = plan(cores, request.settings, admits=lambda run: refusal(signature, run) is None)
    if len(runs) < LEAST and signature is not None and cores > 1:
        raise UsageError(
            f"{signature.name} takes {plural(len(runs), 'run')} on {plural(cores, 'core')}, and a "
            "study needs two: one to learn from, one to predict",
            "name larger ones with --runs, or give several sizes with --set N=100,200",
        )
    if len(runs) < LEAST:
        raise UsageError(
            "one core allows one run, and a study needs two: one to learn from, one to predict",
            "give several sizes of the problem with --set N=100,200, or use --script slurm "
            "--max-cores 16",
        )
    return Prepared(words, command, command.program, cores, runs)


def _cores(machine: str | None) -> int:
    """Cores of this machine, no more than a given profile of it has: runs are to be predicted."""
    here = hardware.here().usable_cores
    if machine is None:
        return here
    topology = profile.load(machine).topology
    return min(here, topology.nodes * topology.cores_per_node)


def refusal(signature: Signature | None, run: PlannedRun) -> str | None:
    """Why a program does not take a run, as far as a signature says so; None if it does."""
    if signature is None:
        return None
    known = {name: value for name, value in run.settings if name in signature.params}
    asked = signature.with_settings(known)
    asked.require_known()
    params = {name: one.value for name, one in asked.inputs.items()}
    try:
        check_requirements(signature, run.processes, run.threads, params)
        if signature.grid is not None:
            names(signature, run.processes, run.threads, params)
    except ImpossibleSplit as error:
        return error.message
    return None


def _any(words: Sequence[str], request: StudyRequest) -> dict[str, float]:
    """Values that make the words a command that can be looked at, for all that have any."""
    given = {name: values[0] for name, values in request.settings.items()}
    names = dict.fromkeys(("P", "T"), 1.0)
    unknown = {name: 1.0 for name in placeholders(words) if name not in given and name not in names}
    return {**unknown, **names, **given}


# -- the command


def check_command(words: Sequence[str], parameters: Collection[str]) -> None:
    """Make sure that a command says what differs from run to run, and nothing else."""
    for name in parameters:
        if name in (PROCESSES, THREADS):
            what = "processes" if name == PROCESSES else "threads"
            raise UsageError(
                f"--set {name}: {{{name}}} is the number of {what}, which the study chooses",
                "name the runs instead: --runs 1x1,2x1",
            )
    known = {PROCESSES, THREADS, *parameters}
    for name in placeholders(words):
        if name not in known:
            near = did_you_mean(name, known, f"give its values: --set {name}=100,200")
            raise UsageError(f"{{{name}}}: nothing says what it stands for", near)
    for name in parameters:
        if not uses(words, name):
            raise UsageError(
                f"--set {name}: the command has no {{{name}}}",
                f"put {{{name}}} where the program takes it: mpirun -n {{P}} ./app {{{name}}}",
            )
    if not uses(words, PROCESSES):
        raise UsageError(
            f"{' '.join(words)}: the number of processes must be {{P}}", f"try {EXAMPLE}"
        )
    for word in words:
        plain(word, "the command")


def uses(words: Sequence[str], name: str) -> bool:
    """Whether a command has a placeholder of that name."""
    return name in placeholders(words)


def placeholders(words: Sequence[str]) -> list[str]:
    """Names of the placeholders of a command, in their order."""
    return list(dict.fromkeys(name for word in words for name in re.findall(PLACEHOLDER, word)))
