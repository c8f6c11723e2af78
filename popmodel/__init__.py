"""popmodel: analytical performance model and what-if predictor for MPI + OpenMP programs.

The public names are loaded on first use, which keeps ``import popmodel`` fast.

`metrics`, `whatif`, `predict`, `signature` and `validate` do the same as
the commands. Their results have a short ``repr``; ``print`` shows the screen of the command,
``to_dict`` returns the document, ``to_dataframe`` a pandas table, ``plot`` an SVG drawing.
Quantities are in SI units.

Examples
--------
>>> import popmodel
>>> popmodel.metrics("examples/traces/stencil3d.2x2.prv.gz")  # doctest: +ELLIPSIS
<Metrics: Doubtful: in each instance of stencil3d+0x2670 (stencil3d.c:180) even ...>
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from popmodel._version import __version__

if TYPE_CHECKING:
    from popmodel.base.errors import PopmodelError
    from popmodel.cli.check import check
    from popmodel.cli.convert import convert
    from popmodel.cli.docs import docs
    from popmodel.cli.inspect import inspect
    from popmodel.cli.machine import machine
    from popmodel.cli.metrics import metrics
    from popmodel.cli.predict import predict
    from popmodel.cli.report import report
    from popmodel.cli.signature import signature
    from popmodel.cli.study import study
    from popmodel.cli.trace import trace
    from popmodel.cli.validate import validate
    from popmodel.cli.whatif import whatif
    from popmodel.efficiency.hierarchy import load_families
    from popmodel.machines.profile import load as load_machine
    from popmodel.model.signatures import load as load_signature
    from popmodel.network.network import Network
    from popmodel.traces import read
    from popmodel.traces.resources import resources

_HOMES = {
    "Network": "popmodel.network.network.Network",
    "PopmodelError": "popmodel.base.errors.PopmodelError",
    "check": "popmodel.cli.check.check",
    "convert": "popmodel.cli.convert.convert",
    "docs": "popmodel.cli.docs.docs",
    "inspect": "popmodel.cli.inspect.inspect",
    "load_families": "popmodel.efficiency.hierarchy.load_families",
    "load_machine": "popmodel.machines.profile.load",
    "load_signature": "popmodel.model.signatures.load",
    "machine": "popmodel.cli.machine.machine",
    "metrics": "popmodel.cli.metrics.metrics",
    "predict": "popmodel.cli.predict.predict",
    "read": "popmodel.traces.read",
    "report": "popmodel.cli.report.report",
    "resources": "popmodel.traces.resources.resources",
    "signature": "popmodel.cli.signature.signature",
    "study": "popmodel.cli.study.study",
    "trace": "popmodel.cli.trace.trace",
    "validate": "popmodel.cli.validate.validate",
    "whatif": "popmodel.cli.whatif.whatif",
}

__all__ = [
    "Network",
    "PopmodelError",
    "__version__",
    "check",
    "convert",
    "docs",
    "inspect",
    "load_families",
    "load_machine",
    "load_signature",
    "machine",
    "metrics",
    "predict",
    "read",
    "report",
    "resources",
    "signature",
    "study",
    "trace",
    "validate",
    "whatif",
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
    return sorted(__all__)
