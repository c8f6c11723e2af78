"""Every table of a signature: its keys, and what it describes.

The page bundled/README.md shows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from popmodel.model.grammar.keys import (
    EXPONENT,
    NOT_NEGATIVE,
    ONE_OR_MORE,
    POSITIVE,
    SHARE,
    GrammarKey,
)
from popmodel.model.grammar.reading import Path
from popmodel.model.kinds import KINDS
from popmodel.model.kinds.item import ItemTable
from popmodel.model.kinds.words import Entry, ordinal
from popmodel.model.run.memory_domains import FIRST_TOUCH

_DOCUMENT: Mapping[str, tuple[GrammarKey, ...]] = {
    "": (
        GrammarKey("schema", "", None, "popmodel/signature/1"),
        GrammarKey("app", "", None, "table: the application"),
        GrammarKey("params", "", "none", "table: parameters of the problem, numbers above 0"),
        GrammarKey(
            "constants",
            "",
            "none",
            "table: what was measured or fitted of the program, numbers of at least 0",
        ),
        GrammarKey(
            "let",
            "",
            "none",
            "table: names for formulas, by P, T, parameters, the grid and each other",
        ),
        GrammarKey("limits", "", "none", "table: what a run must satisfy"),
        GrammarKey(
            "decomp", "", "none", "table: how the cells of a grid are divided among processes"
        ),
        GrammarKey("imbalance", "", "none", "table: how the work of the processes varies"),
        GrammarKey(
            "memory", "", "none", "table: in which memory domains the data of a process lies"
        ),
        GrammarKey("program", "", None, "list of items, executed in order"),
        GrammarKey("recorded", "", "none", "table: recorded times by name, packed text"),
        GrammarKey(
            "calibration",
            "",
            "none",
            "table: what measured runs have taught; popmodel signature from writes it",
        ),
        GrammarKey(
            "learnt",
            "",
            "none",
            "table: the runs that it was learnt from; popmodel signature from writes it",
        ),
    ),
    "app": (
        GrammarKey("name", "", None, "name of the application"),
        GrammarKey("description", "", "none", "what it does"),
        GrammarKey(
            "command",
            "",
            "./NAME",
            "the program and its arguments, as in a shell; {N} stands for a parameter N, {P} and "
            "{T} for processes and threads",
        ),
        GrammarKey("source", "", "none", "reference"),
        GrammarKey(
            "not_modelled",
            "",
            "none",
            "MPI calls of the program that the signature does not contain, in words",
        ),
    ),
    "limits": (
        GrammarKey("require", "", "none", "list of conditions on P, T and parameters"),
        GrammarKey("memory_per_rank", "B", "unknown", "memory per process", NOT_NEGATIVE),
    ),
    "decomp": (
        GrammarKey(
            "global", "1", "none", "list: cells along each dimension, at most three", POSITIVE
        ),
        GrammarKey(
            "grid",
            "1",
            "auto",
            "list: processes along each dimension; auto chooses the grid with the smallest surface",
            ONE_OR_MORE,
        ),
        GrammarKey(
            "periodic",
            "",
            "false",
            "whether boundaries are periodic, for all dimensions or for each",
        ),
    ),
    "imbalance": (
        GrammarKey(
            "persistent_cv",
            "1",
            "0",
            "coefficient of variation of the work per process, the same in every step",
            NOT_NEGATIVE,
        ),
        GrammarKey(
            "transient_cv",
            "1",
            "0",
            "coefficient of variation of the work per process, drawn anew in every step",
            NOT_NEGATIVE,
        ),
        GrammarKey(
            "reference_processes",
            "1",
            "1",
            "number of processes for which both are given",
            POSITIVE,
        ),
        GrammarKey(
            "growth_exponent", "1", "0", "H: both grow as (P/reference_processes)**H", EXPONENT
        ),
        GrammarKey(
            "largest",
            "1",
            "0",
            "part of the work of all processes that cannot be divided, such as the largest of some "
            "blocks: the process that has it works as long with any number of processes",
            SHARE,
        ),
    ),
    "memory": (
        GrammarKey(
            "first_touch",
            "",
            "threads",
            "who touched the data first, in whose memory domain it lies: threads, those that use "
            "it; master, the master thread of the process; interleaved, an equal share in every "
            "domain that the threads of the process are on",
            choices=FIRST_TOUCH,
        ),
    ),
    "calibration": (
        GrammarKey("machine", "", None, "name of the machine that the runs were made on"),
        GrammarKey("machine_digest", "", None, "hash of the values of its profile"),
        GrammarKey(
            "noise", "1", None, "standard deviation of the logarithm of a runtime, run to run"
        ),
        GrammarKey(
            "own",
            "1",
            None,
            "errors of laws that every split has for itself, as a part of those without runs",
        ),
        GrammarKey("hull", "", None, "table: smallest and largest value of the runs, by name"),
        GrammarKey("runs", "", None, "table: the runs, by their hash"),
        GrammarKey(
            "terms",
            "",
            "none",
            "table: times that the signature lacks, one standard deviation each",
        ),
        GrammarKey(
            "drifts",
            "",
            "none",
            "table: how far the speed of computing may drift over a doubling, and from where",
        ),
        GrammarKey(
            "scores",
            "",
            None,
            "table: mean and deviation of standard normal scores behind uncertain inputs, and the "
            "value of constants",
        ),
        GrammarKey("tied", "", None, "correlations of the scores, packed text"),
    ),
    "learnt": (
        GrammarKey(
            "openmp",
            "",
            None,
            "whether a run had parallel regions; without, more than one thread is refused",
        ),
        GrammarKey(
            "runs",
            "",
            None,
            "list of tables: P, T and parameters of each run; runtime as measured, s; waited, the "
            "share of the time that threads waited for CPUs; replays on the ideal network: ideal, "
            "of its trace, written, of this file, s; left_out, that of a signature learnt without "
            "the run, over ideal",
        ),
    ),
}
_INSIDE: tuple[type[ItemTable], ...] = tuple(
    table
    for kind in KINDS.values()
    for table in (kind, *(key.table for key in kind.own if key.table is not None))
)

KEYS: Mapping[str, tuple[GrammarKey, ...]] = {
    **_DOCUMENT,
    **{one.kind: one.keys() for one in _INSIDE},
}
"""The keys of every table of a signature, by its name; the document itself has none."""

TABLES: Mapping[str, str] = {
    "": "the document",
    **{one.name: one.meaning.removeprefix("table: ") for one in _DOCUMENT[""] if one.name in KEYS},
    **{one.kind: one.about for one in _INSIDE},
}
"""What each table describes."""


def key_of(table: str, name: str) -> GrammarKey:
    return next(key for key in KEYS[table] if key.name == name)


def key_at(path: Path) -> GrammarKey | None:
    """Return the entry of the formula at a place; None for a name that ``let`` defines."""
    if path[0] == "let":
        return None
    *_, outer, table, name = ("", *(part for part in path if isinstance(part, str)))
    return key_of(table, name) if table in KEYS else key_of(outer, table)


def label_of(path: Path) -> str:
    """Name a place as it is written, such as ``parallel.bytes.MEM`` or ``limits.require``."""
    # an item is numbered in its body; what is numbered in it are entries of a list
    numbers = [
        index
        for index, part in enumerate(path)
        if isinstance(part, int) and path[index - 1] in ("program", "body")
    ]
    inside = path[numbers[-1] + 1 :] if path[0] == "program" else path
    return ".".join(part for part in inside if isinstance(part, str))


# The program of a signature in words: a sentence for each item, with its formulas.


def tree(program: Sequence[Entry], depth: int = 0) -> Iterator[tuple[int, str]]:
    """Every item of a program in words, with its depth."""
    for item in program:
        yield depth, sentence(item)
        yield from tree(item.get("body", ()), depth + 1)


def sentence(item: Entry) -> str:
    """What an item does, in words with its formulas."""
    text = KINDS[item["kind"]].sentence(item)
    if item["every"]["formula"] != "1":
        text = f"in every {ordinal(item['every'])} iteration: {text}"
    return f"{item['name']}: {text}"
