"""What makes a study's answer doubtful: the load of the machine, few or disturbed runs, its check.

Doubt comes before advice: what is said here stands first on the screen, and takes certainty away.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from popmodel.host import conditions, hardware
from popmodel.study.executor import DISTURBED, by_configuration, own_time, undisturbed
from popmodel.study.manifest import StudyStep
from popmodel.study.plan import REPEATS, PlannedRun, half_width
from popmodel.units import format_time, plural
from popmodel.values import dataclass

QUIET = 0.05
"""Share of the CPUs that other processes may use on a machine that counts as quiet."""
UNSETTLED = 0.15
"""Half the 90 % interval of the mean of repeats above which splits can hardly be told apart."""
_LOOK = 1.5  # seconds
_PAUSE = 5.0  # seconds between looks


@dataclass(frozen=True)
class MachineLoad:
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


def doubts(
    runs: Mapping[PlannedRun, StudyStep],
    out: PlannedRun | None,
    check: Mapping[str, Any] | str | None,
) -> list[str]:
    """Say why the answer of a study is not to be trusted yet, the heaviest reason first.

    Parameters
    ----------
    runs : mapping of Run to Step
        The runs that were made.
    out : Run or None
        The configuration that was left out, if there was one.
    check : mapping, str or None
        How it was predicted, as a comparison of a validation; a text says why it could not be.
    """
    found = []
    repeats = by_configuration(undisturbed(runs))
    busy = [
        run
        for run, steps in repeats.items()
        if all(step.facts["waited"] > DISTURBED for step in steps)
    ]
    if out is None:
        found.append("only one configuration was run: nothing checks the prediction")
    elif isinstance(check, str):
        found.append(f"{label(out)} could not be predicted from the others: {check}")
    elif out in busy:
        found.append(f"the prediction of {label(out)} is not checked: all its runs were disturbed")
    elif check is not None and check["low"] is None:
        found.append(f"{label(out)} was predicted from the others without an interval")
    elif check is not None and not check["low"] <= check["mean"] <= check["high"]:
        found.append(
            f"{label(out)} was predicted from the others as {_interval(check)}, and took "
            f"{format_time(check['mean'])}"
        )
    if busy:
        most = max(step.facts["waited"] for run in busy for step in repeats[run])
        who = "all runs" if len(busy) == len(repeats) else ", ".join(map(label, busy[:4]))
        found.append(
            f"other programs ran beside: in {who} threads waited for CPUs, up to "
            f"{100 * most:.0f} % of their time"
        )
    times = Counter(run.configuration for run in runs)
    few = [run for run, steps in repeats.items() if min(times[run], len(steps) + 1) < REPEATS]
    if few:
        names = ", ".join(map(label, few[:4]))
        found.append(f"run less than {REPEATS} times, or once with CPUs of their own: {names}")
    wide = {run: half_width([own_time(step) for step in steps]) for run, steps in repeats.items()}
    unsettled = [run for run, half in wide.items() if run not in few and half > UNSETTLED]
    if unsettled:
        worst = max(unsettled, key=lambda run: wide[run])
        found.append(f"repeats of {label(worst)} leave its time open by {100 * wide[worst]:.0f} %")
    return found


def label(run: PlannedRun) -> str:
    """A configuration as screens name it: ``2 x 1 N=96``."""
    return " ".join([run.split, *(f"{name}={value:g}" for name, value in run.settings)])


def _interval(check: Mapping[str, Any]) -> str:
    low, high = (format_time(check[end], digits=3) for end in ("low", "high"))
    return f"{format_time(check['predicted'])} (90 %: {low} .. {high})"
