"""Objects, templates and containers of C++, as programs use them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import popmodel

MAIN = """
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int n = std::atoi(argv[1]), size; MPI_Comm_size(MPI_COMM_WORLD, &size);
"""


def program(folder: Path, before: str, body: str) -> dict[str, Any]:
    """The document of a program of one file."""
    path = folder / "app.cpp"
    head = "#include <mpi.h>\n#include <cstdlib>\n#include <vector>\n#include <memory>\n"
    path.write_text(f"{head}{before}{MAIN}{body}\nMPI_Finalize(); }}\n")
    document = tomllib.loads(popmodel.signature(path).text)
    assert "constants" not in document  # nothing that is not known
    return document


def trips(document: dict[str, Any]) -> list[Any]:
    return [table["trip"] for item in document["program"] for table in item.values()]


GRID = """
struct Block { int rows; Block(int r) : rows(r) {} };
struct Grid : Block {
  int columns; std::vector<double> a;
  Grid(int r, int c) : Block(r), columns(c), a(r * c) { columns += 2; }
  void sweep(double by) {
    for (int i = 0; i < rows; i++)
      for (int j = 0; j < this->columns; j++) a[i * columns + j] *= by;
  }
};
"""


@pytest.mark.parametrize(
    "use",
    [
        "Grid g(n, 30); g.sweep(2.0);",
        "Grid g = Grid(n, 30); g.sweep(2.0);",
        "Grid *g = new Grid(n, 30); g->sweep(2.0);",
        "Grid g(n, 30), *p = &g; Grid &r = *p; r.sweep(2.0);",
    ],
)
def test_members_have_what_constructors_gave_them(use: str, tmp_path: Path) -> None:
    (sweep,) = program(tmp_path, GRID, use)["program"]
    assert (sweep["serial"]["name"], sweep["serial"]["trip"]) == ("sweep", "32*n")


def test_each_object_keeps_its_own_members(tmp_path: Path) -> None:
    found = program(tmp_path, GRID, "Grid g(n, 30), h(70, n); g.sweep(2.0); h.sweep(3.0);")
    assert trips(found) == ["102*n + 140"]  # one loop of the source, for both


@pytest.mark.parametrize(
    "loop",
    [
        "for (size_t i = 0; i < x.size(); i++) x[i] *= 2;",
        "for (auto &v : x) v *= 2;",
        "for (int i = 0; n > i; ++i) x.data()[i] *= 2;",
        "for (size_t i = 1; i - 1 < x.size(); i++) x[i - 1] *= 2;",
        "x.resize(2 * n); for (size_t i = 1; i + n < x.size() + 1; i++) x[i] *= 2;",
    ],
)
def test_a_vector_has_as_many_elements_as_it_was_given(loop: str, tmp_path: Path) -> None:
    document = program(tmp_path, "", f"std::vector<double> x(n, 1.0); {loop}")
    assert trips(document) == ["n"]
    (loop_table,) = (item["serial"] for item in document["program"])
    assert (loop_table["loads"], loop_table["stores"]) == (1, 1)


def test_messages_inside_of_templates_are_counted_by_the_loops_outside(tmp_path: Path) -> None:
    dot = """
    template <class T> T dot(const std::vector<T> &a, const std::vector<T> &b) {
      T s = 0, g; for (size_t i = 0; i < a.size(); i++) s += a[i] * b[i];
      MPI_Allreduce(&s, &g, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); return g; }
    """
    use = "std::vector<double> x(n); for (int k = 0; k < 100; k++) dot(x, x);"
    (loop,) = program(tmp_path, dot, use)["program"]
    assert loop["loop"]["count"] == 100
    work, reduction = loop["body"]
    assert work["serial"]["trip"] == "n"
    assert reduction["collective"]["op"] == "allreduce"


def test_an_object_on_the_heap_that_is_passed_by_reference_is_known(tmp_path: Path) -> None:
    before = """
struct Grid { int rows; Grid(int r) : rows(r) {} int &height() { return rows; } };
void sweep(Grid &grid, double *a) {
  for (int i = 0; i < grid.height(); i++) a[i] += 1.5;
}
"""
    body = "Grid *grid = new Grid(3 * n); sweep(*grid, (double *)malloc(8 * n));"
    assert trips(program(tmp_path, before, body)) == ["3*n"]


def test_a_template_that_is_written_out_for_some_types_is_found_by_its_arguments(
    tmp_path: Path,
) -> None:
    before = """
template <typename T> void scale(T *a, int n);
template <> void scale(double *a, int n) { for (int i = 0; i < 5 * n; i++) a[i] *= 1.5; }
template <> void scale(float *a, int n) { for (int i = 0; i < 7 * n; i++) a[i] *= 1.5f; }
template <typename T> void twice(T *a, int n) { scale(a, n); }
"""
    body = "double a[64]; float b[64]; scale(b, n); scale(a, n);"
    assert sorted(trips(program(tmp_path, before, body))) == ["5*n", "7*n"]


MATRIX = """
struct Matrix {
  int columns; std::vector<double> a;
  double &operator()(int i, int j) { return a[i * columns + j]; }
  const double &operator()(int i, int j) const { return a[i * columns + j]; }
};
struct Field {
  Matrix values;
  double &operator()(int i, int j) { return values(i, j); }
  const double &operator()(int i, int j) const { return values(i, j); }
};
template <class F> void sweep(F &next, const F &now, int rows, int columns) {
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) next(i, j) = 0.5 * (now(i, j + 1) + now(i + 1, j));
}
"""


def test_elements_are_found_behind_operators_that_return_references(tmp_path: Path) -> None:
    body = "Field now, next; now.values.columns = next.values.columns = n; sweep(next, now, n, n);"
    ((loop,),) = (item.values() for item in program(tmp_path, MATRIX, body)["program"])
    assert loop["trip"] == "n**2"
    assert (loop["flops"], loop["loads"], loop["stores"]) == (2, 2, 1)
