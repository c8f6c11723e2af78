"""Every table of a signature: its keys, and what it describes.

The page bundled/README.md shows them.
"""

from __future__ import annotations

from collections.abc import Mapping

from popmodel.model.grammar.keys import EXPONENT, NOT_NEGATIVE, ONE_OR_MORE, POSITIVE, SHARE, Key
from popmodel.model.grammar.toml_lines import Path
from popmodel.model.kinds import KINDS
from popmodel.model.kinds.item import Table
from popmodel.model.run.remote import FIRST_TOUCH

_DOCUMENT: Mapping[str, tuple[Key, ...]] = {
    "": (
        Key("schema", "", None, "popmodel/signature/1"),
        Key("app", "", None, "table: the application"),
        Key("params", "", "none", "table: parameters of the problem, numbers above 0"),
        Key(
            "constants",
            "",
            "none",
            "table: what was measured or fitted of the program, numbers of at least 0",
        ),
        Key(
            "let",
            "",
            "none",
            "table: names for formulas, by P, T, parameters, the grid and each other",
        ),
        Key("limits", "", "none", "table: what a run must satisfy"),
        Key("decomp", "", "none", "table: how the cells of a grid are divided among processes"),
        Key("imbalance", "", "none", "table: how the work of the processes varies"),
        Key("memory", "", "none", "table: in which memory domains the data of a process lies"),
        Key("program", "", None, "list of items, executed in order"),
        Key("recorded", "", "none", "table: recorded times by name, packed text"),
        Key(
            "calibration",
            "",
            "none",
            "table: what measured runs have taught; popmodel calibrate writes it",
        ),
        Key(
            "learnt",
            "",
            "none",
            "table: the runs that it was learnt from; popmodel signature from writes it",
        ),
    ),
    "app": (
        Key("name", "", None, "name of the application"),
        Key("description", "", "none", "what it does"),
        Key(
            "command",
            "",
            "./NAME",
            "the program and its arguments, as in a shell; {N} stands for a parameter N, {P} and "
            "{T} for processes and threads",
        ),
        Key("source", "", "none", "reference"),
        Key(
            "not_modelled",
            "",
            "none",
            "MPI calls of the program that the signature does not contain, in words",
        ),
    ),
    "limits": (
        Key("require", "", "none", "list of conditions on P, T and parameters"),
        Key("memory_per_rank", "B", "unknown", "memory per process", NOT_NEGATIVE),
    ),
    "decomp": (
        Key("global", "1", "none", "list: cells along each dimension, at most three", POSITIVE),
        Key(
            "grid",
            "1",
            "auto",
            "list: processes along each dimension; auto chooses the grid with the smallest surface",
            ONE_OR_MORE,
        ),
        Key(
            "periodic",
            "",
            "false",
            "whether boundaries are periodic, for all dimensions or for each",
        ),
    ),
    "imbalance": (
        Key(
            "persistent_cv",
            "1",
            "0",
            "coefficient of variation of the work per process, the same in every step",
            NOT_NEGATIVE,
        ),
        Key(
            "transient_cv",
            "1",
            "0",
            "coefficient of variation of the work per process, drawn anew in every step",
            NOT_NEGATIVE,
        ),
        Key(
            "reference_processes",
            "1",
            "1",
            "number of processes for which both are given",
            POSITIVE,
        ),
        Key("growth_exponent", "1", "0", "H: both grow as (P/reference_processes)**H", EXPONENT),
        Key(
            "largest",
            "1",
            "0",
            "part of the work of all processes that cannot be divided, such as the largest of some "
            "blocks: the process that has it works as long with any number of processes",
            SHARE,
        ),
    ),
    "memory": (
        Key(
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
        Key("machine", "", None, "name of the machine that the runs were made on"),
        Key("machine_digest", "", None, "hash of the values of its profile"),
        Key("noise", "1", None, "standard deviation of the logarithm of a runtime, run to run"),
        Key(
            "own",
            "1",
            None,
            "errors of laws that every split has for itself, as a part of those without runs",
        ),
        Key("hull", "", None, "table: smallest and largest value of the runs, by name"),
        Key("runs", "", None, "table: the runs, by their hash"),
        Key(
            "terms",
            "",
            "none",
            "table: times that the signature lacks, one standard deviation each",
        ),
        Key(
            "drifts",
            "",
            "none",
            "table: how far the speed of computing may drift over a doubling, and from where",
        ),
        Key(
            "scores",
            "",
            None,
            "table: mean and deviation of standard normal scores behind uncertain inputs, and the "
            "value of constants",
        ),
        Key("tied", "", None, "correlations of the scores, packed text"),
    ),
    "learnt": (
        Key(
            "openmp",
            "",
            None,
            "whether a run had parallel regions; without, more than one thread is refused",
        ),
        Key(
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
_INSIDE: tuple[type[Table], ...] = tuple(
    table
    for kind in KINDS.values()
    for table in (kind, *(key.table for key in kind.own if key.table is not None))
)

KEYS: Mapping[str, tuple[Key, ...]] = {**_DOCUMENT, **{one.kind: one.keys() for one in _INSIDE}}
"""The keys of every table of a signature, by its name; the document itself has none."""

TABLES: Mapping[str, str] = {
    "": "the document",
    **{one.name: one.meaning.removeprefix("table: ") for one in _DOCUMENT[""] if one.name in KEYS},
    **{one.kind: one.about for one in _INSIDE},
}
"""What each table describes."""


def key_of(table: str, name: str) -> Key:
    """Return the entry of a key."""
    return next(key for key in KEYS[table] if key.name == name)


def key_at(path: Path) -> Key | None:
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
