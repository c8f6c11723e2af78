"""The user's compiler: its options for a file, and the instructions that it makes of loops.

Options come from `compile_commands.json`, where there is one in the folder of a file, above it, or
in `build` of these. For instructions a file is compiled to assembly (`-S`) in a temporary folder;
nothing of the program is executed. A loop of the assembly belongs to one of the source by its
by its lines; how many elements one turn of it does follows from the operations of both.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy

from popmodel.signatures.document import Noted, TomlItem
from popmodel.source.formula_text import formula
from popmodel.source.fortran_text import SUFFIXES as FORTRAN
from popmodel.source.intermediate_form import HEADERS
from popmodel.source.source_events import Tally

if TYPE_CHECKING:
    from popmodel.source.draft import Draft

_ABOVE = 4
"""Folders above that of a file in which options are looked for."""
_SHARE = 0.25
"""Share of the lines of a loop of the assembly that have to be those of the source's loop."""
_FAR = 0.5
"""Relative difference of the work of both, beyond which they are not the same."""
_MOST_FILES = 8
"""Files that are compiled."""
_LIMIT_S = 60
"""Time that a compiler may take for a file, s."""
_DROPPED = re.compile(r"-c|-S|-E|-M\w*|-save-temps.*|-fplugin.*|-pipe|-fsyntax-only|--coverage")
_WITH_ARGUMENT = ("-o", "-MF", "-MT", "-MQ", "-Xclang")
_ARITHMETIC = re.compile(r"v?(add|sub|mul|div|sqrt|min|max)([ps])([ds])$")
_FUSED = re.compile(r"v?fn?m(?:add|sub)\d*([ps])([ds])$")
_ARM = re.compile(r"f(?:add|sub|mul|div|sqrt|min(?:nm)?|max(?:nm)?|nmul)$")
_ARM_FUSED = re.compile(r"fn?m(?:add|sub|la|ls)$")
_WIDTHS = {"x": 16, "y": 32, "z": 64}
"""Bytes of vector registers of x86-64, by the letter of their names."""
_SCALARS = {"b": 1, "w": 2, "l": 4, "q": 8}
_REGISTER = re.compile(r"(?:%[xyz]mm|\b[vdsq])(\d+)\b")
_WRITTEN = re.compile(r"%[xyz]mm\d+(?:\{.*\})?$")
"""A vector register as the last operand of x86-64."""
_WRITE_ONLY = ("v", "movs", "movu", "mova", "movq", "movd", "cvt", "sqrt", "pshuf")
"""Beginnings of instructions of x86-64 that do not read what they write to, fused ones apart."""
_SLOW = 4
"""Additions that take as long as a division or a root."""
_ADDITION = sympy.Symbol("machine.core.add_cycles")
_WINDOW = 128
"""Instructions that a core works on at a time: so much of the next rows overlaps with a chain."""
_TURNS = 4
"""Turns after which what one adds to a chain does not change."""
_JUMP = re.compile(r"(j[a-z]+|b(?:\.\w+)?|cbn?z|tbn?z)\s+(?:[^,]*,\s*)*(\.?L\w+)$")


class CompileCommand(NamedTuple):
    """How a file is compiled."""

    folder: Path
    words: tuple[str, ...]  # Without the file, and without what says what is made of it

    @property
    def flags(self) -> tuple[str, ...]:
        """What the front ends need of it: macros, headers and the language, paths in full."""
        found, words = [], iter(self.words[1:])
        for word in words:
            if word in ("-I", "-D", "-U", "-isystem", "-iquote", "-include"):
                word += next(words, "")
            for start in ("-isystem", "-iquote", "-I"):
                if word.startswith(start):
                    found.append(f"-I{self.folder / word.removeprefix(start)}")
                    break
            else:
                if word.startswith(("-D", "-U", "-std=")):
                    found.append(word)
        return tuple(found)


def compile_command(path: Path) -> tuple[CompileCommand | None, str]:
    """How a file is compiled, by the database of its project; and what is wrong with that."""
    file = path.resolve()
    for folder in list(file.parents)[: _ABOVE + 1]:
        for database in (folder / "compile_commands.json", folder / "build/compile_commands.json"):
            if database.is_file():
                commands, problem = _database(str(database))
                return commands.get(str(file)), problem
    return None, ""


@lru_cache(32)
def _database(path: str) -> tuple[dict[str, CompileCommand], str]:
    found: dict[str, CompileCommand] = {}
    try:
        entries = json.loads(Path(path).read_text())
        for entry in entries:
            folder = Path(path).parent / entry["directory"]
            words = entry.get("arguments") or shlex.split(entry["command"])
            file = os.path.realpath(folder / entry["file"])
            found[file] = CompileCommand(folder, tuple(_kept(words, folder, file)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        name = Path(path).name
        return {}, f"{name}: is damaged ({type(error).__name__}), not used"
    return found, ""


def _kept(words: Sequence[str], folder: Path, file: str) -> Iterator[str]:
    """The words of a command that do not say what is made of which file."""
    rest = iter(words)
    yield next(rest, "cc")
    for word in rest:
        if word in _WITH_ARGUMENT:
            next(rest, None)
        elif not _DROPPED.fullmatch(word) and os.path.realpath(folder / word) != file:
            yield word


class AssemblyLoop(NamedTuple):
    """An innermost loop of the compiler's assembly."""

    lines: frozenset[tuple[str, int]]  # Names of files without folders, and lines
    instructions: int
    operations: int  # On floating-point numbers, all lanes
    stored: int  # Bytes
    lanes: int  # Of floating-point operations, at most
    chain: int  # Additions, or as long, one after the other from each turn to the next


def assembly_loops(path: Path, options: Sequence[str]) -> tuple[list[AssemblyLoop], str]:
    """The innermost loops of a file as the user's compiler makes them, and why there are none."""
    command, _ = compile_command(path)
    default = ("FC", "gfortran") if path.suffix in FORTRAN else (
        ("CC", "cc") if path.suffix == ".c" else ("CXX", "c++")
    )  # fmt: skip
    compiler = os.environ.get(default[0]) or default[1]
    words = list(command.words) if command else [*shlex.split(compiler), "-O3", "-fopenmp"]
    if shutil.which(words[0]) is None:
        return [], f"no compiler {words[0]}: instructions are estimated"
    folder = command.folder if command else Path.cwd()
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "out.s"
        made = [*words, *options, "-g1", "-S", f"-I{path.resolve().parent}", "-o", str(target)]
        if path.suffix in FORTRAN:
            made += ["-J", scratch]
        else:
            made += ["-idirafter", str(HEADERS)]
        try:
            run = subprocess.run(
                [*made, str(path.resolve())],
                cwd=folder,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_LIMIT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return [], f"{path.name}: {words[0]} did not finish ({type(error).__name__})"
        if run.returncode or not target.is_file():
            lines = run.stderr.decode("utf-8", "replace").splitlines()
            first = next((line for line in lines if "rror" in line), "no message")
            said = "".join(filter(str.isprintable, first))[-80:]
            return [], f"{path.name}: {words[0]} cannot compile it, instructions estimated: {said}"
        return list(loops_of(target.read_text("utf-8", "replace"))), ""


def loops_of(text: str) -> Iterator[AssemblyLoop]:
    """The innermost loops of an assembly of x86-64 (AT&T syntax) or AArch64."""
    files: dict[str, str] = {}
    code: list[tuple[str, tuple[str, int]]] = []  # Instructions with their places
    labels: dict[str, int] = {}
    jumps: list[tuple[int, int]] = []  # Backwards: to, from
    place = ("", 0)
    for line in text.splitlines():
        words = line.split("#")[0].strip()
        if match := re.match(r'\.file\s+(\d+)\s+(?:"[^"]*"\s+)?"([^"]*)"', line.strip()):
            files[match[1]] = match[2].rpartition("/")[2]
        elif match := re.match(r"\.loc\s+(\d+)\s+(\d+)", words):
            place = files.get(match[1], ""), int(match[2])
        elif match := re.match(r"([\w.$]+):", words):
            labels[match[1]] = len(code)
            if not match[1].startswith((".L", "L")):
                place = ("", 0)
        elif words and not words.startswith((".", "/", ";")):
            if jump := _JUMP.match(words):
                begin = labels.get(jump[2])
                if begin is not None:
                    jumps.append((begin, len(code)))
            code.append((words, place))
    for begin, end in sorted(set(jumps)):
        if any(
            begin <= other and last <= end and (other, last) != (begin, end)
            for other, last in jumps
        ):
            continue
        body = code[begin : end + 1]
        counted = [_counted(words) for words, _ in body]
        yield AssemblyLoop(
            frozenset(place for _, place in body if place[1]),
            len(body),
            sum(operations for operations, _, _ in counted),
            sum(stored for _, stored, _ in counted),
            max(lanes for _, _, lanes in counted),
            _chain([words for words, _ in body]),
        )


def _chain(body: Sequence[str]) -> int:
    """Additions, or as long, that wait for each other from a turn to the next, without branches."""
    depth: dict[str, int] = {}  # Operations that the value of a register has waited for
    before: dict[str, int] = {}
    if sum(_JUMP.match(words) is not None for words in body) > 1:
        return 0  # nobody knows which way turns go
    for _ in range(_TURNS):
        before = dict(depth)
        for words in body:
            name, _, operands = words.replace("\t", " ").partition(" ")
            registers = _REGISTER.findall(operands)
            if name in ("call", "bl", "blr"):
                return 0
            if name.startswith("ld"):
                depth.update(dict.fromkeys(registers, 0))
                continue
            is_x86 = "%" in operands
            if (
                not registers
                or "com" in name
                or "fcmp" in name
                or name.startswith("st")
                or (is_x86 and not _WRITTEN.search(operands))
            ):
                continue
            *read, written = registers if is_x86 else reversed(registers)
            if (
                _FUSED.match(name)
                or name in ("fmla", "fmls")
                or (is_x86 and not name.startswith(_WRITE_ONLY))
            ):
                read.append(written)
            if "xor" in name and len(registers) > 1 and len(set(registers)) == 1:
                read = []  # zero
            takes = (_SLOW if re.search("div|sqrt", name) else 1) * (_counted(words)[0] > 0)
            depth[written] = takes + max((depth.get(one, 0) for one in read), default=0)
    return max((depth[one] - before.get(one, 0) for one in depth), default=0)


def _counted(words: str) -> tuple[int, int, int]:
    """Floating-point operations, bytes stored, and lanes of an instruction."""
    name, _, operands = words.partition("\t")
    name, operands = name.strip(), operands.strip()
    if not operands:
        name, _, operands = words.partition(" ")
    wide = max((_WIDTHS[letter] for letter in re.findall(r"%([xyz])mm", operands)), default=0)
    match, times = _ARITHMETIC.match(name), 1
    if match is None and (match := _FUSED.match(name)):
        times = 2
    if match:
        packed, kind = match.groups()[-2:]
        lanes = wide // (8 if kind == "d" else 4) if packed == "p" else 1
        return times * lanes, 0, lanes
    if _ARM.match(name) or _ARM_FUSED.match(name):
        vector = re.search(r"\.(\d+)[dshb]", operands)
        lanes = int(vector[1]) if vector else 1
        return lanes * (2 if _ARM_FUSED.match(name) else 1), 0, lanes
    if name.startswith(("mov", "vmov")) and operands.endswith(")"):
        if re.search(r"(sd|lp[ds]|hp[ds]|q)$", name) or not wide:
            return 0, 8 if wide else _SCALARS.get(name[-1], 8), 1
        return 0, 4 if name.endswith("ss") else wide, 1
    if name in ("str", "stur", "stp", "st1"):
        size = 16 if operands[:1] in "qv" else 8 if operands[:1] in "xd" else 4
        return 0, size * (2 if name == "stp" else 1), 1
    return 0, 0, 1


def loop_instructions(
    loops: Sequence[AssemblyLoop],
    places: frozenset[tuple[str, int]],
    operations: float,
    stored: float,
) -> tuple[int, int, int] | None:
    """Instructions of a turn of the compiler's loop, the elements that it does, and its chain.

    Parameters
    ----------
    loops : sequence of AssemblyLoop
        Of the file.
    places : frozenset of (str, int)
        Names of files and lines of what an iteration of the source does.
    operations, stored : float
        Of an iteration of the source: additions, multiplications and divisions; bytes.

    Returns
    -------
    tuple of int, optional
        None where no loop of the compiler has these lines, or does what the source does.
    """
    best: tuple[tuple[float, ...], tuple[int, int, int]] | None = None
    for loop in loops:
        shared = len(places & loop.lines)
        done, needed = (loop.operations, operations) if operations else (loop.stored, stored)
        if not done or not needed or shared < _SHARE * len(loop.lines):
            continue
        elements = max(round(done / needed / loop.lanes), 1) * loop.lanes
        if abs(done / needed / elements - 1) > _FAR:
            continue
        fits = shared, loop.lanes, shared / len(loop.lines)
        if best is None or fits > best[0]:
            best = fits, (loop.instructions, elements, loop.chain)
    return None if best is None else best[1]


def iteration_of(accesses: Sequence[Any], flops: dict[str, float]) -> tuple[Any, float, float]:
    """Places, operations and stored bytes of an iteration of the source."""
    places = frozenset((access.place.file.rpartition("/")[2], access.place.line)
                       for access in accesses)  # fmt: skip
    operations = sum(times for name, times in flops.items() if name in ("+", "-", "*", "/"))
    stores = {(access.array, access.path): access.size for access in accesses if access.is_store}
    return places, operations, sum(stores.values())


def as_compiled(draft: Draft, program: Sequence[TomlItem]) -> list[TomlItem]:
    """The program with instructions as the user's compiler makes them, where it can."""
    names = [item.entries.get("name", "") for item in _all_items(program)]
    wanted = [name for name in names if draft.iterations.get(name, Tally()).accesses]
    wanted.sort(key=lambda name: -draft.amounts[name].cost())
    given = {str(path): path for path in draft.files}
    files: dict[Path, None] = {}
    for name in wanted:
        file = draft.iterations[name].accesses[0].place.file
        files |= dict.fromkeys([given[file]] if file in given else draft.files)
    loops, counts = [], {}
    for path in list(files)[:_MOST_FILES]:
        found, problem = assembly_loops(path, draft.options)
        loops += found
        if problem:
            draft.note(problem)
    for name in wanted:
        tally = draft.iterations[name]
        counted = loop_instructions(loops, *iteration_of(tally.accesses, tally.flops))
        if counted is not None:
            counts[name] = counted
    if len(counts) < len(wanted) and loops:
        rest = len(wanted) - len(counts)
        draft.note(f"instructions of {rest} of {len(wanted)} loops are estimated")
    return _with_instructions(draft, program, counts)


def _with_instructions(
    draft: Draft, items: Sequence[TomlItem], counts: Mapping[str, tuple[int, int, int]]
) -> list[TomlItem]:
    made = []
    for item in items:
        entries = dict(item.entries)
        if entries.get("name") in counts:
            number, elements, chain = counts[entries["name"]]
            if chain and "chain" not in entries:
                waits = formula(sympy.Rational(chain, elements) * _ADDITION)
                if (turns := draft.turns.get(entries["name"])) is not None:  # rows begin anew
                    turns = turns if str(turns).isalnum() else f"({turns})"
                    waits = f"{waits}*min(1, {number}*{turns}/{elements * _WINDOW})"
                entries["chain"] = Noted(waits, f"{chain} for {elements}, one after the other")
            each = formula(sympy.Rational(number, elements))
            entries["instructions"] = Noted(each, f"{number} for {elements} by the compiler")
        body = tuple(_with_instructions(draft, item.body, counts))
        made.append(item._replace(entries=entries, body=body))
    return made


def _all_items(items: Iterable[TomlItem]) -> Iterator[TomlItem]:
    for item in items:
        yield item
        yield from _all_items(item.body)
