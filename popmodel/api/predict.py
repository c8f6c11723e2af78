"""Predictions of runs that have not been made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, TypeAlias

from popmodel.api.inputs import (
    ProfileLike,
    SignatureLike,
    allocation_of,
    numbers,
    profile_of,
    signature_of,
    whole_number,
)
from popmodel.base.errors import UsageError
from popmodel.base.units import format_time
from popmodel.base.values import cut
from popmodel.efficiency.hierarchy import load_families
from popmodel.model.uncertainty import DEFAULT_COUNT, Estimate
from popmodel.prediction import prediction as model
from popmodel.prediction.prediction import ReferenceRun
from popmodel.prediction.prediction import predict as carry_out
from popmodel.reports.predict import views
from popmodel.reports.result import Result

if TYPE_CHECKING:
    from popmodel.reports.views import Views

Reference: TypeAlias = "tuple[int, int] | tuple[int, int, Mapping[str, float]]"
"""Processes, threads, and parameters that differ."""


class Prediction(model.PredictedRun, Result):
    """A predicted run, with the attributes of `popmodel.prediction.prediction.PredictedRun`."""

    to_dict = model.PredictedRun.to_dict

    def __repr__(self) -> str:
        at, top = self.placement, load_families()[model.MAIN_FAMILY].top
        efficiency = self.metrics[model.MAIN_FAMILY][top].value
        return cut(
            f"<Prediction {self.signature.name} on {self.profile.name}: "
            f"{at.processes} x {at.threads}, "
            f"runtime {estimate_text(self.runtime)}, parallel efficiency {100 * efficiency:.1f} %>"
        )

    @property
    def views(self) -> Views:
        return views((model.MAIN_FAMILY,), brief=True)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the result rests on."""
        return (self.signature.path, self.profile.path)


def estimate_text(runtime: Estimate) -> str:
    """A predicted time with its interval: ``1.382 s (90 %: 1.26 s .. 1.42 s)``."""
    text = format_time(runtime.value)
    if runtime.low is None or runtime.high is None:
        return text
    low, high = (format_time(end, digits=3) for end in (runtime.low, runtime.high))
    return f"{text} (90 %: {low} .. {high})"


def predict(
    application: SignatureLike | None = None,
    machine: ProfileLike | None = None,
    procs: int | None = None,
    threads: int = 1,
    settings: Mapping[str, float] | None = None,
    *,
    nodes: int | None = None,
    cores_per_node: int | None = None,
    bind: str = "close",
    imbalance: Mapping[str, float] | None = None,
    reference: Reference | None = None,
    draws: int = DEFAULT_COUNT,
    seed: int = 0,
) -> Prediction:
    """Predict a run of an application on a machine.

    Parameters
    ----------
    application : str, path or Signature, optional
        A signature: a file, the name of a bundled one, or a loaded one; default: ``stencil3d``.
    machine : str, path or Profile, optional
        A machine profile: a file, the name of a preset, or a loaded one; default:
        ``sandybridge-fdr``.
    procs : int
        Number of processes.
    threads : int, optional
        Threads per process, each on a core of its own.
    settings : mapping of str to float, optional
        Parameters of the application that replace those of the signature.
    nodes, cores_per_node : int, optional
        Nodes to use, and cores to use of each; default: as few nodes as possible, all their cores.
    bind : {'close', 'spread', 'none'}, optional
        Where the threads of a process are: next to each other, as far apart as the cores of the
        process allow, or wherever the system puts them.
    imbalance : mapping of str to float, optional
        Spreads of the work of processes that replace those of the signature: ``persistent`` (the
        same process is slow in every step) and ``transient`` (another one in every step), as
        coefficients of variation.
    reference : (int, int) or (int, int, mapping of str to float), optional
        Processes and threads of the run that the scaling metrics compare with, and its parameters
        that differ (weak scaling); default: 1 x 1, or the smallest possible part of this run.
    draws, seed : int, optional
        Number of Monte Carlo draws of the uncertain inputs, and their seed.

    Returns
    -------
    Prediction
        ``runtime``, ``metrics``, ``time`` and so on, each with ``value``, ``low`` and ``high`` in
        SI units.

    Raises
    ------
    FileError
        If a file cannot be read.
    UsageError
        If a parameter is unknown, or the application or the machine does not allow this split; the
        hint names the nearest possible one.
    MissingQuantity
        If the machine profile lacks a value that the application needs.

    Examples
    --------
    >>> import popmodel
    >>> run = popmodel.predict("stencil3d", procs=16, threads=4, settings={"N": 512})
    >>> run.runtime.low < run.runtime.value < run.runtime.high
    True
    >>> run.metrics["hybrid-additive"]["parallel_efficiency"].value > 0.7
    True
    >>> table = run.to_dataframe()
    >>> list(table.columns[-3:])
    ['low', 'high', 'absent']
    """
    if procs is None:
        raise UsageError("the number of processes is missing", "try procs=16")
    found = carry_out(
        signature_of(application).with_imbalance(numbers("imbalance", imbalance)),
        profile_of(machine),
        whole_number("procs", procs),
        whole_number("threads", threads),
        numbers("settings", settings),
        reference=None if reference is None else _reference(reference),
        allocation=allocation_of(nodes, cores_per_node, bind),
        draws=whole_number("draws", draws, 0),
        seed=whole_number("seed", seed, 0),
    )
    return Prediction(**{one.name: getattr(found, one.name) for one in fields(found)})


def _reference(given: Reference) -> ReferenceRun:
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) not in (2, 3):
        raise UsageError(
            f"reference={given!r}: must be processes and threads", "try reference=(1, 4)"
        )
    processes, threads, *rest = given
    return ReferenceRun(
        whole_number("reference processes", processes),
        whole_number("reference threads", threads),
        numbers("reference settings", rest[0]) if rest else {},
    )
