"""The tracer on public programs: ``python tests/programs/table.py SOURCES -o table.md``.

Builds what it finds in SOURCES (see README.md for the folders it looks for), runs each program
with and without the tracer, and writes a table of it: Markdown, or JSON by the suffix of -o.
What cannot be built or run is told and left out; the exit status is 1 if a program did not work or
was counted wrong under the tracer, 2 if nothing could be tried at all.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import counted
import recipes
from recipes import Case, Compilers, NotBuilt, Program

import popmodel
from popmodel.tracer.commands import Settings, understand, variables
from popmodel.tracer.library import find_or_build
from popmodel.traces.codes import RUNNING
from popmodel.traces.recorded_run import Trace
from popmodel.traces.runtime import longest, state_times

PATIENCE = 1800.0  # seconds for a run of a few; only against programs that hang
# A container's user is often root, and runs may have more ranks than cores.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMP_WAIT_POLICY": "passive",
}
SHORT = 0.2  # seconds; programs give two or three digits
ATTEMPTS = 3  # programs do not always do the same: threads that add in another order, say
TOLERANCE = 5e-4  # of a parallel efficiency
NS = 1e9


class NotRun(Exception):
    """A run failed; the message says how, in one line."""


@dataclass(frozen=True)
class Ended:
    """A run of a program that came to its end.

    Attributes
    ----------
    said, errors : str
        Standard output and error, with the file of the recipe; and standard error.
    wall : float
        Seconds of the whole command.
    own : float
        Seconds that the program gives for itself, NaN if it gives none.
    """

    said: str
    errors: str
    wall: float
    own: float


@dataclass(frozen=True)
class Row:
    """A line of the table; times in seconds, sizes in bytes, efficiencies as fractions.

    Attributes
    ----------
    works : bool
        The program verified its result with the tracer as it did without.
    differences : list of str
        What the trace counts otherwise than `counts.c`, and what `metrics` says otherwise than
        the states add up to.
    counted : dict
        What was compared: calls, messages, bytes, regions.
    overhead : dict
        ``median``, ``low``, ``high`` of the ratio of a traced run to the untraced one beside it,
        and ``said``, what the tracer's summary says.
    whole, window : float
        Parallel efficiency from start to end, and between MPI_Init and MPI_Finalize.
    rate : float
        Bytes of trace for a second of the run.
    replay : str or None
        Why the trace cannot be replayed.
    warnings : list of str
        What `info` and `metrics` warn of.
    """

    name: str
    ranks: int
    threads: int
    works: bool
    differences: list[str]
    counted: dict[str, int]
    seconds: float
    overhead: dict[str, Any]
    whole: float
    window: float
    rate: float
    replay: str | None
    warnings: list[str]

    @property
    def right(self) -> bool:
        return self.works and not self.differences and self.replay is None


class Bench:
    """Runs programs with one MPI: alone, counted, traced."""

    def __init__(self, work: Path, compilers: Compilers, launcher: str) -> None:
        self.work = work
        self.compilers = compilers
        self.launcher = launcher

    def command(self, case: Case, place: Path, before: Sequence[str] = ()) -> list[str]:
        words = [word.replace("{build}", str(place)) for word in case.command]
        launch = [self.launcher, "-n", str(case.ranks)] if case.ranks else []
        return [*launch, *before, *words]

    def start(
        self, case: Case, words: Sequence[str], given: Mapping[str, str] | None = None
    ) -> Ended:
        """Run a command in a folder of its own.

        Raises
        ------
        NotRun
            It does not end well.
        """
        threads = {"OMP_NUM_THREADS": str(case.threads)}
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            begin = time.monotonic()
            try:
                done = subprocess.run(
                    list(words),
                    cwd=folder,
                    env={**OPEN_MPI, **os.environ, **threads, **(given or {})},
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                    timeout=PATIENCE,
                    stdin=subprocess.DEVNULL,
                )
            except subprocess.TimeoutExpired:
                raise NotRun(f"not ended after {PATIENCE:.0f} s: {shlex.join(words)}") from None
            wall = time.monotonic() - begin
            said = done.stdout + done.stderr
            if case.file:
                said += "".join(p.read_text() for p in sorted(Path(folder).glob(case.file)))
        if done.returncode:
            end = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or [""]
            raise NotRun(f"exit status {done.returncode}: {end[0]}")
        own = re.search(case.seconds, said) if case.seconds else None
        return Ended(said, done.stderr, wall, float(own[1]) if own else math.nan)

    def plain(self, case: Case, place: Path) -> Ended:
        return self.start(case, self.command(case, place))

    def count(self, case: Case, place: Path, library: Path) -> counted.Counts:
        """Run a case with the counting library."""
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            before = ["env", f"LD_PRELOAD={library}", f"COUNTS_DIR={folder}"]
            self.start(case, self.command(case, place, before))
            return counted.read(Path(folder))

    def trace(self, case: Case, place: Path, output: Path) -> Ended:
        """Trace a case with ``popmodel trace``."""
        command = self.command(case, place)
        words = ["popmodel", "trace", "--force", "-o", str(output), "--", *command]
        return self.start(case, [sys.executable, "-m", *words])

    def pairs(self, case: Case, place: Path, rounds: int) -> list[float]:
        """Ratios of runs that record to the runs beside them that do not.

        Of the program's own times, where they are long enough for the digits it gives.
        """
        command = self.command(case, place)
        library = find_or_build(understand(command)).path
        pairs: list[tuple[Ended, Ended]] = []
        for number in range(rounds):
            with tempfile.TemporaryDirectory(dir=self.work) as raw:
                own = variables(library, Path(raw), Settings())
                before = ["env", *(f"{name}={value}" for name, value in own.items())]
                recording = self.command(case, place, before)
                # What is first alternates: caches and clocks favour the second.
                order = (command, recording) if number % 2 else (recording, command)
                ended = {id(words): self.start(case, words) for words in order}
                if not any(Path(raw).iterdir()):
                    raise NotRun("nothing was recorded: there is nothing to compare")
            pairs.append((ended[id(recording)], ended[id(command)]))
        if all(with_.own >= SHORT and without.own >= SHORT for with_, without in pairs):
            return [with_.own / without.own for with_, without in pairs]
        return [with_.wall / without.wall for with_, without in pairs]


def row(bench: Bench, program: Program, case: Case, place: Path, rounds: int) -> Row:
    """Try everything on one program.

    Raises
    ------
    NotRun, NotCounted
        It does not run without the tracer, or cannot be counted.
    """
    plain = bench.plain(case, place)
    expected = re.search(case.verified, plain.said)
    if expected is None:
        raise NotRun("does not verify its result without the tracer either")
    binary = case.binary(place)
    library = counted.build(
        bench.work / "counts" / f"{program.name}-{binary.name}",
        shlex.split(bench.compilers.c),
        [bench.launcher, "-n", "1"] if case.ranks else [],
        binary,
    )
    output = bench.work / f"{case.name.replace(' ', '-')}-{case.ranks}x{case.threads}.prv"
    for _ in range(ATTEMPTS):
        traced = bench.trace(case, place, output)
        found = re.search(case.verified, traced.said)
        run = popmodel.read(output)
        before, after = bench.count(case, place, library), counted.traced(run, traced.errors)
        if not (different := counted.differences(before, after)):
            break
    ratios = bench.pairs(case, place, rounds)
    found_out = analysed(output)
    size = output.stat().st_size
    return Row(
        case.name,
        case.ranks,
        case.threads,
        found is not None and found.groups() == expected.groups(),
        different + found_out.contradictions,
        {
            "calls": sum(after.calls.values()),
            "messages": after.messages,
            "bytes": after.bytes,
            "regions": after.regions,
        },
        plain.wall if math.isnan(plain.own) else plain.own,
        {
            "median": statistics.median(ratios),
            "low": min(ratios),
            "high": max(ratios),
            "said": said_overhead(traced.errors),
        },
        found_out.whole,
        found_out.window,
        size * NS / run.duration,
        replayed(output),
        found_out.warnings,
    )


def said_overhead(errors: str) -> str | None:
    """What the tracer's summary says that it cost."""
    found = re.search(r"^overhead\s+(.*(?:\n {2,}.*)*)", errors, re.MULTILINE)
    return None if found is None else " ".join(found[1].split())


def ask(*words: str) -> Any:
    """What a command of popmodel answers in JSON.

    Raises
    ------
    NotRun
        It fails.
    """
    done = subprocess.run(
        [sys.executable, "-m", "popmodel", *words, "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NotRun(" ".join(done.stderr.split()) or f"exit status {done.returncode}")
    return json.loads(done.stdout)


def replayed(trace: Path) -> str | None:
    """Why a trace cannot be replayed; None if it can."""
    try:
        ask("whatif", str(trace), "--network", "ideal")
    except NotRun as error:
        return str(error)
    return None


@dataclass(frozen=True)
class Analysed:
    """What popmodel says of a trace: parallel efficiencies, warnings, and what contradicts it."""

    whole: float
    window: float
    warnings: list[str]
    contradictions: list[str]


def analysed(path: Path) -> Analysed:
    """Parallel efficiency of the whole run and of the program in it, and all warnings.

    Both are held against useful time, state 1, added up here.
    """
    trace = popmodel.read(path)
    said = [each["text"] for each in ask("inspect", str(path))["info"]["warnings"]]
    wrong = []
    found = []
    for name, options, part in (
        ("whole run", ["--from-start"], trace),
        ("program", [], trace.window(*program_window(trace))),
    ):
        run = ask("metrics", str(path), *options)["runs"][0]
        value = run["metrics"]["hybrid-additive"]["parallel_efficiency"]
        own = parallel_efficiency(part)
        if abs(value - own) > TOLERANCE:
            wrong.append(f"parallel efficiency, {name}: {own:.4f} added up, {value:.4f} said")
        found.append(value)
    said += run["caveats"] + [each["text"] for each in run["warnings"]]
    return Analysed(*found, list(dict.fromkeys(said)), wrong)


def parallel_efficiency(trace: Trace) -> float:
    """Useful time of all threads, by their number and the runtime.

    That is state 1, less what the trace says that threads waited for locks in it, which have no
    states of their own.
    """
    states = trace.states
    useful = (states.end - states.begin)[states.state == RUNNING].sum()
    useful -= trace.records.lock_waits().value.sum()
    return float(useful / (longest(trace, *state_times(trace)) * trace.locations))


def program_window(trace: Trace) -> tuple[int, int]:
    """From the end of the last MPI_Init to the begin of the first MPI_Finalize; ns."""
    calls = trace.calls()
    names = [calls.names[number] for number in calls.name.tolist()]
    begins = [e for n, e in zip(names, calls.exit.tolist(), strict=True) if "MPI_Init" in n]
    ends = [e for n, e in zip(names, calls.entry.tolist(), strict=True) if n == "MPI_Finalize"]
    return max(begins, default=trace.begin), min(ends, default=trace.end)


def as_markdown(rows: Sequence[Row], missing: Mapping[str, str], facts: Mapping[str, str]) -> str:
    """The table, what is missing in it, and where it was measured."""
    head = (
        "program|ranks x threads|works|counts right|calls|messages|regions|overhead, median (range)"
        "|overhead said|PE whole run|PE program|MB/s of trace|replay"
    )
    lines = [f"| {head.replace('|', ' | ')} |", "|" + "---|" * (head.count("|") + 1)]
    for r in rows:
        cost = r.overhead
        ratio = f"{cost['median']:.3f} ({cost['low']:.3f} to {cost['high']:.3f})"
        said = re.search(r"(?:less than )?[\d.]+(?: to [\d.]+)? %", cost["said"] or "")
        cells = (
            r.name,
            f"{max(r.ranks, 1)} x {r.threads}",
            "yes" if r.works else "NO",
            "yes" if not r.differences else "NO",
            f"{r.counted['calls']:,}",
            f"{r.counted['messages']:,}",
            f"{r.counted['regions']:,}",
            ratio,
            said[0].replace("less than", "<") if said else "-",
            percent(r.whole),
            percent(r.window),
            f"{r.rate / 1e6:.2g}",
            "yes" if r.replay is None else "NO",
        )
        lines.append(f"| {' | '.join(cells)} |")
    for r in rows:
        lines += [f"\n{r.name}: {each}" for each in r.differences]
        lines += [f"\n{r.name}: replay: {r.replay}"] if r.replay else []
    if missing:
        lines += ["", "Left out:", ""] + [f"- {name}: {why}" for name, why in missing.items()]
    lines += ["", *(f"- {name}: {value}" for name, value in facts.items())]
    return "\n".join(lines) + "\n"


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def facts(compilers: Compilers, launcher: str, rounds: int) -> dict[str, str]:
    """Where and with what the table was measured."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    found = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, {model[1] if model else platform.machine()}",
        "popmodel": popmodel.__version__,
        "rounds of the overhead": str(rounds),
        "load at the end": f"{os.getloadavg()[1]:.1f} (5 minutes)",
    }
    for name, words in (
        ("MPI", [launcher, "--version"]),
        ("C", [*shlex.split(compilers.c), "--version"]),
        ("Fortran", [*shlex.split(compilers.fortran or ""), "--version"]),
    ):
        if words[0].startswith("-"):
            continue
        said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        found[name] = said.strip().splitlines()[0] if said.strip() else "unknown"
    return found


def compilers_of(given: argparse.Namespace) -> Compilers:
    """The compiler wrappers asked for, or those on the path."""

    def find(asked: str | None, *names: str) -> str | None:
        return asked or next((path for name in names if (path := shutil.which(name))), None)

    c, cxx = find(given.mpicc, "mpicc"), find(given.mpicxx, "mpicxx", "mpic++")
    if c is None or cxx is None:
        sys.exit("needs the compiler wrappers of an MPI: mpicc and mpicxx, or --mpicc and --mpicxx")
    return Compilers(c, cxx, find(given.fortran, "mpif90", "mpifort"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", type=Path, help="folder with the sources, see README.md")
    parser.add_argument("-o", "--output", type=Path, help="table.md or table.json")
    parser.add_argument("--work", type=Path, help="folder for builds and traces, kept")
    parser.add_argument("--only", default="", help="names of programs or cases, by commas")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of runs for the overhead")
    parser.add_argument("--mpicc")
    parser.add_argument("--mpicxx")
    parser.add_argument("--fortran")
    parser.add_argument("--mpirun", default="mpirun")
    given = parser.parse_args()
    compilers = compilers_of(given)
    work = given.work or Path(tempfile.mkdtemp(prefix="popmodel-programs-"))
    work = work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    bench = Bench(work, compilers, given.mpirun)
    asked = [word.lower() for word in given.only.split(",") if word]
    rows: list[Row] = []
    missing: dict[str, str] = {}
    for program in recipes.PROGRAMS:
        for case in program.cases:
            name = f"{case.name} {max(case.ranks, 1)} x {case.threads}"
            if asked and not any(word in f"{program.name} {name}".lower() for word in asked):
                continue
            try:
                place = recipes.built(program, case, given.sources, work / "build", compilers)
                rows.append(row(bench, program, case, place, given.rounds))
            except (NotBuilt, NotRun, counted.NotCounted) as error:
                missing[name] = str(error)
                print(f"{name}: left out: {error}", file=sys.stderr, flush=True)
            else:
                how = "right" if rows[-1].right else "WRONG"
                print(f"{name}: {how}", *rows[-1].differences, sep="\n  ", file=sys.stderr)
    where = facts(compilers, given.mpirun, given.rounds)
    if given.output and given.output.suffix == ".json":
        data = {"rows": [asdict(r) for r in rows], "missing": missing, "facts": where}
        text = json.dumps(data, indent=1) + "\n"
    else:
        text = as_markdown(rows, missing, where)
    if given.output:
        given.output.write_text(text)
    else:
        print(text)
    sys.exit(2 if not rows else 0 if all(r.right for r in rows) else 1)


if __name__ == "__main__":
    main()
