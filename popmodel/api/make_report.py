"""Everything that is known of some runs, as one report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from popmodel.api.communication import communication
from popmodel.api.inputs import ProfileLike, SignatureLike, TraceLike, several, trace_of
from popmodel.api.report_inputs import GivenRuns, kinds, saved_report
from popmodel.api.sensitivity import sensitivity
from popmodel.base import provenance
from popmodel.base.errors import PopmodelError, UsageError
from popmodel.base.plain import document
from popmodel.base.units import plural
from popmodel.base.values import cut, dataclass
from popmodel.cli.metrics import metrics
from popmodel.reports.html.contents import SCHEMA, Contents, verb_of
from popmodel.reports.report import VIEWS
from popmodel.reports.result import Result, save_text
from popmodel.structure.part_of_run import part_of_run
from popmodel.timeline.timeline import timeline
from popmodel.traces.selection import Foa, TracePart, Window, focused

if TYPE_CHECKING:
    from popmodel.reports.views import Document, Views
    from popmodel.timeline.timeline import Timeline
    from popmodel.traces import Trace

ReportInput: TypeAlias = "TraceLike | SignatureLike | Result"

_NAMED = 3
"""Inputs whose names a title has."""


@dataclass(frozen=True)
class Report(Result):
    """A report, as returned by `make_report`."""

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
        save_text(path, self.page(), lambda page: saved_report(os.fspath(page)))

    @property
    def views(self) -> Views:
        """How the report is shown; its page has what is drawn of traces as well."""
        return replace(VIEWS, contents=self.contents.with_)


def make_report(
    inputs: ReportInput | Iterable[ReportInput],
    *,
    machine: ProfileLike | None = None,
    cores: int | Sequence[int] | None = None,
    settings: Mapping[str, float] | None = None,
    window: Window | None = None,
    region: str | None = None,
    from_start: bool = False,
    foa: Foa | None = None,
) -> Report:
    """Collect what is known of some runs, to be looked at as one page.

    Parameters
    ----------
    inputs : path, Trace, Signature or Result, or several of them
        Traces; results of other functions, or saved as JSON; pages, whose results are taken;
        signatures.
    machine : str or Profile, optional
        Machine profile: its network is that of the what-if, and signatures are predicted on it;
        default: the network of `popmodel.sensitivity`, the preset of `popmodel.sweep`.
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
    >>> found = popmodel.make_report("examples/traces/stencil3d.2x2.prv.gz")
    >>> [one["schema"] for one in found.to_dict()["documents"]]
    ['popmodel/metrics/1', 'popmodel/sensitivity/1', 'popmodel/communication/1']
    >>> found.page().startswith("<!doctype html>")
    True
    """
    given = kinds(several(inputs))
    if machine is None and given.profile is not None:
        machine = given.profile
    _refuse_unused(given, cores=cores, settings=settings)
    asked = {"window": window, "region": region, "from_start": from_start, "foa": foa}
    if not given.traces:
        _refuse_without_traces(asked)
    saved = {path: saved_report(path) for path in given.saved}
    if saved and len(given.names) == 1:
        (report,) = saved.values()
        return Report(Contents(report, saved=saved), given.files)
    left_out: list[dict[str, Any]] = []
    traces = [trace_of(one) for one in given.traces]
    found: list[Document] = [
        *_of_traces(traces, asked, machine, left_out),
        *_of_signatures(given.signatures, machine, cores, settings),
        *(_stamped(_verb(one), one) for one in given.results),
        *(one for each in saved.values() for one in each["documents"]),
    ]
    part = TracePart.of(window, region, from_start, foa)
    drawn = tuple(_timelines(traces, part, left_out))
    made = document(SCHEMA, title=_title(given.names), documents=found, left_out=left_out)
    return Report(Contents(made, drawn, saved), given.files)


def _title(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    shown = [*names[:_NAMED], *([f"{more} more"] if more > 0 else [])]
    return ", ".join(shown)


def _refuse_unused(given: GivenRuns, **options: Any) -> None:
    if given.signatures and options["cores"] is None:
        raise UsageError("cores: missing, to predict the splits of a signature", "try --cores 64")
    for name, value in options.items():
        if value is not None and not given.signatures:
            raise UsageError(f"{name}: there is no signature to predict", "name one (.toml)")


def _refuse_without_traces(asked: Mapping[str, Any]) -> None:
    for name, value in asked.items():
        if value:
            raise UsageError(f"{name.replace('_', ' ')}: there is no trace", "leave it out")


def _of_traces(
    traces: Sequence[Trace],
    asked: Mapping[str, Any],
    machine: ProfileLike | None,
    left_out: list[dict[str, Any]],
) -> Iterator[Document]:
    """Efficiencies of all runs; of each what it depends on, and who talks to whom."""
    if not traces:
        return
    found = metrics(traces, **asked)
    yield _stamped("metrics", found)
    for trace in traces:
        makers: Mapping[str, Callable[[Trace], Result]] = {
            "sensitivity": lambda one: sensitivity(one, machine=machine, **asked),
            "communication": lambda one: communication(one, **asked),
        }
        for verb, make in makers.items():
            try:
                yield _stamped(verb, make(trace))
            except PopmodelError as error:  # the rest of the report is worth having, and says so
                left_out.append({"trace": trace.path, "what": verb, "why": error.message})


def _timelines(
    traces: Sequence[Trace], asked: TracePart, left_out: list[dict[str, Any]]
) -> Iterator[Timeline]:
    """What every thread does over time, of each run that has measured times."""
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
    from popmodel.api.sweep import sweep  # a tenth of what reports of traces would take

    for one in given:
        yield _stamped("sweep", sweep(one, machine, cores, settings))


def _verb(result: Result) -> str:
    return verb_of(result.to_dict())


def _stamped(verb: str, result: Result) -> Document:
    """The document of a result, with the files that it rests on."""
    made = provenance.stamped(result.to_dict(), (verb,), filter(os.path.isfile, result.files))
    command = f"popmodel {verb}, as a part of popmodel report"
    return {**made, "provenance": {**made["provenance"], "command": command}}
