"""Wrong, partial and hostile sources, each as files by name with the names that are given."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

C_MAIN = "#include <stdlib.h>\nint main(int argc, char **argv) {{\nint n = atoi(argv[1]);\n{}\n}}\n"
DATA = Path(__file__).parent / "data" / "sources"
FORTRAN_MAIN = (
    "program p\ninteger :: i, j, n, k\nreal(8) :: a(100), s\nread(*,*) n\n{}\nend program\n"
)


class HostileSource(NamedTuple):
    """A program that may be anything."""

    name: str
    files: dict[str, bytes]
    given: tuple[str, ...] = ()  # All of C, C++ and Fortran where empty


_ARRAYS = "double *a = malloc(8 * n), *b = malloc(8 * n), s = 0; int i, j, k = 0;\n"


def _cases(name: str) -> list[str]:
    """Programs, or their bodies, of a file; control characters stand as words."""
    text = (DATA / f"{name}.txt").read_text().removesuffix("\n")
    for word, letter in (("@NUL@", "\0"), ("@SOH@", "\1"), ("@STX@", "\2")):
        text = text.replace(word, letter)
    return text.split("\n====\n")


def _of_any_depth(depth: int) -> Iterator[tuple[str, str]]:
    """Names of files, and their texts."""
    names = [f"i{number}" for number in range(depth)]
    loops = "".join(f"for (int {name} = 0; {name} < n; {name}++) " for name in names)
    yield "braces.c", C_MAIN.format("{" * depth + ";" + "}" * depth)
    yield "parentheses.c", C_MAIN.format("n = " + "(" * depth + "n" + ")" * depth + ";")
    yield "sums.c", C_MAIN.format("n = n" + " + n" * depth + ";")
    yield "unary.c", C_MAIN.format("n = " + "- " * depth + "n;")
    yield "pointers.c", C_MAIN.format(f"int {'*' * depth}p; n = {'*' * depth}p;")
    yield "subscripts.c", C_MAIN.format("int *a; n = " + "a[" * depth + "n" + "]" * depth + ";")
    yield "ifs.c", C_MAIN.format("if (n) " * depth + "n = 1;")
    yield "elses.c", C_MAIN.format("if (n == 1) n = 2; else " * depth + "n = 1;")
    yield "conditions.c", C_MAIN.format("int k; n = " + "k ? 1 : " * depth + "n;")
    yield "loops.c", C_MAIN.format(f"double *a = malloc(8); {loops} a[n] += 1;")
    yield "whiles.c", C_MAIN.format("while (n) " * depth + "n--;")
    yield "commas.c", C_MAIN.format("n = (" + "n, " * depth + "1);")
    yield "calls.c", C_MAIN.format("n = " + "abs(" * depth + "n" + ")" * depth + ";")
    yield "unclosed.c", C_MAIN.format("{ ( [ " * depth)
    yield "statements.c", C_MAIN.format("n = n * 3 + 1;\n" * depth)
    yield "arrays.c", C_MAIN.format(f"int a{'[2]' * depth}; a{'[n]' * depth} = 1;")
    yield "directives.c", C_MAIN.format("#pragma omp parallel\n" * depth + ";")
    chain = "".join(f"int f{k}(int x) {{ return f{k + 1}(x) + f{k + 1}(x); }}\n"
                    for k in reversed(range(depth)))  # fmt: skip
    yield "chain.c", f"int f{depth}(int x) {{ return x; }}\n{chain}int main() {{ return f0(1); }}"
    macros = "".join(f"#define M{k + 1} M{k} M{k}\n" for k in range(min(depth, 12)))
    yield "macros.c", f"#define M0 n++;\n{macros}" + C_MAIN.format(f"M{min(depth, 12)}")
    yield "conditionals.c", "#if 1\n" * depth + C_MAIN.format("") + "#endif\n" * depth
    yield (
        "template.cpp",
        "template <class T> struct X { T t; };\nint main() { "
        + ("X<" * depth + "int" + ">" * depth + " x; }"),
    )
    yield "lambdas.cpp", "int main() { " + "[] { " * depth + ";" + "}();" * depth + "}"
    yield "namespaces.cpp", "namespace a { " * depth + "int x;" + "}" * depth + "int main() { }"
    yield "dos.f90", FORTRAN_MAIN.format("do i = 1, n\n" * depth + "end do\n" * depth)
    yield "ifs.f90", FORTRAN_MAIN.format("if (n > 1) then\n" * depth + "end if\n" * depth)
    yield (
        "elses.f90",
        FORTRAN_MAIN.format("if (n == 0) then\n" + "else if (n == 1) then\n" * depth + "end if"),
    )
    yield "brackets.f90", FORTRAN_MAIN.format("n = " + "(" * depth + "n" + ")" * depth)
    yield "sums.f90", FORTRAN_MAIN.format("n = n" + " + n" * depth)
    yield "continued.f90", FORTRAN_MAIN.format("n = n" + " &\n + n" * depth)
    yield "unclosed.f90", FORTRAN_MAIN.format("do i = 1, n\nif (n > 1) then\n" * depth)
    yield "statements.f90", FORTRAN_MAIN.format("n = n*3 + 1\n" * depth)
    yield "directives.f90", FORTRAN_MAIN.format("!$omp parallel\n" * depth + "n = 1")
    yield "blocks.f90", FORTRAN_MAIN.format("block\n" * depth + "end block\n" * depth)


def _files() -> Iterator[HostileSource]:
    """Files that are wrong as files, or only together."""
    main = C_MAIN.format("double a[9]; for (int i = 0; i < n; i++) a[i] += 1;")
    fortran = FORTRAN_MAIN.format("do i = 1, n\na(i) = 1\nend do")
    noise = random.Random(1).randbytes(20_000)
    for suffix in (".c", ".cpp", ".f90", ".f", ".F90"):
        text = main if suffix.startswith(".c") else fortran
        yield HostileSource(f"empty{suffix}", {f"a{suffix}": b""})
        yield HostileSource(f"noise{suffix}", {f"a{suffix}": noise})
        yield HostileSource(f"elf{suffix}", {f"a{suffix}": b"\x7fELF\x02\x01\x01" + bytes(500)})
        yield HostileSource(f"zeros{suffix}", {f"a{suffix}": bytes(50_000)})
        yield HostileSource(f"crlf{suffix}", {f"a{suffix}": text.replace("\n", "\r\n").encode()})
        yield HostileSource(f"cr{suffix}", {f"a{suffix}": text.replace("\n", "\r").encode()})
        yield HostileSource(f"utf16{suffix}", {f"a{suffix}": text.encode("utf-16")})
        yield HostileSource(f"mark{suffix}", {f"a{suffix}": text.encode("utf-8-sig")})
        yield HostileSource(
            f"latin1{suffix}", {f"a{suffix}": text.replace("n", "\xe9").encode("latin-1")}
        )
        yield HostileSource(f"unended{suffix}", {f"a{suffix}": text.rstrip("\n").encode() + b"\\"})
        yield HostileSource(f"nul{suffix}", {f"a{suffix}": text.replace(" ", " \0", 3).encode()})
        yield HostileSource(
            f"two mains{suffix}", {f"a{suffix}": text.encode(), f"b{suffix}": text.encode()}
        )
        yield HostileSource(f"main twice in a file{suffix}", {f"a{suffix}": (text + text).encode()})
        for share in (0.3, 0.6, 0.9):
            cut = text[: int(len(text) * share)].encode()
            yield HostileSource(f"cut at {share}{suffix}", {f"a{suffix}": cut})
    yield HostileSource("languages", {"a.c": main.encode(), "b.f90": fortran.encode()})
    yield HostileSource("C as Fortran", {"a.f90": main.encode()})
    yield HostileSource("Fortran as C", {"a.c": fortran.encode()})
    yield HostileSource("page as C", {"a.c": b"<html><body onload='x()'>&nbsp;</body></html>"})
    cycle = {"a.c": b'#include "b.h"\nint main() { return 0; }', "b.h": b'#include "c.h"\n'}
    yield HostileSource("includes in a cycle", {**cycle, "c.h": b'#include "b.h"\nint x;\n'})
    yield HostileSource("includes itself", {"a.c": b'#include "a.c"\nint main() { return 0; }'})
    yield HostileSource("includes itself in Fortran", {"a.f90": b"include 'a.f90'\nend"})
    missing = "".join(f'#include "none{number}.h"\n' for number in range(60))
    yield HostileSource("missing headers", {"a.c": (missing + main).encode()})
    yield HostileSource("library only", {"a.c": b"void f(int n) { while (n--) ; }"})
    mutual = "int g(int); int f(int n) { return g(n - 1); } int g(int n) { return f(n) + f(n); }"
    yield HostileSource("mutual recursion", {"a.c": f"{mutual} int main() {{ f(9); }}".encode()})
    line = "a[1] += 1; " * 95_000
    yield HostileSource("one line of 1 MB", {"a.c": C_MAIN.format(f"double a[9]; {line}").encode()})
    text = "x" * 1_000_000
    yield HostileSource("a name of 1 MB", {"a.c": C_MAIN.format(f"int {text} = 1;").encode()})
    yield HostileSource("a text of 1 MB", {"a.c": C_MAIN.format(f'char *t = "{text}";').encode()})
    yield HostileSource("a line of 1 MB in Fortran", {
        "a.f90": FORTRAN_MAIN.format("a(1) = a(1) + 1; " * 60_000).encode()})  # fmt: skip


def hostile_sources(depths: tuple[int, ...] = (30, 300, 3000)) -> Iterator[HostileSource]:
    """All of them."""
    for number, body in enumerate(_cases("hostile_c")):
        yield HostileSource(f"C {number}", {"a.c": C_MAIN.format(_ARRAYS + body).encode()})
    for number, text in enumerate(_cases("hostile_cxx")):
        yield HostileSource(f"C++ {number}", {"a.cpp": text.encode()})
    for number, body in enumerate(_cases("hostile_fortran")):
        yield HostileSource(f"Fortran {number}", {"a.F90": FORTRAN_MAIN.format(body).encode()})
        fixed = "".join(f"      {line}\n" if line[:1] not in "!#" else f"{line}\n"
                        for line in FORTRAN_MAIN.format(body).splitlines())  # fmt: skip
        yield HostileSource(f"fixed form {number}", {"a.F": fixed.encode()})
    for depth in depths:
        for name, text in _of_any_depth(depth):
            yield HostileSource(f"{depth} {name}", {name: text.encode()})
    yield from _files()
