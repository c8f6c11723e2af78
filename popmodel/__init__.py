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
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.efficiency.measure import analyse
    from popmodel.errors import PopmodelError
    from popmodel.machine.profile import load as load_machine
    from popmodel.model.predict import predict
    from popmodel.model.signature.files import load as load_signature
    from popmodel.model.sweep.sweep import sweep
    from popmodel.network.network import Network
    from popmodel.trace import read

_HOMES = {
    "Network": "popmodel.network.network.Network",
    "PopmodelError": "popmodel.errors.PopmodelError",
    "analyse": "popmodel.efficiency.measure.analyse",
    "load_families": "popmodel.efficiency.hierarchy.load_families",
    "load_machine": "popmodel.machine.profile.load",
    "load_signature": "popmodel.model.signature.files.load",
    "predict": "popmodel.model.predict.predict",
    "read": "popmodel.trace.read",
    "sweep": "popmodel.model.sweep.sweep.sweep",
}

__all__ = [
    "Network",
    "PopmodelError",
    "__version__",
    "analyse",
    "load_families",
    "load_machine",
    "load_signature",
    "predict",
    "read",
    "sweep",
]


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'popmodel' has no attribute {name!r}")
    from importlib import import_module

    module, _, attribute = _HOMES[name].rpartition(".")
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
