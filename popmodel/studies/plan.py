"""What a user asks of a study, and which small runs follow from it: few, that tell the most.

The command has placeholders for what differs from run to run: ``{P}`` stands for the number of
processes, ``{T}`` for that of threads, and ``{NAME}`` for a parameter whose values the user gives.

What a run depends on is learnt from runs that differ in it: in the processes P, in the threads T,
and in every parameter of the program. All splits are run at the largest size, which is nearest to
what is predicted, and the ends of both axes at the smaller ones. Every configuration is run several
times, in turn, so that what disturbs the machine for a while disturbs all alike. One configuration
is left out of what the signature is made from, and predicted with it.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from popmodel.base import shell
from popmodel.base.errors import UsageError, did_you_mean
from popmodel.base.shell import PLACEHOLDER, filled, plain
from popmodel.base.units import plural
from popmodel.base.values import dataclass
from popmodel.machines import profile
from popmodel.machines.host import hardware
from popmodel.model import signatures
from popmodel.model.run.process_placement import ImpossibleSplit
from popmodel.model.signature.application import Signature, check_requirements, names
from popmodel.tracer.commands import TracedCommand, refuse_as_rank, refuse_untraceable, understand

PROCESSES, THREADS = "P", "T"
LEAST = 2
"""Configurations that a study plans: one to learn from, and one to predict."""
REPEATS = 3
"""How often every configuration is run, as far as the budget allows."""
MOST_REPEATS = 9
SETTLED = 0.03
"""Half the 90 % interval of a configuration's mean time, from which it need not be repeated."""
_MOST_OF_AXIS = 4
"""Numbers of processes, or of threads, that are tried."""
DEFAULT_BUDGET = 300.0
"""Seconds that the runs may take."""
CHANGEABLE = ("runs", "budget", "cores", "target", "machine", "target-machine")
"""What may be asked for anew of a study that has begun: all that changes no run that was made."""
EXAMPLE = "popmodel study --cores 64 -- mpirun -n {P} ./app"
_IN_A_JOB = ("srun", "-n", "{P}", "-c", "{T}")

Admits = Callable[["PlannedRun"], bool]


@dataclass(frozen=True)
class PlannedRun:
    """A small run; without its number among the repeats it is a configuration."""

    processes: int
    threads: int  # Of each process
    # Values of the parameters, by name in the order of the command line.
    settings: tuple[tuple[str, float], ...] = ()
    repeat: int = 1  # The how manyth of its configuration it is

    @property
    def cores(self) -> int:
        """Threads in all."""
        return self.processes * self.threads

    @property
    def size(self) -> float:
        """How large the problem is: the product of its parameters, as far as they are above 0."""
        return math.prod(value for _, value in self.settings if value > 0)

    @property
    def configuration(self) -> PlannedRun:
        """The first of its repeats."""
        return replace(self, repeat=1)

    @property
    def split(self) -> str:
        """``2 x 1``, as screens write it."""
        return f"{self.processes} x {self.threads}"

    @property
    def name(self) -> str:
        """What its files are called: ``2x1``, ``2x1-N=96``, or ``2x1-N=96.r2`` the second time."""
        values = [f"-{name}={value:.15g}" for name, value in self.settings]
        again = f".r{self.repeat}" if self.repeat > 1 else ""
        return f"{self.processes}x{self.threads}{''.join(values)}{again}"

    @property
    def values(self) -> dict[str, float]:
        """What the placeholders of the command stand for."""
        return {PROCESSES: self.processes, THREADS: self.threads, **dict(self.settings)}

    def to_dict(self) -> dict[str, Any]:
        """Return the run as JSON types."""
        return {
            "processes": self.processes,
            "threads": self.threads,
            "settings": dict(self.settings),
            "repeat": self.repeat,
        }


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

    def again(self, folder: Path, *more: str) -> str:
        """The command that asks for this, as it can be pasted."""
        words = ["popmodel", "study", "--cores", ",".join(map(str, self.cores))]
        for name, values in self.settings.items():
            words += ["--set", f"{name}={','.join(f'{value:.15g}' for value in values)}"]
        for name, value in self.at.items():
            words += ["--target", f"{name}={value:.15g}"]
        if self.budget != DEFAULT_BUDGET:
            words += ["--budget", f"{self.budget:g}s"]
        options = {
            "--runs": self.runs,
            "--max-cores": self.max_cores,
            "--machine": self.machine,
            "--target-machine": self.target_machine,
            "--signature": self.signature,
            "--script": "slurm" if self.script else None,
            "-o": str(folder),
        }
        for option, given in options.items():
            words += [] if given is None else [option, str(given)]
        return shell.join([*words, *more, "--", *self.command])


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
    params = {name: quantity.value for name, quantity in asked.inputs.items()}
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
    return {**dict.fromkeys((*placeholders(words), PROCESSES, THREADS), 1.0), **given}


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


# Which runs, in which order, how often.


def plan(
    cores: int, parameters: Mapping[str, Sequence[float]], *, admits: Admits = lambda _: True
) -> tuple[PlannedRun, ...]:
    """Plan the configurations, the most telling first: a smaller budget drops those at the end."""
    largest = tuple((name, max(values)) for name, values in parameters.items())
    smaller = [
        tuple((name, value if name == changed else most) for name, most in largest)
        for changed, values in parameters.items()
        for value in sorted(set(values))[:-1]
    ]
    smaller.sort(key=lambda settings: PlannedRun(1, 1, settings).size)
    few = next((p for p in range(1, cores + 1) if admits(PlannedRun(p, 1, largest))), None)
    if few is None:
        return ()
    of_processes = _axis([p for p in range(few, cores + 1) if admits(PlannedRun(p, 1, largest))])
    of_threads = _axis(
        [t for t in range(1, cores // few + 1) if admits(PlannedRun(few, t, largest))]
    )
    ends = [(few, 1), (of_processes[-1], 1), (few, of_threads[-1])]
    # of values that are tried apart as well, so that it can be left out and predicted
    combined = max(
        ((p, t) for p in of_processes[1:] for t in of_threads[1:] if p * t <= cores),
        key=lambda split: (split[0] * split[1], -abs(split[0] - split[1]), split[0]),
        default=(few, 1),
    )
    between = [*((p, 1) for p in of_processes[1:-1]), *((few, t) for t in of_threads[1:-1])]
    runs = [
        *(PlannedRun(*split, settings) for settings in smaller[:1] for split in ends),
        *(PlannedRun(*split, largest) for split in (*ends, combined)),
        *(PlannedRun(*split, settings) for settings in smaller[1:] for split in ends),
        *(PlannedRun(*split, largest) for split in between),
    ]
    return tuple(run for run in dict.fromkeys(runs) if admits(run))


def named_runs(text: str, parameters: Mapping[str, Sequence[float]]) -> tuple[PlannedRun, ...]:
    """Return the runs that a user names, each with all values of the parameters.

    ``1x1,2x1,2x1`` names the last one twice: so often it is run at least.
    """
    splits = []
    for word in text.split(","):
        match = re.fullmatch(r"\s*([1-9][0-9]{0,8})\s*x\s*([1-9][0-9]{0,8})\s*", word)
        if match is None:
            raise UsageError(
                f"--runs {text}: '{word.strip()}' must be PROCESSESxTHREADS",
                "try --runs 1x1,2x1,1x2",
            )
        splits.append((int(match[1]), int(match[2])))
    settings = itertools.product(
        *([(name, value) for value in values] for name, values in parameters.items())
    )
    often: Counter[PlannedRun] = Counter()
    runs = []
    for run in (PlannedRun(*split, values) for values in settings for split in splits):
        often[run] += 1
        runs.append(replace(run, repeat=often[run]))
    if len(often) < LEAST:
        raise UsageError(
            f"--runs {text}: a study needs two different runs: one to learn from, one to predict",
            "try --runs 1x1,2x1,1x2",
        )
    return tuple(runs)


def left_out(configurations: Sequence[PlannedRun]) -> PlannedRun | None:
    """Return the configuration to be predicted from the others; None if there is but one.

    That nearest to what the study is for: the largest problem on the most cores, of several cores
    and of what others show, number of processes, of threads and, of every parameter, the value or
    two others. Where there is none such, one that leaves another with several processes, since
    only those have messages.
    """
    if len(configurations) < LEAST:
        return None

    def merit(run: PlannedRun) -> tuple[Any, ...]:
        others = [other for other in configurations if other != run]
        messages = any(other.processes > 1 for other in others)
        values = [{dict(other.settings)[name] for other in others} for name, _ in run.settings]
        is_shown = (
            run.processes in {other.processes for other in others}
            and run.threads in {other.threads for other in others}
            and all(
                value in seen or len(seen) >= LEAST
                for (_, value), seen in zip(run.settings, values, strict=True)
            )
        )
        return (run.cores > 1, is_shown, messages, run.size, run.cores, run.processes)

    return max(configurations, key=merit)


def next_configuration(
    planned: Sequence[PlannedRun],
    runtimes: Mapping[PlannedRun, Sequence[float]],
    counts: Mapping[PlannedRun, int],
    ended: Collection[PlannedRun],
) -> PlannedRun | None:
    """Return the configuration to run next, round robin; None when nothing more is to be learnt.

    ``runtimes`` are those of the repeats that count, s, by configuration; ``counts`` how often each
    was run; ``ended`` are those that are not run (again): refused, or too long for the budget.
    """
    wanted = Counter(run.configuration for run in planned)

    def is_open(run: PlannedRun) -> bool:
        count = counts.get(run, 0)
        if run in ended:
            return False
        if count < max(wanted[run], REPEATS):
            return True
        return count < MOST_REPEATS and half_width(runtimes[run]) > SETTLED

    return min(filter(is_open, wanted), key=lambda run: counts.get(run, 0), default=None)


def in_turn(planned: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Return all repeats of a plan that are wanted in any case, round robin."""
    wanted = Counter(run.configuration for run in planned)
    return [
        replace(run, repeat=repeat)
        for repeat in range(1, max(REPEATS, *wanted.values()) + 1)
        for run in wanted
        if repeat <= max(REPEATS, wanted[run])
    ]


def half_width(times: Sequence[float]) -> float:
    """Half the 90 % interval of the mean of repeats, relative, by Student; infinite for one."""
    if len(times) < LEAST:
        return math.inf
    spread = float(np.std(np.log(times), ddof=1))
    return float(stdtrit(len(times) - 1, 0.95)) * spread / math.sqrt(len(times))


def expected(run: PlannedRun, timed: Mapping[PlannedRun, float]) -> float | None:
    """Return the seconds that a run will take at most; None if no run has been timed.

    A run of a configuration that was timed takes as long again; one with as large a problem as
    long as that on fewest cores. What a larger problem takes follows from two sizes by a power law;
    from one size in proportion, which is the least.
    """
    if not timed:
        return None
    if run.configuration in timed:
        return timed[run.configuration]
    slowest = {other.settings: timed[other] for other in sorted(timed, key=lambda r: -r.cores)}
    if run.settings in slowest:
        return slowest[run.settings]
    known = sorted((PlannedRun(1, 1, settings).size, time) for settings, time in slowest.items())
    (small, least), (large, most) = known[0], known[-1]
    power = math.log(most / least) / math.log(large / small) if large > small and least > 0 else 1.0
    return float(most * (run.size / large) ** max(power, 0.0))


def _axis(able: Sequence[int]) -> list[int]:
    """Some of the numbers that are possible, evenly spaced as powers, up to the last one."""
    powers = [number for number in able[:-1] if number.bit_count() == 1]
    every = [*powers, able[-1]] if len(powers) > 1 else list(able)
    if len(every) <= _MOST_OF_AXIS:
        return every
    step = (len(every) - 1) / (_MOST_OF_AXIS - 1)
    return [every[round(k * step)] for k in range(_MOST_OF_AXIS)]
