"""Calls by pointers, of virtual methods and of lambdas: followed where only one function fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from popmodel.source import c_family, function_calls
from popmodel.source.interpreter import Interpreter
from popmodel.source.source_events import MessageCall, RepeatedEvents, Work

FUNCTIONS = """
#include <stdlib.h>
typedef void (*Kernel)(double *, int);
struct Model { Kernel force; int cells; };
void near(double *a, int n) { for (int i = 0; i < n; i++) a[i] = 1; }
void far(double *a, int n) { for (int i = 0; i < n; i++) a[i] = 2; }
void apply(Kernel kernel, double *a, int n) { kernel(a, n); }
int unknown(void);
"""


def followed(
    folder: Path, before: str, body: str, traced: frozenset[str] = frozenset()
) -> tuple[list[str], list[str]]:
    """Functions with loops that a program calls, and what is named."""
    (folder / "a.cpp").write_text(
        f"{FUNCTIONS}{before}\nint main(int argc, char **argv) {{ int n = atoi(argv[1]);\n"
        f"double *a = (double *)malloc(8 * n);\n{body}\n}}\n"
    )
    made = Interpreter(c_family.read([folder / "a.cpp"]))
    made.traced = lambda: traced
    made.run()
    return [event.function for event in made.events if isinstance(event, Work)], made.notes


@pytest.mark.parametrize(
    ("before", "body", "functions"),
    [
        ("", "Kernel k = far; k(a, n); (*k)(a, n); k = &near; k(a, n);", ["far", "far", "near"]),
        ("", "Model m; m.force = near; m.cells = n; m.force(a, m.cells);", ["near"]),
        ("", "Model *m = (Model *)malloc(16); m->force = far; m->force(a, n);", ["far"]),
        ("", "Kernel all[2] = {near, far}; all[1](a, n); all[0](a, n);", ["far", "near"]),
        ("static Model known = {near, 3};", "known.force(a, n);", ["near"]),
        ("", "apply(far, a, n); apply(near, a, n);", ["far", "near"]),
        ("void keep(Kernel); extern Kernel kept;", "keep(near); kept(a, n);", ["near"]),  # by type
        (
            "struct A { virtual void f(double *, int) = 0; };\n"
            "struct B : A { void f(double *a, int n) { near(a, n); } }; A *make();",
            "make()->f(a, n);",
            ["near"],
        ),
        ("", "auto f = [&](double x) { for (int i = 0; i < n; i++) a[i] = x; }; f(2);",
         ["lambda of line 12"]),
        (
            "template <class F> void each(int n, F f) { for (int i = 0; i < n; i++) f(i); }",
            "each(n, [&](int i) { a[i] = i; });",
            ["each"],
        ),
    ],
)  # fmt: skip
def test_the_function_that_is_called_is_followed(
    before: str, body: str, functions: list[str], tmp_path: Path
) -> None:
    found, notes = followed(tmp_path, before, body)
    assert (found, [note for note in notes if "left out" in note]) == (functions, [])


TEMPLATES = """
template <class M> struct Sum { void operator()(M &, int n) {
  double x; MPI_Allreduce(&x, &x, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); } };
template <class M> struct Wait { void operator()(M &, int) { MPI_Barrier(MPI_COMM_WORLD); } };
struct Rows { int rows; int size() { return rows; } };
struct Pairs { int rows; int size() { return 2 * rows; } };
void extents(int &x, int &y) { x = 4; y = 5; }
template <class M, class F, class N> void solve(M &a, F f, N turns) {
  a.rows = a.size();
  for (N k = 1; k <= turns; ++k) f(a, a.rows);
}
int main(int argc, char **argv) {
  int x, y; double b[100]; extents(x, y);
  MPI_Bcast(b, x * y, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  Rows rows; rows.rows = 7; solve(rows, Sum<Rows>(), 30);
  Pairs pairs; pairs.rows = 7; solve(pairs, Sum<Pairs>(), 40); solve(pairs, Wait<Pairs>(), 50);
}
"""


def test_templates_call_the_methods_of_the_objects_that_they_are_given(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text(f"#include <mpi.h>\n{TEMPLATES}")
    made = Interpreter(c_family.read([tmp_path / "a.cpp"]))
    made.run()
    first, *loops = made.events
    assert isinstance(first, MessageCall) and first.bytes == 160
    assert [
        (loop.count, call.name, call.bytes)
        for loop in loops
        if isinstance(loop, RepeatedEvents)
        for call in loop.body
        if isinstance(call, MessageCall)
    ] == [(30, "allreduce", 56), (40, "allreduce", 112), (50, "barrier", None)]
    assert made.notes == []


CHOICE = "Kernel all[2] = {near, far}; all[unknown()](a, n);"


def test_of_several_all_are_named(tmp_path: Path) -> None:
    found, notes = followed(tmp_path, "", CHOICE)
    assert found == []
    assert "a.cpp:12: all: the function may be far (a.cpp:6), near (a.cpp:5): left out" in [
        note.replace("a pointer", "all") for note in notes
    ]


def test_of_several_that_which_a_traced_run_was_in_is_followed(tmp_path: Path) -> None:
    assert followed(tmp_path, "", CHOICE, frozenset({"far", "main"}))[0] == ["far"]


@pytest.mark.parametrize("cases", [0, 40])
def test_a_program_is_followed_up_to_a_count_of_statements_and_cases(
    cases: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function_calls, "MOST_STEPS", 10 + 6 * cases)
    body = "int k = 1;\n" + "if (n > k) k = k + n; else n = n - k;\n" * cases
    work = "for (int i = 0; i < n; i++) a[i] = i;\n" * 3
    assert followed(tmp_path, "", f"{body}near(a, n);")[0] == ([] if cases else ["near"])
    functions, notes = followed(tmp_path, "", f"{body}{work}near(a, n); far(a, n); near(a, n);")
    assert functions == ["main"] * 3
    assert [note for note in notes if "too large" in note] == [
        "the program is too large to be followed to its end: calls from near (a.cpp:5) on are "
        "not followed"
    ]
