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


def test_a_container_is_as_long_as_what_is_put_into_it(tmp_path: Path) -> None:
    found = program(
        tmp_path,
        "struct List { std::vector<double> values; };\n",
        "List list; for (int i = 0; i < n; i++) { list.values.push_back(0); }\n"
        "std::vector<double> all(list.values), none;\n"
        "list.values.swap(none);\n"
        "for (size_t i = 0; i < all.size(); i++) all[i] *= 2;\n"
        "for (size_t i = 0; i < none.size(); i++) none[i] += 3;\n"
        "for (size_t i = 0; i < list.values.size(); i++) all[i] = 1;",
    )
    assert trips(found) == ["n", "n", "n"]
    assert found["program"][0]["serial"]["stores"] == 1


def test_what_is_put_into_a_container_by_data_has_a_length_that_nobody_knows(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rows.cpp"
    path.write_text(
        "#include <mpi.h>\n#include <cstdlib>\n#include <vector>\n"
        "struct Rows { std::vector<int> begin, columns; std::vector<double> values; };\n"
        "int main(int argc, char **argv) { int n = atoi(argv[1]); Rows rows; double s = 0;\n"
        "rows.begin.resize(n + 1); rows.begin[0] = 0;\n"
        "for (int i = 0; i < n; i++) {\n"
        "  if (i % 7 > 2) { rows.columns.push_back(i); rows.values.push_back(1); }\n"
        "  rows.begin[i + 1] = rows.columns.size(); }\n"
        "for (int i = 0; i < n; i++)\n"
        "  for (int k = rows.begin[i]; k < rows.begin[i + 1]; k++) s += rows.values[k];\n"
        "return s > 0; }\n"
    )
    found = tomllib.loads(popmodel.signature(path).text)
    (length,) = found["constants"]
    assert found["program"][-1]["serial"]["trip"] == f"n*{length}" and length.endswith("_range")


OPTIONS = """
struct Options { int cells = 64; int steps; };
Options parse(int argc, char **argv) {
  Options options{}; options.steps = 10;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string key = argv[i];
    if (key == "--cells") options.cells = std::stoi(argv[i + 1]);
    else if (key == "--steps") options.steps = std::stoi(argv[i + 1]);
  }
  return options;
}
template <typename T> class Field {
 public:
  Field(int cells) : cells_(cells), values_(cells * cells) {}
  void smooth() { for (int i = 1; i < cells_ - 1; i++) values_[i] = values_[i - 1]; }
 private:
  int cells_; std::vector<T> values_;
};
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  Options options = parse(argc, argv);
  Field<double> field(options.cells);
  for (int step = 0; step < options.steps; step++) field.smooth();
  MPI_Finalize();
}
"""


def test_an_object_that_a_function_returns_is_known_and_options_keep_their_defaults(
    tmp_path: Path,
) -> None:
    path = tmp_path / "app.cpp"
    path.write_text(f"#include <mpi.h>\n#include <string>\n#include <vector>\n{OPTIONS}")
    found = tomllib.loads(popmodel.signature(path).text)
    assert found["params"] == {"cells": 64, "steps": 10} and "constants" not in found
    assert trips(found) == ["steps*(cells - 2)"]


def test_options_of_getopt_are_parameters_with_their_defaults(tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    path.write_text(
        "#include <mpi.h>\n#include <stdlib.h>\n#include <getopt.h>\n"
        "typedef struct { int n, steps; } Options;\n"
        "int main(int argc, char **argv) { Options o = {96, 5}; int c; double a[1000];\n"
        'while ((c = getopt(argc, argv, "n:s:")) != -1) switch (c) {\n'
        "  case 'n': o.n = atoi(optarg); break;\n  case 's': o.steps = atoi(optarg); break; }\n"
        "for (int t = 0; t < o.steps; t++) for (int i = 0; i < o.n; i++) a[i] *= 2; }\n"
    )
    found = tomllib.loads(popmodel.signature(path).text)
    assert found["params"] == {"n": 96, "steps": 5} and "constants" not in found


def test_a_number_behind_a_pointer_that_was_kept_is_no_constant_of_what_is_returned(
    tmp_path: Path,
) -> None:
    path = tmp_path / "app.c"
    path.write_text(
        "#include <mpi.h>\n#include <stdlib.h>\n#include <stdio.h>\n"
        "typedef struct { int n, m; } Options; static int *kept[9]; static int used;\n"
        "void add(int *where) { kept[used++] = where; }\n"
        "Options parse(char **argv) { Options o; o.n = 20; o.m = 30; add(&o.n);\n"
        '  for (int i = 0; argv[i]; i++) sscanf(argv[i], "%d", kept[i]);\n  return o; }\n'
        "int main(int argc, char **argv) { Options o = parse(argv); double a[1000];\n"
        "for (int i = 0; i < o.n * o.m; i++) a[i] *= 2; }\n"
    )
    found = tomllib.loads(popmodel.signature(path).text)
    assert found["params"] == {"o_n": 20}
    assert found["program"][-1]["serial"]["trip"] == "30*o_n"


def test_fields_of_objects_in_an_array_move_the_objects_through_the_caches(tmp_path: Path) -> None:
    found = program(
        tmp_path,
        "struct Particle { double x, y, vx, vy; int id; };\n"
        "struct Cell { double a[16], x; char rest[120]; };\n",
        "std::vector<Particle> all(n); std::vector<Cell> cells(n);\n"
        "for (auto &p : all) { p.x += 2 * p.vx; }\n"
        "for (int i = 0; i < n; i++) cells[i].x = 0;",
    )
    first, second = (item["serial"] for item in found["program"])
    assert (first["loads"], first["stores"]) == (2, 1)
    assert (first["bytes"]["MEM"], first["written"]["MEM"]) == (80, 40)
    assert second["bytes"]["MEM"] == 128  # one line of an object of four, read and written


def test_an_object_that_is_made_inside_of_a_template_is_made_by_its_constructor(
    tmp_path: Path,
) -> None:
    found = program(
        tmp_path,
        "template <typename T> struct Mesh { int cells; T *a;\n"
        "  Mesh(int k) : cells(k + 1) {} Mesh(int k, int m) : cells(k * m) {} };\n"
        "template <typename S> void run(S n) {\n"
        "  Mesh<S> mesh(n), other(n, 2); std::vector<S> all(n);\n"
        "  double s = 0; std::vector<double> b(9);\n"
        "  for (int i = 0; i < mesh.cells; i++) b[i] *= 2;\n"
        "  for (int i = 0; i < other.cells; i++) b[i] *= 3;\n"
        "  for (int i = 0; i < all.size(); i++) b[i] *= 4; }\n",
        "run<int>(n);",
    )
    assert trips(found) == ["n + 1", "2*n", "n"]


def test_the_size_of_a_type_that_a_template_leaves_open_is_asked_for_by_its_name(
    tmp_path: Path,
) -> None:
    path = tmp_path / "app.cpp"
    path.write_text(
        "#include <mpi.h>\n"
        "template <typename T> void send(T *a, int n) {\n"
        "  MPI_Bcast(a, n * sizeof(T), MPI_BYTE, 0, MPI_COMM_WORLD); }\n"
        "int main() { double a[9]; MPI_Init(0, 0); send(a, 9); }\n"
    )
    found = tomllib.loads(popmodel.signature(path).text)
    assert found["constants"] == {"sizeof_T": "?"}
    assert found["program"][0]["collective"]["bytes"] == "9*sizeof_T"
