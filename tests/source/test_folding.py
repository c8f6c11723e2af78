"""A draft is something that a person reads: equal items once, small ones together."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import popmodel
from popmodel.source import signature_of_source

START = (
    "#include <mpi.h>\n#include <stdlib.h>\ndouble a[9], b[9];\n"
    "int main(int argc, char **argv) {\nint n = atoi(argv[1]);\n"
)


def items(program: list[Mapping[str, Any]], times: int = 1) -> Iterator[tuple[str, int, Any]]:
    for item in program:
        ((kind, entries),) = ((key, value) for key, value in item.items() if key != "body")
        if kind == "loop":
            yield from items(item["body"], times * int(entries["count"]))
        else:
            yield kind, times, entries


@given(st.lists(st.sampled_from(["8", "16", "n"]), min_size=1, max_size=40))
def test_calls_that_are_written_once_keep_their_count(sizes: list[str]) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "app.c"
        calls = "\n".join(f"MPI_Bcast(a, {size}, MPI_BYTE, 0, MPI_COMM_WORLD);" for size in sizes)
        path.write_text(START + calls + "\nreturn 0; }\n")
        text, _ = signature_of_source([path], "app")
    program = tomllib.loads(text)["program"]
    found: Counter[str] = Counter()
    for _, times, entries in items(program):
        found[str(entries["bytes"])] += times
    assert found == Counter(sizes)
    assert len(program) <= 12


def test_small_loops_of_a_long_program_are_joined_with_their_sum(tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    loops = "".join(
        f"void f{k}(int n) {{ for (int i = 0; i < n; i++) a[i] = b[i]{' + b[i]' * k}; }}\n"
        for k in range(60)
    )
    nest = "".join(f"for (int {k} = 0; {k} < n; {k}++) " for k in "ijk")
    large = f"{nest}a[(i*n+j)*n+k] = b[(i*n+j)*n+k] + 1;\n"
    calls = "".join(f"f{k}(n);\n" for k in range(60))
    head, main = START.split("int main")
    path.write_text(f"{head}{loops}int main{main}{large}{calls}return 0; }}\n")
    found = popmodel.signature(path)
    assert found.text is not None
    document = tomllib.loads(found.text)
    assert len(found.text.splitlines()) < 60
    joined = document["program"][-1]["serial"]
    assert joined["flops"] == f"{sum(range(60))}*n"
    assert joined["loads"] == joined["stores"] == "60*n"


def test_a_message_in_a_loop_is_joined_with_equal_ones_there_only(tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    call = "MPI_Barrier(MPI_COMM_WORLD);\n"
    path.write_text(
        START + f"{call * 20}\nfor (int i = 0; i < n; i++) {{ {call} }}\nreturn 0; }}\n"
    )
    text = popmodel.signature(path).text
    assert text is not None
    counts = [item["loop"]["count"] for item in tomllib.loads(text)["program"]]
    assert counts == [20, "n"]


@pytest.mark.parametrize(
    ("body", "trip"),
    [
        ("int k = 0, s = 1; for (int i = 0; i < n; i++) { k += s; s += 2; }", "n**2"),
        ("int k = 0; for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) k++;", "n*(n - 1)/2"),
        ("int k = 5; for (int i = 0; i < n; i++) { if (c()) break; k = 7; }", None),
    ],
)
def test_numbers_that_loops_count_are_exact_or_unknown(
    body: str, trip: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "app.c"
    path.write_text(
        START.replace("int main", "int c(void);\nint main")
        + f"{body}\nMPI_Bcast(a, k, MPI_BYTE, 0, MPI_COMM_WORLD); return 0; }}\n"
    )
    text = popmodel.signature(path).text
    assert text is not None
    size = tomllib.loads(text)["program"][-1]["collective"]["bytes"]
    if trip is None:
        assert size not in (5, 7)
    else:
        assert all(eval(size, {"n": n}) == eval(trip, {"n": n}) for n in range(1, 9))


def test_what_holds_after_an_early_return_or_break_is_of_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    path.write_text(
        START.replace(
            "int main", "int g; void f(int n) { if (n > 3) { g = 8; return; } g = 16; }\nint main"
        )
        + "f(n); MPI_Bcast(a, g, MPI_BYTE, 0, MPI_COMM_WORLD); return 0; }\n"
    )
    text = popmodel.signature(path).text
    assert text is not None
    size = tomllib.loads(text)["program"][-1]["collective"]["bytes"]
    assert [eval(size, {"n": n}) for n in (1, 3, 4, 9)] == [16, 16, 8, 8]


@pytest.mark.parametrize(("first", "then"), [(0, 1), (1, 0), (0, 0), (2, 1)])
def test_a_flag_that_a_branch_has_set_decides_later(first: int, then: int, tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    path.write_text(
        START + f"int f = {first}; if (n > 3) {{ f = {then}; }} int g = 8; if (f) g = 16;\n"
        "MPI_Bcast(a, g, MPI_BYTE, 0, MPI_COMM_WORLD); return 0; }\n"
    )
    text = popmodel.signature(path).text
    assert text is not None
    size = str(tomllib.loads(text)["program"][-1]["collective"]["bytes"])
    for n in (1, 9):
        assert eval(size, {"n": n}) == (16 if (then if n > 3 else first) else 8)
