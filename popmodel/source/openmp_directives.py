"""OpenMP 5.2: all directives and clauses, and what a signature has of them.

A directive is a name of one or several words (`parallel for simd` is three constructs) with
clauses. What costs time and has no place in a signature is named: nothing is left out silently.
In C and C++ directives are pragmas, ``_Pragma``, macros of these, or attributes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

LOOPS = ("for", "do", "loop", "distribute", "taskloop", "simd", "tile", "unroll")
"""Directives behind which a loop stands."""
_SHARED = ("for", "do", "loop", "distribute", "taskloop")
"""Those whose iterations the threads share."""
BLOCKS = (
    *("parallel", "single", "critical", "atomic", "sections", "section", "task", "taskgroup"),
    *("ordered", "master", "masked", "scope", "workshare", "teams", "target", "target data"),
    *("allocators", "assume", "dispatch", "metadirective"),
)
"""Directives behind which a statement stands."""
ALONE = (
    *("barrier", "taskwait", "taskyield", "flush", "cancel", "cancellation point", "depobj"),
    *("interop", "error", "nothing", "scan", "target update", "target enter data"),
    *("target exit data", "threadprivate", "declare mapper", "declare reduction", "declare simd"),
    *("declare target", "declare variant", "begin declare target", "begin declare variant"),
    *("allocate", "requires", "assumes", "begin assumes", "begin metadirective"),
)
"""Directives without a statement behind them; all that begin with ``end`` are as well."""
_NAMES = sorted((*LOOPS, *BLOCKS, *ALONE), key=len, reverse=True)

PAID = {
    **{name: name for name in ("barrier", "single", "critical", "atomic", "ordered", "sections")},
    **{"task": "task", "taskwait": "taskwait", "master": "master", "masked": "master"},
    "workshare": "single",
}
"""Constructs of a machine's profile that a directive costs where no loop stands behind it."""
_UNMODELLED = (
    *("target", "teams", "distribute", "taskloop", "task", "taskgroup", "sections", "workshare"),
    *("cancel", "interop", "dispatch", "scan", "target data", "target update", "declare variant"),
    *("target enter data", "target exit data", "begin declare variant", "tile", "ordered"),
)
"""Directives that change what is done where, or when, which a signature does not say."""
_CLAUSE_NAMES = (
    "absent acq_rel acquire adjust_args affinity align aligned allocate allocator append_args "
    "at atomic_default_mem_order bind capture collapse compare contains copyin copyprivate "
    "default defaultmap depend destroy detach device device_type dist_schedule do doacross "
    "dynamic_allocators enter exclusive fail filter final firstprivate for from full grainsize "
    "has_device_addr hint holds if in_reduction inbranch inclusive indirect init initializer "
    "is_device_ptr lastprivate linear link map match mergeable message nocontext nogroup "
    "no_openmp no_openmp_routines no_parallelism nontemporal notinbranch novariants nowait "
    "num_tasks num_teams num_threads order ordered otherwise parallel partial priority private "
    "proc_bind read reduction relaxed release reverse_offload safelen schedule sections seq_cst "
    "severity shared simd simdlen sizes task_reduction taskgroup thread_limit threads to "
    "unified_address unified_shared_memory uniform untied update use use_device_addr "
    "use_device_ptr uses_allocators weak when write "
)
CLAUSES = frozenset(_CLAUSE_NAMES.split())
"""All clauses of OpenMP 5.2."""
_UNMODELLED_NAMES = (
    "depend device dist_schedule doacross final grainsize if map nowait num_tasks num_teams "
    "num_threads ordered priority thread_limit in_reduction task_reduction "
)
_UNMODELLED_CLAUSES = frozenset(_UNMODELLED_NAMES.split())
"""Clauses that change what a construct costs, which a signature does not say."""
_CLAUSE = re.compile(r"\s*,?\s*([A-Za-z_]\w*)\s*(\()?")


class OpenMPDirective(NamedTuple):
    """A directive as it stands in a source."""

    constructs: tuple[str, ...]  # ``parallel for`` is two
    clauses: tuple[tuple[str, str], ...]  # With what stands in brackets
    rest: str  # What cannot be read
    is_variant: bool = False  # Of a metadirective

    @property
    def name(self) -> str:
        return " ".join(self.constructs)

    @property
    def is_alone(self) -> bool:
        """Whether no statement belongs to it."""
        if self.constructs == ("ordered",):
            return any(clause in ("depend", "doacross") for clause, _ in self.clauses)
        if self.constructs == ("workshare",) or not self.constructs:
            return not self.constructs
        return self.constructs[0] in ALONE or self.constructs[0].startswith("end")

    @property
    def has_loop(self) -> bool:
        """Whether a loop has to stand behind it."""
        return not self.is_alone and any(name in LOOPS for name in self.constructs)

    @property
    def shares_loop(self) -> bool:
        """Whether threads share the iterations of the loop behind it."""
        return any(name in _SHARED for name in self.constructs)

    def argument(self, clause: str) -> str | None:
        """What stands in the brackets of a clause, if it is there."""
        return next((text for name, text in self.clauses if name == clause), None)

    @property
    def collapsed(self) -> int:
        """How many loops are one."""
        number = (self.argument("collapse") or "").strip()
        return int(number) if number.isdigit() and 0 < int(number) < 100 else 1

    def unmodelled(self) -> Iterator[str]:
        """What a signature does not say of it, a sentence each."""
        if self.constructs and self.constructs[0].startswith("end"):
            return
        if not self.constructs:
            yield f"{f'omp {self.rest[:40]}'.strip()}: no directive of OpenMP 5.2, left out"
            return
        for name in self.constructs:
            if name in _UNMODELLED:
                yield f"omp {name} is not modelled: what it is about is done as if without it"
        for clause, _ in self.clauses:
            if clause not in CLAUSES:
                yield f"omp {self.name}: {clause} is no clause of OpenMP 5.2, left out"
            elif clause in _UNMODELLED_CLAUSES:
                yield f"omp {self.name}: {clause} is not modelled"
        if self.is_variant:
            yield f"omp metadirective: taken as {self.name}"
        if self.rest:
            yield f"omp {self.name}: cannot be read: {self.rest[:40]}"


@lru_cache(10_000)
def parsed_directive(text: str) -> OpenMPDirective:
    """Read a directive, without its sentinel; of a metadirective the variant that is taken.

    Words may be run together as Fortran allows: ``endparalleldo``.
    """
    constructs: list[str] = []
    rest = " ".join(text.split())
    is_end = rest[:3].lower() == "end"
    if is_end:
        rest = rest[3:].lstrip()
    while name := _name_at(rest, bool(constructs)):
        constructs.append(name)
        match = re.match(name.replace(" ", r"\s*"), rest, re.IGNORECASE)
        assert match is not None
        rest = rest[match.end() :].lstrip()
    if is_end:
        constructs = [f"end {' '.join(constructs)}".strip(), *constructs]
    if not constructs:
        return OpenMPDirective((), (), rest)
    if constructs[0] in ("cancel", "cancellation point"):  # what is cancelled
        del constructs[1:]
    if rest.startswith("("):  # of critical, flush, threadprivate, depobj
        _, rest = bracketed(rest)
    clauses: list[tuple[str, str]] = []
    while match := _CLAUSE.match(rest):
        name, rest = match[1].lower(), rest[match.end() :]
        argument = ""
        if match[2]:
            argument, rest = bracketed(f"({rest}")
        clauses.append((name, argument))
    found = OpenMPDirective(tuple(constructs), tuple(clauses), rest.strip(" ,"))
    return _variant(found) if constructs == ["metadirective"] else found


def _name_at(text: str, is_combined: bool) -> str:
    """The name of a directive at the beginning of a text; of a clause nothing."""
    for name in _NAMES:
        pattern = name.replace(" ", r"\s*")
        match = re.match(rf"{pattern}(?![a-z_0-9])", text, re.IGNORECASE) or (
            not is_combined
            and name == "parallel"
            and re.match(r"parallel(?=(do|sections|workshare|loop))", text, re.IGNORECASE)
        )
        if match:
            follows = text[match.end() :].lstrip()
            is_clause = is_combined and follows.startswith("(") and name not in ("critical",)
            return "" if is_clause or (is_combined and name in ALONE) else name
    return ""


def bracketed(text: str) -> tuple[str, str]:
    """What stands in the brackets that a text begins with, and what follows them."""
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:position].strip(), text[position + 1 :]
    return text[1:].strip(), ""


_HOLDS = re.compile(
    r"condition\(\s*(1|true|\.true\.)\s*\)|kind\(\s*(host|cpu|any)\b", re.IGNORECASE
)
_FAILS = re.compile(
    r"condition\(\s*(0|false|\.false\.)\s*\)|kind\(\s*(gpu|nohost|fpga)\b"
    r"|arch\(\s*(nvptx|amdgcn|gcn)",
    re.IGNORECASE,
)
"""Selectors that are known to hold, or not to hold, on the processor of a process."""


def _variant(directive: OpenMPDirective) -> OpenMPDirective:
    """Of a metadirective the variant for processors; that for all other cases, if nobody knows."""
    chosen, others = "", ""
    for name, text in directive.clauses:
        selector, _, variant = text.partition(":")
        if name in ("default", "otherwise"):
            others = text or "nothing"
        elif name == "when" and not _FAILS.search(selector):
            if _HOLDS.search(selector):
                chosen = variant.strip() or "nothing"
                break
            others = others or variant
    return parsed_directive(chosen or others.strip() or "nothing")._replace(is_variant=True)


_COMMENT = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""",
    re.DOTALL,
)
"""Comments and texts, so that neither is taken for the other."""
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+omp\b((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
_OPERATOR = re.compile(r'\b_Pragma\s*\(\s*"\s*omp\b((?:\\.|[^"\\])*)"\s*\)')
_ATTRIBUTE = re.compile(r"\[\[\s*(?:using\s+omp\s*:|omp\s*::)")
_DIRECTIVE = re.compile(r"\bdirective\s*(?=\()")
_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)\n]*\))?((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE
)
_OF_ARGUMENT = re.compile(r"\b_Pragma\s*\(\s*#\s*(\w+|__VA_ARGS__)\s*\)|\b_Pragma\s*\(\s*\w+\s*\(")


class Pragma(NamedTuple):
    """A directive in a file of C or C++."""

    offset: int
    line: int
    text: str  # Without ``#pragma omp``


def pragma_macros(text: str) -> Iterator[tuple[str, str | None]]:
    """Macros that are pragmas of OpenMP, with their texts; None where an argument is the text."""
    for match in _MACRO.finditer(text):
        operators = _OPERATOR.findall(match[3])
        if operators:
            yield match[1], operators[-1]
        elif match[2] and _OF_ARGUMENT.search(match[3]):
            yield match[1], None


def pragmas_of(
    text: str, skipped: Sequence[tuple[int, int]], macros: Mapping[str, str | None]
) -> list[Pragma]:
    """Find the directives of a file in C or C++.

    Parameters
    ----------
    text : str
        The file, a letter for each byte.
    skipped : sequence of pairs of int
        First and last offsets that the preprocessor leaves out.
    macros : mapping of str to str
        Macros that are pragmas, as `pragma_macros` gives them.
    """
    plain = _COMMENT.sub(
        lambda match: (
            match[0].replace("\n#", "\n ")
            if match[0][0] in "\"'"
            else re.sub(r"[^\n\\]", " ", match[0])
        ),
        text,
    )
    found: list[tuple[int, str]] = []
    if "omp" in plain:
        found += [(match.start(), match[1]) for match in _PRAGMA.finditer(plain)]
        defined = [match.span() for match in _MACRO.finditer(plain)]
        for match in _OPERATOR.finditer(plain):
            if not any(begin <= match.start() < end for begin, end in defined):
                found.append((match.start(), match[1].replace('\\"', '"')))
        for match in _ATTRIBUTE.finditer(plain):
            end = plain.find("]]", match.end())
            inner = plain[match.end() : end if end >= 0 else len(plain)]
            for directive in _DIRECTIVE.finditer(inner):
                found.append((match.start(), bracketed(inner[directive.end() :])[0]))
    if macros:
        names = re.compile(rf"^[ \t]*#[^\n]*|\b({'|'.join(map(re.escape, macros))})\b", re.M)
        for match in names.finditer(plain):
            if match[1] is None:
                continue
            value = macros[match[1]]
            if value is None:
                value = bracketed(plain[match.end() :].lstrip())[0]
                if not re.match(r"omp\b", value):
                    continue
                value = value[3:]
            found.append((match.start(), value))
    starts = [position for position, letter in enumerate(text) if letter == "\n"] if found else []
    return [
        Pragma(
            offset, bisect_right(starts, offset) + 1, " ".join(part.replace("\\\n", " ").split())
        )
        for offset, part in sorted(found, key=lambda pair: pair[0])
        if not any(begin <= offset < end for begin, end in skipped)
    ]
