"""What sums of ``popmodel check`` add: ``python tests/benchmarks/check_overhead.py -- COMMAND...``.

Three answers. Calls of MPI, parallel regions and waits that were counted, times what each costs
(measured by ``tracer.c`` beside this file), as a share of the program's CPU time: the bound is 1 %.
CPU time with and without sums, in pairs that alternate, with the 90 % interval of the mean ratio.
And how far efficiencies are from those of a trace: sums of the records of the same run. Without a
command a test of the message rate is run, which is above the bound by nature: nothing but calls.
Exits with status 1 if a bound is missed. ``--pairs N``: 10 by default.
"""

from __future__ import annotations

import math
import os
import runpy
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t

import popmodel
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.observables import Observables
from popmodel.machines.host.toolchain import find_mpi
from popmodel.tracer.commands import Settings, TracedCommand, place, understand, variables
from popmodel.tracer.conversion import merge
from popmodel.tracer.library import Library, find_or_build
from popmodel.tracer.summaries import RunSums, observables_of, read_sums

HERE = Path(__file__).resolve().parent
OF_RECORDS = runpy.run_path(str(HERE / "tracer.py"))
sys.path[0] = str(HERE.parent)
BOUND = 0.01
FAMILY = "hybrid-additive"
COMPARED = (
    *("parallel_efficiency", "process_load_balance", "process_communication_efficiency"),
    "thread_efficiency",
)
SUMMED = Settings(summary=True, call_sites=False)
RATE = """
#include <mpi.h>
int main(int count, char **words)
{
    int rank;
    char out = 0, in[64];
    MPI_Request requests[64];
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < 20000; step++) {
        for (int i = 0; i < 64; i++)
            if (rank == 0)
                MPI_Isend(&out, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &requests[i]);
            else
                MPI_Irecv(&in[i], 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(64, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
}
"""


class Started(NamedTuple):
    """A command, and what it is started with."""

    command: TracedCommand
    library: Library
    environment: dict[str, str]

    def seconds(self, raw: Path | None = None, settings: Settings = SUMMED) -> float:
        """CPU time of a run, s; with a directory for what the tracer keeps."""
        if raw is None:
            return float(OF_RECORDS["processor_time"]([*self.command.words], self.environment))
        raw.mkdir()
        given = variables(self.library.path, raw, settings)
        call = place(self.command, given, self.environment)
        environment = {**self.environment, **call.environment}
        return float(OF_RECORDS["processor_time"]([*call.words], environment))


def costs(library: Library, folder: Path) -> dict[str, float]:
    """Seconds that sums add to a call of MPI and to a construct of OpenMP: means of all kinds."""
    mpi = find_mpi()
    program = folder / "calls"
    source = Path(__file__).with_name("tracer.c")
    words = [*mpi.compiler.command, "-O2", mpi.compiler.openmp, "-o", program, source]
    subprocess.run(words, check=True)
    environment = {"OMP_NUM_THREADS": "1", **os.environ, **OF_RECORDS["ROOT"]}
    plain: dict[Any, list[float]] = {}
    summed: dict[Any, list[float]] = {}
    for number in range(OF_RECORDS["ROUNDS"]):
        raw = folder / f"calls{number}"
        raw.mkdir()
        OF_RECORDS["launch"](program, environment, plain)
        OF_RECORDS["launch"](
            program, {**environment, **variables(library.path, raw, SUMMED)}, summed
        )
    added: dict[str, list[float]] = {}
    for key, times in plain.items():
        extra = statistics.median(summed[key]) - statistics.median(times)
        added.setdefault(key[1], []).append(1e-9 * extra)
    return {family: statistics.mean(some) for family, some in added.items()}


def counted(run: RunSums) -> dict[str, int]:
    """Calls of MPI, and parts of parallel regions, of all threads."""
    rows = np.concatenate([process.rows for process in run.processes])
    return {"MPI": int(rows["families"]["calls"].sum()), "OpenMP": int(rows["parts"].sum())}


def both_efficiencies(started: Started, folder: Path) -> dict[str, tuple[float, float]]:
    """Efficiencies of a run by the sums of its records, and by its trace."""
    from tracer.test_sums import MICROBENCH, add_up

    adder, raw = folder / "adder", folder / "records"
    source = HERE.parent / "tracer" / "programs" / "sums_of_records.c"
    flags = ["-std=c11", "-D_GNU_SOURCE=", "-O1", f"-I{MICROBENCH / 'tracer'}"]
    words = [*find_mpi().compiler.command, *flags, "-o", adder, source]
    subprocess.run(words, check=True)
    started.seconds(raw, Settings())
    add_up(adder, raw, folder / "added")
    merged = merge(raw, folder / "run.prv")

    def values(observed: Observables) -> dict[str, float]:
        return dict(load_families()[FAMILY].evaluate(observed.aggregates(), observed.absent).values)

    ours = values(observables_of(read_sums(folder / "added").processes))
    theirs = values(popmodel.metrics(merged.path).runs[0].observables)
    return {metric: (ours[metric], theirs[metric]) for metric in COMPARED}


def ratio_of(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Mean of the logarithms of second by first, and half its 90 % interval, by Student's t."""
    logs = [math.log(second / first) for first, second in pairs]
    half = t.ppf(0.95, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return statistics.mean(logs), float(half)


def main() -> None:
    """Print the three answers."""
    words = sys.argv[1:]
    pairs_wanted = int(words[words.index("--pairs") + 1]) if "--pairs" in words[:2] else 10
    given = words[words.index("--") + 1 :] if "--" in words else []
    library = find_or_build()
    environment = {**os.environ, **OF_RECORDS["ROOT"]}
    environment.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not given:
            (folder / "rate.c").write_text(RATE)
            subprocess.run(
                [*find_mpi().compiler.command, "-O2", "-o", folder / "rate", folder / "rate.c"],
                check=True,
            )
        command = understand(given or ["mpirun", "-n", "2", str(folder / "rate")])
        started = Started(command, library, environment)
        pairs, sums = [], []
        for number in range(pairs_wanted):
            raw = folder / f"sums{number}"
            plain, summed = started.seconds(), started.seconds(raw)
            pairs.append((plain, summed))
            sums.append(read_sums(raw))
        each = costs(library, folder)
        numbers = counted(sums[0])
        compared = both_efficiencies(started, folder) if given else {}
    seconds = statistics.median(plain for plain, _ in pairs)
    share = sum(each[family] * number for family, number in numbers.items()) / seconds
    print(f"CPU time  {seconds:.3g} s without sums (median of {len(pairs)})")
    for family, number in numbers.items():
        print(f"{family:9} {number} x {1e9 * each[family]:.0f} ns")
    print(f"counted   {100 * share:.3f} % of the CPU time")
    mean, half = ratio_of(pairs)
    low, high = (100 * math.expm1(mean + side * half) for side in (-1, 1))
    print(f"paired    {100 * math.expm1(mean):+.2f} % (90 %: {low:+.2f} .. {high:+.2f})")
    for metric, (ours, theirs) in compared.items():
        print(f"{metric:33} sums {100 * ours:.2f} %, trace {100 * theirs:.2f} %")
    if any(abs(ours - theirs) > BOUND for ours, theirs in compared.values()):
        sys.exit("efficiencies: more than a point from those of the trace")
    if given and share > BOUND:
        sys.exit(f"counted: more than {100 * BOUND:.0f} %")


if __name__ == "__main__":
    main()
