"""Calls of MPI in source code, and the items that they become."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.base.errors import UsageError
from popmodel.source import signature_of_source

START = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  int rank, size; MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
  int n = atoi(argv[1]); double *a = malloc(8 * n), *b = malloc(8 * n), s = 0, r;
"""


def program(folder: Path, body: str) -> list[dict[str, Any]]:
    """Items of a program."""
    path = folder / "app.c"
    path.write_text(START + body + "\nMPI_Finalize(); return 0; }\n")
    return list(document(path).get("program", []))


def document(path: Path) -> dict[str, Any]:
    return tomllib.loads(popmodel.signature(path).text)


STATUS = "MPI_STATUS_IGNORE"


def test_a_ring_is_a_shift(tmp_path: Path) -> None:
    (item,) = program(
        tmp_path,
        f"MPI_Sendrecv(a, n, MPI_DOUBLE, (rank + 1) % size, 0, b, n, MPI_DOUBLE, "
        f"(rank + size - 1) % size, 0, MPI_COMM_WORLD, {STATUS});",
    )
    assert item == {"shift": {"name": "shift", "dim": 0, "by": 1, "bytes": "8*n"}}


def test_neighbours_in_both_directions_are_a_halo(tmp_path: Path) -> None:
    (item,) = program(
        tmp_path,
        "int rows = n / size + (rank < n % size);\n"
        "int up = rank ? rank - 1 : MPI_PROC_NULL;\n"
        "int down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL; MPI_Request q[4];\n"
        "MPI_Irecv(a, n, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, &q[0]);\n"
        "MPI_Irecv(a, n, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &q[1]);\n"
        "MPI_Isend(b, n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &q[2]);\n"
        "MPI_Isend(b, n, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, &q[3]);\n"
        "MPI_Waitall(4, q, MPI_STATUSES_IGNORE);\n"
        "MPI_Allreduce(&s, &r, rows, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);",
    )[:1]
    assert item["halo"]["bytes_per_cell"] == "8*n"
    assert item["halo"]["mode"] == "nonblocking"


def test_other_partners_are_formulas_of_rank(tmp_path: Path) -> None:
    (item,) = program(
        tmp_path,
        "if (rank % 2 == 0) MPI_Send(a, n, MPI_FLOAT, rank + 1, 0, MPI_COMM_WORLD);\n"
        f"else MPI_Recv(a, n, MPI_FLOAT, rank - 1, 0, MPI_COMM_WORLD, {STATUS});",
    )
    send, receive = item["messages"]["calls"]
    assert (send["do"], send["to"], send["bytes"]) == ("send", "rank + 1", "4*n")
    assert (receive["do"], receive["from"]) == ("recv", "rank - 1")
    assert send["on"] != receive["on"]


def test_what_is_done_every_few_turns_says_so(tmp_path: Path) -> None:
    (item,) = program(
        tmp_path,
        "for (int step = 0; step < n; step++)\n"
        "  if (step % 10 == 9) MPI_Allreduce(&s, &r, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);",
    )
    assert item["loop"]["count"] == "n"
    (inner,) = item["body"]
    assert (inner["collective"]["every"], inner["collective"]["bytes"]) == (10, 8)


def test_what_is_computed_behind_an_exchange_stays_behind_it(tmp_path: Path) -> None:
    (item,) = program(
        tmp_path,
        "for (int step = 0; step < n; step++) {\n"
        "  MPI_Sendrecv(a, n, MPI_DOUBLE, (rank + 1) % size, 0, b, n, MPI_DOUBLE,\n"
        f"               (rank + size - 1) % size, 0, MPI_COMM_WORLD, {STATUS});\n"
        "  for (int i = 0; i < n; i++) a[i] += b[i];\n"
        "  MPI_Barrier(MPI_COMM_WORLD);\n"
        "}",
    )
    assert [kind for inner in item["body"] for kind in inner] == ["shift", "serial", "collective"]


def test_loops_and_messages_of_few_turns_say_so_each(tmp_path: Path) -> None:
    (item,) = program(
        tmp_path,
        "for (int step = 0; step < n; step++) {\n"
        "  if (step % 10 == 0) for (int i = 0; i < n; i++) a[i] *= 2;\n"
        "  if (step % 20 == 0) for (int i = 0; i < n; i++) b[i] *= 3;\n"
        "  for (int i = 0; i < n; i++) a[i] += b[i];\n"
        "  if (step % 5 == 0)\n"
        "    MPI_Sendrecv(a, n, MPI_DOUBLE, (rank + 1) % size, 0, b, n, MPI_DOUBLE,\n"
        f"                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, {STATUS});\n"
        "}",
    )
    rare = [(kind, table.get("every")) for inner in item["body"] for kind, table in inner.items()]
    assert rare == [("serial", 10), ("serial", 20), ("serial", None), ("shift", 5)]


@pytest.mark.parametrize(
    ("call", "op", "size"),
    [
        ("MPI_Bcast(a, n, MPI_INT, 0, MPI_COMM_WORLD)", "bcast", "4*n"),
        ("MPI_Reduce(a, b, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD)", "reduce", 24),
        ("MPI_Alltoall(a, n, MPI_INT, b, n, MPI_INT, MPI_COMM_WORLD)", "alltoall", "4*n"),
        ("MPI_Gather(a, n, MPI_LONG, b, n, MPI_LONG, 0, MPI_COMM_WORLD)", "gather", "8*n"),
    ],
)
def test_collectives_have_their_bytes(call: str, op: str, size: Any, tmp_path: Path) -> None:
    (item,) = program(tmp_path, f"{call};")
    assert (item["collective"]["op"], item["collective"]["bytes"]) == (op, size)


def test_a_program_that_ends_otherwise_requires_it(tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    ends = "if (n % size) MPI_Abort(MPI_COMM_WORLD, 1);\n"
    sends = "MPI_Bcast(a, n / size, MPI_DOUBLE, 0, MPI_COMM_WORLD); return 0; }"
    path.write_text(START + ends + sends)
    document = tomllib.loads(popmodel.signature(path).text)
    assert document["limits"]["require"] == ["(n % P) == 0"]
    assert document["program"][0]["collective"]["bytes"] == "8*n/P"


GRID = (
    "int dims[2] = {0, 0}, wraps[2] = {1, 0}, up, down; MPI_Comm grid; MPI_Status st;\n"
    "MPI_Dims_create(size, 2, dims);\n"
    "MPI_Cart_create(MPI_COMM_WORLD, 2, dims, wraps, 0, &grid);\n"
)


@pytest.mark.parametrize(("dim", "wraps"), [(0, True), (1, False)])
def test_neighbours_in_a_grid_are_formulas_of_rank_where_who_receives_is_open(
    dim: int, wraps: bool, tmp_path: Path
) -> None:
    items = program(
        tmp_path,
        f"{GRID} MPI_Cart_shift(grid, {dim}, 1, &down, &up);\n"
        "if (rank != 7) MPI_Send(a, n, MPI_DOUBLE, up, 0, grid);\n"
        "MPI_Recv(b, n, MPI_DOUBLE, MPI_ANY_SOURCE, 0, grid, &st);",
    )
    text = items[0]["p2p"]["to"]
    sizes = (4, 3)
    for rank in range(12):
        place = list(divmod(rank, sizes[1]))
        place[dim] += 1
        place[dim] %= sizes[dim] if wraps else 99
        to = eval(text, {"rank": rank, "P": 12, "P0": 4, "P1": 3, "floor": int})
        inside = place[dim] < sizes[dim] and rank != 7
        assert to == place[0] * sizes[1] + place[1] if inside else to < 0


def test_the_classes_of_mpi_for_cpp_are_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "app.cpp"
    path.write_text(
        "#include <mpi.h>\nint main(int c, char **v) { MPI::Init(c, v);\n"
        "double x[9] = {}; MPI::COMM_WORLD.Send(x, 9, MPI::DOUBLE, 1, 0); MPI::Finalize(); }\n"
    )
    with pytest.raises(UsageError, match=r"app.cpp:2: uses the C\+\+ classes of MPI"):
        popmodel.signature(path)


def test_a_program_that_does_nothing_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    path.write_text('#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n')
    with pytest.raises(UsageError, match="nothing in it takes time"):
        popmodel.signature(path).save(tmp_path / "app.toml")


def test_what_the_source_does_not_say_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    path.write_text(START.replace("atoi(argv[1])", "secret()").replace(
        "int main", "int secret(void);\nint main"
    ) + "MPI_Bcast(a, n, MPI_INT, 0, MPI_COMM_WORLD); return 0; }")  # fmt: skip
    found = popmodel.signature(path)
    assert found.facts["unknown"] == [{"name": "secret", "source": "secret", "place": "app.c:8"}]
    assert tomllib.loads(found.text)["constants"] == {"secret": "?"}


def test_what_takes_time_elsewhere_is_named(tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    path.write_text(
        "#include <stdio.h>\nvoid dgemm_(int n);\nint main(int c, char **v) {\n"
        "#pragma omp parallel\n{\n#pragma omp barrier\ndgemm_(c);\n}\n"
        'printf("%d", c); return 0; }\n'
    )
    assert popmodel.signature(path).facts["notes"] == [
        "app.c:4: omp parallel: what is outside of its loops is done by one thread",
        "no source here, taken as no time: dgemm_",
    ]


def test_a_partner_that_is_data_is_taken_as_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    path.write_text(
        f"{START} int *to = malloc(8), next = to[1];\n"
        "for (int i = 0; i < n; i++) a[i] += b[i];\n"
        "if (next != -1) { MPI_Send(a, n, MPI_DOUBLE, next, 0, MPI_COMM_WORLD);\n"
        f"MPI_Recv(b, n, MPI_DOUBLE, next, 0, MPI_COMM_WORLD, {STATUS}); }}\n"
        "MPI_Finalize(); return 0; }\n"
    )
    draft = popmodel.signature(path)
    _, item = tomllib.loads(draft.text)["program"]
    assert item["p2p"]["to"] == "(rank + 1) % P if P > 1 and to_1 != -1 else -1"
    (tmp_path / "app.toml").write_text(draft.text)
    times = [
        popmodel.predict(
            tmp_path / "app.toml", procs=2, settings={"n": 9, "to_1": to}
        ).runtime.value
        for to in (1, -1)
    ]
    assert times[0] > times[1]


@pytest.mark.parametrize(
    ("root", "others", "op"),
    [
        ("MPI_Recv(b, n, MPI_DOUBLE, p,", "MPI_Send(a, n, MPI_DOUBLE, 0,", "gather"),
        ("MPI_Send(a, n, MPI_DOUBLE, p,", "MPI_Recv(b, n, MPI_DOUBLE, 0,", "scatter"),
    ],
)
def test_messages_of_one_process_with_all_others_are_a_collective(
    root: str, others: str, op: str, tmp_path: Path
) -> None:
    ends = [
        f"0, MPI_COMM_WORLD{f', {STATUS}' if 'Recv' in call else ''});" for call in (root, others)
    ]
    loop = f"for (int p = 1; p < size; p++) {root} {ends[0]}"
    (item,) = program(tmp_path, f"if (rank == 0) {{ {loop} }} else {others} {ends[1]}")
    assert item == {"collective": {"name": op, "op": op, "bytes": "8*n"}}


def test_arrays_as_parameters_are_those_of_the_caller(tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text(
        "#include <mpi.h>\n#include <stdlib.h>\n"
        "void read(int count, char *words[], int sizes[2]) {\n"
        "  sizes[0] = 10; sizes[1] = 20;\n  if (count > 1) sizes[1] = atoi(words[1]);\n}\n"
        "int main(int argc, char **argv) {\n"
        "  int sizes[2]; double a[100]; MPI_Init(&argc, &argv);\n"
        "  read(argc, argv, sizes);\n"
        "  MPI_Bcast(a, sizes[0] * sizes[1], MPI_DOUBLE, 0, MPI_COMM_WORLD);\n}\n"
    )
    document = tomllib.loads(popmodel.signature(tmp_path / "app.c").text)
    ((name, default),) = document["params"].items()
    assert default == 20
    assert document["program"][0]["collective"]["bytes"] == f"80*{name}"


@pytest.mark.long
def test_a_draft_does_not_depend_on_the_order_of_sets(tmp_path: Path) -> None:
    names = [f"edge{number}" for number in range(8)]
    text = START + "".join(f"int {name} = rank % {i} ? 0 : 1;\n" for i, name in enumerate(names, 2))
    for name in names:
        text += f"MPI_Allreduce(a, b, {name} + 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);\n"
    source = tmp_path / "app.c"
    source.write_text(text + "MPI_Finalize(); return 0; }\n")
    command = [
        sys.executable,
        "-m",
        "popmodel",
        "signature",
        "from",
        str(source),
        "--format",
        "toml",
    ]
    drafts = [
        subprocess.run(
            command, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed}, check=True
        ).stdout
        for seed in "123"
    ]
    assert drafts[0] == drafts[1] == drafts[2]


def test_a_master_with_workers_is_no_scatter(tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    path.write_text(
        f"{START} MPI_Status from;\n"
        "if (rank == 0) for (int task = 0; task < n; task++) {\n"
        "  MPI_Recv(a, 4, MPI_DOUBLE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &from);\n"
        "  MPI_Send(b, 3, MPI_DOUBLE, from.MPI_SOURCE, 0, MPI_COMM_WORLD);\n"
        "} else for (int task = 0; task < n / (size - 1); task++) {\n"
        "  MPI_Send(a, 4, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);\n"
        f"  MPI_Recv(b, 3, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, {STATUS});\n"
        "}\nMPI_Finalize(); return 0; }\n"
    )
    draft = popmodel.signature(path)
    (item,) = tomllib.loads(draft.text)["program"]
    assert item["loop"]["count"] == "floor(n/(P - 1))"
    (send,) = item["body"]
    assert (send["p2p"]["to"], send["p2p"]["bytes"]) == ("(0 if rank != 0 else -1)", 32)
    assert "app.c:10: a master with workers" in draft.facts["notes"][0]


def test_one_message_to_whoever_receives_is_that_message(tmp_path: Path) -> None:
    (item,) = program(
        tmp_path,
        "if (rank == 1) MPI_Send(a, n, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);\n"
        "if (rank == 0)\n"
        f"  MPI_Recv(a, n, MPI_DOUBLE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, {STATUS});",
    )
    assert item["p2p"]["bytes"] == "8*n"
    assert "rank == 1" in item["p2p"]["to"]


def test_all_processes_have_what_a_root_broadcasts(tmp_path: Path) -> None:
    _, item = program(
        tmp_path,
        "int turns = 0; if (rank == 0) turns = n;\n"
        "MPI_Bcast(&turns, 1, MPI_INT, 0, MPI_COMM_WORLD);\n"
        "for (int i = 0; i < turns; i++) a[i] += 1.0;",
    )
    assert item["serial"]["trip"] == "n"
    assert "by_rank" not in item["serial"]


@pytest.mark.parametrize(
    ("count", "call", "size"),
    [
        (
            "n / size",
            "MPI_Allgatherv(a, counts[rank], MPI_DOUBLE, b, counts, starts, MPI_DOUBLE",
            "8*floor(n/P)",
        ),
        (
            "p + 1",
            "MPI_Alltoallv(a, counts, starts, MPI_DOUBLE, b, counts, starts, MPI_DOUBLE",
            "4*P + 4",
        ),
    ],
)
def test_counts_that_a_loop_fills_in_are_known(
    count: str, call: str, size: str, tmp_path: Path
) -> None:
    *_, item = program(
        tmp_path,
        "int *counts = malloc(4 * size), *starts = malloc(4 * size);\n"
        f"for (int p = 0; p < size; p++) {{ counts[p] = {count}; starts[p] = 0; }}\n"
        f"{call}, MPI_COMM_WORLD);",
    )
    assert item["collective"]["bytes"] == size


@pytest.mark.parametrize("call", ["MPI_Allgather", "MPI_Alltoall"])
def test_what_is_gathered_in_place_has_the_size_that_is_received(call: str, tmp_path: Path) -> None:
    (item,) = program(
        tmp_path, f"{call}(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, n, MPI_DOUBLE, MPI_COMM_WORLD);"
    )
    assert item["collective"]["bytes"] == "8*n"


@pytest.mark.parametrize(
    "search", ["MPI_Dims_create(size, 2, d);", "while (d[0] * d[1] != size) d[0]++;"]
)
def test_a_grid_whose_sizes_nobody_knows_is_a_square(search: str, tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    path.write_text(
        "#include <mpi.h>\nint main(int argc, char **argv) {\n"
        "int size, l, r, d[2] = {0, 0}, per[2] = {1, 0}; MPI_Comm c; double a;\n"
        f"MPI_Comm_size(MPI_COMM_WORLD, &size);\n{search}\n"
        "MPI_Cart_create(MPI_COMM_WORLD, 2, d, per, 0, &c);\nMPI_Cart_shift(c, 0, 1, &l, &r);\n"
        "MPI_Sendrecv(&a, 1, MPI_DOUBLE, r, 0, &a, 1, MPI_DOUBLE, l, 0, c, MPI_STATUS_IGNORE);\n"
        "return 0; }\n"
    )
    text, _ = signature_of_source([path], "app")
    found = tomllib.loads(text)
    assert found["decomp"] == {"global": ["P", "P"], "periodic": [True, False]}
    assert found["program"][0]["shift"]["dim"] == 0


def test_messages_of_requests_that_are_kept_stand_where_they_are_started(tmp_path: Path) -> None:
    (loop,) = program(
        tmp_path,
        "MPI_Request q[2];\n"
        "int to = (rank + 1) % size, from = (rank + size - 1) % size;\n"
        "MPI_Send_init(a, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD, &q[0]);\n"
        "MPI_Recv_init(b, n, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, &q[1]);\n"
        "for (int step = 0; step < 20; step++) {\n"
        "  MPI_Startall(2, q); MPI_Waitall(2, q, MPI_STATUSES_IGNORE); }",
    )
    assert loop["loop"]["count"] == 20
    assert [item["shift"]["bytes"] for item in loop["body"]] == ["8*n"]


def test_work_between_a_receive_and_a_send_waits_which_is_said(tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    path.write_text(
        "#include <mpi.h>\n#include <stdlib.h>\n"
        "int main(int argc, char **argv) { int rank, size, n = atoi(argv[1]); double u[100];\n"
        "MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);\n"
        "if (rank > 0) MPI_Recv(u, n, MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, 0);\n"
        "for (int i = 0; i < n; i++) u[i] *= 2;\n"
        "if (rank < size - 1) MPI_Send(u, n, MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD); }\n"
    )
    text = popmodel.signature(path).text
    assert "that the work behind it waits for it is left out" in text.replace("\n# ", " ")
    assert [next(iter(item)) for item in tomllib.loads(text)["program"]] == ["serial", "shift"]


def test_blocks_by_their_ends_are_cells_of_a_process(tmp_path: Path) -> None:
    (item,) = program(
        tmp_path,
        "int lo = rank * n / size;\n"
        "int hi = (rank + 1) * n / size;\n"
        "for (int i = lo; i < hi; i++) a[i - lo] *= 2;",
    )
    assert item["serial"]["trip"] == "n0"
    assert document(tmp_path / "app.c")["decomp"]["global"] == ["n"]


def test_every_which_turn_a_process_has_its_turn_is_said(tmp_path: Path) -> None:
    (loop,) = program(
        tmp_path,
        "int dims[2] = {0, 0};\n"
        "MPI_Dims_create(size, 2, dims); int row = rank / dims[1];\n"
        "for (int k = 0; k < n; k++)\n"
        "  if (row == k % dims[0]) MPI_Bcast(a, n, MPI_DOUBLE, 0, MPI_COMM_WORLD);",
    )
    assert loop["body"][0]["collective"]["every"] == "P0"
    assert document(tmp_path / "app.c")["decomp"]["global"] == ["P", "P"]


@pytest.mark.parametrize(
    ("asked", "words", "required"),
    [
        ("if (argc != 3) exit(1);", 3, []),
        ("if (argc > 1) { if (argc != 4) exit(1); }", 1, []),
        ("if (argc > 1) { if (n % size) exit(1); }", 1, ["(argc <= 1 or (n % P) == 0)"]),
        ("if (n % size) exit(1);", 1, ["(n % P) == 0"]),
    ],
)
def test_what_ends_a_program_is_asked_for_on_its_branch_only(
    asked: str, words: int, required: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "app.c"
    path.write_text(
        "#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        "int main(int argc, char **argv) { int n = 8, size; MPI_Init(&argc, &argv);\n"
        'MPI_Comm_size(MPI_COMM_WORLD, &size); scanf("%d", &n);\n'
        f"{asked}\n"
        "if (argc > 2) MPI_Barrier(MPI_COMM_WORLD);\n"
        "MPI_Bcast(argv, n / size, MPI_INT, 0, MPI_COMM_WORLD); MPI_Finalize(); return 0; }\n"
    )
    document = tomllib.loads(popmodel.signature(path).text or "")
    assert document["params"]["argc"] == words
    assert document.get("limits", {}).get("require", []) == required


@pytest.mark.parametrize("turns", ["n", "7"])
def test_where_a_loop_was_left_is_not_known_after_it(turns: str, tmp_path: Path) -> None:
    items = program(
        tmp_path,
        f"int i, count = 0; for (i = 0; i < {turns}; i++) {{ if (a[i] == s) break; count++; }}\n"
        "MPI_Bcast(a, i, MPI_DOUBLE, 0, MPI_COMM_WORLD);\n"
        "MPI_Bcast(a, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);",
    )
    unknown = document(tmp_path / "app.c")["constants"]
    for item in items[-2:]:
        assert item["collective"]["bytes"].removeprefix("8*") in unknown


def test_a_loop_that_data_ends_is_not_written_with_its_first_turn_apart(tmp_path: Path) -> None:
    (loop,) = program(
        tmp_path,
        "double rest = 1; int turn = 0;\n"
        "while (rest > 1e-8 && turn < n) {\n"
        "  for (int i = 0; i < n; i++) { a[i] *= 2; rest = a[i]; }\n"
        "  MPI_Barrier(MPI_COMM_WORLD); turn++; }",
    )
    assert loop["loop"]["count"] == "n"
    assert [next(iter(item)) for item in loop["body"]] == ["serial", "collective"]


@pytest.mark.parametrize(
    ("made", "bytes_"),
    [
        ("MPI_Type_vector(n, 2, 7, MPI_DOUBLE, &t);", "16*n"),
        ("MPI_Type_create_subarray(2, whole, part, from, MPI_ORDER_C, MPI_FLOAT, &t);", "4*n**2"),
        ("MPI_Type_indexed(2, part, from, MPI_INT, &t);", "8*n"),
        ("MPI_Type_create_struct(2, part, at, kinds, &t);", "12*n"),
        ("MPI_Type_create_resized(MPI_DOUBLE, 0, 800, &t);", 8),
    ],
)
def test_bytes_of_derived_types_are_of_what_they_hold(
    made: str, bytes_: int | str, tmp_path: Path
) -> None:
    (item,) = program(
        tmp_path,
        "int whole[2] = {n + 2, n + 2}, part[2] = {n, n}, from[2] = {1, 1};\n"
        "MPI_Aint at[2] = {0, 8}; MPI_Datatype t, kinds[2] = {MPI_INT, MPI_DOUBLE};\n"
        f"{made} MPI_Type_commit(&t); MPI_Bcast(a, 1, t, 0, MPI_COMM_WORLD);",
    )
    assert item["collective"]["bytes"] == bytes_


def test_calls_of_mpi_that_are_not_followed_are_named_in_cpp_as_well(tmp_path: Path) -> None:
    path = tmp_path / "app.cpp"
    path.write_text(
        "#include <mpi.h>\nint main(int c, char **v) { double x[9] = {}; MPI_Win w;\n"
        "MPI_Win_create(x, 72, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &w);\n"
        "MPI_Put(x, 9, MPI_DOUBLE, 1, 0, 9, MPI_DOUBLE, w);\n"
        "MPI_Bcast(x, 9, MPI_DOUBLE, 0, MPI_COMM_WORLD); }\n"
    )
    notes = popmodel.signature(path).facts["notes"]
    assert "app.cpp:4: MPI_Put is not followed: left out" in notes
    assert not [note for note in notes if "undeclared" in note]


def test_what_a_status_says_of_a_message_is_not_what_was_there_before(tmp_path: Path) -> None:
    items = program(
        tmp_path,
        "int count = 0; MPI_Status st; MPI_Probe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &st);\n"
        "MPI_Get_count(&st, MPI_INT, &count);\n"
        "MPI_Bcast(a, count, MPI_INT, 0, MPI_COMM_WORLD);",
    )
    assert items[-1]["collective"]["bytes"].startswith("4*count")


def test_presets_that_are_fractions_are_numbers(tmp_path: Path) -> None:
    program(
        tmp_path,
        "double width = 21.42; if (argc > 2) width = atof(argv[2]);\n"
        "MPI_Bcast(a, (int)(width * n), MPI_DOUBLE, 0, MPI_COMM_WORLD);",
    )
    assert document(tmp_path / "app.c")["params"]["width"] == 21.42


def test_a_loop_that_data_may_end_early_has_its_most_turns_as_a_number_to_set(
    tmp_path: Path,
) -> None:
    (loop,) = program(
        tmp_path,
        "int turn = 0; do { MPI_Allreduce(&s, &r, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);\n"
        "turn++; } while (r > 1e-3 && turn < 10000);",
    )
    assert document(tmp_path / "app.c")["params"] == {loop["loop"]["count"]: 10000}


def test_a_condition_that_no_formula_says_is_noted(tmp_path: Path) -> None:
    (item,) = program(
        tmp_path,
        "int to; MPI_Request q;\n"
        "if (a[0] > 1) MPI_Isend(a, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD, &q);",
    )
    assert item["p2p"]["to"] == "(rank + 1) % P if P > 1 else -1"
    assert "on a condition that is not known" in popmodel.signature(tmp_path / "app.c").text
