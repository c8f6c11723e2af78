"""A traced run gives the numbers that the source does not say, and is checked against the rest."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas
import pytest

from popmodel.source import function_calls, signature_of_source, trace_join

PROGRAM = """#include <mpi.h>
int size_of_part(void); int is_done(void);
double a[99];
int main(int argc, char **argv) {
int part = size_of_part(), P;
MPI_Comm_size(MPI_COMM_WORLD, &P);
MPI_Bcast(a, part, MPI_DOUBLE, 0, MPI_COMM_WORLD);
while (!is_done()) {
MPI_Allreduce(MPI_IN_PLACE, a, 2 * part, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
MPI_Barrier(MPI_COMM_WORLD);
}
MPI_Bcast(a, P, MPI_DOUBLE, 0, MPI_COMM_WORLD);
return 0; }
"""
ROWS = [
    ("MPI_Bcast", 7, 1, 80),
    ("MPI_Allreduce", 9, 25, 160),
    ("MPI_Barrier", 10, 25, None),
    ("MPI_Bcast", 12, 1, 32),
]


def joined(
    rows: Sequence[tuple[str, int, int | list[int], int | None]],
    tmp_path: Path,
    patch: pytest.MonkeyPatch,
    place: str = "app.c:{}",
    program: str = PROGRAM,
    name: str = "app.c",
) -> tuple[dict[str, Any], list[str]]:
    table = pandas.DataFrame(
        {
            "kind": kind,
            "place": place.format(line),
            "process": process,
            "executions": number,
            **dict.fromkeys(("size_min", "size_max"), size),
            "amount": None if size is None else number * size,
        }
        for kind, line, executions, size in rows
        for process, number in enumerate(
            [executions] * 4 if isinstance(executions, int) else executions
        )
        if number
    )
    patch.setattr(trace_join, "calls_by_process", lambda _: table)
    path = tmp_path / name
    path.write_text(program)
    trace: Any = SimpleNamespace(processes=4)
    text, draft = signature_of_source([path], "app", (), trace)
    return tomllib.loads(text), draft.findings


def test_sizes_and_turns_that_only_a_run_knows_come_from_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document, findings = joined(ROWS, tmp_path, monkeypatch)
    assert sorted(document["constants"].values()) == [10, 25]
    assert len(findings) == 1
    assert "of 7 counts and sizes of calls in the trace 5 agree" in findings[0]


def test_what_the_trace_contradicts_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = [*ROWS[:1], ("MPI_Allreduce", 9, 25, 336), ROWS[2], ("MPI_Bcast", 12, 3, 32)]
    other = [*wrong, ("MPI_Reduce", 11, 4, 8)]
    _, findings = joined(other, tmp_path, monkeypatch)
    assert findings[:3] == [
        "app.c:9: MPI_Allreduce: the source says 160 B in each call, the trace 336, 2.1 times that",
        "app.c:12: MPI_Bcast: the source says 1 calls by a process, the trace 3, 3 times that",
        "app.c:11: MPI_Reduce: made 4 times, of which the draft says nothing",
    ]


def test_calls_of_a_program_too_large_to_be_followed_are_not_too_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "#include <mpi.h>\n"
        "void meet(void) { MPI_Barrier(MPI_COMM_WORLD); }\n"
        "int main(int argc, char **argv) { meet(); meet(); return 0; }\n"
    )
    rows = [("MPI_Barrier", 2, 3, None)]
    _, whole = joined(rows, tmp_path, monkeypatch, program=program)
    assert "the source says 2 calls by a process, the trace 3" in whole[0]
    monkeypatch.setattr(function_calls, "MOST_STEPS", 3)
    _, part = joined(rows, tmp_path, monkeypatch, program=program)
    assert "of 1 counts and sizes of calls in the trace 0 agree" in part[0]


def test_a_trace_without_lines_of_the_files_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document, findings = joined(ROWS, tmp_path, monkeypatch, "app+0x{}")
    assert set(document["constants"].values()) == {"?"}
    assert "no call of the trace stands on a line of these files" in findings[0]
    assert "compile them with -g" in findings[0]


BY_PROCESS = """#include <mpi.h>
int is_time(void);
int main(int argc, char **argv) {
int rank; double a;
MPI_Comm_rank(MPI_COMM_WORLD, &rank);
for (int turn = 0; turn < 20; turn++) {
if (rank % 2 && turn > 4)
MPI_Send(&a, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
if (is_time()) {
MPI_Barrier(MPI_COMM_WORLD);
MPI_Bcast(&a, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); } }
return 0; }
"""


@pytest.mark.parametrize(("sends", "broadcasts", "agreeing"), [(15, 3, 4), (16, 3, 3), (15, 4, 3)])
def test_conditions_are_decided_for_each_process_and_turn_or_taken_from_the_trace(
    sends: int, broadcasts: int, agreeing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        ("MPI_Send", 8, [0, sends, 0, 15], 8),
        ("MPI_Barrier", 10, 3, None),
        ("MPI_Bcast", 11, broadcasts, 8),
    ]
    _, findings = joined(rows, tmp_path, monkeypatch, program=BY_PROCESS)
    assert len(findings) == 1 + (agreeing == 3)
    assert f"{agreeing} agree with the source, 1 give" in findings[-1]


def test_a_size_that_hangs_on_a_parameter_of_a_template_comes_from_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = """#include <mpi.h>
template <typename T> void share(const T *a) {
MPI_Bcast((void *)a, 5 * sizeof(T), MPI_BYTE, 0, MPI_COMM_WORLD); }
int main(int argc, char **argv) { double a[5]; share(a); return 0; }
"""
    rows = [("MPI_Bcast", 3, 1, 40)]
    document, findings = joined(rows, tmp_path, monkeypatch, "app.cpp:{}", program, "app.cpp")
    assert list(document["constants"].values()) == [8]
    assert len(findings) == 1


def test_a_receive_has_room_for_more_than_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = PROGRAM.replace(
        "MPI_Barrier(MPI_COMM_WORLD);",
        "MPI_Recv(a, 99, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);",
    )
    for size, is_finding in ((80, False), (800, True)):
        rows = [*ROWS[:2], ("MPI_Recv", 10, 25, size), ROWS[3]]
        _, findings = joined(rows, tmp_path, monkeypatch, program=program)
        assert any("MPI_Recv" in finding for finding in findings) == is_finding


def test_a_process_of_a_trace_has_its_place_in_the_grid(tmp_path: Path) -> None:
    program = """#include <mpi.h>
double a[99];
int main(int argc, char **argv) {
int P, rank, dims[2] = {0, 0}, periods[2] = {0, 0}, at[2]; MPI_Comm grid;
MPI_Init(&argc, &argv); MPI_Comm_size(MPI_COMM_WORLD, &P);
MPI_Dims_create(P, 2, dims); MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
MPI_Comm_rank(grid, &rank); MPI_Cart_coords(grid, rank, 2, at);
MPI_Send(a, 1 + at[0] + 10 * at[1], MPI_DOUBLE, 0, 0, grid);
return 0; }
"""
    path = tmp_path / "app.c"
    path.write_text(program)
    _, draft = signature_of_source([path], "app", ())
    places = draft.interpreter.mpi.places
    for rank, place in enumerate([(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]):
        known = trace_join._ranks_place(draft, rank, 6)
        assert (
            tuple(
                known[symbol] for symbol, _ in sorted(places.items(), key=lambda item: item[1][1])
            )
            == place
        )


def test_calls_at_the_line_where_their_function_begins_are_those_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "#include <mpi.h>\n"
        "void meet(void) {\n" + "\n" * 40 + "MPI_Barrier(MPI_COMM_WORLD);\n" + "\n" * 40 + "\n"
        "MPI_Barrier(MPI_COMM_WORLD); }\n"
        "int main(int argc, char **argv) { meet(); meet(); return 0; }\n"
    )
    for executions, finding in ((4, "of 1 counts"), (5, "the source says 4 calls")):
        rows = [("MPI_Barrier", 2, executions, None)]
        _, findings = joined(rows, tmp_path, monkeypatch, program=program)
        assert finding in findings[0], executions


def test_calls_that_a_note_leaves_out_and_sizes_of_started_requests_do_not_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "#include <mpi.h>\n"
        "int main(int argc, char **argv) { MPI_Request q; MPI_Win w; double a[9];\n"
        "MPI_Win_fence(0, w);\n"
        "MPI_Send_init(a, 9, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &q);\n"
        "MPI_Start(&q); MPI_Wait(&q, 0); }\n"
    )
    rows = [("MPI_Win_fence", 3, 1, None), ("MPI_Start", 5, 1, 72)]
    _, findings = joined(rows, tmp_path, monkeypatch, program=program)
    assert findings == [
        "of 1 counts and sizes of calls in the trace 1 agree with the source, 0 give a number that "
        "it does not say"
    ]
