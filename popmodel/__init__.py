"""popmodel: analytical performance model and what-if predictor for MPI + OpenMP programs.

The names below are loaded when they are first used, so that ``import popmodel`` costs nothing.

Examples
--------
>>> import popmodel
>>> trace = popmodel.read("run.prv")  # doctest: +SKIP
>>> run = popmodel.analyse(trace)  # doctest: +SKIP
>>> mpi = popmodel.load_families()["mpi"]
>>> evaluation = mpi.evaluate(run.observables.aggregates())  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from popmodel._version import __version__

if TYPE_CHECKING:
    from popmodel.errors import PopmodelError
    from popmodel.metrics.hierarchy import load_families
    from popmodel.metrics.measure import analyse
    from popmodel.network.network import Network
    from popmodel.trace import read

_HOMES = {
    "Network": "popmodel.network.network",
    "PopmodelError": "popmodel.errors",
    "analyse": "popmodel.metrics.measure",
    "load_families": "popmodel.metrics.hierarchy",
    "read": "popmodel.trace",
}

__all__ = ["Network", "PopmodelError", "__version__", "analyse", "load_families", "read"]


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'popmodel' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
