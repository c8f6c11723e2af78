"""Predictions beside measured runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from popmodel.api.inputs import (
    ProfileLike,
    SignatureLike,
    TraceLike,
    path_of,
    profile_of,
    several,
    signature_of,
    trace_of,
)
from popmodel.api.results import Result
from popmodel.documents import parse_json, read_text
from popmodel.efficiency.measure import analyse
from popmodel.errors import UsageError
from popmodel.model.measured import Measurement, from_run, read_table
from popmodel.model.predict import predict
from popmodel.model.prediction import MAIN_FAMILY, Prediction
from popmodel.model.run.placement import WHOLE, Allocation
from popmodel.model.signature.program import Signature
from popmodel.model.validate import (
    PREDICTION,
    SCHEMA,
    Predicted,
    Row,
    compare,
    from_document,
    summary,
)
from popmodel.report.validate import views
from popmodel.trace import Trace
from popmodel.units import plural
from popmodel.values import cut, dataclass

if TYPE_CHECKING:
    from popmodel.report.render import Views

__all__ = ["Validation", "validate"]


@dataclass(frozen=True)
class Validation(Result):
    """Predicted beside measured; made by `validate`.

    Attributes
    ----------
    application, machine : str
        What was predicted.
    measured : tuple of Measurement
        The measured runs.
    rows : tuple of Row
        Every quantity of every run.
    inputs : tuple of str
        The files that were read.
    """

    application: str
    machine: str
    measured: tuple[Measurement, ...]
    rows: tuple[Row, ...]
    inputs: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give the document, schema ``popmodel/validate/1``, without provenance."""
        return {
            "schema": SCHEMA,
            "application": self.application,
            "machine": self.machine,
            "measured": [run.to_dict() for run in self.measured if run.window is not None],
            "rows": [row.to_dict() for row in self.rows],
            "summary": summary(self.rows),
        }

    def __repr__(self) -> str:
        runtime = summary(self.rows)["runtime"]
        return cut(
            f"<Validation of {self.application} on {self.machine}: "
            f"{plural(len(self.measured), 'run')}, median error of the runtime "
            f"{100 * runtime['median_error']:.1f} %, {runtime['covered']} of "
            f"{plural(runtime['intervals'], 'interval')} contain the measurement>"
        )

    def _views(self) -> Views:
        return views((MAIN_FAMILY,))

    def _drawn(self, document: dict[str, Any]) -> str:
        from popmodel.report.validate_plot import svg

        return svg(document)

    def _inputs(self) -> tuple[str, ...]:
        return self.inputs


def validate(
    prediction: SignatureLike | Prediction,
    measured: TraceLike | Iterable[TraceLike],
    *,
    machine: ProfileLike | None = None,
    settings: Mapping[str, float] | None = None,
    allocation: Allocation = WHOLE,
    from_start: bool = False,
    cache: bool = True,
) -> Validation:
    """Compare predictions with measured runs.

    Parameters
    ----------
    prediction : path, str, Prediction or Signature
        A prediction, as `predict` gives it or as it was saved (``.json``), or an application to
        predict now.
    measured : path or Trace, or several of them
        Traces, or tables of run times (``.csv``).
    machine : str, path or Profile, optional
        A profile's file, the name of a preset, or one that was loaded.
    settings : mapping of str to float, optional
        Parameters of the application.
    allocation : Allocation
        Nodes and cores that the runs may use.
    from_start : bool
        Take whole traces, not from the end of MPI_Init to MPI_Finalize.
    cache : bool
        Whether to keep parsed traces, and to use those that are kept.

    Raises
    ------
    FileError
        If something cannot be read.
    UsageError
        If a run was measured for whose size there is no prediction, or options contradict.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.validate(
    ...     "stencil3d",
    ...     "examples/stencil3d/two-core-vm.csv",
    ...     machine="examples/profiles/two-core-vm.json",
    ...     settings={"N": 256},
    ... )
    >>> found.rows[0].metric, found.rows[0].processes, found.rows[0].threads
    ('runtime', 1, 1)
    >>> abs(found.rows[0].difference) < 1  # relative to the measured runtime
    True
    """
    given = several(measured)
    if not given:
        raise UsageError("there is no measured run", "name at least one trace or table")
    runs = [run for one in given for run in _measured(one, cache=cache, from_start=from_start)]
    names, inputs, predictions = _predictions(prediction, machine, settings or {}, allocation, runs)
    rows = compare(predictions, runs)
    return Validation(*names, tuple(runs), rows, (*inputs, *map(path_of, given)))


def _measured(given: TraceLike, *, cache: bool, from_start: bool) -> list[Measurement]:
    path = path_of(given)
    if not isinstance(given, Trace) and path.lower().endswith(".csv"):
        return read_table(path)
    return [from_run(analyse(trace_of(given, cache=cache), from_start=from_start))]


def _predictions(
    source: SignatureLike | Prediction,
    machine: ProfileLike | None,
    changes: Mapping[str, float],
    available: Allocation,
    runs: Sequence[Measurement],
) -> tuple[tuple[str, str], list[str], list[Predicted]]:
    """Names, input files and predictions, as given or made for the sizes of the runs."""
    document: Mapping[str, Any] | None = None
    inputs: list[str] = []
    if isinstance(source, Prediction):
        document = source.to_dict()
    elif not isinstance(source, Signature) and os.fspath(source).lower().endswith(".json"):
        inputs = [os.fspath(source)]
        document = PREDICTION.read(parse_json(read_text(inputs[0]), inputs[0]), inputs[0])
    if document is not None:
        if machine is not None or changes or available != WHOLE:
            raise UsageError(
                "--machine, --set, --nodes and --cores-per-node do not go with a prediction that "
                "was saved",
                "name the application instead, to predict anew",
            )
        names = document["application"]["name"], document["machine"]["name"]
        return names, inputs, [from_document(document)]
    assert not isinstance(source, Prediction)
    signature, profile = signature_of(source), profile_of(machine)
    sizes = dict.fromkeys((run.processes, run.threads) for run in runs)
    made = [
        predict(signature, profile, *size, changes, allocation=available).to_dict()
        for size in sizes
    ]
    return (
        (signature.name, profile.name),
        [signature.path, profile.path],
        [from_document(one) for one in made],
    )
