"""Where calls of MPI stand: what the library records, and what a merged trace says of it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from tracer.raw_files import CALLS
from tracer.source_lines import lines_found_in, lines_of, sites_of
from tracer.traced import HERE, Mpi, Run

from popmodel import traces as reader
from popmodel.tracer.conversion import merge
from popmodel.tracer.symbol_table import SourceLines
from popmodel.traces.codes import Event
from popmodel.traces.paraver.numbers import NUMBERS

SOURCE = HERE / "programs" / "sites.c"

CALLER, LINE = NUMBERS[Event.CALLER], NUMBERS[Event.CALLER_LINE]


needs_lines = pytest.mark.skipif(
    shutil.which("addr2line") is None, reason="needs addr2line (binutils)"
)


@pytest.mark.long(after=1)
@needs_lines
@pytest.mark.parametrize(
    "flags", [["-O0"], ["-O2", "-fomit-frame-pointer"], ["-O2", "-no-pie"]], ids=" ".join
)
def test_each_call_has_its_line(run: Run, program: Callable[..., Path], flags: list[str]) -> None:
    done = run.start(2, program("sites", "-g", *flags))
    assert done.returncode == 0, done.stderr
    expected = lines_of(SOURCE)
    found = [lines_found_in(process) for process in run.processes()]
    assert {name: found[0][name] | found[1][name] for name in expected} == expected


def test_misses_of_two_places_are_not_one_call(run: Run, program: Callable[..., Path]) -> None:
    done = run.start(2, program("sites"))
    assert done.returncode == 0, done.stderr
    receiver = run.processes()[0]
    assert len([key for key in sites_of(receiver) if key[0] == "Test"]) == 2
    enters = receiver.of("ENTER")
    tests = [int(r["c"]) >> 48 for r in enters if CALLS[int(r["call"])] == "Test"]
    assert all(one != other for one, other in pairwise(tests))


def test_sites_can_be_left_out(run: Run, program: Callable[..., Path]) -> None:
    done = run.start(2, program("sites"), before="POPMODEL_TRACE_CALL_SITES=0")
    assert done.returncode == 0, done.stderr
    for process in run.processes():
        assert {number for _, number in sites_of(process)} == {0}
        assert not process.events("site")


def test_calls_of_a_library_are_the_library_s(run: Run, mpi: Mpi, tmp_path: Path) -> None:
    """A library that the program is linked with, and that calls MPI for it."""
    source = tmp_path / "halo.c"
    source.write_text(
        "#include <mpi.h>\nint halo(void)\n{\n    return MPI_Barrier(MPI_COMM_WORLD) + 0;\n}\n"
    )
    main = tmp_path / "main.c"
    main.write_text(
        "#include <mpi.h>\nint halo(void);\nint main(void)\n{\n    MPI_Init(0, 0);\n"
        "    int bad = halo();\n    MPI_Finalize();\n    return bad;\n}\n"
    )
    library, made = tmp_path / "libhalo.so", tmp_path / "app"
    for command in (
        ["-shared", "-fPIC", "-O0", "-o", library, source],
        ["-o", made, main, library, f"-Wl,-rpath,{tmp_path}"],
    ):
        subprocess.run([*mpi.mpicc, *command], check=True)
    done = run.start(1, made)
    assert done.returncode == 0, done.stderr
    target = tmp_path / "x.prv"
    merge(run.raw, target, locate=SourceLines())
    trace = reader.read(target)
    labels = trace.records.labels.event_values
    assert set(labels[CALLER].values()) == {"End", "main", "halo"}
    assert {re.sub(r"0x[0-9a-f]+", "0x", text) for text in labels[LINE].values()} == {
        "End", "0 (app+0x, app)", "0 (libhalo.so+0x, libhalo.so)",
    }  # fmt: skip


@needs_lines
def test_a_trace_names_callers_as_extrae_does(
    run: Run, program: Callable[..., Path], tmp_path: Path
) -> None:
    done = run.start(2, program("sites", "-g"))
    assert done.returncode == 0, done.stderr
    target = tmp_path / "x.prv"
    merge(run.raw, target, locate=SourceLines())
    labels = (tmp_path / "x.pcf").read_text()
    assert re.search(rf"^0 +{CALLER} +Caller at level 1$", labels, re.M)
    assert re.search(rf"^0 +{LINE} +Caller line at level 1$", labels, re.M)
    (line,) = lines_of(SOURCE)["Allreduce"]
    number = line.rpartition(":")[2]
    assert re.search(rf"^\d+ +{number} \(sites.c, sites-g\)$", labels, re.M)
    entries = [text for text in target.read_text().splitlines() if ":50000002:10:" in text]
    assert len(entries) == 2
    assert all(f":{CALLER}:" in text and f":{LINE}:" in text for text in entries)
