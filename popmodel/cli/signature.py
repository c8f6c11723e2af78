"""``popmodel signature``: what a program does, found in runs and source; shown and checked."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from popmodel.base.errors import PopmodelError, UsageError
from popmodel.base.units import plural
from popmodel.base.values import dataclass, document
from popmodel.cli.command import OfCommand, argument, flag, option, verb
from popmodel.cli.completion import TABLES, TRACES, bundled_signatures
from popmodel.cli.options import (
    APPLICATION,
    BIND,
    CORES_PER_NODE,
    FLOP_RATE,
    FOA,
    FROM_START,
    MACHINE,
    NODES,
    REGION,
    SET,
    WINDOW,
    one_of,
    whole_numbers,
)
from popmodel.reports import formats
from popmodel.reports.result import Result, ResultValue, save_text

if TYPE_CHECKING:
    from popmodel.cli.inputs import ProfileLike, SignatureLike, TraceLike
    from popmodel.model.signature.application import Signature
    from popmodel.model.signature_check import CheckedSignature
    from popmodel.traces import Trace
    from popmodel.traces.selection import Foa, TracePart, Window

SUMMARY = """Find, show and check what a program does.

A signature is a file (.toml) that says what a program computes and communicates, as formulas of its
processes, threads and parameters. It is found in traces or in source code, or written by hand;
predict and validate take it."""
EXAMPLES = (
    "popmodel signature",
    "popmodel signature from run.prv.gz -o app.toml",
    "popmodel signature from small.prv:N=128 large.prv:N=256 -o app.toml",
    "popmodel signature from src/*.c --cflags '-Iinclude' -o app.toml",
    "popmodel signature from app.toml runs.csv --machine m.json -o fitted.toml",
    "popmodel signature show stencil3d -o my_app.toml",
    "popmodel signature check my_app.toml --set N=1024",
    "popmodel signature check app.toml --against run.prv --fail-if 'error > 2%'",
)
DEFAULT = True
OF_ACTION: Mapping[str, Mapping[str, Any]] = {
    "show": {"FORMATS": ()},
    "check": {"CONDITIONS": True},
    "from": {
        "CONDITIONS": True,
        "RESOURCES": True,
        "FORMATS": (*formats.NAMES, formats.HTML.name, formats.TOML.name),
    },
}
RENAMED = {
    "--fail-above": "--fail-if 'error > 2%'",
    "--for": "--cores N: all splits of N cores",
}

_OF_TRACES = ("window", "region", "from_start", "foa", "flop_rate")
_OF_FITS = ("machine", "nodes", "cores_per_node", "cores")
APP = argument(
    "APP",
    "A signature (.toml) or the name of a bundled one.",
    complete=(bundled_signatures, ".toml"),
)


def list_signatures() -> OfCommand:
    """List the bundled signatures."""
    from popmodel.model.signatures import summaries

    return OfCommand(document("popmodel/signatures/1", signatures=summaries()))


def show_signature(
    app: Annotated[str, APP],
    *,
    output: Annotated[
        str | None,
        option("FILE", "Write to FILE (.toml). Default: standard output (-).", short="-o"),
    ] = None,
    force: Annotated[bool, flag("Overwrite FILE if it exists.")] = False,
) -> None:
    """Print a signature as it is. Comments included: to be copied and changed."""
    from popmodel.cli.output import write_file
    from popmodel.cli.streams import write_out
    from popmodel.model.signature.reading import SignatureError
    from popmodel.model.signatures import read

    path, _, text = read(app)
    if "popmodel/signature/" not in text:  # mistakes may be in it, as it may be shown for these
        hint = 'a signature begins with schema = "popmodel/signature/1"'
        raise SignatureError(path, "is not a signature", hint=hint)
    if output is None or output == "-":
        write_out(text)
    else:
        write_file(Path(output), text, force=force)


# -- check


class SignatureCheck(OfCommand):
    """What is wrong with a signature and what it says, as returned by `check_signature`."""

    def values(self) -> list[ResultValue]:
        """Mistakes, remarks, and by how much a trace differs at most."""
        against = self.found["against"]
        worst = None if against is None else against["worst"]
        return [
            ResultValue("error", worst, why="no trace is given with --against"),
            ResultValue("mistakes", len(self.found["mistakes"])),
            ResultValue("remarks", len(self.found["remarks"])),
        ]


@verb
def check_signature(
    app: Annotated[str, APP],
    *,
    settings: Annotated[Mapping[str, float] | None, SET] = None,
    against: Annotated[
        TraceLike | None,
        option(
            "TRACE",
            "Compare with a trace of a run, phase by phase and message by message, both replayed "
            "on the ideal network.",
            complete=TRACES,
        ),
    ] = None,
    window: Annotated[Window | None, WINDOW] = None,
    region: Annotated[str | None, REGION] = None,
    from_start: Annotated[bool, FROM_START] = False,
    foa: Annotated[Foa | None, FOA] = None,
    application: Annotated[int, APPLICATION] = 1,
    flop_rate: Annotated[float | None, FLOP_RATE] = None,
) -> SignatureCheck:
    """Find the mistakes of a signature, and explain it.

    Mistakes are unknown names, clashing units, conditions that never hold, formulas without a
    sensible value. All are listed with their lines; the exit status is 1 if there are any. With a
    trace: where the signature differs from the run.
    """
    options = dict(locals())
    from popmodel.cli.inputs import refuse_options
    from popmodel.model.signature_check import CheckedSignature, check

    if against is None:
        refuse_options(options, "needs --against TRACE", "add it", _OF_TRACES)
        checked = check(app, settings or {})
        found = {**checked.to_dict(), "against": None}
        return SignatureCheck(found, files=(checked.path,), problem=_refused(checked))
    from popmodel.cli.inputs import path_of, signature_of, trace_of
    from popmodel.signatures.compare_replay import against as compared
    from popmodel.structure.focus import part_of_run
    from popmodel.traces.selection import TracePart, focused

    signature = signature_of(app)
    part = TracePart.of(window, region, from_start, foa)
    trace = trace_of(against, application=application, flop_rate=flop_rate, rated=True)
    run = focused(trace, part_of_run(part, trace))[0]
    agreement = compared(signature, run, settings)
    path, size = path_of(against), {"processes": run.processes, "threads": int(max(run.threads))}
    found = {
        **CheckedSignature(signature.path, signature.name, ()).to_dict(),
        "against": {"signature": signature.path, "trace": path, **size, **agreement},
    }
    return SignatureCheck(found, files=(signature.path, path))


def _refused(checked: CheckedSignature) -> PopmodelError | None:
    """That there are mistakes."""
    if not checked.mistakes:
        return None
    from popmodel.model.signature.reading import SignatureError

    line = checked.mistakes[0].line
    where = "" if line is None else f" in line {line}"
    several = len(checked.mistakes) > 1
    hint = f"correct the mistake{where} first: the others may follow from it"
    what = plural(len(checked.mistakes), "mistake")
    return SignatureError(checked.path, what, hint=hint if several else f"correct it{where}")


# -- from


@dataclass(frozen=True)
class FoundSignature(Result):
    """A signature, where it comes from and how good it is, as returned by `signature`."""

    name: str  # Of the application
    text: str | None  # The signature as TOML; None of a fit to one that was read from no file
    files: tuple[str, ...]  # What it was found in
    # What it was found in: "traces", "source" or "signature"; then "runs" if it was fitted to some.
    origins: tuple[str, ...]
    facts: Mapping[str, Any]  # The rest of the document
    fitted: Signature | None = None  # To runs

    @property
    def signature(self) -> Signature:
        """The signature, which `predict` and `validate` take."""
        if self.fitted is not None:
            return self.fitted
        from popmodel.model import signatures

        return signatures.from_text(self.text or "", self.name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the signature to a file, replacing an existing one."""
        from popmodel.model import signatures

        if self.text is None:
            raise UsageError(f"{self.name}: its text is not known", "give the path of its file")
        self._expect_program()
        save_text(path, self.text, signatures.load)

    def document_for(self, format_name: str) -> dict[str, Any]:
        if format_name == "toml":
            self._expect_program()
        return super().document_for(format_name)

    def _expect_program(self) -> None:
        """Raise a `UsageError` if source code does nothing that a signature could hold."""
        source = self.facts.get("source")
        if source and not source["items"]:
            lacking = [note for note in self.facts["notes"] if note.endswith("taken as empty")]
            hint = (
                "name the files that do the work, or macros that switch it on: --cflags -DUSE_MPI"
            )
            if lacking:
                hint = f"{lacking[0]}: give its folder, --cflags -IFOLDER"
            raise UsageError(
                f"{Path(source['files'][0]).name}: nothing in it takes time: no message, no loop "
                "over real numbers or arrays",
                hint,
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/signature-from/1``, without provenance."""
        return document(
            "popmodel/signature-from/1",
            application=self.name,
            path=None,
            origins=list(self.origins),
            **self.facts,
            signature=self.text,
        )

    def values(self) -> list[ResultValue]:
        """How far it is from its runs at most; what a fit gives of runs that were left out."""
        off = [float(abs(row["replayed"] / row["measured"] - 1)) for row in self.facts["fidelity"]]
        worst, why = max(off, default=None), "there is no run to compare with"
        found = [ResultValue("fidelity", worst, why=why)]
        if "calibration" in self.facts:
            accuracy = self.facts["calibration"]["accuracy"]
            found += [
                ResultValue("error", float(accuracy["median_error"])),
                ResultValue("coverage", accuracy["covered"] / accuracy["runs"]),
            ]
        return found


@verb
def signature(
    inputs: Annotated[
        TraceLike | SignatureLike | Iterable[TraceLike | SignatureLike],
        argument(
            "[INPUT...]",
            "Traces of runs, with the problem size where it differs (run.prv.gz:N=128); source "
            "files in C, C++ or Fortran; a signature (.toml or a bundled name) whose uncertain "
            "numbers are fitted to runs: traces, or tables (.csv, .md, .txt, .json, ...).",
            several=True,
            complete=(bundled_signatures, ".toml", *TRACES, *TABLES, ".c", ".cc", ".cpp", ".f90"),
        ),
    ] = (),
    *,
    name: Annotated[
        str | None, option("NAME", "Name of the application. Default: that of the first input.")
    ] = None,
    cflags: Annotated[
        str, option("OPTIONS", "Options of the compiler for source files, such as '-Iinclude'.")
    ] = "",
    scaling: Annotated[
        str,
        option(
            "strong|weak",
            "What is assumed where traces do not tell: the work of the whole program stays with P "
            "and T (strong), or that of a process (weak).",
            one_of(("strong", "weak")),
        ),
    ] = "strong",
    settings: Annotated[Mapping[str, float] | None, SET] = None,
    machine: Annotated[ProfileLike | None, MACHINE] = None,
    nodes: Annotated[int | None, NODES] = None,
    cores_per_node: Annotated[int | None, CORES_PER_NODE] = None,
    bind: Annotated[str, BIND] = "close",
    cores: Annotated[
        Sequence[int] | int | None,
        option(
            "N[,N...]",
            "Of a fit: cores whose splits the run to measure next should tell most of. Default: "
            "four times those of the largest run.",
            whole_numbers,
        ),
    ] = None,
    window: Annotated[Window | None, WINDOW] = None,
    region: Annotated[str | None, REGION] = None,
    from_start: Annotated[bool, FROM_START] = False,
    foa: Annotated[Foa | None, FOA] = None,
    application: Annotated[int, APPLICATION] = 1,
    flop_rate: Annotated[float | None, FLOP_RATE] = None,
) -> FoundSignature:
    """Find what a program does in traces, in its source code, or by a fit to measured runs.

    One trace gives the signature at its processes and threads, with stated assumptions about
    others; several the laws by which work, bytes and counts grow. Source files give counts as
    formulas; nothing is run. A signature with measured runs, or one that was just found in source
    files or traces with tables of runs: what predictions are unsure of, numbers with an interval,
    laws and machine, is fitted to the runtimes and efficiencies.

    With -o app.toml the signature is written; the screen says how far off it is.

    Parameters
    ----------
    inputs : path, Trace or Signature, or several of them
        Traces, source files, or a signature with traces and tables of runs; behind a path
        ``:N=128`` says the problem size of the run.
    name : str, optional
        Of the application; default: that of the first input.
    cflags : str
        Options of the compiler for source files, such as ``"-Iinclude -DUSE_MPI"``.
    scaling : {"strong", "weak"}
        What is assumed where traces say nothing: the work of the whole program stays, or that of a
        process.
    settings : mapping of str to float, optional
        Problem parameters of all runs where they do not say otherwise; of a fit also constants
        that are not to be fitted.
    machine : path, name or Profile, optional
        Of a fit: the machine that the runs were made on.
    nodes, cores_per_node : int, optional
        Of a fit: nodes to use, and cores to use of each.
    bind : {"close", "spread", "none"}
        Of a fit: where the threads of a process are.
    cores : int or sequence of int, optional
        Of a fit: cores whose splits the next measurement should narrow; default: four times those
        of the largest run, as far as the machine has them.
    window, region, from_start, foa, application
        As for `popmodel.metrics`, of every trace.
    flop_rate : float, optional
        As for `popmodel.read`.

    Raises
    ------
    FileError
        If a file cannot be read, the model has no prediction for a run, or a run was used before.
    PartError
        If a run has not that many iterations.
    PopmodelError
        If a signature cannot say what the program does, the traces are of different programs, or
        libclang is not installed.
    UsageError
        If inputs do not go together, or options contradict each other.

    Examples
    --------
    >>> import popmodel
    >>> popmodel.signature("examples/traces/stencil3d.2x2.prv.gz")
    <FoundSignature: stencil3d.2x2 takes ... where its trace takes ... (..., ideal network)>
    >>> fitted = popmodel.signature(
    ...     ["stencil3d", "examples/stencil3d/two-core-vm.csv"],
    ...     machine="examples/profiles/two-core-vm.json",
    ... )
    >>> fitted["error"] < 0.1  # of configurations that were left out
    True
    """
    options = dict(locals())
    from popmodel.cli.inputs import kind_of, refuse_options, several
    from popmodel.traces.selection import TracePart

    kinds: dict[str, list[Any]] = {"source": [], "signature": [], "trace": [], "table": []}
    for given in several(inputs):
        kinds[kind_of(given)].append(given)
    sources, signatures, traces, tables = kinds.values()
    _refuse_mixes(sources, signatures, traces, tables)
    part = TracePart.of(window, region, from_start, foa)
    # what the signature comes from, and the runs that it is fitted to
    runs = [*traces, *tables] if signatures else tables
    if sources and machine is not None:
        runs = [*traces, *tables]
    elif sources and len(traces) > 1:
        raise UsageError(
            f"signature from: {len(traces)} traces beside source files",
            "name one to take numbers from; with --machine the signature is fitted to all",
        )
    if not sources:
        refuse_options(options, "no source file is given", among=("cflags",))
    if signatures:
        refuse_options(options, "the signature has a name", among=("name",))
    if settings and sources and not runs:
        raise UsageError(
            "--set: parameters of a signature from source are set when it is used",
            "popmodel predict app.toml --set NAME=VALUE",
        )
    if not traces:
        refuse_options(options, "needs a trace", among=_OF_TRACES)
    if not runs:
        hint = "popmodel signature from app.toml RUN..."
        refuse_options(options, "needs runs to fit a signature to", hint, _OF_FITS)
    found: FoundSignature | SignatureLike
    if signatures:
        (found,) = signatures
    elif sources:
        found = _from_source(sources, traces[:1], options)
    else:
        found = _from_traces(traces, part, options)
    if isinstance(found, FoundSignature) and not runs:
        return found
    return _fitted(found, runs, part, options)


ACTIONS = {
    "list": list_signatures,
    "show": show_signature,
    "check": check_signature,
    "from": signature,
}


def _refuse_mixes(
    sources: Sequence[Any], signatures: Sequence[Any], traces: Sequence[Any], tables: Sequence[Any]
) -> None:
    """Say what to do instead of what makes no sense."""
    told = [*sources[:1], *signatures]  # what says what the program does
    if not (told or traces or tables):
        raise UsageError(
            "signature from: no input", "name a trace, such as run.prv.gz, or the source files"
        )
    if signatures and len(told) > 1:
        raise UsageError(
            f"signature from: {told[0]} and {told[1]} both say what the program does",
            "give one of them, and runs to fit it to",
        )
    if signatures and not (traces or tables):
        raise UsageError(
            f"signature from: no runs to fit {signatures[0]} to",
            "name traces or tables of measured runs; popmodel signature show prints the file",
        )
    if tables and not (told or traces):
        from popmodel.runs.run_files import read_file
        from popmodel.runs.table import split

        table = tables[0]
        read_file(table if Path(table).exists() else split(table)[0])  # refuses what is none
        raise UsageError(
            f"signature from: {tables[0]} says how long the program took, not what it does",
            "name traces, source files or a signature as well; popmodel predict goes from a table "
            "alone",
        )


def _from_traces(
    traces: Sequence[TraceLike], part: TracePart, given: Mapping[str, Any]
) -> FoundSignature:
    from popmodel.cli.measured_runs import named
    from popmodel.runs.table import numbers_of
    from popmodel.signatures import Run, signature_from
    from popmodel.structure.focus import part_of_run
    from popmodel.traces.selection import PROGRAM, focused

    known = [
        (trace, path, {**(given["settings"] or {}), **numbers_of(path, said)})
        for trace, path, said in map(named, traces)
    ]
    first = known[0][2]
    for _, path, own in known:
        if own.keys() != first.keys():
            names = ", ".join(sorted(first)) or "none"
            raise UsageError(
                f"{path}: other parameters than the first trace ({names})",
                "give the same parameters to every trace, such as run.prv.gz:N=128",
            )
    runs = []
    for trace, _, own in known:
        read = _read(trace, given)
        run, focus = focused(read, part_of_run(part, read))
        runs.append(Run(run, own, focus.why if part != PROGRAM else None))
    learnt = signature_from(runs, name=given["name"], scaling=given["scaling"])
    files = tuple(run.trace.path for run in learnt.runs)
    return FoundSignature(learnt.name, learnt.text, files, ("traces",), learnt.to_dict())


def _read(trace: TraceLike, given: Mapping[str, Any]) -> Trace:
    from popmodel.cli.inputs import trace_of

    rate = given["flop_rate"]
    return trace_of(trace, application=given["application"], flop_rate=rate, rated=True)


def _from_source(
    paths: Sequence[str], traces: Sequence[TraceLike], given: Mapping[str, Any]
) -> FoundSignature:
    from popmodel.cli.measured_runs import named
    from popmodel.source import signature_of_source

    called = given["name"] or Path(paths[0]).stem
    trace, files = None, list(paths)
    if traces:
        trace = _read(named(traces[0])[0], given)
        files.append(trace.path)
    text, draft = signature_of_source(paths, called, shlex.split(given["cflags"]), trace)
    origins = ("source", "traces") if traces else ("source",)
    return FoundSignature(called, text, tuple(files), origins, draft.to_dict())


def _fitted(
    found: FoundSignature | SignatureLike,
    runs: Sequence[TraceLike],
    part: TracePart,
    given: Mapping[str, Any],
) -> FoundSignature:
    """Fit a signature to measured runs: one that was given, or was just found in other inputs."""
    from statistics import median

    from popmodel.cli.inputs import profile_of, several, signature_of
    from popmodel.cli.measured_runs import read_runs
    from popmodel.fit.calibrate import learnt_values, text_of
    from popmodel.fit.calibration_summary import summary
    from popmodel.fit.usable_runs import fit_signature
    from popmodel.model import signatures
    from popmodel.model.run.process_placement import Allocation
    from popmodel.prediction.prediction import subject

    original: str | None = None  # none of a signature that was read from no file
    if isinstance(found, FoundSignature):
        assert found.text is not None
        original = found.text
        before, origins, files = found.signature, found.origins, found.files
    else:
        before, origins = signature_of(found), ("signature",)
        files = (before.path,)
        if before.is_bundled or Path(before.path).exists():
            original = signatures.read(before.name if before.is_bundled else before.path)[2]
    profile = profile_of(given["machine"])
    measured = read_runs(runs, before.params, asked=part, application=given["application"])
    fitted = fit_signature(
        before,
        profile,
        measured.runs,
        given["settings"] or {},
        allocation=Allocation(given["nodes"], given["cores_per_node"], given["bind"]),
        cores=several(given["cores"] or ()),
        warnings=measured.warnings,
    )
    after = fitted.calibrated.signature
    values = learnt_values(fitted.calibrated.fit, after)
    text = None
    if original is not None:
        as_written = signatures.from_text(original, before.path)
        text = text_of(original, as_written, after, values, date.today())
    said = summary(fitted, values, subject(before, profile, fitted.settings))
    fidelity = []  # configurations as measured and as predicted from the others
    for row in said.facts["left_out"]:
        about = {key: row[key] for key in ("processes", "threads", "parameters")}
        run = f"{row['processes']} x {row['threads']}"
        run += "".join(f", {key}={number:g}" for key, number in row["parameters"].items())
        times = {"measured": median(row["measured"]), "replayed": row["value"]}
        fidelity.append({"run": run, **about, **times})
    earlier = found.facts if isinstance(found, FoundSignature) else {}
    facts = {
        **earlier,
        "values": said.values,
        "fidelity": fidelity,
        "caveats": [*earlier.get("caveats", ()), *fitted.warnings],
        "notes": [*said.verdict, *earlier.get("notes", ())],
        "unknown": [
            {"name": value["name"], "source": "constant", "place": value["why"]}
            for value in said.values
            if value["value"] is None
        ],
        "calibration": said.facts,
    }
    every = (*files, profile.path, *measured.files)
    return FoundSignature(before.name, text, every, (*origins, "runs"), facts, after)
