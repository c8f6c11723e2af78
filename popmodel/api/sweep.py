"""All splits of cores into processes and threads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from numbers import Real
from typing import TYPE_CHECKING

from popmodel.api.inputs import (
    ProfileLike,
    SignatureLike,
    allocation_of,
    number,
    numbers,
    profile_of,
    several,
    signature_of,
    whole_number,
)
from popmodel.api.predict import estimate_text
from popmodel.base.errors import UsageError, did_you_mean
from popmodel.base.units import count, parse_size
from popmodel.base.values import cut
from popmodel.model.scale_factors import WHAT_IF
from popmodel.model.uncertainty import DEFAULT_COUNT
from popmodel.prediction import split_sweep as model
from popmodel.reports.result import Result
from popmodel.reports.sweep import VIEWS

if TYPE_CHECKING:
    from popmodel.prediction.split_sweep import Step
    from popmodel.reports.views import Views


class Sweep(model.SplitSweep, Result):
    """Splits of cores, with the attributes of `popmodel.prediction.split_sweep.SplitSweep`."""

    to_dict = model.SplitSweep.to_dict

    def __repr__(self) -> str:
        lines = []
        for choice in self.choices:
            placement = choice.taken.placement
            lines.append(
                f"{count(placement.processes * placement.threads)} cores: "
                f"{placement.processes} x {placement.threads}, "
                f"{estimate_text(choice.taken.runtime)}"
            )
        shown = [*lines[:_SHOWN], "..."] if len(lines) > _SHOWN else lines
        head = f"<Sweep {self.signature.name} on {self.profile.name}: "
        return cut(f"{head}{len(self.candidates)} splits; recommended for {'; '.join(shown)}>")

    @property
    def views(self) -> Views:
        return VIEWS

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the result rests on."""
        return (self.signature.path, self.profile.path)


_SHOWN = 3


def sweep(
    application: SignatureLike | None = None,
    machine: ProfileLike | None = None,
    cores: int | Iterable[int] | None = None,
    settings: Mapping[str, float] | None = None,
    *,
    imbalance: Mapping[str, float] | None = None,
    what_if: Mapping[str, float] | None = None,
    nodes: int | None = None,
    cores_per_node: int | None = None,
    bind: str = "close",
    max_memory: float | str | None = None,
    efficiency: float | None = None,
    draws: int = DEFAULT_COUNT,
    seed: int = 0,
    step: Step | None = None,
) -> Sweep:
    """Find the best split of cores into processes and threads.

    Parameters
    ----------
    application : str, path or Signature, optional
        A signature: a file, the name of a bundled one, or a loaded one; default: ``stencil3d``.
    machine : str, path or Profile, optional
        A machine profile: a file, the name of a preset, or a loaded one; default:
        ``sandybridge-fdr``.
    cores : int or iterable of int
        Numbers of cores; omit it to find the largest number that keeps `efficiency`.
    settings : mapping of str to float, optional
        Parameters of the application that replace those of the signature.
    imbalance : mapping of str to float, optional
        Spreads of the work of processes that replace those of the signature: ``persistent`` (the
        same process is slow in every step) and ``transient`` (another one in every step), as
        coefficients of variation.
    what_if : mapping of str to float, optional
        Factors on ``latency``, ``bandwidth``, ``memory``, ``clock``, ``openmp``, ``imbalance``.
    nodes, cores_per_node : int, optional
        Nodes to use, and cores to use on each; default: as few nodes as possible, all their cores.
    bind : {'close', 'spread', 'none'}, optional
        Where the threads of a process are: next to each other, as far apart as the cores of the
        process allow, or wherever the system puts them.
    max_memory : float or str, optional
        Memory limit per process: bytes, or text such as ``"2GiB"``.
    efficiency : float, optional
        Parallel efficiency to keep, if `cores` is left out.
    draws, seed : int, optional
        Draws of the uncertain inputs behind intervals and probabilities, and their seed.
    step : callable, optional
        Called after every split with the number of splits done and that of all: a progress bar.

    Returns
    -------
    Sweep
        ``candidates`` and, for each number of cores, one of ``choices``, or why there is none in
        ``impossible``.

    Raises
    ------
    FileError
        If a file cannot be read.
    UsageError
        If no split of any number of cores is possible; the message gives the reason for the first.
    MissingQuantity
        If the machine profile lacks a value that the application needs.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.sweep("stencil3d", cores=64)
    >>> [one.split for one in found.candidates]
    [(64, 1), (32, 2), (16, 4), (8, 8), (4, 16)]
    >>> found.choices[0].taken.probability_best > 0.1
    True
    >>> table = found.to_dataframe()[["processes", "threads", "runtime_value"]]
    >>> picture = found.plot()  # picture.save("sweep.svg")
    """
    if efficiency is None and (cores is None or not several(cores)):
        raise UsageError("the number of cores is missing", "try cores=64")
    if cores is not None and efficiency is not None:
        raise UsageError("cores and efficiency cannot be combined", "leave one of them out")
    if efficiency is not None and not (isinstance(efficiency, Real) and 0 < efficiency <= 1):
        raise UsageError(
            f"efficiency={efficiency!r}: must be above 0 and at most 1",
            "try efficiency=0.8",
        )
    changes = numbers("what_if", what_if)
    for name, factor in changes.items():
        check_change(name, factor, f"what_if: {name}={factor!r}")
    limit = None if max_memory is None else number("max_memory", max_memory, parse_size)
    if limit is not None and not limit >= 0:
        raise UsageError(
            f"max_memory={max_memory!r}: must not be negative", "try max_memory='2GiB'"
        )
    counts = None if cores is None else [whole_number("cores", one) for one in several(cores)]
    found = model.sweep(
        signature_of(application).with_imbalance(numbers("imbalance", imbalance)),
        profile_of(machine),
        counts,
        numbers("settings", settings),
        what_if=changes,
        allocation=allocation_of(nodes, cores_per_node, bind),
        max_memory=limit,
        efficiency=efficiency,
        draws=whole_number("draws", draws, 0),
        seed=whole_number("seed", seed, 0),
        step=step,
    )
    return Sweep(**{one.name: getattr(found, one.name) for one in fields(found)})


def check_change(name: str, factor: float, given: str) -> None:
    """Refuse a what-if change of something unknown, and one by no factor."""
    if name not in WHAT_IF:
        hint = did_you_mean(name, WHAT_IF, f"known: {', '.join(WHAT_IF)}")
        raise UsageError(f"{given}: unknown name {name!r}", hint)
    if not 0 < factor < math.inf:
        raise UsageError(f"{given}: must be a factor above 0", "0.5 halves, 2 doubles")
