"""``popmodel report``: everything that is known of some runs, as one page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.base.units import plural
from popmodel.base.values import cut, dataclass
from popmodel.cli.command import argument, option
from popmodel.cli.options import CORES, FOA, FROM_START, REGION, SET, WINDOW
from popmodel.reports import formats
from popmodel.reports.result import Result, save_text

if TYPE_CHECKING:
    from popmodel.cli.inputs import ProfileLike, SignatureLike, TraceLike
    from popmodel.reports.html.contents import Contents
    from popmodel.reports.views import Document, Views
    from popmodel.timeline.timeline import Timeline
    from popmodel.traces import Trace
    from popmodel.traces.selection import Foa, TracePart, Window

    ReportInput: TypeAlias = TraceLike | SignatureLike | Result

EXAMPLES = (
    "popmodel report run.prv -o report.html",
    "popmodel report run_*.prv -o scaling.html",
    "popmodel report run.prv splits.json validate.json -o report.html",
    "popmodel report app.toml --machine machine.json --cores 64 -o splits.html",
    "popmodel report report.html --format json",
)
FORMATS = (formats.HTML.name, formats.JSON.name)
RESOURCES = True
_PROFILE = "popmodel/machine/1"
_NAMED = 3  # inputs whose names a title has


def from_output(output: str | None, format: str | None, _: Mapping[str, Any]) -> dict[str, Any]:
    """A page goes into a file."""
    if output in (None, "-") and format is None:
        raise UsageError("-o is missing: the file to write", "try -o report.html")
    return {}


@dataclass(frozen=True)
class Report(Result):
    """A report, as returned by `report`."""

    contents: Contents  # What its page shows
    files: tuple[str, ...]  # The files that were read

    def __repr__(self) -> str:
        made = plural(len(self.contents.documents), "result")
        return cut(f"<Report of {made}: {self.contents.title}>")

    def to_dict(self) -> dict[str, Any]:
        """Return the report, schema ``popmodel/report/1``; a saved one has its provenance."""
        return dict(self.contents.document)

    def page(self) -> str:
        """Return the page: HTML that needs no network."""
        from popmodel.reports.html.page import page

        saved = "provenance" in self.contents.document
        return page(self.contents if saved else self.contents.with_(self._stamped()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, replacing an existing file."""
        from popmodel.reports.saved_reports import saved_report

        save_text(path, self.page(), lambda page: saved_report(os.fspath(page)))

    @property
    def views(self) -> Views:
        """How the report is shown; its page has what is drawn of traces as well."""
        from popmodel.reports.saved_reports import VIEWS

        return replace(VIEWS, contents=self.contents.with_)


def report(
    inputs: Annotated[
        ReportInput | Iterable[ReportInput],
        argument(
            "INPUT",
            "Traces; results saved as .json; reports (.html); signatures (.toml, or the name of a "
            "bundled one).",
            several=True,
        ),
    ],
    *,
    machine: Annotated[
        ProfileLike | None,
        option(
            "FILE",
            "Machine profile: its network is that of the what-if, and signatures are predicted on "
            "it. May stand among the inputs.",
        ),
    ] = None,
    cores: Annotated[int | Sequence[int] | None, CORES] = None,
    settings: Annotated[Mapping[str, float] | None, SET] = None,
    window: Annotated[Window | None, WINDOW] = None,
    region: Annotated[str | None, REGION] = None,
    from_start: Annotated[bool, FROM_START] = False,
    foa: Annotated[Foa | None, FOA] = None,
) -> Report:
    """Write what is known of some runs as one HTML file, which needs no network.

    Shows the efficiencies of runs and what they cost, each run over time above its replay on an
    ideal network, what another network or CPU would change, regions and messages; and what saved
    results hold: predictions, splits, validations. The results stand in the file as JSON, which
    --format json takes out of it again.

    Parameters
    ----------
    inputs : path, Trace, Signature or Result, or several of them
        Traces; results of other functions, or saved as JSON; pages, whose results are taken;
        signatures.
    machine : str or Profile, optional
        Machine profile: its network is that of the what-if, and signatures are predicted on it.
    cores : int or several, optional
        Numbers of cores whose splits are predicted, of signatures.
    settings : mapping of str to float, optional
        Parameters of the signature.
    window, region, from_start, foa
        The part of the traces; as for `popmodel.metrics`.

    Raises
    ------
    FileError
        If an input cannot be read, or is nothing that a report shows.
    UsageError
        If there is no input, or options contradict each other or fit none of the inputs.

    Examples
    --------
    >>> import popmodel
    >>> found = popmodel.report("examples/traces/stencil3d.2x2.prv.gz")
    >>> [one["schema"] for one in found.to_dict()["documents"]]
    ['popmodel/metrics/1', 'popmodel/whatif/1', 'popmodel/inspect/1']
    >>> found.page().startswith("<!doctype html>")
    True
    """
    from popmodel.base.values import document
    from popmodel.cli.inputs import refuse_options, several, trace_of
    from popmodel.reports.figures import run_names
    from popmodel.reports.html.contents import SCHEMA, Contents
    from popmodel.reports.saved_reports import saved_report
    from popmodel.traces.selection import TracePart

    given = several(inputs)
    if not given:
        raise UsageError("no input given", "name a trace, a saved result (.json) or a signature")
    kinds: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    for one in given:
        kinds[_kind(one)].append(one)
    if len(kinds["profile"]) > 1:
        second = kinds["profile"][1]
        raise UsageError(f"{second}: a second machine profile", "leave one of them out")
    if len(given) == len(kinds["profile"]):
        raise UsageError(
            f"{given[0]}: a machine profile is no run", f"try popmodel machine show {given[0]}"
        )
    if kinds["signature"] and cores is None:
        raise UsageError(
            "--cores is missing, to predict the splits of a signature", "try --cores 64"
        )
    if not kinds["signature"]:
        of_signatures = {"cores": cores, "settings": settings}
        refuse_options(of_signatures, "there is no signature to predict")
    asked = {"window": window, "region": region, "from_start": from_start, "foa": foa}
    if not kinds["trace"]:
        refuse_options(asked, "there is no trace")
    names = run_names(
        [_path(one) for one in given if one not in kinds["profile"]] or [_path(given[0])]
    )
    files = tuple(path for path in map(_path, given) if Path(path).is_file())
    saved = {os.fspath(path): saved_report(os.fspath(path)) for path in kinds["saved"]}
    if saved and len(names) == 1:
        (only,) = saved.values()
        return Report(Contents(only, saved=saved), files)
    left_out: list[dict[str, Any]] = []
    traces = [trace_of(one) for one in kinds["trace"]]
    profile = machine or next(iter(kinds["profile"]), None)
    found = [
        *_of_traces(traces, asked, profile, left_out),
        *_of_signatures(kinds["signature"], profile, cores, settings),
        *map(_stamped, kinds["result"]),
        *(one for each in saved.values() for one in each["documents"]),
    ]
    drawn = tuple(_timelines(traces, TracePart.of(window, region, from_start, foa), left_out))
    more = len(names) - _NAMED
    title = ", ".join([*names[:_NAMED], *([f"{more} more"] if more > 0 else [])])
    made = document(SCHEMA, title=title, documents=found, left_out=left_out)
    return Report(Contents(made, drawn, saved), files)


def _of_traces(
    traces: Sequence[Trace],
    asked: Mapping[str, Any],
    machine: ProfileLike | None,
    left_out: list[dict[str, Any]],
) -> Iterator[Document]:
    """Efficiencies of all runs; of each what it depends on, and who talks to whom."""
    from popmodel.cli.inspect import inspect
    from popmodel.cli.metrics import metrics
    from popmodel.cli.whatif import whatif

    if not traces:
        return
    yield _stamped(metrics(traces, **asked))
    makers: Mapping[str, Callable[[Trace], Result]] = {
        "sensitivity": lambda one: whatif(one, machine=machine, sensitivity=True, **asked),
        "matrix": lambda one: inspect(one, show="communication", **asked),
    }
    for trace in traces:
        for what, make in makers.items():
            try:
                yield _stamped(make(trace))
            except PopmodelError as error:  # the rest of the report is worth having, and says so
                left_out.append({"trace": trace.path, "what": what, "why": error.message})


def _timelines(
    traces: Sequence[Trace], asked: TracePart, left_out: list[dict[str, Any]]
) -> Iterator[Timeline]:
    """What every thread does over time, of each run that has measured times."""
    from popmodel.structure.focus import part_of_run
    from popmodel.timeline.timeline import timeline
    from popmodel.traces.selection import focused

    for trace in traces:
        try:
            yield timeline(focused(trace, part_of_run(asked, trace))[0])
        except PopmodelError as error:  # as above
            left_out.append({"trace": trace.path, "what": "timeline", "why": error.message})


def _of_signatures(
    given: Sequence[SignatureLike],
    machine: ProfileLike | None,
    cores: int | Sequence[int] | None,
    settings: Mapping[str, float] | None,
) -> Iterator[Document]:
    """The splits of each signature on the machine."""
    if not given:
        return
    from popmodel.cli.predict import predict  # a tenth of what reports of traces would take

    for one in given:
        yield _stamped(predict(one, machine=machine, cores=cores, settings=settings))


def _stamped(result: Result) -> Document:
    """The document of a result, with the files that it rests on."""
    from popmodel.base import provenance
    from popmodel.reports.html.contents import command_of

    found = {**result.document_for("html"), **result.to_dict()}
    made = provenance.stamped(found, (), filter(os.path.isfile, result.files))
    command = f"popmodel {command_of(found)}, as a part of popmodel report"
    return {**made, "provenance": {**made["provenance"], "command": command}}


_KINDS = ("trace", "signature", "result", "saved", "profile")


def _kind(given: Any) -> str:
    """What an input is, by its type or its suffix."""
    from popmodel.machines.profile import presets
    from popmodel.model.signature.application import Signature
    from popmodel.model.signatures import bundled
    from popmodel.reports.saved_reports import parsed
    from popmodel.traces import Trace

    for kind, type_ in (("trace", Trace), ("signature", Signature), ("result", Result)):
        if isinstance(given, type_):
            return kind
    if not isinstance(given, str | os.PathLike):
        known = "a path, a trace, a signature or a result"
        raise UsageError(f"inputs: must be {known}, not {type(given).__name__}")
    path = os.fspath(given)
    if path in bundled():
        return "signature"
    if path in presets():
        return "profile"
    match Path(path.lower()).suffix:
        case ".toml":
            return "signature"
        case ".html":
            return "saved"
        case ".json":
            return "profile" if parsed(path).get("schema") == _PROFILE else "saved"
    return "trace"


def _path(one: Any) -> str:
    if isinstance(one, Result):
        return next(iter(one.files), type(one).__name__.lower())
    return os.fspath(one) if isinstance(one, str | os.PathLike) else str(one.path)
