"""What the source shows that could be faster: blocking sends in a cycle, shared cache lines."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import popmodel

RING = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {{
  int rank, size, n = atoi(argv[1]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int next = (rank + 1) % size, last = (rank + size - 1) % size;
  double *out = malloc(8 * n), *in = malloc(8 * n);
  MPI_Request r;
  for (int step = 0; step < 100; step++) {{ {} }}
  MPI_Finalize();
}}
"""
SEND = "MPI_Send(out, n, MPI_DOUBLE, next, 0, MPI_COMM_WORLD);"
RECV = "MPI_Recv(in, n, MPI_DOUBLE, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);"
LOOPS = """
#include <stdlib.h>
#include <omp.h>
int main(int argc, char **argv) {{
  long n = atol(argv[1]);
  double *sum = malloc(64 * n), *a = malloc(64 * n);
  {}
}}
"""


EACH = "for (long i = 0; i < n; i++)"


def drafted(folder: Path, text: str) -> popmodel.FoundSignature:
    """The draft of a program."""
    path = folder / "app.c"
    path.write_text(text.replace("EACH", EACH))
    return popmodel.signature(path)


def shared_writes(found: popmodel.FoundSignature) -> list[dict[str, Any]]:
    """Tables of shared lines in the loops of a draft."""
    assert found.text is not None
    items = [item.get("parallel", {}) for item in tomllib.loads(found.text)["program"]]
    return [item["shared_writes"] for item in items if "shared_writes" in item]


def test_a_ring_of_blocking_sends_is_one_and_a_prediction_says_what_to_do(tmp_path: Path) -> None:
    found = drafted(tmp_path, RING.format(SEND + RECV))
    (advice,) = found.facts["notes"]
    assert advice.startswith("app.c:12: MPI_Send before MPI_Recv on all processes")
    path = tmp_path / "app.toml"
    found.save(path)
    given = {"procs": 64, "threads": 1, "settings": {"n": 100_000}}
    blocking = popmodel.predict(path, **given)
    at_once = popmodel.predict(drafted(tmp_path, RING.format(
        "MPI_Irecv(in, n, MPI_DOUBLE, last, 0, MPI_COMM_WORLD, &r);" + SEND
        + "MPI_Wait(&r, MPI_STATUS_IGNORE);")).signature, **given)  # fmt: skip
    change = at_once.runtime.value / blocking.runtime.value - 1
    assert change < -0.9
    assert blocking.remedies["MPI_Sendrecv in send"] == pytest.approx(1 / 64 - 1)
    assert not any("MPI_Sendrecv" in remedy for remedy in at_once.remedies)


@pytest.mark.parametrize(
    "calls",
    [
        "MPI_Irecv(in, n, MPI_DOUBLE, last, 0, MPI_COMM_WORLD, &r);" + SEND + "MPI_Wait(&r, 0);",
        "MPI_Isend(out, n, MPI_DOUBLE, next, 0, MPI_COMM_WORLD, &r);" + RECV + "MPI_Wait(&r, 0);",
        "MPI_Sendrecv(out, n, MPI_DOUBLE, next, 0, in, n, MPI_DOUBLE, last, 0, MPI_COMM_WORLD, 0);",
        f"if (rank % 2) {{ {SEND} {RECV} }} else {{ {RECV} {SEND} }}",
    ],
)
def test_messages_that_wait_for_nobody_need_no_advice(calls: str, tmp_path: Path) -> None:
    assert drafted(tmp_path, RING.format(calls)).facts["notes"] == []


@pytest.mark.parametrize(
    ("loop", "table"),
    [
        (
            "#pragma omp parallel for schedule(static, 1)\nEACH sum[i] = a[i];",
            {"count": "n", "bytes": 8, "chunk": 1},
        ),
        (
            "#pragma omp parallel for schedule(dynamic, 3)\n"
            "EACH sum[2 * i] += a[i];",
            {"count": "n", "bytes": 16, "chunk": 3},
        ),
        (
            "#pragma omp parallel for\nfor (int t = 0; t < omp_get_num_threads(); t++)\n"
            "EACH sum[t] += a[8 * i + t];",
            {"count": "T*n", "bytes": 8, "chunk": 1},
        ),
    ],
)  # fmt: skip
def test_lines_that_threads_share_are_charged_and_named(
    loop: str, table: dict[str, Any], tmp_path: Path
) -> None:
    found = drafted(tmp_path, LOOPS.format(loop))
    assert shared_writes(found) == [table]
    assert f"same cache lines of sum, {table['bytes']} B apart" in found.facts["notes"][0]
    given = {"procs": 1, "threads": 4, "settings": {"n": 1_000_000}}
    remedies = popmodel.predict(found.signature, **given).remedies
    assert remedies["no false sharing in main"] < -0.01


def test_an_element_by_the_number_of_a_thread_is_named(tmp_path: Path) -> None:
    region = "#pragma omp parallel\n{{ int me = omp_get_thread_num();\nEACH {} }}"
    for store, is_shared in (("sum[me] += a[i];", True), ("sum[8 * me] += a[i];", False)):
        notes = drafted(tmp_path, LOOPS.format(region.format(store))).facts["notes"]
        assert any("same cache lines of sum" in note for note in notes) == is_shared


@pytest.mark.parametrize(
    "loop",
    [
        "#pragma omp parallel for\nEACH sum[i] = a[i];",
        "#pragma omp parallel for schedule(guided)\nEACH sum[i] = a[i];",
        "#pragma omp parallel for schedule(static, 8)\nEACH sum[i] = a[i];",
        "#pragma omp parallel for schedule(static, 1)\nEACH sum[8 * i] = a[i];",
        "#pragma omp parallel for schedule(static, 1)\nEACH\n"
        "for (long j = 0; j < n; j++) sum[i * n + j] = a[j];",
        "#pragma omp parallel for schedule(static, 1) reduction(+: s)\n"
        "EACH s += a[i];",
    ],
)  # fmt: skip
def test_loops_whose_threads_keep_to_their_lines_need_no_advice(loop: str, tmp_path: Path) -> None:
    found = drafted(tmp_path, LOOPS.format(f"double s = 0;\n{loop}"))
    assert (shared_writes(found), found.facts["notes"]) == ([], [])
