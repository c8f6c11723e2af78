"""Work that differs from process to process, that options decide, and that nobody can decide."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.source import c_family
from popmodel.source.interpreter import Interpreter
from popmodel.source.source_events import Work, all_events

START = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  int rank, size; MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
  int n = atoi(argv[1]); double *a = malloc(8 * n), *b = malloc(8 * n);
"""


def document(folder: Path, body: str) -> dict[str, Any]:
    path = folder / "app.c"
    path.write_text(f"{START}{body}\nMPI_Finalize(); return 0; }}\n")
    return tomllib.loads(popmodel.signature(path).text)


def only(folder: Path, body: str) -> dict[str, Any]:
    (item,) = document(folder, body)["program"]
    serial: dict[str, Any] = item["serial"]
    return serial


@pytest.mark.parametrize(
    ("body", "trip", "by_rank"),
    [
        ("for (int i = 0; i < n * (rank + 1); i++)", "P*n/2 + n/2", "n*(rank + 1)"),
        ("if (rank == 0) for (int i = 0; i < n; i++)", "n/P", "(1 if rank == 0 else 0)"),
        (
            "if (rank < 2) for (int i = 0; i < n; i++)",
            "n*min(2, P)/P",
            "(1 if rank < 2 else 0)",
        ),
    ],
)
def test_work_by_rank_is_the_mean_with_the_share_of_each(
    body: str, trip: str, by_rank: str, tmp_path: Path
) -> None:
    serial = only(tmp_path, f"{body} a[i] += 1.0;")
    assert (serial["trip"], serial["by_rank"]) == (trip, by_rank)


@pytest.mark.parametrize(
    "rows",
    [
        "int rows = n / size + (rank < n % size);",
        "int rows = n / size; if (rank < n % size) rows = rows + 1;",
        "int rows; if (rank < n % size) rows = n / size + 1; else rows = n / size;",
    ],
)
def test_even_blocks_are_cells_of_the_decomposition(rows: str, tmp_path: Path) -> None:
    found = document(tmp_path, f"{rows} for (int i = 0; i < rows; i++) a[i] += 1.0;")
    assert found["decomp"]["global"] == ["n"]
    assert found["program"][0]["serial"]["trip"] == "n0"


def test_a_last_process_with_the_remainder_has_more_to_do(tmp_path: Path) -> None:
    serial = only(
        tmp_path,
        "int rows = n / size; if (rank == size - 1) rows += n % size;\n"
        "for (int i = 0; i < rows; i++) a[i] += 1.0;",
    )
    for processes, cells in ((4, 22), (5, 10)):
        known = {"P": processes, "n": cells, "floor": lambda value: value // 1}
        by_rank = [eval(serial["by_rank"], {**known, "rank": r}) for r in range(processes)]
        assert by_rank == [cells // processes] * (processes - 1) + [
            cells // processes + cells % processes
        ]
        assert eval(serial["trip"], known) == pytest.approx(cells / processes)


def test_the_number_of_arguments_is_a_number(tmp_path: Path) -> None:
    serial = only(tmp_path, "for (int i = 0; i < n; i++) a[i] = argc;")
    assert (serial["trip"], serial["stores"]) == ("n", 1)


def test_options_in_a_loop_over_the_arguments_are_parameters(tmp_path: Path) -> None:
    found = document(
        tmp_path,
        "int steps = 10;\n"
        "for (int k = 1; k < argc; k++) if (argv[k][0] == '-') steps = atoi(argv[k + 1]);\n"
        "for (int step = 0; step < steps; step++) MPI_Barrier(MPI_COMM_WORLD);",
    )
    assert found["params"]["steps"] == 10
    assert found["program"][-1]["loop"]["count"] == "steps"


def test_of_two_branches_that_nobody_can_decide_the_dearer_counts_alone(tmp_path: Path) -> None:
    serial = only(
        tmp_path,
        "if (a[0] > 0) for (int i = 0; i < n; i++) a[i] += 1.0;\n"
        "else for (int i = 0; i < n; i++) a[i] += b[i] * 2.0 * b[i + 1];",
    )
    assert (serial["trip"], serial["flops"]) == ("n", 3)


def test_what_processes_and_parameters_decide_is_done_where_they_say_so(tmp_path: Path) -> None:
    barrier, work = document(
        tmp_path,
        "if (size > 4) MPI_Barrier(MPI_COMM_WORLD);\n"
        "if (n > 100) for (int i = 0; i < n; i++) a[i] += 1.0;",
    )["program"]
    assert barrier["loop"]["count"] == "(1 if P > 4 else 0)"
    assert work["serial"]["trip"] == "n*(1 if n > 100 else 0)"


def test_a_case_that_divides_by_zero_is_none(tmp_path: Path) -> None:
    serial = only(
        tmp_path,
        "int block = size > 3 ? n / 8 : 0;\nfor (int i = 0; i < n / block; i++) a[i] += 1.0;",
    )
    assert serial["trip"] == "floor(n/floor(n/8))"


def test_equal_loops_stand_once_with_their_count(tmp_path: Path) -> None:
    turn = "for (int i = 0; i < n; i++) { MPI_Barrier(MPI_COMM_WORLD); a[i] += 1.0; }\n"
    (item,) = document(tmp_path, turn * 3)["program"]
    assert item["loop"]["count"] == 3
    (inner,) = item["body"]
    assert inner["loop"]["count"] == "n"


def test_functions_that_compute_are_followed_longer_than_others(tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    path.write_text(
        "#include <stdlib.h>\ndouble a[100];\n"
        "void step(int n, int at) { for (int i = 0; i < n; i++) a[i] += at * 2.0; }\n"
        "int main(int argc, char **argv) {\nint n = atoi(argv[1]);\n"
        + "step(n, 3);\n" * 3000
        + "return 0; }\n"
    )
    made = Interpreter(c_family.read([path]))
    made.run()
    works = [event for event in all_events(made.events) if isinstance(event, Work)]
    assert len(works) == 3000


def test_a_number_that_only_a_long_formula_names_is_asked_for(tmp_path: Path) -> None:
    names = [f"extent_of_the_{number}th_axis" for number in range(6)]
    text = "".join(f"int {name}(void); int v{name} = {name}();\n" for name in names)
    product = " + ".join(f"{3 + i} * v{name} * v{name}" for i, name in enumerate(names))
    found = document(tmp_path, f"{text} for (int i = 0; i < {product}; i++) a[i] += 1.0;")
    assert set(found["constants"]) == set(names)


def test_work_by_a_formula_of_rank_that_is_too_long_is_that_of_the_mean(tmp_path: Path) -> None:
    names = [f"{'long' * 20}{number}" for number in range(30)]
    read = " ".join(f"int {name} = atoi(argv[{at}]);" for at, name in enumerate(names, 1))
    path = tmp_path / "app.c"
    path.write_text(
        "#include <mpi.h>\n#include <stdlib.h>\nint main(int argc, char **argv) {\n"
        f"int rank; MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank); {read}\n"
        f"int n = rank + {' + '.join(names)}; double *a = malloc(8);\n"
        "for (int i = 0; i < n; i++) a[i] = 1; MPI_Finalize(); return 0; }\n"
    )
    found = popmodel.signature(path)
    found.save(tmp_path / "app.toml")
    assert "by_rank" not in found.text
